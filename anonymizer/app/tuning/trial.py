"""What comes of one configuration: classes, verified, measured, attacked and learned from.

What a release is worth: its figures.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict

from anonymizer.algorithms.attacks.linkability import homogeneity, link
from anonymizer.algorithms.attacks.released_classes import publish
from anonymizer.algorithms.cells.pruning import prune
from anonymizer.algorithms.cells.tree import Grown, grow
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of, without_gaps
from anonymizer.algorithms.records.criteria import why_impossible
from anonymizer.algorithms.records.measures import Measures, measure
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.app.anonymize.models import MODELS, Model, Task
from anonymizer.app.tuning.bench import Bench, Window
from anonymizer.app.tuning.model_score import score_of_release
from anonymizer.app.tuning.space import Configuration, Names
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from anonymizer.errors import GuaranteeError
from anonymizer.pipeline.records.cells_model import target_of
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.multisource_model import MODELS as WINDOW_MODELS
from anonymizer.settings.streams import METHODS


class Trial(BaseModel):
    """What came of a configuration.

    Attributes
    ----------
    state
        `tried`; `impossible`: no release keeps the promise, and `why`; `pruned`: more is deleted
        than may be, so that no model was trained and no attack mounted.
    n_classes
        Equivalence classes.
    deletion
        Share of the records that are suppressed.
    lossless
        Whether none is.
    gcp
        Global certainty penalty (range), of which a record left out counts 1, and so does a
        quasi-identifier that is not published.
    reached_k, reached_d, reached_l
        Of the worst class.
    score
        Accuracy of a model that learned from the release; None: there is no target.
    linked
        Share of the published persons of whom one source tells a value of another, or a sensitive
        one, to the adversary who learns most.
    homogeneous
        Share of the published persons whose class has one value of a sensitive attribute.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    configuration: Configuration
    state: Literal["tried", "impossible", "pruned"]
    why: str | None = None
    n_classes: int = 0
    deletion: float = 1.0
    lossless: bool = False
    gcp: float = 1.0
    reached_k: int = 0
    reached_d: int = 0
    reached_l: int = 0
    score: float | None = None
    linked: float | None = None
    homogeneous: float | None = None


def figures(
    bench: Bench,
    class_of: Sequence[Int32Array],
    configuration: Configuration,
    *,
    n_qis: int,
    most: float,
) -> Trial:
    """Measure, attack and learn from the classes of each window.

    Parameters
    ----------
    n_qis
        Of the records, those included that are not published.
    most
        What deletes more is neither attacked nor learned from.
    """
    found = [
        measure(window.records, bench.schema, of)
        for window, of in zip(bench.windows, class_of, strict=True)
    ]
    n = max(sum(each.n for each in found), 1)
    n_out = sum(each.n_suppressed for each in found)
    there = [each for each in found if each.n_classes]
    trial = Trial(
        configuration=configuration,
        state="tried",
        n_classes=sum(each.n_classes for each in found),
        deletion=n_out / n,
        lossless=n_out == 0,
        gcp=sum(_loss(each, n_qis) * each.n for each in found) / n,
        reached_k=min((each.k for each in there), default=0),
        reached_d=min((d for each in there for d in each.d), default=0),
        reached_l=min((diverse for each in there for diverse in each.l), default=0),
    )
    if trial.deletion > most:
        return trial.model_copy(update={"state": "pruned"})
    learned = {"score": score_of_release(bench, class_of) if bench.judged else None}
    return trial.model_copy(update={**learned, **_learned_by_attacks(bench, class_of)})


def _loss(found: Measures, n_qis: int) -> float:
    """Return the GCP where quasi-identifiers that are not published are lost whole."""
    ncp = found.ncp[Cost.RANGE]
    return (sum(ncp) + n_qis - len(ncp)) / n_qis


def _learned_by_attacks(bench: Bench, class_of: Sequence[Int32Array]) -> Mapping[str, float | None]:
    n_persons = n_linked = n_alike = 0
    for window, of in zip(bench.windows, class_of, strict=True):
        seen = publish(window.records, bench.schema, of)
        leaks = link(seen, bench.schema, window.records, of)
        alike = homogeneity(seen, bench.schema, window.records, of)
        n_persons += len(np.unique(window.records.person[of >= 0]))
        n_linked += max((leak.n_people for leak in leaks), default=0)
        n_alike += max((each.n_people for each in alike), default=0)
    if not n_persons:
        return {"linked": None, "homogeneous": None}
    attacked = bench.schema.sensitive or len(bench.schema.sources) > 1
    return {
        "linked": n_linked / n_persons if attacked else None,
        "homogeneous": n_alike / n_persons if bench.schema.sensitive else None,
    }


_AT_ONCE_S = 1e-9
"""Budget of a search that ends where it begins: equal on every machine."""


@dataclass(frozen=True, slots=True)
class Row:
    """Configurations that differ in l alone: they share a tree."""

    model: str
    k: int
    d: int
    without: Names
    l: tuple[int, ...]  # noqa: E741  the field's name for it

    def configurations(self) -> Iterator[Configuration]:
        """Yield each of them, the smallest l first."""
        for diverse in sorted(self.l):
            yield Configuration(
                model=self.model, k=self.k, d=self.d, l=diverse, without=self.without
            )


def try_row(
    bench: Bench, row: Row, *, max_deletion: float, models: Mapping[str, Model] = MODELS
) -> list[Trial]:
    """Return what comes of each configuration of a row, the smallest l first.

    Parameters
    ----------
    max_deletion
        Configurations that suppress more are pruned early.
    models
        What `row.model` names, but for `cells`.

    Raises
    ------
    GuaranteeError
        If a class does not keep the promise when independent code looks at it.

    Notes
    -----
    Classes of a stream are formed as the gateway forms them, without a search; its models are in
    `pipeline.records.models`.

    A tree is grown once, for k, and cut back for each l; of a stream once more where the tree
    learns what is sensitive as soon as that is bounded. Where an l leaves the classes as they
    were, so are all figures. What comes of a configuration does not depend on the others.
    """
    shown = without(bench, row.without)
    grown: dict[str | None, list[Grown]] = {}
    of_model = row.model if bench.stream else models.get(row.model, row.model)
    known: dict[bytes, Trial] = {}
    trials = []
    for configuration in row.configurations():
        promise = shown.promise(
            k=row.k, d=row.d, l=configuration.l, qis=[qi.name for qi in shown.schema.qis]
        )
        made_by: Sequence[Grown | Model | str] = [of_model] * len(shown.windows)
        if row.model == "cells":
            learned = _learned(shown, promise)
            if learned not in grown:
                grown[learned] = [_grown(shown, window, row.k, learned) for window in shown.windows]
            made_by = grown[learned]
        found = [
            _classes(shown, window, promise, how)
            for window, how in zip(shown.windows, made_by, strict=True)
        ]
        reasons = [why for _, why in found]
        if None not in reasons:
            trial = Trial(configuration=configuration, state="impossible", why=reasons[0])
        else:
            class_of = [of for of, _ in found]
            same = b"".join(of.tobytes() for of in class_of)
            if same not in known:
                known[same] = figures(
                    shown, class_of, configuration, n_qis=len(bench.schema.qis), most=max_deletion
                )
            trial = known[same].model_copy(update={"configuration": configuration})
        trials.append(trial)
    return trials


def without(bench: Bench, names: Names) -> Bench:
    """Return a bench whose records lack some quasi-identifiers."""
    schema = bench.schema
    kept = [j for j, qi in enumerate(schema.qis) if qi.name not in names]
    place = {j: i for i, j in enumerate(kept)}
    sources = (tuple(place[j] for j in source if j in place) for source in schema.sources)
    fewer = Schema(
        tuple(schema.qis[j] for j in kept), schema.sensitive, tuple(s for s in sources if s)
    )

    def cut(windows: Sequence[Window]) -> tuple[Window, ...]:
        return tuple(
            Window(
                Records(
                    np.ascontiguousarray(w.records.qi[:, kept]),
                    w.records.sensitive,
                    w.records.person,
                ),
                w.target,
            )
            for w in windows
        )

    return replace(bench, schema=fewer, windows=cut(bench.windows), judged=cut(bench.judged))


def _learned(bench: Bench, promise: Promise) -> str | None:
    """Return the attribute that the tree of a stream learns under a promise; of a table none."""
    return None if bench.stream is None else _served(bench, promise, "cells").settings.learned


def _grown(bench: Bench, window: Window, k: int, learned: str | None) -> Grown:
    target: ArrayLike | None = window.target if bench.judged else None
    numeric = False
    if bench.stream is not None:
        target, numeric = target_of(bench.stream, learned, _told(bench.stream, window))
    records, seed = window.records, bench.seed
    return grow(records, bench.schema, target, min_leaf=k, numeric=numeric, seed=seed)


def _told(stream: Stream, window: Window) -> Int32Array:
    """Return the codes of the sensitive attributes and measures; of measures the target's alone."""
    measures = [
        window.target if measure.name == stream.settings.target else np.zeros_like(window.target)
        for measure in stream.measures
    ]
    return np.column_stack([window.records.sensitive, *measures])


def _classes(
    bench: Bench, window: Window, promise: Promise, made_by: Grown | Model | str
) -> tuple[Int32Array, str | None]:
    """Return the class of each record, and why there is none; verified."""
    records, schema = window.records, bench.schema
    problem = make_problem(records, schema, promise)
    why = why_impossible(problem, schema) or _why_not_served(bench, promise, made_by)
    if why is not None:
        return np.full(records.n, SUPPRESSED, np.int32), why
    if isinstance(made_by, Grown):
        class_of = prune(made_by, problem).class_of
    elif isinstance(made_by, str):
        class_of = _as_the_gateway(bench, window, promise, made_by)
    else:
        task = Task(records, schema, promise, problem, seed=bench.seed)
        class_of = made_by.methods[made_by.default_method](task)
    if broken := verify_classes(records, schema, promise, class_of):
        raise GuaranteeError(
            f"k = {promise.k}, d = {promise.d}, l = {promise.l}: "
            f"{len(broken)} breaches of the promise were found in the classes"
        )
    return class_of, None


def _why_not_served(bench: Bench, promise: Promise, made_by: Grown | Model | str) -> str | None:
    """Return why no stream can have a promise, None if one can; see `StreamSettings`."""
    if bench.stream is None or not isinstance(made_by, Grown):
        return None
    settings = _served(bench, promise, "cells").settings
    sensitive = {attribute.name for attribute in bench.schema.sensitive}
    if settings.learned in sensitive and not settings.promise.bounds_sensitive:
        return f"{settings.learned} is sensitive and what the tree learns: l must be 2 or more"
    return None


def _served(bench: Bench, promise: Promise, model: str) -> Stream:
    """Return the stream of a bench as it would be with another promise and model."""
    stream = bench.stream
    assert stream is not None  # noqa: S101  the caller has seen to it
    names = {attribute.name for attribute in (*bench.schema.qis, *bench.schema.sensitive)}
    same = METHODS[stream.settings.model] == METHODS[model]
    asked = {"k": promise.k, "d": promise.d, "l": promise.l}
    changes = {
        "model": model,
        "method": stream.settings.method if same else "auto",
        "budget_s": _AT_ONCE_S,
        "attributes": tuple(a for a in stream.settings.attributes if a.name in names),
        "promise": stream.settings.promise.model_copy(update=asked),
    }
    settings = stream.settings.model_copy(update=changes)
    return replace(stream, settings=settings, schema=bench.schema, promise=promise)


def _as_the_gateway(bench: Bench, window: Window, promise: Promise, model: str) -> Int32Array:
    stream, records = _served(bench, promise, model), window.records
    chosen = WINDOW_MODELS[model](stream)
    measures = _told(stream, window)[:, len(stream.schema.sensitive) :]
    class_of = chosen.classes(records, measures, left=lambda: 0.0, seed=bench.seed)
    told = chosen.generalized(records, classes_of(class_of), seed=bench.seed)
    refused = [*chosen.rejected(records, class_of, told, seed=bench.seed)]
    return without_gaps(np.where(np.isin(class_of, refused), np.int32(SUPPRESSED), class_of))

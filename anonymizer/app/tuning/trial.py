"""Trials: the classes of a configuration, verified, measured, attacked and used for training."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from anonymizer.algorithms.records.methods import AUTO, MODELS, Model, Task, searches, warm_up
from anonymizer.algorithms.records.problem import Cost, Problem, make_problem
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.app.tuning.bench import Bench, Window
from anonymizer.app.tuning.model_score import score_of_release
from anonymizer.app.tuning.space import Configuration, Names
from anonymizer.app.tuning.time_shares import RowTime
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from anonymizer.errors import GuaranteeError
from anonymizer.pipeline.records.cells_model import target_of
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.multisource_model import WINDOW_MODELS


class Trial(BaseModel):
    """Figures of a configuration.

    Attributes
    ----------
    state
        `tried`. `impossible`: no release keeps the promise, see `why`. `pruned`: too many records
        are suppressed, so no model was trained and no attack was run. `no_time`: the time budget
        ended before it was tried.
    n_classes
        Number of equivalence classes.
    deletion
        Share of the records that are suppressed.
    lossless
        Whether no record is suppressed.
    gcp
        Global certainty penalty (range). A suppressed record counts as 1, and so does a
        quasi-identifier that is left out.
    reached_k, reached_d, reached_l
        Smallest values of any class.
    score
        Accuracy of a model trained on the release; None: there is no target.
    linked
        Share of the published persons for whom the strongest adversary, who knows one source,
        learns a value of another source or a sensitive value.
    homogeneous
        Share of the published persons whose class has a single value of a sensitive attribute.
    cut_short
        Whether a search ended because its time did. More time may find better classes, and another
        run may find different ones.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    configuration: Configuration
    state: Literal["tried", "impossible", "pruned", "no_time"]
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
    cut_short: bool = False


def figures(
    bench: Bench,
    class_of: Sequence[Int32Array],
    configuration: Configuration,
    *,
    n_qis: int,
    most: float,
) -> Trial:
    """Return the figures of the classes of each window.

    Parameters
    ----------
    n_qis
        Number of quasi-identifiers, including those that are not published.
    most
        Largest share of suppressed records. Beyond it, no attack is run and no model is trained.
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
    learned = {"score": score_of_release(bench, class_of) if bench.test_windows else None}
    return trial.model_copy(update={**learned, **_learned_by_attacks(bench, class_of)})


def _loss(found: Measures, n_qis: int) -> float:
    """Return the GCP, counting 1 for quasi-identifiers that are not published."""
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


@dataclass(frozen=True, slots=True)
class Row:
    """Configurations that differ only in l: those of `cells` share a tree."""

    model: str
    k: int
    d: int
    without: Names
    l: tuple[int, ...]  # noqa: E741  the field's name for it

    def configurations(self) -> Iterator[Configuration]:
        """Yield the configurations, the smallest l first."""
        for diverse in sorted(self.l):
            yield Configuration(
                model=self.model, k=self.k, d=self.d, l=diverse, without=self.without
            )


def has_search(bench: Bench, model: str) -> bool:
    """Return whether the configurations of a model search, and so can use more time."""
    n = min((window.records.n for window in bench.windows), default=0)
    return searches(_method(bench, MODELS[model], n))


def prepare(bench: Bench, models: Iterable[str]) -> None:
    """Compile the kernels of searches, so that this is not counted as time of a configuration."""
    promise = bench.promise(k=2, d=2, l=1, qis=[])
    for model in models:
        if has_search(bench, model):
            warm_up(_method(bench, MODELS[model], 0), bench.schema, promise)


def _method(bench: Bench, model: Model, n: int) -> str:
    """Return the method for a window of n records."""
    if bench.stream is None:
        return model.method_name(AUTO, n=n, time_budget_s=model.time_budget_s)
    settings = bench.stream.settings
    same = MODELS[settings.model].forms_classes_like(model)
    method = settings.method if same else AUTO
    return model.method_name(method, n=n, time_budget_s=settings.budget_s)


def try_row(
    bench: Bench,
    row: Row,
    *,
    max_deletion: float,
    models: Mapping[str, Model] = MODELS,
    row_time: RowTime | None = None,
) -> list[Trial]:
    """Return the trial of each configuration of a row, the smallest l first.

    Parameters
    ----------
    max_deletion
        Configurations that suppress a larger share are pruned early.
    models
        Models by name.
    row_time
        Time of the row. None: each search has the time budget of its model, or of its stream.

    Raises
    ------
    GuaranteeError
        If independent verification finds that a class does not keep the promise.

    Notes
    -----
    The classes of a stream are formed as the gateway forms them, see `form_classes`.

    A tree is grown once, for k, and pruned again for each l. In a stream it is grown again where
    it learns a sensitive attribute as soon as that is bounded. Where the classes for two values of
    l are the same, so are all figures. A trial does not depend on the others, except for the time
    that its searches have.
    """
    shown = without(bench, row.without)
    row_time = RowTime() if row_time is None else row_time
    grown: dict[str | None, list[Grown]] = {}
    known: dict[bytes, Trial] = {}
    trials: list[Trial] = []
    configurations = list(row.configurations())
    for configuration in configurations:
        if row_time.is_over:
            trials.append(no_time(configuration))
            continue
        promise = shown.promise(
            k=row.k, d=row.d, l=configuration.l, qis=[qi.name for qi in shown.schema.qis]
        )
        trees: Sequence[Grown | None] = [None] * len(shown.windows)
        if row.model == "cells":
            learned = _learned(shown, promise)
            if learned not in grown:
                grown[learned] = [_grown(shown, window, row.k, learned) for window in shown.windows]
            trees = grown[learned]
        former = _Former(
            shown,
            promise,
            row.model,
            models[row.model],
            row_time,
            len(configurations) - len(trials),
        )
        found = [former.classes(i, tree) for i, tree in enumerate(trees)]
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
            trial = known[same].model_copy(
                update={"configuration": configuration, "cut_short": former.cut_short}
            )
        trials.append(trial)
    return trials


def no_time(configuration: Configuration) -> Trial:
    """Return the trial of a configuration that the time budget did not suffice for."""
    why = "the time budget ended before it was tried"
    return Trial(configuration=configuration, state="no_time", why=why)


def without(bench: Bench, names: Names) -> Bench:
    """Return the bench without some quasi-identifiers."""
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

    return replace(
        bench, schema=fewer, windows=cut(bench.windows), test_windows=cut(bench.test_windows)
    )


def _learned(bench: Bench, promise: Promise) -> str | None:
    """Return the attribute that the tree of a stream learns under a promise; None for a table."""
    return None if bench.stream is None else _served(bench, promise, "cells").settings.learned


def _grown(bench: Bench, window: Window, k: int, learned: str | None) -> Grown:
    target: ArrayLike | None = window.target if bench.test_windows else None
    numeric = False
    if bench.stream is not None:
        target, numeric = target_of(bench.stream, learned, _codes(bench.stream, window))
    records, seed = window.records, bench.seed
    return grow(records, bench.schema, target, min_leaf=k, numeric=numeric, seed=seed)


def _codes(stream: Stream, window: Window) -> Int32Array:
    """Return the codes of sensitive attributes and measures, 0 in measures but the target."""
    measures = [
        window.target if measure.name == stream.settings.target else np.zeros_like(window.target)
        for measure in stream.measures
    ]
    return np.column_stack([window.records.sensitive, *measures])


@dataclass(slots=True)
class _Former:
    """Forms the classes of one configuration, window by window."""

    bench: Bench
    promise: Promise
    model_name: str
    model: Model
    row_time: RowTime
    n_configurations: int
    cut_short: bool = False

    def classes(self, i: int, tree: Grown | None) -> tuple[Int32Array, str | None]:
        """Return the verified class of each record of window i, or why there are none."""
        bench, promise, records = self.bench, self.promise, self.bench.windows[i].records
        problem = make_problem(records, bench.schema, promise)
        why = why_impossible(problem, bench.schema) or _why_not_served(
            bench, promise, self.model_name
        )
        if why is not None:
            return np.full(records.n, SUPPRESSED, np.int32), why
        class_of = prune(tree, problem).class_of if tree else self._formed(i, problem)
        if broken := verify_classes(records, bench.schema, promise, class_of):
            raise GuaranteeError(
                f"k = {promise.k}, d = {promise.d}, l = {promise.l}: "
                f"{len(broken)} violations of the promise were found in the classes"
            )
        return class_of, None

    def _formed(self, i: int, problem: Problem) -> Int32Array:
        bench, window = self.bench, self.bench.windows[i]
        began_s, n_windows = self.row_time.clock(), len(bench.windows)
        stream = bench.stream
        time_left = self.row_time.search_budget(
            self.model.time_budget_s if stream is None else stream.settings.budget_s,
            n_configurations=self.n_configurations,
            n_searches=self.n_configurations * n_windows - i,
        )
        method = _method(bench, self.model, window.records.n)
        if stream is not None:
            served = _served(bench, self.promise, self.model_name)
            class_of = _as_the_gateway(served, window, time_left, bench.seed)
        else:
            task = Task(
                records=window.records,
                schema=bench.schema,
                promise=self.promise,
                problem=problem,
                time_left=time_left,
                seed=bench.seed,
            )
            class_of = self.model.methods[method](task)
        if searches(method):
            self.row_time.searched_s += self.row_time.clock() - began_s
        self.cut_short |= time_left.ended_search
        return class_of


def _why_not_served(bench: Bench, promise: Promise, model: str) -> str | None:
    """Return why no stream can have a promise, or None if one can; see `StreamSettings`."""
    if bench.stream is None or model != "cells":
        return None
    settings = _served(bench, promise, "cells").settings
    sensitive = {attribute.name for attribute in bench.schema.sensitive}
    if settings.learned in sensitive and not settings.promise.bounds_sensitive:
        return f"{settings.learned} is sensitive and the target of the tree: l must be 2 or more"
    return None


def _served(bench: Bench, promise: Promise, model: str) -> Stream:
    """Return the stream of a bench with another promise and model."""
    stream = bench.stream
    assert stream is not None  # noqa: S101  the caller has seen to it
    names = {attribute.name for attribute in (*bench.schema.qis, *bench.schema.sensitive)}
    same = MODELS[stream.settings.model].forms_classes_like(MODELS[model])
    asked = {"k": promise.k, "d": promise.d, "l": promise.l}
    changes = {
        "model": model,
        "method": stream.settings.method if same else AUTO,
        "attributes": tuple(a for a in stream.settings.attributes if a.name in names),
        "promise": stream.settings.promise.model_copy(update=asked),
    }
    settings = stream.settings.model_copy(update=changes)
    return replace(stream, settings=settings, schema=bench.schema, promise=promise)


def _as_the_gateway(
    stream: Stream, window: Window, time_left: Callable[[], float], seed: int
) -> Int32Array:
    """Return the class of each record as the gateway would publish them."""
    model, records = WINDOW_MODELS[stream.settings.model](stream), window.records
    measures = _codes(stream, window)[:, len(stream.schema.sensitive) :]
    class_of = model.classes(records, measures, time_left=time_left, seed=seed)
    values = model.generalized(records, classes_of(class_of), seed=seed)
    rejected = [*model.rejected(records, class_of, values, seed=seed)]
    return without_gaps(np.where(np.isin(class_of, rejected), np.int32(SUPPRESSED), class_of))

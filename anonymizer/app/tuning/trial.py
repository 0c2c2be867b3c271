"""Trials: the classes of a configuration, verified, measured, attacked and used for training."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from anonymizer.algorithms.models.cells import MODEL as CELLS
from anonymizer.algorithms.models.model import Model
from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.measures import Measures, measure
from anonymizer.algorithms.records.problem import Cost
from anonymizer.algorithms.releases.released_classes import publish
from anonymizer.app.tuning.bench import Bench, Window
from anonymizer.app.tuning.cross_validation import Score, score_of_split
from anonymizer.app.tuning.forming import (
    FoldRecords,
    WindowFormer,
    bytes_of,
    for_part,
    verify,
)
from anonymizer.app.tuning.model_score import score_of_release
from anonymizer.app.tuning.space import MINIMIZER, Configuration, Names
from anonymizer.app.tuning.time_shares import RowTime
from anonymizer.audit.mathematics.linkability import homogeneity, link
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Records, Schema


class Trial(BaseModel):
    """Figures of a configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    configuration: Configuration
    state: Literal["tried", "impossible", "pruned", "no_time"]
    """`tried`. `impossible`: no release keeps the promise, see `why`. `pruned`: too many records
    are suppressed, so no model was trained and no attack was run. `no_time`: the time budget ended
    before it was tried."""
    why: str | None = None
    n_classes: int = 0
    """Number of equivalence classes."""
    deletion: float = 1.0
    """Share of the records that are suppressed."""
    lossless: bool = False
    """Whether no record is suppressed."""
    gcp: float = 1.0
    """Global certainty penalty (range). A suppressed record counts as 1, and so does a
    quasi-identifier that is left out."""
    reached_k: int = 0
    reached_d: int = 0
    reached_l: int = 0
    """`reached_k`, `reached_d`, `reached_l`: smallest values of any class."""
    score: float | None = None
    """Accuracy of a model trained on the release, of numbers R²; with folds the mean over them.
    None: there is no target, or in some fold nothing can be published."""
    score_error: float | None = None
    """Standard error of the score, see `cross_validation`."""
    fold_scores: tuple[float, ...] = ()
    """The score of each fold; empty: a single split."""
    linked: float | None = None
    """Share of the published persons for whom the strongest adversary, who knows one source, learns
    a value of another source or a sensitive value."""
    homogeneous: float | None = None
    """Share of the published persons whose class has a single value of a sensitive attribute."""
    cut_short: bool = False
    """Whether a search ended because its share of the time did. More may find better classes, and
    in a stream another run may find different ones."""


def figures(
    bench: Bench,
    class_of: Sequence[Int32Array],
    configuration: Configuration,
    *,
    n_qis: int,
    most: float,
    score_of: Callable[[Bench, Sequence[Int32Array]], float | None] = score_of_release,
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
    score = score_of(bench, class_of) if bench.test_windows else None
    learned = scored(None if score is None else score_of_split(score, bench.n_judged))
    return trial.model_copy(update={**learned, **_learned_by_attacks(bench, class_of)})


def scored(score: Score | None) -> dict[str, object]:
    """Return the fields of a trial that a score fills."""
    if score is None:
        return {"score": None, "score_error": None, "fold_scores": ()}
    return {"score": score.mean, "score_error": score.error, "fold_scores": score.folds}


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
    """Configurations that differ only in l: those of a model that learns share a tree."""

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
    that its searches have. Of a fold, k is scaled, see `for_part`.
    """
    shown = without(bench, row.without)
    row_time = RowTime() if row_time is None else row_time
    n_qis = len(bench.schema.qis)
    if row.model == MINIMIZER:
        return [
            _minimized(shown, each, n_qis, max_deletion) if row_time.begins() else no_time(each)
            for each in row.configurations()
        ]
    parts = [FoldRecords(each) for each in (shown, *shown.fold_benches())]
    known: dict[bytes, Trial] = {}
    trials: list[Trial] = []
    configurations = list(row.configurations())
    for configuration in configurations:
        if not row_time.begins():
            trials.append(no_time(configuration))
            continue
        promise = shown.promise(
            k=row.k, d=row.d, l=configuration.l, qis=[qi.name for qi in shown.schema.qis]
        )
        n_left = len(configurations) - len(trials)
        n_windows = sum(len(part.bench.windows) for part in parts)
        former = WindowFormer(promise, models[row.model], row_time, n_left, n_windows)
        class_of, why = former.release(parts[0])
        if class_of is None:
            trials.append(Trial(configuration=configuration, state="impossible", why=why))
            continue
        same = bytes_of(class_of)
        if same not in known:
            known[same] = figures(shown, class_of, configuration, n_qis=n_qis, most=max_deletion)
        trial = known[same]
        changed: dict[str, object] = {"configuration": configuration}
        if trial.state == "tried" and shown.folds:
            scores = [former.fold_score(part, of=shown.n) for part in parts[1:]]
            whole = [score for score in scores if score is not None]
            changed |= scored(shown.score(whole) if len(whole) == len(scores) else None)
        changed["cut_short"] = former.cut_short
        trials.append(trial.model_copy(update=changed))
    return trials


def _minimized(
    bench: Bench, configuration: Configuration, n_qis: int, max_deletion: float
) -> Trial:
    """Return the trial of a release of cells that the minimizer generalizes further."""
    from anonymizer.app.tuning.minimized import (  # noqa: PLC0415  needs the user's model
        minimize,
        score_of_minimized,
    )

    promise = bench.promise(
        k=configuration.k,
        d=configuration.d,
        l=configuration.l,
        qis=[qi.name for qi in bench.schema.qis],
    )

    def released(of: Bench) -> tuple[Int32Array | None, str | None]:
        asked = for_part(promise, of.n / bench.n)
        former = WindowFormer(asked, CELLS, RowTime(), 1, 1)
        found, why = former.release(FoldRecords(of))
        return (None, why) if found is None or (found[0] < 0).all() else (found[0], None)

    class_of, why = released(bench)
    if class_of is None:
        return Trial(configuration=configuration, state="impossible", why=why)
    if np.mean(class_of < 0) <= max_deletion:  # otherwise the release is too little to learn from
        try:
            found = minimize(bench, class_of)[1]
        except ValueError as error:
            return Trial(configuration=configuration, state="impossible", why=str(error))
    else:
        found = class_of
    verify(bench, promise, found)
    trial = figures(
        bench,
        [found],
        configuration,
        n_qis=n_qis,
        most=max_deletion,
        score_of=lambda of, _: score_of_minimized(of, class_of),
    )
    if trial.state != "tried" or not bench.folds:
        return trial
    scores = []
    for fold in bench.fold_benches():
        of_fold, _ = released(fold)
        scores.append(None if of_fold is None else score_of_minimized(fold, of_fold))
    whole = [score for score in scores if score is not None]
    return trial.model_copy(
        update=scored(bench.score(whole) if len(whole) == len(scores) else None)
    )


def no_time(configuration: Configuration) -> Trial:
    """Return the trial of a configuration for which the time budget did not suffice."""
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
        bench,
        schema=fewer,
        windows=cut(bench.windows),
        test_windows=cut(bench.test_windows),
        folds=tuple((cut([train])[0], cut([test])[0]) for train, test in bench.folds),
    )

"""Report of a search: its trials in order, the front and the recommendation."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from anonymizer.app.tuning.bench import Bench, Learner
from anonymizer.app.tuning.model_score import score_of_guessing, score_of_original
from anonymizer.app.tuning.trial import Trial

Sort = Literal["score", "deletion"]
MAY_LOSE = 0.02
"""Default of how far a score may be below the score with the original records."""


class EvaluatedTrial(Trial):
    """A trial and its evaluation.

    Attributes
    ----------
    within
        Whether score and deletion are within the bounds.
    front
        Whether no other trial keeps as large a k, d and l, deletes as little and scores as high
        (without a target: loses as little), and is better in one of these.
    recommended
        Whether it is the recommended trial.
    """

    within: bool
    front: bool
    recommended: bool


class TuneReport(BaseModel):
    """All trials, those within the bounds first, and how they were measured.

    Attributes
    ----------
    name
        File name of the table, or name of the stream.
    n, n_windows, n_judged
        Number of records that were anonymized, of their windows, and of records held out.
    target, learner
        Target and kind of the model.
    original_score, guessing_score
        Score of a model trained on the original records, and of always guessing the most frequent
        class.
    min_score, max_deletion, sort
        The bounds, and the order of `trials`.
    left_out
        For a stream, number of parts that are in no window, by reason.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    n: int
    n_windows: int
    n_judged: int
    target: str | None
    learner: Learner | None
    seed: int
    original_score: float | None
    guessing_score: float | None
    min_score: float | None
    max_deletion: float
    sort: Sort
    left_out: dict[str, int] = {}
    trials: tuple[EvaluatedTrial, ...]

    @property
    def recommended(self) -> EvaluatedTrial | None:
        """The recommended trial, or None if no trial is within the bounds."""
        return next((trial for trial in self.trials if trial.recommended), None)

    @property
    def within(self) -> tuple[EvaluatedTrial, ...]:
        """The trials within the bounds, in order."""
        return tuple(trial for trial in self.trials if trial.within)


Figure = Literal["deletion", "gcp", "score", "linked", "homogeneous"]
"""What is measured of a trial."""


def differs(trials: Sequence[Trial], figure: Figure) -> bool:
    """Return whether a figure says anything: whether it is not the same in several trials."""
    return len(trials) < 2 or len({getattr(trial, figure) for trial in trials}) > 1


def report_of(
    bench: Bench,
    trials: Sequence[Trial],
    *,
    name: str,
    target: str | None,
    min_score: float | None,
    max_deletion: float,
    sort: Sort,
    left_out: dict[str, int],
) -> TuneReport:
    """Return the report on a search.

    Parameters
    ----------
    min_score
        None: `MAY_LOSE` below the score with the original records.
    """
    original = score_of_original(bench)
    if min_score is None and original is not None:
        min_score = original - MAY_LOSE
    within = [is_within(trial, min_score=min_score, max_deletion=max_deletion) for trial in trials]
    best = recommended([t for t, inside in zip(trials, within, strict=True) if inside])
    ahead = front(trials)
    evaluated = [
        EvaluatedTrial(
            **trial.model_dump(),
            within=inside,
            front=trial in ahead,
            recommended=trial is best,
        )
        for trial, inside in zip(trials, within, strict=True)
    ]
    return TuneReport(
        name=name,
        n=bench.n,
        n_windows=len(bench.windows),
        n_judged=bench.n_judged,
        target=target,
        learner=bench.learner if bench.test_windows else None,
        seed=bench.seed,
        original_score=original,
        guessing_score=score_of_guessing(bench),
        min_score=min_score,
        max_deletion=max_deletion,
        sort=sort,
        left_out=left_out,
        trials=tuple(sorted(evaluated, key=lambda trial: (not trial.within, *_rank(trial, sort)))),
    )


def is_within(trial: Trial, *, min_score: float | None, max_deletion: float) -> bool:
    """Return whether a trial is within the bounds; one that publishes nothing never is."""
    if trial.state != "tried" or not trial.n_classes or trial.deletion > max_deletion:
        return False
    return min_score is None or (trial.score is not None and trial.score >= min_score)


def recommended(trials: Sequence[Trial]) -> Trial | None:
    """Return the most private of the trials within the bounds, or None.

    Notes
    -----
    The order is by k times l, the odds against an adversary who picks a record of a class and
    guesses the sensitive value; then by d, score, loss, deletion and k.
    """

    def privacy(trial: Trial) -> tuple[float, ...]:
        promised = trial.configuration
        return (
            promised.k * promised.l,
            promised.d,
            trial.score or 0.0,
            -trial.gcp,
            -trial.deletion,
            promised.k,
        )

    return max(trials, key=privacy, default=None)


def front(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that no other trial dominates; see `EvaluatedTrial`.

    Quadratic in the number of trials.
    """
    tried = [trial for trial in trials if trial.state == "tried" and trial.n_classes]
    merits = [_merits(trial) for trial in tried]
    return [
        trial
        for trial, mine in zip(tried, merits, strict=True)
        if not any(
            other != mine and all(theirs >= my for theirs, my in zip(other, mine, strict=True))
            for other in merits
        )
    ]


def _merits(trial: Trial) -> tuple[float, ...]:
    promised = trial.configuration
    use = -trial.gcp if trial.score is None else trial.score
    return (promised.k, promised.d, promised.l, -trial.deletion, use)


def _rank(trial: Trial, sort: Sort) -> tuple[object, ...]:
    score = -1.0 if trial.score is None else trial.score
    first = (-score, trial.deletion) if sort == "score" else (trial.deletion, -score)
    promised = trial.configuration
    same = (promised.model, promised.without, promised.k, promised.d, promised.l)
    return (trial.state != "tried", *first, trial.gcp, *same)

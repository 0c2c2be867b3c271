"""Report of a search: its trials in order, the front and the recommendation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from anonymizer.app.tuning.bench import Bench, Learner
from anonymizer.app.tuning.cross_validation import (
    CrossValidation,
    Score,
    score_of_folds,
    score_of_split,
)
from anonymizer.app.tuning.model_score import score_of_guessing, score_of_original
from anonymizer.app.tuning.space import MINIMIZER
from anonymizer.app.tuning.trial import Trial

Sort = Literal["score", "deletion"]
MAY_LOSE = 0.02
"""How far a score may be below the score with the original records, unless a bound is given; with
folds, one standard error of the original score where that is more."""


class EvaluatedTrial(Trial):
    """A trial and its evaluation."""

    within: bool
    """Whether score and deletion are within the bounds, with folds by more than the error."""
    undecided: bool = False
    """Whether the score of the folds differs from the bound by less than its standard error: the
    trial is not within, and not shown to be outside."""
    front: bool
    """Whether no other trial keeps as large a k, d and l, deletes as little and scores as high
    (without a target: loses as little), and is better in one of these."""
    recommended: bool
    """Whether it is the recommended trial."""


class TuneReport(BaseModel):
    """All trials, those within the bounds first, and how they were measured."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """File name of the table, or name of the stream."""
    n: int
    n_windows: int
    n_judged: int
    """`n`, `n_windows`, `n_judged`: number of records that were anonymized, of their windows, and
    of records that test a model."""
    target: str | None
    learner: Learner | None
    is_regression: bool = False
    """`target`, `learner`, `is_regression`: target and kind of the model, and whether scores are R²
    instead of accuracies."""
    estimator: str | None = None
    """Name of the file of the user's model, or None."""
    validation: CrossValidation | None = None
    """The cross-validation of the scores, or None: persons or windows were held out once."""
    seed: int
    original_score: float | None
    original_error: float | None = None
    guessing_score: float | None
    """`original_score`, `original_error`, `guessing_score`: score of a model trained on the
    original records with its standard error, and of always guessing the most frequent class, or the
    mean."""
    n_guessing: int = 0
    """Number of trials within all other bounds whose score is not above that of guessing by more
    than the standard error."""
    min_score: float | None
    max_deletion: float
    sort: Sort
    """`min_score`, `max_deletion`, `sort`: the bounds, and the order of `trials`."""
    n_unstated: int = 0
    """Number of records without a target: they are in the release, and neither train nor test."""
    left_out: dict[str, int] = {}
    """For a stream, number of parts that are in no window, by reason."""
    trials: tuple[EvaluatedTrial, ...]

    @property
    def recommended(self) -> EvaluatedTrial | None:
        """The recommended trial, or None if no trial is within the bounds."""
        return next((trial for trial in self.trials if trial.recommended), None)

    @property
    def within(self) -> tuple[EvaluatedTrial, ...]:
        """The trials within the bounds, in order."""
        return tuple(trial for trial in self.trials if trial.within)

    @property
    def undecided(self) -> tuple[EvaluatedTrial, ...]:
        """The trials that the standard error leaves undecided, in order."""
        return tuple(trial for trial in self.trials if trial.undecided)

    def _repr_html_(self) -> str:
        from anonymizer.notebooks import html_report  # noqa: PLC0415  only notebooks ask

        return html_report(type(self).__name__, self.model_dump())


Figure = Literal["deletion", "gcp", "score", "linked", "homogeneous"]
"""What is measured of a trial."""


def differs(trials: Sequence[Trial], figure: Figure) -> bool:
    """Return whether a figure is worth showing: not if it is the same in all of several trials."""
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

    `min_score`: None: `MAY_LOSE` below the score with the original records, with folds at least
    their standard error: a smaller difference is not to be seen in so few records.
    """
    original, guessing = _original(bench), _guessing(bench)
    bound = _Bound(max_deletion, min_score, original, guessing, bench.validation)
    scored_well = [bound.is_kept(trial) for trial in trials]
    guesses = [bound.only_guesses(trial) for trial in trials]
    within = [kept and not guess for kept, guess in zip(scored_well, guesses, strict=True)]
    best = recommended([t for t, inside in zip(trials, within, strict=True) if inside])
    ahead = front(trials)
    evaluated = [
        EvaluatedTrial(
            **trial.model_dump(),
            within=inside,
            undecided=bound.leaves_undecided(trial) and not guess,
            front=trial in ahead,
            recommended=trial is best,
        )
        for trial, inside, guess in zip(trials, within, guesses, strict=True)
    ]
    return TuneReport(
        name=name,
        n=bench.n,
        n_windows=len(bench.windows),
        n_judged=bench.n_judged,
        target=target,
        learner=bench.learner if bench.has_target else None,
        is_regression=bench.is_regression,
        estimator=bench.own.name if bench.own else None,
        validation=bench.validation,
        seed=bench.seed,
        original_score=original.mean if original else None,
        original_error=original.error if original else None,
        guessing_score=guessing.mean if guessing else None,
        n_guessing=sum(scored_well) - sum(within),
        min_score=bound.least,
        max_deletion=max_deletion,
        sort=sort,
        n_unstated=bench.n_unstated if bench.has_target else 0,
        left_out=left_out,
        trials=tuple(sorted(evaluated, key=lambda trial: (not trial.within, *_rank(trial, sort)))),
    )


def _original(bench: Bench) -> Score | None:
    """Return the score of a model trained on original records; None: there is no target."""
    if bench.folds:
        return bench.score([score_of_original(each) or 0.0 for each in bench.fold_benches()])
    score = score_of_original(bench)
    return None if score is None else score_of_split(score, bench.n_judged)


def _guessing(bench: Bench) -> Score | None:
    """Return the score of guessing; None: there is no target."""
    if bench.folds:
        return bench.score([score_of_guessing(each) or 0.0 for each in bench.fold_benches()])
    score = score_of_guessing(bench)
    return None if score is None else score_of_split(score, bench.n_judged)


@dataclass(frozen=True, slots=True)
class _Bound:
    """The bounds of a search."""

    max_deletion: float
    asked: float | None
    """Lowest score; None: `MAY_LOSE` below the original score."""
    original: Score | None
    guessing: Score | None
    """`original`, `guessing`: score with the original records, and of guessing; None: there is no
    target."""
    validation: CrossValidation | None
    """The cross-validation of the scores, or None."""

    @property
    def least(self) -> float | None:
        """The lowest score, or None."""
        if self.asked is None and self.original is not None:
            return self.original.mean - self.may_lose
        return self.asked

    @property
    def may_lose(self) -> float:
        """How far a score may be below the original one, if no bound is given."""
        if self.original is None or not self.original.folds:
            return MAY_LOSE
        return max(MAY_LOSE, self.original.error)

    def only_guesses(self, trial: Trial) -> bool:
        """Return whether the score is not above that of guessing by more than its error."""
        if trial.score is None or self.guessing is None:
            return False
        if not trial.fold_scores or self.validation is None:
            return trial.score - self.guessing.mean <= (trial.score_error or 0.0)
        above = [s - g for s, g in zip(trial.fold_scores, self.guessing.folds, strict=True)]
        found = score_of_folds(above, self.validation.folds)
        return found.mean <= found.error

    def is_kept(self, trial: Trial) -> bool:
        """Return whether a trial is within the bounds; one that publishes nothing never is."""
        if not self._is_open(trial):
            return False
        if self.least is None:
            return True
        margin, error = self._margin(trial)
        return margin >= error

    def leaves_undecided(self, trial: Trial) -> bool:
        """Return whether the score is nearer to the bound than its standard error."""
        if not self._is_open(trial) or self.least is None:
            return False
        margin, error = self._margin(trial)
        return -error < margin < error

    def _is_open(self, trial: Trial) -> bool:
        """Return whether only the score can put a trial outside."""
        published = trial.state == "tried" and trial.n_classes > 0
        scored = self.least is None or trial.score is not None
        return published and scored and trial.deletion <= self.max_deletion

    def _margin(self, trial: Trial) -> tuple[float, float]:
        """Return how far the score is above the bound, and the standard error of that.

        A bound relative to the original score is compared fold by fold: what makes a fold easy
        does so for both models. The error of a single split is not taken into account.
        """
        score, least = trial.score, self.least
        assert score is not None  # noqa: S101  the caller has seen to it
        assert least is not None  # noqa: S101
        if not trial.fold_scores or self.original is None or self.validation is None:
            return score - least, 0.0
        bounds = [least] * len(trial.fold_scores)
        if self.asked is None:
            bounds = [each - self.may_lose for each in self.original.folds]
        above = [s - b for s, b in zip(trial.fold_scores, bounds, strict=True)]
        found = score_of_folds(above, self.validation.folds)
        return found.mean, found.error


def recommended(trials: Sequence[Trial]) -> Trial | None:
    """Return the most private of the trials within the bounds, or None.

    Notes
    -----
    Releases come before what the minimizer makes, which is none.
    The order is by k times l, the odds against an adversary who picks a record of a class and
    guesses the sensitive value; then by d, score, loss, deletion and k. With folds, scores that
    are less than a standard error below the best one count as equal to it.
    """

    def privacy(trial: Trial) -> tuple[bool, int, int]:
        promised = trial.configuration
        return promised.model != MINIMIZER, promised.k * promised.l, promised.d

    most = max(map(privacy, trials), default=None)
    equal = [trial for trial in trials if privacy(trial) == most]
    if not equal:
        return None
    best = max(equal, key=lambda trial: trial.score or 0.0)
    error = (best.score_error or 0.0) if best.fold_scores else 0.0
    near = [trial for trial in equal if (trial.score or 0.0) >= (best.score or 0.0) - error]
    ranked = near if error else [trial for trial in near if trial.score == best.score]
    return max(ranked, key=lambda trial: (-trial.gcp, -trial.deletion, trial.configuration.k))


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

"""Repeated stratified cross-validation: folds of persons, and what the scores of all folds say.

References
----------
.. [1] C. Nadeau, Y. Bengio, "Inference for the generalization error", Machine Learning, 2003.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold

from anonymizer.domain.arrays import BoolArray, Int32Array
from anonymizer.errors import InputError


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """How often records are divided."""

    folds: int
    """Parts of equal size, at least 2. Each tests a model that the others trained."""
    repeats: int
    """Divisions at random, each into so many parts."""


ENOUGH_TO_TEST = 625
"""Records that test a model well enough once: the standard error of a share is then at most .02."""


def usual_folds(n: int, held_out: float, *, always: bool) -> int:
    """Return the usual number of folds for a table of n records, 0 for holding a share out once."""
    return 5 if always or n * held_out < ENOUGH_TO_TEST else 0


@dataclass(frozen=True, slots=True)
class Score:
    """A mean score."""

    mean: float
    error: float
    """Standard error of the mean."""
    folds: tuple[float, ...] = ()
    """The score of each fold; empty: a single split."""


def fold_masks(
    person: Int32Array, target: Int32Array, validation: CrossValidation, *, seed: int
) -> list[BoolArray]:
    """Return which records test in each fold, all repeats one after the other.

    `person`, `target`: person and class of each record, both shape (n,). The records of a person
    are in one part, and each part has nearly the same share of each class, counted by the first
    record of each person. A negative target is none: such persons are spread over all parts alike.

    Raises `InputError` if no class has as many persons as there are folds.
    """
    persons, first, of = np.unique(person, return_index=True, return_inverse=True)
    stratum = target[first]
    if np.bincount(stratum[stratum >= 0]).max(initial=0) < validation.folds:
        raise InputError(
            f"there are too few persons for {validation.folds} folds: no value of the target is"
            " that of so many; state fewer folds, or another target"
        )
    stratum = np.where(stratum < 0, stratum.max(initial=0) + 1, stratum)
    divided = RepeatedStratifiedKFold(
        n_splits=validation.folds, n_repeats=validation.repeats, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a rare class is not in every part
        parts = list(divided.split(np.zeros((len(persons), 1)), stratum))
    return [np.isin(of, test) for _, test in parts]


def score_of_folds(scores: Sequence[float], folds: int) -> Score:
    """Return the mean of the scores of all folds with its standard error.

    Notes
    -----
    The folds share most of their training records, so that their variance over their number is far
    too small. The corrected error [1]_ adds the share of test to training records, which no number
    of repeats takes away.
    """
    spread = float(np.var(scores, ddof=1))
    error = sqrt((1 / len(scores) + 1 / (folds - 1)) * spread)
    return Score(float(np.mean(scores)), error, tuple(scores))


def score_of_split(score: float, n: int) -> Score:
    """Return a score on n records held out once, with its binomial standard error."""
    return Score(score, sqrt(score * (1 - score) / n))

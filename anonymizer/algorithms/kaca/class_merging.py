"""Merging of classes: one that breaks the promise joins the nearest one that keeps it."""

import numpy as np

from anonymizer.algorithms.kaca.features import Points, means, nearest
from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of, without_gaps
from anonymizer.algorithms.records.criteria import class_keeps
from anonymizer.algorithms.records.problem import Problem, ProblemArrays
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray

_TRIES = 8


def merge(problem: Problem, points: Points, class_of: Int32Array) -> Int32Array:
    """Return classes that all keep the promise.

    Parameters
    ----------
    class_of
        Classes from 0 up without a gap, `SUPPRESSED` where left out, shape (n,).

    Notes
    -----
    As in the source, a class that breaks the promise joins the nearest one that keeps it, by the
    means before the merger. If the other class would then break the promise (a limit on shares,
    say), the next nearest is tried, up to eight. A class that finds none is suppressed. If no class
    keeps the promise, near ones are paired until one does: their number falls in every round, so
    this terminates. With k, d and l alone nothing is suppressed unless the whole table breaks the
    promise.

    Expected O(n log n) for a round, plus at most eight checks of the criteria.
    """
    out = without_gaps(class_of)
    while True:
        kept = _classes_keep(problem, out)
        if kept.all():
            return out
        if kept.any():
            return without_gaps(_joined(problem, points, out, kept))
        if len(kept) == 1:
            return np.full(len(out), SUPPRESSED, np.int32)
        out = _paired(points, out)


def join_alike(problem: Problem, codes: Int32Array, class_of: Int32Array) -> Int32Array:
    """Return the classes with those of identical records joined, where the promise allows it.

    Parameters
    ----------
    codes
        Code of each record in each quasi-identifier, shape (n, qis).
    class_of
        Classes from 0 up without a gap, `SUPPRESSED` where left out, shape (n,).

    Notes
    -----
    Keeping them apart would reveal more about their measures, without more precise values.
    O(n log n).
    """
    classes = classes_of(class_of)
    if not len(classes):
        return class_of
    rows = codes[classes.member]
    lo = np.minimum.reduceat(rows, classes.first_of[:-1])
    hi = np.maximum.reduceat(rows, classes.first_of[:-1])
    single = np.flatnonzero((lo == hi).all(axis=1))
    _, one_of, kind = np.unique(lo[single], axis=0, return_index=True, return_inverse=True)
    to = np.arange(len(classes), dtype=np.int32)
    to[single] = single[one_of[kind.ravel()]]
    holds = _classes_keep(problem, _mapped(class_of, to))
    to = np.where(holds[to], to, np.arange(len(classes), dtype=np.int32))
    return without_gaps(_mapped(class_of, to))


def _joined(problem: Problem, points: Points, class_of: Int32Array, kept: BoolArray) -> Int32Array:
    """Join each class that breaks the promise to one that keeps it, or suppress it."""
    mean = means(points, class_of)
    large, small = np.flatnonzero(kept), np.flatnonzero(~kept)
    _, near = nearest(mean[large], mean[small], _TRIES)
    to = np.arange(len(kept), dtype=np.int32)
    to[small] = SUPPRESSED
    for choice in near.T:
        waiting = to[small] == SUPPRESSED
        if not waiting.any():
            break
        wish = to.copy()
        wish[small[waiting]] = large[choice[waiting]]
        holds = _classes_keep(problem, _mapped(class_of, wish))
        accepted = waiting & holds[large[choice]]
        to[small[accepted]] = large[choice[accepted]]
    return _mapped(class_of, to)


def _paired(points: Points, class_of: Int32Array) -> Int32Array:
    """Join classes in pairs, the nearest first; at least one pair is joined."""
    mean = means(points, class_of)
    distance, near = nearest(mean, mean, 2)
    itself = near[:, 0] == np.arange(len(mean))
    other, far = np.where(itself, near.T[::-1], near.T)[0], distance[:, 1]
    to = np.arange(len(mean), dtype=np.int32)
    free = np.ones(len(mean), bool)
    for c in np.argsort(far, kind="stable").tolist():
        if free[c] and free[other[c]]:
            to[c] = other[c]
            free[[c, other[c]]] = False
    return without_gaps(_mapped(class_of, to))


def _mapped(class_of: Int32Array, to: Int32Array) -> Int32Array:
    return np.where(class_of == SUPPRESSED, SUPPRESSED, to[class_of]).astype(np.int32)


def _classes_keep(problem: Problem, class_of: Int32Array) -> BoolArray:
    """Return which classes keep the promise, up to the last with members; empty ones do not."""
    classes = classes_of(class_of)
    return _keeping(problem.arrays, problem.k, classes.first_of, classes.member)


@kernel
def _keeping(problem: ProblemArrays, k: int, first_of: IntArray, member: IntArray) -> BoolArray:
    n = len(first_of) - 1
    kept = np.zeros(n, np.bool_)
    for c in range(n):
        some = member[first_of[c] : first_of[c + 1]]
        kept[c] = len(some) > 0 and class_keeps(problem, k, some)
    return kept

"""A loss that no release of a table can be below, whatever method makes it.

Whoever shares a class with a record widens its labels. So the record loses at least what a class of
itself and its (k - 1)-th nearest record would lose, and in each column what d distinct values lose.
The mean over all records bounds the loss of the table; over a sample, it does so with a confidence
that is stated [1]_.

References
----------
.. [1] A. Maurer and M. Pontil, "Empirical Bernstein bounds and sample variance penalization",
   COLT 2009, theorem 4.
"""

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import column_loss
from anonymizer.algorithms.records.problem import Problem, ProblemArrays
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray

SAMPLED = 4_000
"""Records that are looked at; where the table has no more, the bound is certain."""
UNSURE = 0.001
"""Probability that a bound from a sample is too high."""


class _Boxes(NamedTuple):
    """Records by class, and the first and last code of each class.

    `of`: the class of each record, dense from 0; `member`: class by class; `first`: of each class,
    and the number of members at last, shape (classes + 1,); `lo`, `hi`: shape (classes,
    quasi-identifiers). A suppressed record is a class.
    """

    of: IntArray
    member: IntArray
    first: IntArray
    lo: Int32Array
    hi: Int32Array


def least_loss(problem: Problem, class_of: Int32Array, *, seed: int = 0) -> float:
    """Return a GCP that no release of these records with this promise is below, 0 to 1.

    Parameters
    ----------
    problem
        All its weights are 1. A record that is left out loses 1.
    class_of
        Any classes, `SUPPRESSED` where a record has none, shape (n,): they only tell where near
        records are.

    Notes
    -----
    For each record looked at, O(classes qis) and the members of those that may be nearer.
    """
    n, q = problem.n, problem.n_qis
    if not n or not q:
        return 0.0
    boxes = _boxes_of(problem, class_of)
    looked_at = np.arange(n)
    if n > SAMPLED:
        looked_at = np.random.default_rng(seed).choice(n, SAMPLED, replace=False)
    floor = [_losses_of_d(problem.arrays, c) for c in range(q)]
    first_floor = np.cumsum([0, *(len(each) for each in floor)])
    least = _least(
        looked_at,
        problem.k,
        boxes,
        np.concatenate(floor),
        first_floor,
        problem.arrays,
    )
    return max(_lower_bound(least / q, certain=n <= SAMPLED), 0.0)


def _boxes_of(problem: Problem, class_of: Int32Array) -> _Boxes:
    q = problem.n_qis
    alone = class_of == SUPPRESSED
    number = class_of.astype(np.int64)
    number[alone] = int(class_of.max(initial=-1)) + 1 + np.arange(alone.sum())
    number = np.unique(number, return_inverse=True)[1]
    member = np.argsort(number, kind="stable")
    begins = np.flatnonzero(np.r_[True, np.diff(number[member]) > 0])
    cells = problem.cells[member, :q]
    lo, hi = np.minimum.reduceat(cells, begins), np.maximum.reduceat(cells, begins)
    return _Boxes(number, member, np.append(begins, problem.n), lo, hi)


@kernel
def _losses_of_d(problem: ProblemArrays, c: int) -> FloatArray:
    """Return what each code of a column loses at least in a class with the values it needs."""
    rule = problem.rule[c]
    size, d = rule["size"], rule["distinct"]
    floor = np.zeros(size)
    real = np.arange(size)
    real = real[real != rule["missing"]]
    if d < 2 or len(real) < d:
        return floor
    floor[real] = np.inf
    for first in range(len(real) - d + 1):
        window = real[first : first + d]
        loss = column_loss(rule, d, window[0], window[-1], problem.codes)
        for code in window:
            floor[code] = min(floor[code], loss)
    return floor


def _lower_bound(loss: FloatArray, *, certain: bool) -> float:
    mean, n = float(loss.mean()), len(loss)
    if certain:
        return mean
    unsure = log(2 / UNSURE)
    return mean - sqrt(2 * float(loss.var(ddof=1)) * unsure / n) - 7 * unsure / (3 * (n - 1))


@kernel
def _least(
    looked_at: IntArray,
    k: int,
    boxes: _Boxes,
    floor: FloatArray,
    first_floor: IntArray,
    problem: ProblemArrays,
) -> FloatArray:
    """Return what each record loses at least, summed over its columns."""
    least = np.zeros(len(looked_at))
    nearest = np.empty(max(k - 1, 1))
    n_qis = boxes.lo.shape[1]
    for x in range(len(looked_at)):
        record = looked_at[x]
        nearest[:] = np.inf
        if k < 2:
            nearest[0] = 0.0
            for c in range(n_qis):
                nearest[0] += floor[first_floor[c] + problem.cells[record, c]]
            least[x] = nearest[0]
            continue
        own = boxes.of[record]
        _look(record, own, boxes, nearest, floor, first_floor, problem)
        for b in range(len(boxes.lo)):
            if b != own:
                _look(record, b, boxes, nearest, floor, first_floor, problem)
        least[x] = nearest[-1] if nearest[-1] < np.inf else n_qis
    return least


@inner_kernel
def _look(
    record: int,
    b: int,
    boxes: _Boxes,
    nearest: FloatArray,
    floor: FloatArray,
    first_floor: IntArray,
    problem: ProblemArrays,
) -> None:
    """Enter the members of a class that are nearer than the farthest of `nearest`, rising."""
    member, first, lo, hi = boxes.member, boxes.first, boxes.lo, boxes.hi
    cells, rule, codes = problem.cells, problem.rule, problem.codes
    last = len(nearest) - 1
    away = 0.0
    for c in range(lo.shape[1]):
        code = int(cells[record, c])
        near = min(max(code, int(lo[b, c])), int(hi[b, c]))
        away += max(
            floor[first_floor[c] + code],
            column_loss(rule[c], 2, min(code, near), max(code, near), codes),
        )
        if away >= nearest[last]:
            return
    for at in range(first[b], first[b + 1]):
        other = member[at]
        if other == record:
            continue
        away = 0.0
        for c in range(lo.shape[1]):
            code, its = int(cells[record, c]), int(cells[other, c])
            away += max(
                floor[first_floor[c] + code],
                column_loss(rule[c], 2, min(code, its), max(code, its), codes),
            )
            if away >= nearest[last]:
                break
        if away >= nearest[last]:
            continue
        seat = last
        while seat > 0 and nearest[seat - 1] > away:
            nearest[seat] = nearest[seat - 1]
            seat -= 1
        nearest[seat] = away

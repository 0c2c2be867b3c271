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

from dataclasses import replace
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel, runs_as_python
from anonymizer.algorithms.records.boxes import near_together
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import column_loss
from anonymizer.algorithms.records.measures import in_order
from anonymizer.algorithms.records.ordering import numbered
from anonymizer.algorithms.records.problem import Problem, ProblemArrays
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, starts_of
from anonymizer.kernel_cache import current_background

SAMPLED = 2_000
"""Records that are looked at; where the table has no more, the bound is certain."""
UNSURE = 0.01
"""Probability that a bound from a sample is too high."""
_TOGETHER = 16
"""Classes of a group, and groups of a stretch."""
_NO_CODE_YET = 2**31 - 1


class _Outlines(NamedTuple):
    """The first and last code of parts that lie one after the other.

    `first`: of each part, and the number of what they are made of at last, shape (parts + 1,);
    `lo`, `hi`: shape (parts, quasi-identifiers).
    """

    first: IntArray
    lo: Int32Array
    hi: Int32Array


class _Boxes(NamedTuple):
    """Records by class, classes by groups of near ones, and groups by stretches of near ones.

    `of`: the class of each record, dense from 0; `member`: class by class. A suppressed record is a
    class.
    """

    of: IntArray
    member: IntArray
    classes: _Outlines
    groups: _Outlines
    stretches: _Outlines


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
    For each record looked at, O(stretches qis) and what of those that may be nearer is.
    """
    n, q = problem.n, problem.n_qis
    if not n or not q:
        return 0.0
    near = _boxes_of(problem, class_of)
    looked_at = np.arange(n)
    if n > SAMPLED:
        looked_at = np.random.default_rng(seed).choice(n, SAMPLED, replace=False)
    floor = [_losses_of_d(problem.arrays, c) for c in range(q)]
    first_floor = np.cumsum([0, *(len(each) for each in floor)])
    least = _least(
        looked_at,
        problem.k,
        near,
        np.concatenate(floor),
        first_floor,
        problem.arrays,
    )
    return max(_lower_bound(least / q, certain=n <= SAMPLED), 0.0)


def is_compiled(problem: Problem) -> bool:
    """Return whether a bound is computed as machine code, see `kernels.runs_as_python`.

    Where it is not, its kernels are asked for: as Python, it would take a minute.
    """
    background = current_background()
    if background is None or not runs_as_python(_least):
        return True
    few = replace(problem, cells=problem.cells[:_TOGETHER].copy(), person=problem.person[:0])
    background.submit(_warm_up, few)
    return False


def _warm_up(problem: Problem) -> None:
    least_loss(problem, np.zeros(problem.n, np.int32))


def _boxes_of(problem: Problem, class_of: Int32Array) -> _Boxes:
    q = problem.n_qis
    alone = class_of == SUPPRESSED
    number = class_of.astype(np.int64)
    number[alone] = int(class_of.max(initial=-1)) + 1 + np.arange(alone.sum())
    place = numbered(number[:, None])
    lo, hi = _outlines(place, int(place.max()) + 1, q, problem.cells, problem.cells)
    middle = lo + (hi - lo) // 2
    group, by_group = near_together(problem, middle, at_least=_TOGETHER)
    place = np.argsort(by_group)[place]
    member = in_order(np.arange(len(place)), place, len(lo))
    classes = _Outlines(starts_of(np.bincount(place)), lo[by_group], hi[by_group])
    near = (group[by_group] - group.min()).astype(np.int64)  # one where none keeps the promise
    groups = _around(near, classes)
    stretch = np.arange(len(groups.lo)) // _TOGETHER  # one beside the other, groups are near
    return _Boxes(place, member, classes, groups, _around(stretch, groups))


def _around(part_of: IntArray, inner: _Outlines) -> _Outlines:
    """Return the outlines of parts; `part_of`: the part of each one of `inner`, rising."""
    first = starts_of(np.bincount(part_of))
    return _Outlines(
        first, *_outlines(part_of, len(first) - 1, inner.lo.shape[1], inner.lo, inner.hi)
    )


@kernel
def _outlines(
    number: IntArray, n: int, q: int, lowest: Int32Array, highest: Int32Array
) -> tuple[Int32Array, Int32Array]:
    """Return the first and last codes of the rows with each number, shape (n, q) both."""
    lo, hi = np.full((n, q), _NO_CODE_YET, np.int32), np.full((n, q), -1, np.int32)
    for i in range(len(number)):
        at = number[i]
        for c in range(q):
            lo[at, c], hi[at, c] = min(lo[at, c], lowest[i, c]), max(hi[at, c], highest[i, c])
    return lo, hi


@kernel
def _losses_of_d(problem: ProblemArrays, c: int) -> FloatArray:
    """Return what each code of a column loses at least in a class with the values it needs."""
    rule = problem.rule[c]
    size, d = rule["size"], rule["distinct"]
    floor = np.zeros(size)
    if d > 0 and rule["missing"] >= 0:  # beside a value
        floor[rule["missing"]] = rule["weight"]
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
    n_qis, beyond, around = len(first_floor) - 1, boxes.stretches, boxes.groups
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
        for s in range(len(beyond.lo)):
            if _is_far(record, s, beyond, nearest[-1], floor, first_floor, problem):
                continue
            for g in range(beyond.first[s], beyond.first[s + 1]):
                if _is_far(record, g, around, nearest[-1], floor, first_floor, problem):
                    continue
                for b in range(around.first[g], around.first[g + 1]):
                    if b != own:
                        _look(record, b, boxes, nearest, floor, first_floor, problem)
        least[x] = nearest[-1] if nearest[-1] < np.inf else n_qis
    return least


@inner_kernel
def _is_far(
    record: int,
    part: int,
    of: _Outlines,
    bound: float,
    floor: FloatArray,
    first_floor: IntArray,
    problem: ProblemArrays,
) -> bool:
    """Return whether nothing in a part is nearer than a bound."""
    lo, hi = of.lo[part], of.hi[part]
    return bool(_away(record, lo, hi, bound, floor, first_floor, problem) >= bound)


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
    cells, last = problem.cells, len(nearest) - 1
    if _is_far(record, b, boxes.classes, nearest[last], floor, first_floor, problem):
        return
    for at in range(boxes.classes.first[b], boxes.classes.first[b + 1]):
        other = boxes.member[at]
        if other == record:
            continue
        away = _away(record, cells[other], cells[other], nearest[last], floor, first_floor, problem)
        if away >= nearest[last]:
            continue
        seat = last
        while seat > 0 and nearest[seat - 1] > away:
            nearest[seat] = nearest[seat - 1]
            seat -= 1
        nearest[seat] = away


@inner_kernel
def _away(
    record: int,
    lo: Int32Array,
    hi: Int32Array,
    bound: float,
    floor: FloatArray,
    first_floor: IntArray,
    problem: ProblemArrays,
) -> float:
    """Return the loss of a class of a record and the nearest place within an outline.

    Anything from `bound` on may be returned for what is no nearer.
    """
    away = 0.0
    for c in range(len(first_floor) - 1):
        code = int(problem.cells[record, c])
        near = min(max(code, int(lo[c])), int(hi[c]))
        loss = column_loss(problem.rule[c], 2, min(code, near), max(code, near), problem.codes)
        away += max(floor[first_floor[c] + code], loss)
        if away >= bound:
            break
    return away

"""Bisection: halves records again and again, the first stage of the fast method of KACA."""

import numpy as np

from anonymizer.algorithms.kaca.features import Points, coordinate
from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.criteria import class_keeps
from anonymizer.algorithms.records.problem import ProblemArrays
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray

_SMALL = 8
"""Sets of up to this many times k records are cut so that no class is lost."""
_GAP = 4.0
"""A cut that loses no class is preferred unless another leaves a quarter of its squares."""
_FEW = 64
"""Up to this many persons are compared one by one."""
_DEEP = 2
"""Multiple of a balanced tree's depth: below it, a cut leaves a quarter on either side."""


@kernel
def halve(
    points: Points,
    by_size: bool,  # noqa: FBT001  numba knows no keyword-only parameters
    problem: ProblemArrays,
    k: int,
) -> tuple[IntArray, IntArray]:
    """Split records in two repeatedly, as long as both halves keep the promise.

    Parameters
    ----------
    by_size
        Whether any k records keep the promise.
    problem, k
        The records and the criteria of their classes; k of the promise.

    Returns
    -------
    member, first_of
        Classes in compressed sparse rows over `0..n-1`. A class may break the promise if it, or the
        set it was split from, could not be split into halves of k records that keep it.

    Notes
    -----
    The axis of the greatest variance is tried first, then the others, at the cut with the smallest
    sum of squares. In small sets the cut should lose no class (for k = 5, 13 records as 5 + 8, 15
    as 5 + 10 but not as 7 + 8), unless there is a gap elsewhere. In large sets that would cut
    through clusters instead of the gaps between them, and so would cuts near the middle, which are
    required only where the tree is deep already. A set that breaks the promise is split all the
    same: a part of it may meet a limit on shares. Equal records stay together.
    O(features n log^2 n), plus checking the criteria of both halves unless `by_size`.
    """
    n = len(points.code)
    member = np.arange(n)
    first_of = np.zeros(n // k + 2, np.int64)
    n_classes = 0
    deep = _DEEP * np.log2(n / k + 1)
    rank = [_ranks(points, axis) for axis in range(len(points.start))]
    stack = [(0, n, 0)]
    while len(stack) > 0:
        lo, hi, depth = stack.pop()
        at = lo
        if hi - lo >= 2 * k:
            own = member[lo:hi].copy()
            free = by_size or not part_keeps(problem, k, own)
            for axis in np.argsort(-_variances(points, own)):
                order = own[_rising(points, axis, own, rank[axis])]
                cut = _cut(_along(points, axis, order), k, depth > deep)
                if cut == 0:
                    break
                if free or both_keep(problem, k, order, cut):
                    member[lo:hi] = order
                    at = lo + cut
                    break
        if at == lo:
            n_classes += 1
            first_of[n_classes] = hi
        else:
            stack.append((at, hi, depth + 1))
            stack.append((lo, at, depth + 1))
    return member, first_of[: n_classes + 1].copy()


@kernel
def both_keep(problem: ProblemArrays, k: int, order: IntArray, cut: int) -> bool:
    """Return whether both parts of an order keep the promise."""
    return part_keeps(problem, k, order[:cut]) and part_keeps(problem, k, order[cut:])


@kernel
def part_keeps(problem: ProblemArrays, k: int, member: IntArray) -> bool:
    """Return `class_keeps`, in O(k^2) if only persons are counted and few of them repeat."""
    rule, person = problem.rule, problem.person
    if len(rule) == 0 and len(person) > 0 and k <= _FEW:
        return has_persons(person, k, member)
    return class_keeps(problem, k, member)


@kernel
def has_persons(person: Int32Array, k: int, member: IntArray) -> bool:
    """Return whether the members are k distinct persons or more."""
    seen = np.empty(k, np.int32)
    n = 0
    for i in member:
        known = False
        for each in seen[:n]:
            if each == person[i]:
                known = True
                break
        if not known:
            seen[n] = person[i]
            n += 1
            if n == k:
                return True
    return False


@kernel
def _ranks(points: Points, axis: int) -> IntArray:
    """Return the rank of each place of an axis among the distinct ones."""
    start, end = points.start[axis], len(points.place)
    if axis + 1 < len(points.start):
        end = points.start[axis + 1]
    place = points.place[start:end]
    order, rank = np.argsort(place), np.zeros(len(place), np.int64)
    for at in range(1, len(order)):
        rank[order[at]] = rank[order[at - 1]] + (place[order[at]] > place[order[at - 1]])
    return rank


@kernel
def _rising(points: Points, axis: int, member: IntArray, rank: IntArray) -> IntArray:
    """Return the order of rising features, equal ones as they are: by counting if ranks are few."""
    n = len(member)
    if n < len(rank):
        return np.argsort(_along(points, axis, member), kind="mergesort")
    n_below, order, column = (
        np.zeros(len(rank) + 1, np.int64),
        np.empty(n, np.int64),
        points.column[axis],
    )
    for i in member:
        n_below[rank[points.code[i, column]] + 1] += 1
    for x in range(len(rank)):
        n_below[x + 1] += n_below[x]
    for at in range(n):
        x = rank[points.code[member[at], column]]
        order[n_below[x]] = at
        n_below[x] += 1
    return order


@kernel
def _along(points: Points, axis: int, member: IntArray) -> FloatArray:
    """Return the feature `axis` of each member."""
    value = np.empty(len(member))
    for at in range(len(member)):
        value[at] = coordinate(points, member[at], axis)
    return value


@kernel
def _variances(points: Points, member: IntArray) -> FloatArray:
    n_features, origin = len(points.start), member[0]
    total, squares = np.zeros(n_features), np.zeros(n_features)
    for i in member:  # record by record, as they lie in memory
        for f in range(n_features):
            off = coordinate(points, i, f) - coordinate(points, origin, f)
            total[f] += off
            squares[f] += off * off
    return squares - total * total / len(member)


@kernel
def _cut(value: FloatArray, k: int, even: bool) -> int:  # noqa: FBT001  numba knows no keyword-only parameters
    """Return the best cut of rising values, with k or more on each side; 0 if all are equal."""
    n = len(value)
    if value[0] == value[-1]:
        return 0
    small = n <= _SMALL * k
    least = max(k, n // 4) if even and not small else k
    total, left = value.sum() - n * value[0], 0.0
    squares = ((value - value[0]) ** 2).sum()
    best, at, best_full, at_full = -1.0, 0, -1.0, 0
    for cut in range(1, n - least + 1):
        left += value[cut - 1] - value[0]
        if cut < least:
            continue
        between = left * left / cut + (total - left) * (total - left) / (n - cut)
        if between > best:
            best, at = between, cut
        if between > best_full and cut // k + (n - cut) // k == n // k:
            best_full, at_full = between, cut
    if not small or _GAP * (squares - best) < squares - best_full:
        return at
    return at_full

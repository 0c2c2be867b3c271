"""Partition of devices into the smallest groups that satisfy their demands, after Mondrian [1]_.

References
----------
.. [1] K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian Multidimensional K-Anonymity", ICDE 2006.
"""

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray


def partition(point: FloatArray, need: Int32Array, part: Int32Array) -> tuple[IntArray, IntArray]:
    """Split devices by their coordinates, as finely as every device's demand allows.

    Parameters
    ----------
    point
        Coordinates of each device in d dimensions, shape (n, d).
    need
        Group size that each device demands, shape (n,), >= 1.
    part
        Devices of different parts never share a group, shape (n,).

    Returns
    -------
    member, first_member_of
        Groups in compressed sparse rows over `0..n-1`. Each has at least as many devices as any
        of its members demands. If a whole part has too few, it is one group.

    Notes
    -----
    Mondrian: cuts the widest side first, and the next one if that fails. Deviation: n devices
    that demand k should become `n // k` groups, so a set is split in that proportion, not at the
    median. Median cuts stop at groups of up to 2k - 1 devices, these at n / (n // k), rounded
    up. Where demands differ, a group has less than twice the largest demand in it.
    Expected O(d n log n).
    """
    return _partition(point, need, part, np.argsort(part, kind="stable"))


@kernel
def _partition(
    point: FloatArray, need: Int32Array, part: Int32Array, member: IntArray
) -> tuple[IntArray, IntArray]:
    """Split devices that are sorted by their parts; `member` is reordered in place."""
    n, d = point.shape
    first_member_of = np.zeros(n + 1, np.int64)
    n_groups = 0
    # Sets that are still to be split, the next one last: first and one past the last member.
    begin = np.empty(n + 1, np.int64)
    end = np.empty(n + 1, np.int64)
    n_sets = 0
    hi = n
    for lo in range(n - 1, -1, -1):
        if lo == 0 or part[member[lo - 1]] != part[member[lo]]:
            begin[n_sets], end[n_sets] = lo, hi
            n_sets += 1
            hi = lo
    while n_sets > 0:
        n_sets -= 1
        lo, hi = begin[n_sets], end[n_sets]
        at = _cut(point, need, member, lo, hi, d)
        if at == lo:
            n_groups += 1
            first_member_of[n_groups] = hi
        else:
            # The left half is pushed last, so it is popped next: groups are found in rising order.
            begin[n_sets], end[n_sets] = at, hi
            begin[n_sets + 1], end[n_sets + 1] = lo, at
            n_sets += 2
    return member, first_member_of[: n_groups + 1].copy()


@kernel
def _cut(point: FloatArray, need: Int32Array, member: IntArray, lo: int, hi: int, d: int) -> int:
    """Reorder a set in place so that it can be split at the returned index; `lo`: it cannot."""
    n = hi - lo
    n_groups = n // _largest(need, member, lo, hi)
    left = n * (n_groups // 2) // n_groups if n_groups >= 2 else n // 2
    if left == 0:
        return lo
    low = np.empty(d)
    high = np.empty(d)
    for axis in range(d):
        low[axis] = high[axis] = point[member[lo], axis]
        for i in range(lo + 1, hi):
            value = point[member[i], axis]
            low[axis] = min(low[axis], value)
            high[axis] = max(high[axis], value)
    tried = np.zeros(d, np.bool_)
    for _ in range(d):
        axis = -1
        for a in range(d):
            if not tried[a] and (axis < 0 or high[a] - low[a] > high[axis] - low[axis]):
                axis = a
        tried[axis] = True
        _select(point, member, lo, hi, axis, lo + left)
        if left >= _largest(need, member, lo, lo + left) and n - left >= _largest(
            need, member, lo + left, hi
        ):
            return lo + left
    return lo


@kernel
def _largest(need: Int32Array, member: IntArray, lo: int, hi: int) -> int:
    most = 1
    for i in range(lo, hi):
        most = max(most, need[member[i]])
    return most


@kernel
def _before(point: FloatArray, axis: int, a: int, b: int) -> bool:
    """Whether device a precedes b along an axis; ties by index make the order total."""
    return point[a, axis] < point[b, axis] or (point[a, axis] == point[b, axis] and a < b)


@kernel
def _select(point: FloatArray, member: IntArray, lo: int, hi: int, axis: int, at: int) -> None:
    """Reorder `member[lo:hi]` so that devices before index `at` precede the rest (quickselect)."""
    hi -= 1
    while lo < hi:
        pivot = member[(lo + hi) // 2]
        i, j = lo, hi
        while i <= j:
            while _before(point, axis, member[i], pivot):
                i += 1
            while _before(point, axis, pivot, member[j]):
                j -= 1
            if i <= j:
                member[i], member[j] = member[j], member[i]
                i += 1
                j -= 1
        if at <= j:
            hi = j
        elif at >= i:
            lo = i
        else:
            return

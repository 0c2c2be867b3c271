"""Partitioning of devices into groups that are as small as what they demand allows."""

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray


@kernel
def partition(point: FloatArray, need: Int32Array, part: Int32Array) -> tuple[IntArray, IntArray]:
    """Split devices by their coordinates, as finely as every device's demand allows.

    Parameters
    ----------
    point
        Coordinates of each device, in as many dimensions as matter, shape (n, d).
    need
        How many devices each wants to be among, shape (n,), >= 1.
    part
        Devices of different parts share no group, shape (n,).

    Returns
    -------
    member, first_member_of
        Groups in compressed sparse rows over `0..n-1`. Each holds at least as many devices as
        any of its members demands, unless its whole part does not: that is one group then.

    Notes
    -----
    Mondrian [1]_, across the widest side first and across the next where that fails. A set of
    n devices that demand k is to become `n // k` groups, so it is split in that proportion
    rather than at the median: halving by the median stops at up to 2k - 1 devices a group,
    this at n / (n // k), rounded up. Where demands differ, a group holds less than twice the
    largest in it. Expected O(d n log n).

    References
    ----------
    .. [1] K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian Multidimensional K-Anonymity", 2006.
    """
    n, d = point.shape
    member = np.argsort(part, kind="mergesort")
    ends = np.empty(n, np.int64)
    n_groups = 0
    stack = [(n, n)]
    hi = n
    for lo in range(n - 1, -1, -1):
        if lo == 0 or part[member[lo - 1]] != part[member[lo]]:
            stack.append((lo, hi))
            hi = lo
    while len(stack) > 1:
        lo, hi = stack.pop()
        at = _cut(point, need, member, lo, hi, d)
        if at == lo:
            ends[n_groups] = hi
            n_groups += 1
        else:
            # The left half last, so that it is next: groups end in rising order.
            stack.append((at, hi))
            stack.append((lo, at))
    first_member_of = np.zeros(n_groups + 1, np.int64)
    first_member_of[1:] = ends[:n_groups]
    return member, first_member_of


@kernel
def _cut(point: FloatArray, need: Int32Array, member: IntArray, lo: int, hi: int, d: int) -> int:
    """Reorder a set in place so that it can be split at the place returned; `lo`: it cannot."""
    n = hi - lo
    most = _largest(need, member, lo, hi)
    shares = n // most
    left = n * (shares // 2) // shares if shares >= 2 else n // 2
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
    for axis in np.argsort(low - high):
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
    """Whether device a comes before b along an axis; ties by index, so that order is total."""
    return point[a, axis] < point[b, axis] or (point[a, axis] == point[b, axis] and a < b)


@kernel
def _select(point: FloatArray, member: IntArray, lo: int, hi: int, axis: int, at: int) -> None:
    """Reorder `member[lo:hi]` so that what stands before `at` comes before what stands after."""
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

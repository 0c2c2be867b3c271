"""Optimal cuts: divides an ordered table into the cheapest classes by dynamic programming.

The least cost of the first j records is the minimum over all last classes that end at j and keep
the promise.
"""

from collections.abc import Callable
from math import inf

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.tally import Tally, add, clear, tally_cost, tally_keeps
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

_MOST_CUTS, _FEWEST_CUTS = 128, 8
_CUTS_OF_ALL = 30_000_000

_BACK = 4
_CUTS_PER_CALL = 100
_ADDED_PER_CALL = 500_000


def split(
    first: Int32Array,
    tally: Tally,
    *,
    keep_going: Callable[[], bool],
    spend: Callable[[int], None] = lambda _added: None,
) -> Int32Array | None:
    """Return the class of each record in the cheapest division of the table.

    `first`: a first partition, whose classes are stretches of the table; `tally`: of a problem
    whose records are in an order that puts similar ones together; `spend`: called with the number
    of records that were added to classes. None if time ran out, if no division was found, or if
    records of `first` are suppressed.

    Notes
    -----
    A class is at most twice as long as the shortest possible class with the same end. Where the
    classes of `first` are long, only some positions in each may be cuts: 128, and fewer in large
    tables. The cost is thus O(n columns) times about twice that number, however long the classes.
    25 bytes for each record.
    """
    n = len(first)
    if (first == SUPPRESSED).any():
        return None
    n_cuts = min(max(_CUTS_OF_ALL // max(n, 1), _FEWEST_CUTS), _MOST_CUTS)
    places = _places(first, n_cuts)
    cost, start = np.full(n + 1, inf), np.zeros(n + 1, np.int64)
    cost[0] = 0.0
    begin = 1
    while begin <= n:
        if not keep_going():
            return None
        end = min(begin + _CUTS_PER_CALL, n + 1)
        begin, n_added = cheapest_cuts(begin, end, places, cost, start, tally)
        spend(n_added)
    if cost[n] == inf:
        return None
    return _numbered(start)


def _places(number: Int32Array, n_cuts: int) -> tuple[BoolArray, IntArray]:
    """Return where cuts are allowed, and how far back a class may reach, both shape (n + 1,).

    `number` is the class of each record in the order; about `n_cuts` cuts are allowed in each.
    """
    n = len(number)
    begins = np.flatnonzero(np.r_[True, number[1:] != number[:-1]])
    lengths = np.diff(np.r_[begins, n])
    within = np.arange(n) - np.repeat(begins, lengths)
    may_cut = np.r_[within % np.repeat(-(-lengths // n_cuts), lengths) == 0, True]
    far = begins[np.maximum(np.arange(len(begins)) - _BACK, 0)]
    return may_cut, np.r_[0, np.repeat(far, lengths)]


@kernel
def cheapest_cuts(
    begin: int,
    end: int,
    places: tuple[BoolArray, IntArray],
    cost: FloatArray,
    start: IntArray,
    tally: Tally,
) -> tuple[int, int]:
    """Fill `cost` and `start` of the best last class for each end from `begin` up to `end`.

    Returns the first end that is not filled, which is before `end` if the call would take long, and
    how many records were added to classes.
    `cost[j]` is the cost of the records before j, infinite if they cannot be divided; `start[j]` is
    the start of the last class. Both are known before `begin`.
    """
    may_cut, back_to = places
    n_added = 0
    for j in range(begin, end):
        if n_added > _ADDED_PER_CALL:
            return j, n_added
        if not may_cut[j]:
            continue
        clear(tally)
        limit = back_to[j]
        i = j - 1
        while i >= limit:
            add(i, tally)
            if may_cut[i] and cost[i] < np.inf:
                total = cost[i] + tally_cost(tally)
                if total < cost[j] and tally_keeps(tally):
                    if cost[j] == np.inf:  # the shortest possible class
                        limit = max(limit, 2 * i - j)
                    cost[j] = total
                    start[j] = i
            i -= 1
        n_added += j - 1 - i
    return end, n_added


@kernel
def _numbered(start: IntArray) -> Int32Array:
    class_of = np.empty(len(start) - 1, np.int32)
    end, number = len(class_of), 0
    while end > 0:
        class_of[start[end] : end] = number
        end = start[end]
        number += 1
    return class_of

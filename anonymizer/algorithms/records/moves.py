"""The moves of the local search: each changes a few classes, and only for the better.

Better is what changes the costs by less than a goal: below nothing, or, while the search is hot,
now and then a little above it.
"""

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.drawing import below, n_left, near, unit
from anonymizer.algorithms.records.evicting import evict
from anonymizer.algorithms.records.joining import Scratch
from anonymizer.algorithms.records.leaving import all_leave, costly_leave, one_leaves
from anonymizer.algorithms.records.partition import Partition
from anonymizer.algorithms.records.pricing import Orders
from anonymizer.algorithms.records.recut import NO_CLASS, recut
from anonymizer.algorithms.records.tally import Tally
from anonymizer.domain.arrays import IntArray

_NOTHING = -1e-9
"""Less than this is a gain, and no rounding."""
_MOST_DRAWS = 20
"""That a move uses up."""
_TRIES = 3
_MOST_SORTED = 600_000
"""Records of all tries to cut anew, so that a move takes less than a second."""

# So many moves of a thousand are of each kind, all others narrow a class; measured on Adult.
_CUT, _RECUT, _DISSOLVE, _SEND_ONE = 70, 110, 10, 50


@kernel
def make_moves(
    heat: float,
    work: int,
    draws: IntArray,
    orders: Orders,
    tally: Tally,
    partition: Partition,
    scratch: Scratch,
) -> int:
    """Make moves until the random numbers or the work is used up; return what is left of it.

    Parameters
    ----------
    heat
        How much worse a move may make it: this times a random number of mean 1. 0: not at all.
    work
        Roughly 10 ns each.
    """
    _, head, _, _ = tally
    of_record, _, _, _, _ = partition
    while work > 0 and n_left(draws) >= _MOST_DRAWS:
        i = below(draws, len(of_record))
        a, kind = int(of_record[i]["number"]), below(draws, 1000)
        goal = _NOTHING - heat * np.log(unit(draws))
        work -= 50
        if a < 0:
            continue
        kind -= _CUT + _RECUT
        if kind < 0:
            b = NO_CLASS if kind < -_RECUT else _near_class(i, a, draws, orders, partition)
            work -= _recut(a, b, draws, orders, tally, partition)
            continue
        kind -= _DISSOLVE
        if kind < 0:
            a = _small_class(draws, tally, partition)
            n_go, n_stay = all_leave(a, partition, scratch)
        elif kind < _SEND_ONE:
            n_go, n_stay = one_leaves(i, partition, scratch)
        else:
            n_go, n_stay = costly_leave(i, draws, tally, partition, scratch)
        work -= 10 * n_stay + 60 * n_go
        if n_go > 0:
            judged = head[0]["judged"]
            evict(a, n_go, n_stay, goal, orders, tally, partition, scratch)
            work -= 10 * (head[0]["judged"] - judged)
    return work


@inner_kernel
def _small_class(draws: IntArray, tally: Tally, partition: Partition) -> int:
    """Return the smaller one of two classes."""
    _, head, _, _ = tally
    _, of_class, _, _, _ = partition
    a, b = below(draws, head[0]["n_classes"]), below(draws, head[0]["n_classes"])
    return a if of_class[a]["size"] <= of_class[b]["size"] else b


@inner_kernel
def _near_class(i: int, a: int, draws: IntArray, orders: Orders, partition: Partition) -> int:
    """Return the class of a record near `i`, or its own class `a`."""
    order, rank = orders
    of_record, _, _, _, _ = partition
    by = below(draws, len(rank))
    j = near(i, order[by], rank[by], draws)
    b = a if j < 0 else int(of_record[j]["number"])
    return a if b < 0 else b


@kernel
def _recut(
    a: int, b: int, draws: IntArray, orders: Orders, tally: Tally, partition: Partition
) -> int:
    """Cut a class in two, or two anew; return the work."""
    (_, rule, _, _), head, _, _ = tally
    _, of_class, _, _, _ = partition
    _, rank = orders
    size = of_class[a]["size"] + (0 if b == NO_CLASS else of_class[b]["size"])
    if a == b or size < 2 * head[0]["k"]:
        return 0
    n_tries = min(_TRIES, _MOST_SORTED // size)
    spread_by = np.full(_TRIES, -1)
    for t in range(_TRIES):
        c, plain = below(draws, len(rule)), below(draws, 2) == 0
        if rule[c]["distinct"] > 1 and not plain:
            spread_by[t] = c
    first = below(draws, len(rank))
    recut(a, b, _NOTHING, first, spread_by[:n_tries], orders, tally, partition)
    return int(12 * n_tries * size)

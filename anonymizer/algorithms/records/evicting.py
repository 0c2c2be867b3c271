"""The core of most moves: some members of a class leave it for those where they cost least."""

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.joining import Scratch, join, take_back, targets_keep
from anonymizer.algorithms.records.keeping import tally_keeps
from anonymizer.algorithms.records.outlining import redraw
from anonymizer.algorithms.records.partition import Partition, cost_of, drop, link, unlink
from anonymizer.algorithms.records.pricing import Orders, best_target
from anonymizer.algorithms.records.tally import Tally
from anonymizer.algorithms.records.tallying import tally_cost, tally_members

_LOOKS_A_CALL = 1000
_JUDGED_A_CALL = 500_000


@inner_kernel
def evict(
    a: int,
    n_go: int,
    n_stay: int,
    goal: float,
    orders: Orders,
    tally: Tally,
    partition: Partition,
    scratch: Scratch,
) -> float:
    """Send those who go to where they cost least, if all costs change by less than `goal`.

    Returns
    -------
    change
        Of the costs; infinite where nothing was done.

    Notes
    -----
    Who goes stands in `journal`, who stays in `stay`; together they are the class `a`. Where
    nobody stays, `a` is gone, and the last class has its number.
    """
    _, head, _, _ = tally
    stay, journal, _, costs = scratch
    tally_members(stay[:n_stay], tally)
    if n_stay > 0 and not tally_keeps(tally):
        return np.inf
    room = cost_of(a, tally, partition) - tally_cost(tally) + goal
    n_placed = 0
    while n_placed < n_go:
        i = journal[n_placed]["record"]
        b, cost = best_target(i, a, room, orders, tally, partition, costs)
        if b < 0:
            break
        join(n_placed, b, tally, partition, scratch)
        room -= cost
        n_placed += 1
    if n_placed < n_go or not targets_keep(n_go, tally, partition, scratch):
        for x in range(n_placed - 1, -1, -1):
            take_back(x, tally, partition, scratch)
        return np.inf
    for x in range(n_go):
        unlink(journal[x]["record"], partition)
        link(journal[x]["record"], journal[x]["target"], partition)
    if n_stay > 0:
        if head[0]["may_break"] == 1:  # the tally is of another class by now
            tally_members(stay[:n_stay], tally)
        redraw(a, tally, partition)
    else:
        drop(a, tally, partition)
    return goal - room


@kernel
def admit(begin: int, orders: Orders, tally: Tally, partition: Partition, scratch: Scratch) -> int:
    """Take suppressed records into classes that keep the promise with them.

    Looked at are some from `begin` on; returned is the first that was not. O(suppressed records
    times classes times columns), and where classes that grow must be judged, times their records.
    """
    _, head, _, _ = tally
    of_record, _, _, _, _ = partition
    _, journal, _, costs = scratch
    n_looks, until = 0, head[0]["judged"] + _JUDGED_A_CALL
    for i in range(begin, len(of_record)):
        if of_record[i]["number"] >= 0:
            continue
        if n_looks == _LOOKS_A_CALL or head[0]["judged"] > until:
            return i
        n_looks += 1
        b, _ = best_target(i, -1, np.inf, orders, tally, partition, costs)
        if b < 0:
            continue
        journal[0]["record"] = i
        join(0, b, tally, partition, scratch)
        if targets_keep(1, tally, partition, scratch):
            link(i, b, partition)
        else:
            take_back(0, tally, partition, scratch)
    return len(of_record)

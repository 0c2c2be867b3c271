"""Moves of the local search: each changes a few classes and lowers the cost.

In most moves some members of a class leave it (see `leaving`), and each joins the class where it
costs least. They join provisionally: the journal holds what is needed to undo it. A move is
accepted if it changes the cost by less than a goal, which is zero, or now and then a little above
zero while the search is hot (simulated annealing [1]_).

References
----------
.. [1] S. Kirkpatrick, C. D. Gelatt and M. P. Vecchi, "Optimization by simulated annealing", 1983.
"""

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.draws import BITS, below, n_left, near, neighbor, unit
from anonymizer.algorithms.records.leaving import (
    Scratch,
    all_leave,
    costly_leave,
    one_leaves,
    outer_leave,
)
from anonymizer.algorithms.records.partition import (
    Orders,
    Partition,
    best_of_all,
    best_target,
    cost_of,
    drop,
    link,
    redraw,
    redraw_class,
    show,
    unlink,
    widen,
)
from anonymizer.algorithms.records.recut import NO_CLASS, PLAIN, POLES, recut
from anonymizer.algorithms.records.refill import choose, gained, gives_before
from anonymizer.algorithms.records.tally import (
    Tally,
    add,
    clear,
    share_penalty,
    tally_cost,
    tally_keeps,
    tally_members,
)
from anonymizer.domain.arrays import IntArray, RecordArray


@inner_kernel
def join(x: int, b: int, tally: Tally, partition: Partition, scratch: Scratch) -> None:
    """Add the record of a journal entry to class `b` provisionally; journal the former outline."""
    of_class, outline = partition.of_class, partition.outline
    journal, outline_before = scratch.journal, scratch.outline_before
    journal[x]["target"] = b
    journal[x]["size"] = of_class[b]["size"]
    journal[x]["loss"] = of_class[b]["loss"]
    for c in range(outline.shape[1]):
        outline_before[x, c] = outline[b, c]
    widen(journal[x]["record"], b, tally, partition)


@inner_kernel
def take_back(x: int, tally: Tally, partition: Partition, scratch: Scratch) -> None:
    """Undo a `join`; the last one must be undone first."""
    cells, column = tally.problem.cells, tally.column
    of_class, outline, bits = partition.of_class, partition.outline, partition.bits
    journal, outline_before = scratch.journal, scratch.outline_before
    b = journal[x]["target"]
    of_class[b]["size"] = journal[x]["size"]
    of_class[b]["loss"] = journal[x]["loss"]
    for c in range(outline.shape[1]):
        if column[c]["bit"] >= 0 and outline[b, c]["present"] > outline_before[x, c]["present"]:
            bit = column[c]["bit"] + cells[journal[x]["record"], c]
            bits[b, bit >> 6] ^= np.uint64(1) << np.uint64(bit & 63)
        line, before = outline[b, c], outline_before[x, c]
        wider = line["lo"] < before["lo"] or line["hi"] > before["hi"]
        wider = wider or line["present"] > before["present"]
        outline[b, c] = before
        if wider:
            show(b, c, tally, partition)


@inner_kernel
def targets_keep(n_joined: int, tally: Tally, partition: Partition, scratch: Scratch) -> bool:
    """Return whether all classes that records have joined keep the promise.

    Distinct values and spread can only grow, and shares were checked by `join_cost`; for the other
    criteria the classes are tallied. O(their records times columns).
    """
    head = tally.head
    of_record, of_class = partition.of_record, partition.of_class
    journal = scratch.journal
    if head[0]["may_break"] == 0:
        return True
    for x in range(n_joined):
        b = journal[x]["target"]
        if _is_earlier_target(x, journal):
            continue
        clear(tally)
        i = of_class[b]["first"]
        while i >= 0:
            add(i, tally)
            i = of_record[i]["next"]
        for y in range(x, n_joined):
            if journal[y]["target"] == b:
                add(journal[y]["record"], tally)
        head[0]["tallied"] += head[0]["size"]
        if not tally_keeps(tally):
            return False
    return True


@inner_kernel
def _is_earlier_target(x: int, journal: RecordArray) -> bool:
    for y in range(x):  # noqa: SIM110  numba knows no generators
        if journal[y]["target"] == journal[x]["target"]:
            return True
    return False


_EXAMINED_PER_CALL = 1000
_TALLIED_PER_CALL = 500_000


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
    """Move the leaving records to the classes where they cost least, if that meets `goal`.

    The change of the cost is below `goal`; infinite if nothing was changed.

    Notes
    -----
    The leaving records are in `journal`, the staying ones in `stay`; together they are class `a`.
    If no record stays, `a` is removed, and the last class gets its number.
    """
    head = tally.head
    stay = scratch.stay
    tally_members(stay[:n_stay], tally)
    if n_stay > 0 and not tally_keeps(tally):
        return np.inf
    room = cost_of(a, tally, partition) - tally_cost(tally) - share_penalty(tally) + goal
    room = _placed(n_go, 0, a, room, orders, tally, partition, scratch)
    if room < 0:
        return np.inf
    _settle(n_go, tally, partition, scratch)
    if n_stay > 0:
        if head[0]["may_break"] == 1 or head[0]["share_price"] > 0:
            # the tally is of another class by now
            tally_members(stay[:n_stay], tally)
        redraw(a, tally, partition)
    else:
        drop(a, tally, partition)
    return goal - room


@inner_kernel
def refill(
    i: int,
    n_go: int,
    n_stay: int,
    goal: float,
    orders: Orders,
    tally: Tally,
    partition: Partition,
    scratch: Scratch,
) -> float:
    """Move the leaving records elsewhere, and take others within the label of those that stay.

    As `evict`, for the class of record `i`. Records are taken until there are k.
    """
    head, of_record = tally.head, partition.of_record
    stay, taken = scratch.stay, scratch.reach.taken
    a, n = int(of_record[i]["number"]), head[0]["k"] - n_stay
    if n <= 0:
        return evict(a, n_go, n_stay, goal, orders, tally, partition, scratch)
    tally_members(stay[:n_stay], tally)
    if n > len(taken) or choose(i, a, n, tally, partition, scratch.reach) < n:
        return np.inf
    for x in range(n):
        add(taken[x]["record"], tally)
    room = goal + cost_of(a, tally, partition) - tally_cost(tally) - share_penalty(tally)
    gain = gained(n, tally, partition, scratch.reach) if tally_keeps(tally) else -1.0
    if gain < 0:
        return np.inf
    room = _placed(n_go, n, a, room + gain, orders, tally, partition, scratch)
    if room < 0:
        return np.inf
    _settle(n_go, tally, partition, scratch)
    for x in range(n):
        unlink(taken[x]["record"], partition)
        link(taken[x]["record"], a, partition)
    for x in range(n):
        if not gives_before(taken[x]["donor"], x, taken):
            redraw_class(taken[x]["donor"], tally, partition)
    redraw_class(a, tally, partition)
    return goal - room


@inner_kernel
def _placed(
    n_go: int,
    n_taken: int,
    a: int,
    room: float,
    orders: Orders,
    tally: Tally,
    partition: Partition,
    scratch: Scratch,
) -> float:
    """Let the leaving records join the classes where they cost least; return the room that is left.

    Negative, and nothing changed, if they cost more than the room, or a class would break the
    promise. None joins `a`, which they leave, or a class that gives records.
    """
    journal, asked, taken = scratch.journal, scratch.asked, scratch.reach.taken
    n_placed = 0
    while n_placed < n_go:
        i = journal[n_placed]["record"]
        b, cost = best_target(i, a, room, orders, tally, partition, asked)
        if b < 0 or gives_before(b, n_taken, taken):
            break
        join(n_placed, b, tally, partition, scratch)
        room -= cost
        n_placed += 1
    if n_placed == n_go and targets_keep(n_go, tally, partition, scratch):
        return room
    for x in range(n_placed - 1, -1, -1):
        take_back(x, tally, partition, scratch)
    return -1.0


@inner_kernel
def _settle(n_go: int, tally: Tally, partition: Partition, scratch: Scratch) -> None:
    """Make the leaving records, which have joined their targets, members of these."""
    journal = scratch.journal
    for x in range(n_go):
        unlink(journal[x]["record"], partition)
        link(journal[x]["record"], journal[x]["target"], partition)
    if tally.head[0]["share_price"] > 0:
        for x in range(n_go):  # what joining made an upper bound becomes exact
            if not _is_earlier_target(x, journal):
                redraw_class(journal[x]["target"], tally, partition)


@kernel
def admit(begin: int, orders: Orders, tally: Tally, partition: Partition, scratch: Scratch) -> int:
    """Add suppressed records to classes that keep the promise with them.

    Examines a part of the records, from `begin` on, and returns the first record not examined.
    O(suppressed records times classes times columns), and times the records of a class where the
    criteria must be checked on a tally.
    """
    head = tally.head
    of_record = partition.of_record
    journal, asked = scratch.journal, scratch.asked
    n_examined, until = 0, head[0]["tallied"] + _TALLIED_PER_CALL
    for i in range(begin, len(of_record)):
        if of_record[i]["number"] >= 0:
            continue
        if n_examined == _EXAMINED_PER_CALL or head[0]["tallied"] > until:
            return i
        n_examined += 1
        b, _ = best_target(i, -1, np.inf, orders, tally, partition, asked)
        if b < 0:
            b = best_of_all(i, tally, partition)
        if b < 0:
            continue
        journal[0]["record"] = i
        join(0, b, tally, partition, scratch)
        if targets_keep(1, tally, partition, scratch):
            link(i, b, partition)
        else:
            take_back(0, tally, partition, scratch)
    return len(of_record)


_NOTHING = -1e-9
"""Less than this is a gain, and no rounding."""
_MOST_DRAWS = 20
"""That a move uses up."""
_TRIES = 3
_BY_POLES = 2
"""Of four tries to cut anew, so many lie between two poles."""
_MOST_SORTED = 600_000
"""Records of all tries to cut anew, so that a move takes less than a second."""

# So many moves of a thousand are of each kind, all others narrow a class; measured on Adult.
_CUT, _RECUT, _REFILL, _DISSOLVE, _SEND_ONE = 70, 110, 100, 10, 50


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

    A move may be worse by `heat` times a random number of mean 1. `work`: roughly 10 ns each.
    """
    head = tally.head
    of_record = partition.of_record
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
        kind -= _REFILL
        if kind < 0:
            n_go, n_stay = outer_leave(i, draws, tally, partition, scratch)
            work -= 10 * n_stay + 60 * n_go
            if n_go > 0:
                refill(i, n_go, n_stay, goal, orders, tally, partition, scratch)
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
            tallied = head[0]["tallied"]
            evict(a, n_go, n_stay, goal, orders, tally, partition, scratch)
            work -= 10 * (head[0]["tallied"] - tallied)
    return work


@inner_kernel
def _small_class(draws: IntArray, tally: Tally, partition: Partition) -> int:
    """Return the smaller one of two classes."""
    head = tally.head
    of_class = partition.of_class
    a, b = below(draws, head[0]["n_classes"]), below(draws, head[0]["n_classes"])
    return a if of_class[a]["size"] <= of_class[b]["size"] else b


@inner_kernel
def _near_class(i: int, a: int, draws: IntArray, orders: Orders, partition: Partition) -> int:
    """Return the class of a record near `i` in an order or among its neighbours, or its own `a`."""
    order, rank = orders.order, orders.rank
    of_record = partition.of_record
    by = below(draws, 2 * len(rank))
    if by < len(rank):
        j = near(i, order[by], rank[by], draws)
    else:
        j = neighbor(i, orders.neighbors, draws)
    b = a if j < 0 else int(of_record[j]["number"])
    return a if b < 0 else b


@kernel
def _recut(
    a: int, b: int, draws: IntArray, orders: Orders, tally: Tally, partition: Partition
) -> int:
    """Cut a class in two, or two anew; return the work."""
    rule, head = tally.problem.rule, tally.head
    of_class = partition.of_class
    size = of_class[a]["size"] + (0 if b == NO_CLASS else of_class[b]["size"])
    if a == b or size < 2 * head[0]["k"]:
        return 0
    n_tries = min(_TRIES, _MOST_SORTED // size)
    spread_by = np.full(_TRIES, PLAIN)
    for t in range(_TRIES):
        c, how = below(draws, len(rule)), below(draws, 4)
        if how < _BY_POLES:
            spread_by[t] = POLES
        elif how == _BY_POLES and rule[c]["distinct"] > 1:
            spread_by[t] = c
    first = below(draws, 1 << BITS)
    recut(a, b, _NOTHING, first, spread_by[:n_tries], orders, tally, partition)
    return int(12 * n_tries * size)

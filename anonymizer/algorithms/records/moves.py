"""The moves of the local search: each changes a few classes, and only for the better.

Better is what changes the costs by less than a goal: below nothing, or, while the search is hot,
now and then a little above it.

Who leaves a class in a move of the local search: written to `journal`, who stays to `stay`.

The core of most moves: some members of a class leave it for those where they cost least.

Records that join classes for the time being: noted in a journal, so as to be taken back.

Random numbers for kernels: drawn beforehand, so that kernels have no state of their own.
"""

from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.partition import (
    OUTLINE,
    Float32Array,
    Orders,
    Partition,
    best_target,
    cost_of,
    drop,
    link,
    price,
    price_size,
    redraw,
    unlink,
    widen,
)
from anonymizer.algorithms.records.problem import Codes, Cost
from anonymizer.algorithms.records.recut import NO_CLASS, recut
from anonymizer.algorithms.records.tally import (
    Tally,
    add,
    clear,
    tally_cost,
    tally_keeps,
    tally_members,
)
from anonymizer.domain.arrays import Int32Array, IntArray, RecordArray

JOURNAL = np.dtype(
    [("record", np.int64), ("target", np.int64), ("size", np.int64), ("loss", np.float64)],
    align=True,
)
"""Who goes where, and what size and loss the target had before."""

Scratch: TypeAlias = tuple[IntArray, RecordArray, RecordArray, Float32Array]
"""Space that moves need: `stay`, `journal`, `outline_before` and `costs`.

stay
    Who stays, shape (n,).
journal, outline_before
    Of `JOURNAL`, shape (most that go at once,); the `OUTLINE` that each target had before, shape
    (most that go at once, columns).
costs
    Of a record in each class, shape (most classes,).
"""


def blank_scratch(partition: Partition, most: int) -> Scratch:
    """Return space to let up to `most` records go at once."""
    of_record, of_class, outline, _, _ = partition
    return (
        np.zeros(len(of_record), np.int64),
        np.zeros(most, JOURNAL),
        np.zeros((most, outline.shape[1]), OUTLINE),
        np.zeros(len(of_class), np.float32),
    )


@inner_kernel
def join(x: int, b: int, tally: Tally, partition: Partition, scratch: Scratch) -> None:
    """Count the record of a journal entry in class `b`, and note what that was before."""
    _, of_class, outline, _, _ = partition
    _, journal, outline_before, _ = scratch
    journal[x]["target"] = b
    journal[x]["size"] = of_class[b]["size"]
    journal[x]["loss"] = of_class[b]["loss"]
    for c in range(outline.shape[1]):
        outline_before[x, c] = outline[b, c]
    widen(journal[x]["record"], b, tally, partition)


@inner_kernel
def take_back(x: int, tally: Tally, partition: Partition, scratch: Scratch) -> None:
    """Undo what `join` did; the last one first."""
    (cells, _, _, _), _, column, _ = tally
    _, of_class, outline, bits, _ = partition
    _, journal, outline_before, _ = scratch
    b = journal[x]["target"]
    of_class[b]["size"] = journal[x]["size"]
    of_class[b]["loss"] = journal[x]["loss"]
    for c in range(outline.shape[1]):
        if column[c]["bit"] >= 0 and outline[b, c]["present"] > outline_before[x, c]["present"]:
            bit = column[c]["bit"] + cells[journal[x]["record"], c]
            bits[b, bit >> 6] ^= np.uint64(1) << np.uint64(bit & 63)
        wider = outline[b, c]["loss"] != outline_before[x, c]["loss"]
        outline[b, c] = outline_before[x, c]
        if wider:
            price(b, c, tally, partition)
    price_size(b, tally, partition)


@inner_kernel
def targets_keep(n_joined: int, tally: Tally, partition: Partition, scratch: Scratch) -> bool:
    """Return whether all classes that got bigger keep the promise.

    Distinct values and spread only grow, and shares were looked at; for the rest they are tallied.
    O(their records columns).
    """
    _, head, _, _ = tally
    of_record, of_class, _, _, _ = partition
    _, journal, _, _ = scratch
    if head[0]["may_break"] == 0:
        return True
    for x in range(n_joined):
        b = journal[x]["target"]
        if _is_seen(x, journal):
            continue
        clear(tally)
        i = of_class[b]["first"]
        while i >= 0:
            add(i, tally)
            i = of_record[i]["next"]
        for y in range(x, n_joined):
            if journal[y]["target"] == b:
                add(journal[y]["record"], tally)
        head[0]["judged"] += head[0]["size"]
        if not tally_keeps(tally):
            return False
    return True


@inner_kernel
def _is_seen(x: int, journal: RecordArray) -> bool:
    for y in range(x):  # noqa: SIM110  numba knows no generators
        if journal[y]["target"] == journal[x]["target"]:
            return True
    return False


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


_BITS = 31


def draw(rng: np.random.Generator, n: int) -> IntArray:
    """Return `n` random numbers; before them how many are used, none yet."""
    draws = rng.integers(0, 1 << _BITS, n + 1, dtype=np.int64)
    draws[0] = 0
    return draws


@inner_kernel
def n_left(draws: IntArray) -> int:
    """Return how many random numbers are left."""
    return len(draws) - 1 - int(draws[0])


@inner_kernel
def below(draws: IntArray, n: int) -> int:
    """Use up a random number; return it as one from 0 to n - 1, for n far below 2^31."""
    draws[0] += 1
    return int(draws[draws[0]] % n)


@inner_kernel
def unit(draws: IntArray) -> float:
    """Use up a random number; return it as one above 0, and 1 at most."""
    draws[0] += 1
    return float((draws[draws[0]] + 1) / (1 << _BITS))


@inner_kernel
def near(i: int, order: Int32Array, rank: Int32Array, draws: IntArray) -> int:
    """Return a record near `i` in an order, sometimes far; -1 beyond the ends.

    The distance is at most 2, 4, 8, ... up to all records, each bound as likely as the other.
    Uses up three random numbers.
    """
    n = len(order)
    n_doublings = 1
    while 1 << n_doublings < n:
        n_doublings += 1
    step = 1 + below(draws, 1 << (1 + below(draws, n_doublings)))
    at = rank[i] + (step if below(draws, 2) == 0 else -step)
    return int(order[at]) if 0 <= at < n else -1


_TAXONOMY = int(Cost.TAXONOMY)


@inner_kernel
def all_leave(a: int, partition: Partition, scratch: Scratch) -> tuple[int, int]:
    """Let all members leave; return how many leave and stay, (0, 0) where they are too many."""
    of_record, of_class, _, _, _ = partition
    _, journal, _, _ = scratch
    n_go = 0
    i = of_class[a]["first"]
    while i >= 0:
        if n_go == len(journal):
            return 0, 0
        journal[n_go]["record"] = i
        n_go += 1
        i = of_record[i]["next"]
    return n_go, 0


@inner_kernel
def one_leaves(i: int, partition: Partition, scratch: Scratch) -> tuple[int, int]:
    """Let record `i` leave; return how many leave and stay."""
    of_record, of_class, _, _, _ = partition
    stay, journal, _, _ = scratch
    journal[0]["record"] = i
    n_stay = 0
    j = of_class[of_record[i]["number"]]["first"]
    while j >= 0:
        if j != i:
            stay[n_stay] = j
            n_stay += 1
        j = of_record[j]["next"]
    return 1, n_stay


@inner_kernel
def costly_leave(
    i: int, draws: IntArray, tally: Tally, partition: Partition, scratch: Scratch
) -> tuple[int, int]:
    """Let those leave who make a column cost what it does; return how many leave and stay.

    Where sets are the cost, those of the class of record `i` that have its code; in a range, those
    at one end, or from that code on; in a hierarchy also those outside a node above the code.
    (0, 0) where more would leave than stay. Uses up five random numbers. O(members).
    """
    (cells, rule, _, codes), head, column, _ = tally
    of_record, of_class, outline, _, _ = partition
    stay, journal, _, _ = scratch
    a, c = int(of_record[i]["number"]), below(draws, head[0]["n_qis"])
    wanted, line, code = rule[c], outline[a, c], int(cells[i, c])
    up, at_the_end, by_node = below(draws, 2), below(draws, 2), below(draws, 2)
    level = below(draws, max(1, wanted["height"] - 1))
    lo, hi, inside = (code, wanted["size"], True) if up == 1 else (0, code, True)
    if column[c]["bit"] >= 0:
        lo, hi = code, code
    elif wanted["form"] == _TAXONOMY and by_node == 1:
        lo, hi = _codes_below(code, level, wanted, codes)
        inside = False
    elif at_the_end == 1:
        lo, hi = (line["hi"], wanted["size"]) if up == 1 else (0, line["lo"])
    most = min(len(journal), of_class[a]["size"] // 2)
    n_go, n_stay = 0, 0
    j = of_class[a]["first"]
    while j >= 0:
        if (lo <= cells[j, c] <= hi) == inside:
            if n_go == most:
                return 0, 0
            journal[n_go]["record"] = j
            n_go += 1
        else:
            stay[n_stay] = j
            n_stay += 1
        j = of_record[j]["next"]
    return n_go, n_stay


@inner_kernel
def _codes_below(code: int, level: int, wanted: np.void, codes: Codes) -> tuple[int, int]:
    """Return the first and the last code below the node above `code` at a level."""
    _, _, ancestor, _ = codes
    first, height = wanted["first_ancestor"] + level, wanted["height"]
    node = ancestor[first + code * height]
    lo, hi = code, code
    while lo > 0 and ancestor[first + (lo - 1) * height] == node:
        lo -= 1
    while hi + 1 < wanted["size"] and ancestor[first + (hi + 1) * height] == node:
        hi += 1
    return lo, hi


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

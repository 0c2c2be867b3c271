"""Recut, a move of the local search: two near classes are pooled and cut in two again.

It is the move that gains most: every cut of several orders of the pool is tried.
"""

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.criteria import ROUNDING
from anonymizer.algorithms.records.partition import (
    Orders,
    Partition,
    cost_of,
    link,
    members,
    redraw,
    unlink,
)
from anonymizer.algorithms.records.tally import (
    Tally,
    add,
    clear,
    loss_of,
    share_penalty,
    tally_cost,
    tally_keeps,
)
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray

NO_CLASS = -1
PLAIN, POLES = -1, -2
_FINE = 1 << 20
"""Steps of a unit of loss in which distances are compared."""


@kernel
def recut(
    a: int,
    b: int,
    goal: float,
    first: int,
    spread_by: IntArray,
    orders: Orders,
    tally: Tally,
    partition: Partition,
) -> float:
    """Pool two classes and cut them again, if that changes their cost by less than `goal`.

    `b`: `NO_CLASS` cuts `a` alone in two. An order is tried for each item of `spread_by`: `POLES`,
    between two records far apart, otherwise one of `rank`, in which the codes of that column are
    spread out, unless it is `PLAIN`. `first` is any number, which chooses the first pole and
    `rank`. The change of the cost is infinite if nothing was changed.

    Notes
    -----
    O(tries m (columns + log m)).
    """
    head = tally.head
    of_class = partition.of_class
    rank = orders.rank
    old = cost_of(a, tally, partition)
    size = of_class[a]["size"]
    m = size if b == NO_CLASS else size + of_class[b]["size"]
    pool = np.empty(m, np.int64)
    members(a, pool, partition)
    if b != NO_CLASS:
        old += cost_of(b, tally, partition)
        members(b, pool[size:], partition)
    before = np.empty(m + 1)
    best, cut, bound = pool, -1, old + goal
    for t in range(len(spread_by)):
        tried = _ordered(pool, first + t, spread_by[t], rank, tally)
        if not may_be_cut(codes_of(tried, tally), bound, tally):
            continue
        at, cost = cheapest_cut(tried, bound, before, tally)
        if at >= 0:
            best, cut, bound = tried, at, cost
    if cut < 0:
        return np.inf
    if b == NO_CLASS:
        b = head[0]["n_classes"]
        head[0]["n_classes"] += 1
    for x in range(m):
        unlink(best[x], partition)
    for side in range(2):
        clear(tally)
        for x in range(0 if side == 0 else cut, cut if side == 0 else m):
            link(best[x], a if side == 0 else b, partition)
            add(best[x], tally)
        redraw(a if side == 0 else b, tally, partition)
    return bound - old


@kernel
def _ordered(
    pool: IntArray, first: int, spread_by: int, rank: Int32Array, tally: Tally
) -> IntArray:
    if spread_by == POLES:
        return _between_poles(pool, first, tally)
    tried = _sorted(pool, rank[first % len(rank)])
    return tried if spread_by == PLAIN else _spread_out(tried, spread_by, tally)


@kernel
def _sorted(pool: IntArray, rank: Int32Array) -> IntArray:
    key = np.empty(len(pool), np.int64)
    for x in range(len(pool)):
        key[x] = rank[pool[x]]
    return _by_key(pool, key)


@kernel
def _by_key(pool: IntArray, key: IntArray) -> IntArray:
    """Return `pool` sorted by keys below 2^31, and then by number."""
    for x in range(len(pool)):
        key[x] = (key[x] << 32) | pool[x]
    key.sort()
    for x in range(len(pool)):
        key[x] &= 0xFFFFFFFF
    return key


@kernel
def _between_poles(pool: IntArray, first: int, tally: Tally) -> IntArray:
    """Return `pool` from the records nearest to one of them to those nearest to another.

    One is farthest from a third, which `first` chooses, and the other farthest from that one.
    O(m columns).
    """
    n_qis, m = tally.head[0]["n_qis"], len(pool)
    code = codes_of(pool, tally)
    away, off = np.empty(m), np.empty(m)
    pole = int(first % m)
    for side in range(3):
        distances(pole, code, off, tally)
        for x in range(m):
            away[x] = off[x] if side < 2 else away[x] - off[x]
        pole = int(np.argmax(off))
    return _by_key(pool, ((away / n_qis + 1) * _FINE).astype(np.int64))


@kernel
def _spread_out(pool: IntArray, c: int, tally: Tally) -> IntArray:
    """Return `pool` reordered so that every stretch has its share of each code of a column.

    Records of the same code keep their order and are evenly spaced.
    """
    cells, rule, head, seen = (
        tally.problem.cells,
        tally.problem.rule,
        tally.head,
        tally.seen,
    )
    clear(tally)
    turn, first = np.int32(head[0]["turn"]), rule[c]["first_position"]
    nth = np.empty(len(pool), np.int64)
    for x in range(len(pool)):
        mark = seen[first + cells[pool[x], c]]
        if mark["turn"] != turn:
            mark["turn"] = turn
            mark["times"] = 0
        nth[x] = mark["times"]
        mark["times"] += 1
    key = np.empty(len(pool), np.int64)
    for x in range(len(pool)):
        times = np.int64(seen[first + cells[pool[x], c]]["times"])
        key[x] = (((2 * nth[x] + 1) << 30) // (2 * times) << 32) | x
    key.sort()
    out = np.empty(len(pool), np.int64)
    for x in range(len(pool)):
        out[x] = pool[key[x] & 0xFFFFFFFF]
    return out


@kernel
def codes_of(pool: IntArray, tally: Tally) -> Int32Array:
    """Return the codes of records, in a row for each quasi-identifier."""
    cells, n_qis = tally.problem.cells, tally.head[0]["n_qis"]
    code = np.empty((n_qis, len(pool)), np.int32)
    for x in range(len(pool)):
        for c in range(n_qis):
            code[c, x] = cells[pool[x], c]
    return code


@inner_kernel
def distances(pole: int, code: Int32Array, off: FloatArray, tally: Tally) -> None:
    """Write to `off` the loss of a class of each record and that at `pole`. O(m columns)."""
    rule, column, losses = tally.problem.rule, tally.column, tally.losses
    for x in range(len(off)):
        off[x] = 0.0
    for c in range(len(code)):
        own, table = int(code[c, pole]), column[c]["table"]
        if table >= 0:
            begin = table + own * rule[c]["size"]
            for x in range(len(off)):
                off[x] += losses[begin + code[c, x]]
        else:
            for x in range(len(off)):
                other = int(code[c, x])
                if other != own:
                    off[x] += loss_of(c, 2, min(own, other), max(own, other), tally)


@kernel
def may_be_cut(code: Int32Array, bound: float, tally: Tally) -> bool:
    """Return False only if no cut of records in two classes keeps the promise below `bound`.

    It knows of k, d and the information loss alone. Where sets are the cost, codes that are 64
    apart count as one. O(m columns).
    `code`: of the records in their order, shape (columns, m).
    """
    head, rule, m = tally.head, tally.problem.rule, code.shape[1]
    lost = np.zeros((2, m + 1))
    alike = np.zeros(2, np.int64)
    for c in range(len(code)):
        for side in range(2):
            n_alike = _lose(c, code[c], side, lost[side], tally)
            if rule[c]["distinct"] > 1:
                alike[side] = max(alike[side], n_alike)
    least = np.maximum(alike + 1, head[0]["k"])
    for i in range(least[0], m - least[1] + 1):
        j = m - i
        cost = i * lost[0, i] + j * lost[1, j] + head[0]["crowding"] * (i * i + j * j)
        if cost < bound + ROUNDING:
            return True
    return False


@inner_kernel
def _lose(c: int, code: Int32Array, side: int, lost: FloatArray, tally: Tally) -> int:
    """Add to `lost[i]` what the outermost `i` records lose at least; return how many are alike.

    They are the first ones if `side` is 0, else the last ones.
    """
    is_set, m = tally.column[c]["bit"] >= 0, len(code)
    outermost = int(code[0 if side == 0 else m - 1])
    lo, hi, present = outermost, outermost, np.uint64(1) << np.uint64(outermost & 63)
    loss, n_present, n_alike = 0.0, 1, m
    for x in range(1, m):
        lost[x] += loss
        now = int(code[x if side == 0 else m - 1 - x])
        if now != outermost:
            n_alike = min(n_alike, x)
        mark = np.uint64(1) << np.uint64(now & 63)
        fresh = is_set and present & mark == 0
        if fresh:
            present |= mark
            n_present += 1
        if fresh or now < lo or now > hi:
            lo, hi = min(lo, now), max(hi, now)
            loss = loss_of(c, n_present, lo, hi, tally)
    lost[m] += loss
    return n_alike


@inner_kernel
def cheapest_cut(
    pool: IntArray, bound: float, before: FloatArray, tally: Tally
) -> tuple[int, float]:
    """Return the cheapest cut of `pool` in two classes, and its cost; -1 if not below `bound`.

    O(m columns). `before` is working memory, shape (m + 1,).
    """
    head = tally.head
    m, k = len(pool), head[0]["k"]
    clear(tally)
    for j in range(m):
        before[j] = np.inf
    for j in range(1, m):
        add(pool[j - 1], tally)
        cost = tally_cost(tally)
        if cost >= bound:
            break
        if j >= k and tally_keeps(tally):
            before[j] = cost + share_penalty(tally)
    cut = -1
    clear(tally)
    for i in range(m - 1, 0, -1):
        add(pool[i], tally)
        cost = tally_cost(tally)
        if cost >= bound:
            break
        cost += share_penalty(tally)
        if before[i] + cost < bound and tally_keeps(tally):
            cut, bound = i, before[i] + cost
    return cut, bound

"""The strongest move of the local search: two near classes become one, and are cut anew."""

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.partition import (
    cost_of,
    link,
    members,
    redraw,
    unlink,
)
from anonymizer.algorithms.records.pricing import Float32Array, UInt64Array
from anonymizer.algorithms.records.tallying import add, clear, tally_cost, tally_keeps
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray

NO_CLASS = -1


@kernel
def recut(
    a: int,
    b: int,
    goal: float,
    first_rank: int,
    spread_by: IntArray,
    rank: Int32Array,
    cells: Int32Array,
    rule: RecordArray,
    person: Int32Array,
    position: FloatArray,
    usual: FloatArray,
    ancestor: Int32Array,
    n_leaves: Int32Array,
    head: RecordArray,
    column: RecordArray,
    seen: RecordArray,
    of_record: RecordArray,
    of_class: RecordArray,
    outline: RecordArray,
    bits: UInt64Array,
    prices: Float32Array,
) -> float:
    """Cut the records of two classes anew, if that changes their costs by less than `goal`.

    Parameters
    ----------
    b
        `NO_CLASS`: cut `a` alone, in two.
    first_rank, spread_by
        As many of the orders `rank` are tried as `spread_by` is long, from this one on; in each,
        the codes of that column are spread out, unless it is negative.

    Returns
    -------
    change
        Of the costs; infinite where nothing was done.

    Notes
    -----
    O(tries m (columns + log m)) where the tally decides.
    """
    old = cost_of(a, head, of_class)
    size = of_class[a]["size"]
    m = size if b == NO_CLASS else size + of_class[b]["size"]
    pool = np.empty(m, np.int64)
    members(a, pool, of_record, of_class)
    if b != NO_CLASS:
        old += cost_of(b, head, of_class)
        members(b, pool[size:], of_record, of_class)
    before = np.empty(m + 1)
    best, cut, bound = pool, -1, old + goal
    for t in range(len(spread_by)):
        tried = _sorted(pool, rank[(first_rank + t) % len(rank)])
        if spread_by[t] >= 0:
            tried = _spread_out(tried, spread_by[t], cells, rule, head, column, seen)
        at, cost = cheapest_cut(
            tried,
            bound,
            before,
            cells,
            rule,
            person,
            position,
            usual,
            ancestor,
            n_leaves,
            head,
            column,
            seen,
        )
        if at >= 0:
            best, cut, bound = tried, at, cost
    if cut < 0:
        return np.inf
    if b == NO_CLASS:
        b = head[0]["n_classes"]
        head[0]["n_classes"] += 1
    for x in range(m):
        unlink(best[x], of_record, of_class)
    for side in range(2):
        clear(head, column, seen)
        for x in range(0 if side == 0 else cut, cut if side == 0 else m):
            link(best[x], a if side == 0 else b, of_record, of_class)
            add(best[x], cells, rule, person, position, ancestor, n_leaves, head, column, seen)
        redraw(
            a if side == 0 else b,
            cells,
            rule,
            position,
            ancestor,
            n_leaves,
            head,
            column,
            of_record,
            of_class,
            outline,
            bits,
            prices,
        )
    return bound - old


@kernel
def _sorted(pool: IntArray, rank: Int32Array) -> IntArray:
    key = np.empty(len(pool), np.int64)
    for x in range(len(pool)):
        key[x] = (np.int64(rank[pool[x]]) << 32) | pool[x]
    key.sort()
    for x in range(len(pool)):
        key[x] &= 0xFFFFFFFF
    return key


@kernel
def _spread_out(
    pool: IntArray,
    c: int,
    cells: Int32Array,
    rule: RecordArray,
    head: RecordArray,
    column: RecordArray,
    seen: RecordArray,
) -> IntArray:
    """Return `pool` so that every stretch has its share of each code of a column.

    Records of one code keep their order, and lie evenly.
    """
    clear(head, column, seen)
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
def cheapest_cut(
    pool: IntArray,
    bound: float,
    before: FloatArray,
    cells: Int32Array,
    rule: RecordArray,
    person: Int32Array,
    position: FloatArray,
    usual: FloatArray,
    ancestor: Int32Array,
    n_leaves: Int32Array,
    head: RecordArray,
    column: RecordArray,
    seen: RecordArray,
) -> tuple[int, float]:
    """Return where to cut `pool` in two classes that cost least, and what; -1: none below `bound`.

    O(m columns) where the tally decides. `before` is scratch space, shape (m + 1,).
    """
    m, k = len(pool), head[0]["k"]
    clear(head, column, seen)
    for j in range(m):
        before[j] = np.inf
    for j in range(1, m):
        add(pool[j - 1], cells, rule, person, position, ancestor, n_leaves, head, column, seen)
        cost = tally_cost(head)
        if cost >= bound:
            break
        if j >= k and tally_keeps(pool[:j], cells, rule, person, position, usual, head, column):
            before[j] = cost
    cut = -1
    clear(head, column, seen)
    for i in range(m - 1, 0, -1):
        add(pool[i], cells, rule, person, position, ancestor, n_leaves, head, column, seen)
        cost = tally_cost(head)
        if cost >= bound:
            break
        if before[i] + cost < bound and tally_keeps(
            pool[i:], cells, rule, person, position, usual, head, column
        ):
            cut, bound = i, before[i] + cost
    return cut, bound

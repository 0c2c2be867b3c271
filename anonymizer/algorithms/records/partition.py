"""Partition into classes that changes record by record, for the local search.

The members of a class form a linked list. Each class has an outline: per column its first and last
code and its loss, which is what it would publish. A record that joins extends the outline in
O(columns); when records leave, the outline is recomputed from a tally of those that stay. From the
outlines follows what one more record would cost each class. Memory is linear in the records.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.cover import (
    BITS,
    Cover,
    UInt64Array,
    blank_cover,
    look_up,
    lowest,
    no_cover,
    paint,
)
from anonymizer.algorithms.records.criteria import ROUNDING
from anonymizer.algorithms.records.neighbors import Neighbors
from anonymizer.algorithms.records.tally import Tally, add, clear, is_above, loss_of
from anonymizer.domain.arrays import Int32Array, IntArray, RecordArray

OF_RECORD = np.dtype([("number", np.int32), ("next", np.int32), ("last", np.int32)])
"""Class of a record (`SUPPRESSED`: none), and its neighbours in the list of members (-1: none)."""

OF_CLASS = np.dtype([("first", np.int64), ("size", np.int64), ("loss", np.float64)], align=True)
"""First member of a class, number of members, loss of each member."""

OUTLINE = np.dtype(
    [
        ("lo", np.int32),
        ("hi", np.int32),
        ("present", np.int32),
        ("mode", np.int32),
        ("most", np.int32),
        ("next_most", np.int32),
        ("loss", np.float64),
    ],
    align=True,
)
"""One column of a class: first and last code, number of codes (where sets are the cost), the most
frequent code and its frequency, a bound on the frequency of any other code, loss."""


NOBODY = -1


class Partition(NamedTuple):
    """A partition, as kernels take it.

    `of_record`: of `OF_RECORD`, shape (n,); `of_class`: of `OF_CLASS`, shape (most classes,);
    `outline`: of `OUTLINE`, shape (most classes, columns); `bits`: the codes of each class where
    sets are the cost, shape (most classes, words); `cover`: which classes cover which codes,
    `no_cover` where nobody looks for them.
    """

    of_record: RecordArray
    of_class: RecordArray
    outline: RecordArray
    bits: UInt64Array
    cover: Cover


def partition_cost(partition: Partition, tally: Tally) -> float:
    """Return the cost of all classes."""
    head = tally.head
    n_classes = int(head[0]["n_classes"])
    size, lost = partition.of_class["size"][:n_classes], partition.of_class["loss"][:n_classes]
    crowding = float(head[0]["crowding"]) * float((size**2).sum())
    outline, preferred = partition.outline[:n_classes], tally.column["preferred"]
    most = np.maximum(outline["most"], outline["next_most"])
    above = (preferred < 1) & (most > preferred * size[:, None] + ROUNDING)
    penalty = float(head[0]["share_price"]) * float(size @ above.sum(axis=1))
    return float((size * lost).sum()) + crowding + penalty


@inner_kernel
def link(i: int, b: int, partition: Partition) -> None:
    """Add a record without a class to the list of `b`. O(1)."""
    of_record, of_class = partition.of_record, partition.of_class
    first = of_class[b]["first"]
    of_record[i]["number"] = b
    of_record[i]["last"] = -1
    of_record[i]["next"] = first
    if first >= 0:
        of_record[first]["last"] = i
    of_class[b]["first"] = i


@inner_kernel
def unlink(i: int, partition: Partition) -> None:
    """Remove a record from the list of its class. O(1)."""
    of_record, of_class = partition.of_record, partition.of_class
    before, after = of_record[i]["last"], of_record[i]["next"]
    if before >= 0:
        of_record[before]["next"] = after
    else:
        of_class[of_record[i]["number"]]["first"] = after
    if after >= 0:
        of_record[after]["last"] = before
    of_record[i]["number"] = SUPPRESSED


@inner_kernel
def members(a: int, out: IntArray, partition: Partition) -> int:
    """Write the members of a class to the front of `out`; return how many. O(members)."""
    of_record, of_class = partition.of_record, partition.of_class
    m = 0
    i = of_class[a]["first"]
    while i >= 0:
        out[m] = i
        m += 1
        i = of_record[i]["next"]
    return m


@inner_kernel
def drop(a: int, tally: Tally, partition: Partition) -> None:
    """Remove a class without members; the last class gets its number. O(members of that)."""
    head = tally.head
    of_record = partition.of_record
    of_class = partition.of_class
    outline = partition.outline
    bits = partition.bits
    head[0]["n_classes"] -= 1
    last = head[0]["n_classes"]
    of_class[a]["first"] = -1
    if a == last:
        return
    of_class[a] = of_class[last]
    for c in range(outline.shape[1]):
        outline[a, c] = outline[last, c]
    for word in range(bits.shape[1]):
        bits[a, word] = bits[last, word]
    for c in range(head[0]["n_qis"]):
        show(a, c, tally, partition)
    of_class[last]["first"] = -1
    i = of_class[a]["first"]
    while i >= 0:
        of_record[i]["number"] = a
        i = of_record[i]["next"]


@inner_kernel
def show(a: int, c: int, tally: Tally, partition: Partition) -> None:
    """Bring the cover of a class up to date with its outline in a quasi-identifier."""
    first_bit = tally.column[c]["bit"]
    paint(a, c, partition.outline, partition.bits, first_bit, tally.problem, partition.cover)


@inner_kernel
def cost_of(a: int, tally: Tally, partition: Partition) -> float:
    """Return the cost of a class."""
    head = tally.head
    of_class = partition.of_class
    size = of_class[a]["size"]
    lost = size * of_class[a]["loss"] + head[0]["crowding"] * size * size
    return float(lost + _penalty(a, NOBODY, tally, partition))


@inner_kernel
def _penalty(a: int, i: int, tally: Tally, partition: Partition) -> float:
    """Return what a class costs more for values above the preferred share, record `i` included.

    `NOBODY`: without a further record. An upper bound where records have joined, see `OUTLINE`.
    """
    cells, head, column = tally.problem.cells, tally.head, tally.column
    if head[0]["share_price"] == 0:
        return 0.0
    outline, size, n_above = partition.outline, partition.of_class[a]["size"], 0
    for c in range(len(column)):
        line = outline[a, c]
        most = max(line["most"], line["next_most"])
        if i != NOBODY:
            same = cells[i, c] == line["mode"]
            most = max(most, line["most"] + 1 if same else line["next_most"] + 1)
        n_above += is_above(most, size + (i != NOBODY), column[c]["preferred"])
    return float(head[0]["share_price"] * (size + (i != NOBODY)) * n_above)


class Orders(NamedTuple):
    """What tells which records are similar.

    In each of `order` records near each other are similar; `rank` is the position of each record in
    them; both have the shape (orders, n).
    """

    order: Int32Array
    rank: Int32Array
    neighbors: Neighbors


_COPIES = 4
"""Records of each near tuple whose class is asked."""


@inner_kernel
def lacks(b: int, bit: int, bits: UInt64Array) -> bool:
    """Return whether a bit of a class is not set; False for a negative bit."""
    return bit >= 0 and (bits[b, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1) == 0


@inner_kernel
def join_cost(i: int, b: int, bound: float, tally: Tally, partition: Partition) -> float:
    """Return how much the cost of a class grows by record `i`; infinite if not below `bound`.

    Also infinite if a limit on shares might then be exceeded. O(columns).
    """
    cells = tally.problem.cells
    rule = tally.problem.rule
    head = tally.head
    column = tally.column
    of_class, outline, bits = partition.of_class, partition.outline, partition.bits
    size = of_class[b]["size"]
    cost = of_class[b]["loss"] + head[0]["crowding"] * (2 * size + 1)
    if head[0]["share_price"] > 0:
        cost += _penalty(b, i, tally, partition) - _penalty(b, NOBODY, tally, partition)
    if cost >= bound:
        return np.inf
    for c in range(head[0]["n_qis"]):
        code, line = int(cells[i, c]), outline[b, c]
        bit = -1 if column[c]["bit"] < 0 else column[c]["bit"] + code
        if line["lo"] <= code <= line["hi"] and not lacks(b, bit, bits):
            continue
        lo, hi = min(int(line["lo"]), code), max(int(line["hi"]), code)
        loss = loss_of(c, line["present"] + 1, lo, hi, tally)
        cost += (loss - line["loss"]) * (size + 1)
        if cost >= bound:
            return np.inf
    for c in range(len(rule)):
        if rule[c]["share"] < 1:
            line = outline[b, c]
            same = cells[i, c] == line["mode"]
            most = line["most"] + 1 if same else max(line["most"], line["next_most"] + 1)
            if most > rule[c]["share"] * (size + 1 - rule[c]["margin"]) + ROUNDING:
                return np.inf
    return float(cost)


@inner_kernel
def best_target(
    i: int,
    avoid: int,
    bound: float,
    orders: Orders,
    tally: Tally,
    partition: Partition,
    asked: IntArray,
) -> tuple[int, float]:
    """Return the class near record `i` in which it costs least, and that cost.

    -1 if it is not below `bound` in any. `avoid` is excluded. `asked` holds the look in which each
    class was last asked, shape (most classes,). First the classes are asked that cover the record,
    then those that cover it in all columns but one, then those of near records. O(columns (near +
    classes / 64)), with at most 16,384 classes.
    """
    head, of_record = tally.head, partition.of_record
    tuple_of, first, near = orders.neighbors
    head[0]["looks"] += 1
    look = head[0]["looks"]
    own = tuple_of[i]
    target, bound = _best_covering(i, avoid, bound, tally, partition, asked)
    for x in range(-1, near.shape[1]):
        t = own if x < 0 else near[own, x]
        if t < 0:
            break
        n_records = first[t + 1] - first[t]
        for y in range(min(n_records, _COPIES)):
            b = of_record[first[t] + (look + y) % n_records]["number"]
            if b < 0 or b == avoid or asked[b] == look:
                continue
            asked[b] = look
            cost = join_cost(i, b, bound, tally, partition)
            if cost < bound:
                target, bound = b, cost
    return target, bound


@inner_kernel
def _best_covering(
    i: int, avoid: int, bound: float, tally: Tally, partition: Partition, asked: IntArray
) -> tuple[int, float]:
    """Return the cheapest of the classes that cover record `i` in all columns, or all but one."""
    head, of_class = tally.head, partition.of_class
    look, n_classes, target = head[0]["looks"], head[0]["n_classes"], -1
    begin, end = look_up(i, look, n_classes, tally.problem, partition.cover)
    for n_missed in range(2):
        for w in range(begin, end):
            left = partition.cover.misses[n_missed, w]
            while left != 0:
                b = w * BITS + lowest(left)
                left &= left - np.uint64(1)
                if b >= n_classes or b == avoid or of_class[b]["loss"] >= bound:
                    continue
                asked[b] = look
                cost = join_cost(i, b, bound, tally, partition)
                if cost < bound:
                    target, bound = b, cost
    return target, bound


@inner_kernel
def best_of_all(i: int, tally: Tally, partition: Partition) -> int:
    """Return the class in which record `i` costs least; -1: none. O(classes columns)."""
    target, bound = -1, np.inf
    for b in range(tally.head[0]["n_classes"]):
        cost = join_cost(i, b, bound, tally, partition)
        if cost < bound:
            target, bound = b, cost
    return target


def partition_of(class_of: Int32Array, tally: Tally, *, covering: bool = False) -> Partition:
    """Return the partition of the given classes, dense from 0 or `SUPPRESSED`.

    It has room for as many classes as the records can form, or for more that are given. `covering`:
    it is known which classes cover which codes. O(n columns), and with sets as the cost a bit for
    each class and code.
    """
    rule, head, column = tally.problem.rule, tally.head, tally.column
    n = len(class_of)
    room = max(n // max(int(head[0]["k"]), 1), int(class_of.max(initial=SUPPRESSED))) + 1
    n_qis = int(head[0]["n_qis"])
    n_bits = int(rule["size"][column["bit"] >= 0].sum())
    partition = Partition(
        np.zeros(n, OF_RECORD),
        np.zeros(room, OF_CLASS),
        np.zeros((room, len(rule)), OUTLINE),
        np.zeros((room, -(-n_bits // BITS)), np.uint64),
        blank_cover(tally.problem, n_qis, room) if covering else no_cover(),
    )
    of_record, of_class = partition.of_record, partition.of_class
    of_record["number"] = SUPPRESSED
    of_class["first"] = -1
    head["n_classes"] = class_of.max(initial=SUPPRESSED) + 1
    _fill(class_of, partition)
    redraw_all(tally, partition)
    return partition


@kernel
def _fill(class_of: Int32Array, partition: Partition) -> None:
    for i in range(len(class_of) - 1, -1, -1):
        if class_of[i] >= 0:
            link(i, class_of[i], partition)


@kernel
def redraw_all(tally: Tally, partition: Partition) -> None:
    """Recompute the outlines of all classes. O(n columns)."""
    for a in range(tally.head[0]["n_classes"]):
        redraw_class(a, tally, partition)


@inner_kernel
def redraw_class(a: int, tally: Tally, partition: Partition) -> None:
    """Recompute the outline of a class from its members. O(members columns)."""
    of_record, of_class = partition.of_record, partition.of_class
    clear(tally)
    i = of_class[a]["first"]
    while i >= 0:
        add(i, tally)
        i = of_record[i]["next"]
    redraw(a, tally, partition)


@inner_kernel
def redraw(a: int, tally: Tally, partition: Partition) -> None:
    """Recompute the outline of the class that is tallied. O(columns), with sets O(members)."""
    cells, head, column = tally.problem.cells, tally.head, tally.column
    of_record = partition.of_record
    of_class = partition.of_class
    outline = partition.outline
    bits = partition.bits
    of_class[a]["size"] = head[0]["size"]
    of_class[a]["loss"] = head[0]["loss"]
    for c in range(len(column)):
        line, entry = outline[a, c], column[c]
        line["lo"] = entry["lo"]
        line["hi"] = entry["hi"]
        line["present"] = entry["present"]
        line["mode"] = entry["mode"]
        line["most"] = entry["most"]
        line["next_most"] = entry["next_most"]
        line["loss"] = entry["loss"]
    if bits.shape[1] > 0:
        for word in range(bits.shape[1]):
            bits[a, word] = 0
        i = of_class[a]["first"]
        while i >= 0:
            for c in range(len(column)):
                if column[c]["bit"] >= 0:
                    bit = column[c]["bit"] + cells[i, c]
                    bits[a, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
            i = of_record[i]["next"]
    for c in range(head[0]["n_qis"]):
        show(a, c, tally, partition)


@inner_kernel
def widen(i: int, b: int, tally: Tally, partition: Partition) -> None:
    """Extend the outline of a class by record `i`. O(columns)."""
    cells = tally.problem.cells
    rule = tally.problem.rule
    head = tally.head
    column = tally.column
    of_class, outline, bits = partition.of_class, partition.outline, partition.bits
    of_class[b]["size"] += 1
    for c in range(len(rule)):
        code, line = int(cells[i, c]), outline[b, c]
        if code == line["mode"]:
            line["most"] += 1
        else:
            line["next_most"] += 1
        bit = -1 if column[c]["bit"] < 0 else column[c]["bit"] + code
        fresh = lacks(b, bit, bits)
        if fresh:
            bits[b, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
            line["present"] += 1
        if c < head[0]["n_qis"] and (fresh or code < line["lo"] or code > line["hi"]):
            line["lo"] = min(int(line["lo"]), code)
            line["hi"] = max(int(line["hi"]), code)
            loss = loss_of(c, line["present"], line["lo"], line["hi"], tally)
            of_class[b]["loss"] += loss - line["loss"]
            line["loss"] = loss
            show(b, c, tally, partition)

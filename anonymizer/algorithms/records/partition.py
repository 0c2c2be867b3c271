"""A partition under change: what is known of every class, in memory linear in the records.

The members of a class are linked, and its outline is kept: what it would publish. Records that
join move the outline in O(columns); where some leave it is drawn anew from those that stay.
"""

from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.judging import column_loss
from anonymizer.algorithms.records.pricing import (
    MOST_PRICED,
    Float32Array,
    UInt64Array,
    lacks,
    price,
    price_size,
)
from anonymizer.algorithms.records.tallying import Tally, add, clear
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray

OF_RECORD = np.dtype([("number", np.int32), ("next", np.int32), ("last", np.int32)])
"""Class of a record (`SUPPRESSED`: none), and its neighbours in the list of members (-1: none)."""

OF_CLASS = np.dtype([("first", np.int64), ("size", np.int64), ("loss", np.float64)], align=True)
"""First member, members, loss of each."""

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
"""One column of a class: first and last code, codes (where sets are the cost), most frequent code
and how often it is there, a bound on how often any other is, loss."""

Partition: TypeAlias = tuple[RecordArray, RecordArray, RecordArray, UInt64Array, Float32Array]
"""What kernels take, in this order: `OF_RECORD` shape (n,), `OF_CLASS` shape (most classes,),
`OUTLINE` shape (most classes, columns), the codes of each class as bits, shape (most classes,
words), and the prices, see `price`, shape (codes of all QIs + 2, most classes) or empty."""

_WORD = 64
_PRICES_A_RECORD = 64


def partition_of(class_of: Int32Array, tally: Tally) -> Partition:
    """Return a partition, given the class of each record, dense from 0 or `SUPPRESSED`.

    O(n columns). Where sets are the cost, a bit for each class and code besides.
    """
    head, column, rule = tally[7], tally[8], tally[1]
    n = len(class_of)
    room = n // max(int(head[0]["k"]), 1) + 1
    n_bits = int(rule["size"][column["bit"] >= 0].sum())
    partition = (
        np.zeros(n, OF_RECORD),
        np.zeros(room, OF_CLASS),
        np.zeros((room, len(rule)), OUTLINE),
        np.zeros((room, -(-n_bits // _WORD)), np.uint64),
        np.zeros(_priced(class_of, room, rule[: int(head[0]["n_qis"])]), np.float32),
    )
    of_record, of_class, *_ = partition
    of_record["number"] = SUPPRESSED
    of_class["first"] = -1
    head["n_classes"] = class_of.max(initial=SUPPRESSED) + 1
    _fill(class_of, of_record, of_class)
    redraw_all(*tally, *partition)
    return partition


def partition_cost(partition: Partition, tally: Tally) -> float:
    """Return what all classes cost."""
    head = tally[7][0]
    classes = partition[1][: int(head["n_classes"])]
    crowding = float(head["crowding"]) * float((classes["size"] ** 2).sum())
    return float((classes["size"] * classes["loss"]).sum()) + crowding


def _priced(class_of: Int32Array, room: int, rule: RecordArray) -> tuple[int, int]:
    """Return the shape of the prices; none where they would be too many to be looked through.

    Nor where they would be more than linear in the records.
    """
    n_rows = int(rule["size"].sum()) + 2
    if class_of.max() >= MOST_PRICED or n_rows * room > _PRICES_A_RECORD * len(class_of):
        return 0, 0
    return n_rows, room


@kernel
def _fill(class_of: Int32Array, of_record: RecordArray, of_class: RecordArray) -> None:
    for i in range(len(class_of) - 1, -1, -1):
        if class_of[i] >= 0:
            link(i, class_of[i], of_record, of_class)


@kernel
def link(i: int, b: int, of_record: RecordArray, of_class: RecordArray) -> None:
    """Put a record of no class in the list of `b`. O(1)."""
    first = of_class[b]["first"]
    of_record[i]["number"] = b
    of_record[i]["last"] = -1
    of_record[i]["next"] = first
    if first >= 0:
        of_record[first]["last"] = i
    of_class[b]["first"] = i


@kernel
def unlink(i: int, of_record: RecordArray, of_class: RecordArray) -> None:
    """Take a record out of the list of its class. O(1)."""
    before, after = of_record[i]["last"], of_record[i]["next"]
    if before >= 0:
        of_record[before]["next"] = after
    else:
        of_class[of_record[i]["number"]]["first"] = after
    if after >= 0:
        of_record[after]["last"] = before
    of_record[i]["number"] = SUPPRESSED


@kernel
def members(a: int, out: IntArray, of_record: RecordArray, of_class: RecordArray) -> int:
    """Write the members of a class to the front of `out`; return how many. O(members)."""
    m = 0
    i = of_class[a]["first"]
    while i >= 0:
        out[m] = i
        m += 1
        i = of_record[i]["next"]
    return m


@kernel
def redraw_all(
    cells: Int32Array,
    rule: RecordArray,
    person: Int32Array,
    position: FloatArray,
    usual: FloatArray,  # noqa: ARG001  all take the fields of a tally
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
) -> None:
    """Draw the outlines of all classes anew. O(n columns)."""
    for a in range(head[0]["n_classes"]):
        clear(head, column, seen)
        i = of_class[a]["first"]
        while i >= 0:
            add(i, cells, rule, person, position, ancestor, n_leaves, head, column, seen)
            i = of_record[i]["next"]
        redraw(
            a,
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


@kernel
def redraw(
    a: int,
    cells: Int32Array,
    rule: RecordArray,
    position: FloatArray,
    ancestor: Int32Array,
    n_leaves: Int32Array,
    head: RecordArray,
    column: RecordArray,
    of_record: RecordArray,
    of_class: RecordArray,
    outline: RecordArray,
    bits: UInt64Array,
    prices: Float32Array,
) -> None:
    """Draw the outline of a class, which the tally is of. O(columns), with sets O(members)."""
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
        price(a, c, rule, position, ancestor, n_leaves, column, outline, bits, prices)
    price_size(a, head, of_class, prices)


@kernel
def drop(
    a: int,
    head: RecordArray,
    of_record: RecordArray,
    of_class: RecordArray,
    outline: RecordArray,
    bits: UInt64Array,
    prices: Float32Array,
) -> None:
    """Remove a class without members; the last class gets its number. O(members of that)."""
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
    for row in range(len(prices)):
        prices[row, a] = prices[row, last]
    of_class[last]["first"] = -1
    i = of_class[a]["first"]
    while i >= 0:
        of_record[i]["number"] = a
        i = of_record[i]["next"]


@kernel
def cost_of(a: int, head: RecordArray, of_class: RecordArray) -> float:
    """Return what a class costs."""
    size = of_class[a]["size"]
    return float(size * of_class[a]["loss"] + head[0]["crowding"] * size * size)


@kernel
def widen(
    i: int,
    b: int,
    cells: Int32Array,
    rule: RecordArray,
    position: FloatArray,
    ancestor: Int32Array,
    n_leaves: Int32Array,
    head: RecordArray,
    column: RecordArray,
    of_class: RecordArray,
    outline: RecordArray,
    bits: UInt64Array,
    prices: Float32Array,
) -> None:
    """Count record `i` in a class, and draw its outline so. O(columns)."""
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
            loss = column_loss(
                rule[c], line["present"], line["lo"], line["hi"], position, ancestor, n_leaves
            )
            of_class[b]["loss"] += loss - line["loss"]
            line["loss"] = loss
            price(b, c, rule, position, ancestor, n_leaves, column, outline, bits, prices)
    price_size(b, head, of_class, prices)

"""Partition into classes that changes record by record, for the local search.

The members of a class form a linked list. Each class has an outline: per column its first and last
code and its loss, which is what it would publish. A record that joins extends the outline in
O(columns); when records leave, the outline is recomputed from a tally of those that stay. From the
outlines follows what one more record would cost each class. Memory is linear in the records.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import ROUNDING, column_loss
from anonymizer.algorithms.records.tally import Tally, add, clear
from anonymizer.domain.arrays import Int32Array, IntArray, RecordArray

Float32Array: TypeAlias = NDArray[np.float32]
UInt64Array: TypeAlias = NDArray[np.uint64]

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


class Partition(NamedTuple):
    """A partition, as kernels take it.

    Attributes
    ----------
    of_record
        Of `OF_RECORD`, shape (n,).
    of_class
        Of `OF_CLASS`, shape (most classes,).
    outline
        Of `OUTLINE`, shape (most classes, columns).
    bits
        The codes of each class where sets are the cost, shape (most classes, words).
    prices
        See `price`, shape (codes of all QIs + 2, most classes) or empty.
    """

    of_record: RecordArray
    of_class: RecordArray
    outline: RecordArray
    bits: UInt64Array
    prices: Float32Array


def partition_cost(partition: Partition, tally: Tally) -> float:
    """Return the cost of all classes."""
    head = tally.head
    classes = partition.of_class[: int(head[0]["n_classes"])]
    crowding = float(head[0]["crowding"]) * float((classes["size"] ** 2).sum())
    return float((classes["size"] * classes["loss"]).sum()) + crowding


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
    prices = partition.prices
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


@inner_kernel
def cost_of(a: int, tally: Tally, partition: Partition) -> float:
    """Return the cost of a class."""
    head = tally.head
    of_class = partition.of_class
    size = of_class[a]["size"]
    return float(size * of_class[a]["loss"] + head[0]["crowding"] * size * size)


class Orders(NamedTuple):
    """Orders in which records near each other are similar, both arrays of shape (orders, n).

    `rank` holds the position of each record in each `order`.
    """

    order: Int32Array
    rank: Int32Array


MOST_PRICED = 4096
"""Up to this many classes, a record considers each; above, only those of near records."""
_NEAR = 24
_REFUSALS = 8


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
    codes = tally.problem.codes
    head = tally.head
    column = tally.column
    of_class, outline, bits = partition.of_class, partition.outline, partition.bits
    size = of_class[b]["size"]
    cost = of_class[b]["loss"] + head[0]["crowding"] * (2 * size + 1)
    if cost >= bound:
        return np.inf
    for c in range(head[0]["n_qis"]):
        code, line = int(cells[i, c]), outline[b, c]
        bit = -1 if column[c]["bit"] < 0 else column[c]["bit"] + code
        if line["lo"] <= code <= line["hi"] and not lacks(b, bit, bits):
            continue
        lo, hi = min(int(line["lo"]), code), max(int(line["hi"]), code)
        loss = column_loss(rule[c], line["present"] + 1, lo, hi, codes)
        cost += (loss - line["loss"]) * (size + 1)
        if cost >= bound:
            return np.inf
    for c in range(len(rule)):
        if rule[c]["share"] < 1:
            line = outline[b, c]
            same = cells[i, c] == line["mode"]
            most = line["most"] + 1 if same else max(line["most"], line["next_most"] + 1)
            if most > rule[c]["share"] * (size + 1) + ROUNDING:
                return np.inf
    return float(cost)


@inner_kernel
def price(b: int, c: int, tally: Tally, partition: Partition) -> None:
    """Store what each code of a column would add to the loss of a class. O(size of the domain).

    `prices[row, b]` has a row for each code of each QI, then one for the cost of a record that
    widens nothing, then one for the number of members. The cost of a record in every class is thus
    the sum of a few rows. Does nothing if `prices` is empty.
    """
    rule, codes, column = tally.problem.rule, tally.problem.codes, tally.column
    outline, bits, prices = partition.outline, partition.bits, partition.prices
    if len(prices) == 0:
        return
    line, wanted = outline[b, c], rule[c]
    row = wanted["first_position"]
    for code in range(wanted["size"]):
        bit = -1 if column[c]["bit"] < 0 else column[c]["bit"] + code
        if line["lo"] <= code <= line["hi"] and not lacks(b, bit, bits):
            prices[row + code, b] = 0.0
            continue
        lo, hi = min(int(line["lo"]), code), max(int(line["hi"]), code)
        loss = column_loss(wanted, line["present"] + 1, lo, hi, codes)
        prices[row + code, b] = loss - line["loss"]


@inner_kernel
def price_size(b: int, tally: Tally, partition: Partition) -> None:
    """Store the prices that depend on the size of a class. O(1)."""
    head = tally.head
    of_class, prices = partition.of_class, partition.prices
    if len(prices) > 0:
        size = of_class[b]["size"]
        prices[-2, b] = of_class[b]["loss"] + head[0]["crowding"] * (2 * size + 1)
        prices[-1, b] = size + 1


@inner_kernel
def best_target(
    i: int,
    avoid: int,
    bound: float,
    orders: Orders,
    tally: Tally,
    partition: Partition,
    costs: Float32Array,
) -> tuple[int, float]:
    """Return the class in which record `i` costs least, and that cost; -1 if not below `bound`.

    If there are many classes, only those of near records are considered. `avoid` is excluded.
    """
    head = tally.head
    of_record, prices = partition.of_record, partition.prices
    if len(prices) > 0 and head[0]["n_classes"] <= MOST_PRICED:
        return _cheapest(i, avoid, bound, tally, partition, costs)
    order, rank = orders.order, orders.rank
    target = -1
    for step in range(2 * _NEAR):
        far = 1 + step // 2 if step < _NEAR else 8 << ((step - _NEAR) // 2)
        at = rank[0, i] + (far if step % 2 == 0 else -far)
        if at < 0 or at >= order.shape[1]:
            continue
        b = int(of_record[order[0, at]]["number"])
        if b >= 0 and b != avoid and b != target:  # noqa: PLR1714  no sets in kernels
            cost = join_cost(i, b, bound, tally, partition)
            if cost < bound:
                target, bound = b, cost
    return target, bound


@inner_kernel
def _cheapest(
    i: int, avoid: int, bound: float, tally: Tally, partition: Partition, costs: Float32Array
) -> tuple[int, float]:
    """Return the same among all classes. O(classes times columns).

    Prices are rounded: the cost in the cheapest class is computed again, and may be refused.
    """
    cells, rule, head = tally.problem.cells, tally.problem.rule, tally.head
    prices = partition.prices
    n_classes = head[0]["n_classes"]
    for b in range(n_classes):
        costs[b] = 0
    for c in range(head[0]["n_qis"]):
        row = prices[rule[c]["first_position"] + cells[i, c]]
        for b in range(n_classes):
            costs[b] += row[b]
    for b in range(n_classes):
        costs[b] = costs[b] * prices[-1, b] + prices[-2, b]
    if avoid >= 0:
        costs[avoid] = np.inf
    for _ in range(_REFUSALS):
        target = _least(costs, n_classes)
        if costs[target] >= bound:
            return -1, bound
        cost = join_cost(i, target, bound, tally, partition)
        if cost < bound:
            return target, cost
        costs[target] = np.inf
    return -1, bound


@inner_kernel
def _least(costs: Float32Array, n: int) -> int:
    """Return the index of the least of the first `n` costs."""
    least = 0
    for b in range(1, n):
        if costs[b] < costs[least]:
            least = b
    return least


_WORD = 64
_PRICES_PER_RECORD = 64


def partition_of(class_of: Int32Array, tally: Tally) -> Partition:
    """Return the partition of the given classes, dense from 0 or `SUPPRESSED`.

    O(n columns), and with sets as the cost a bit for each class and code.
    """
    rule, head, column = tally.problem.rule, tally.head, tally.column
    n = len(class_of)
    room = n // max(int(head[0]["k"]), 1) + 1
    n_bits = int(rule["size"][column["bit"] >= 0].sum())
    partition = Partition(
        np.zeros(n, OF_RECORD),
        np.zeros(room, OF_CLASS),
        np.zeros((room, len(rule)), OUTLINE),
        np.zeros((room, -(-n_bits // _WORD)), np.uint64),
        np.zeros(_priced(class_of, room, rule[: int(head[0]["n_qis"])]), np.float32),
    )
    of_record, of_class = partition.of_record, partition.of_class
    of_record["number"] = SUPPRESSED
    of_class["first"] = -1
    head["n_classes"] = class_of.max(initial=SUPPRESSED) + 1
    _fill(class_of, partition)
    redraw_all(tally, partition)
    return partition


def _priced(class_of: Int32Array, room: int, rule: RecordArray) -> tuple[int, int]:
    """Return the shape of the prices; empty if there would be too many of them.

    That is, too many classes to search, or more prices than linear in the records.
    """
    n_rows = int(rule["size"].sum()) + 2
    if class_of.max() >= MOST_PRICED or n_rows * room > _PRICES_PER_RECORD * len(class_of):
        return 0, 0
    return n_rows, room


@kernel
def _fill(class_of: Int32Array, partition: Partition) -> None:
    for i in range(len(class_of) - 1, -1, -1):
        if class_of[i] >= 0:
            link(i, class_of[i], partition)


@kernel
def redraw_all(tally: Tally, partition: Partition) -> None:
    """Recompute the outlines of all classes. O(n columns)."""
    head = tally.head
    of_record, of_class = partition.of_record, partition.of_class
    for a in range(head[0]["n_classes"]):
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
        price(a, c, tally, partition)
    price_size(a, tally, partition)


@inner_kernel
def widen(i: int, b: int, tally: Tally, partition: Partition) -> None:
    """Extend the outline of a class by record `i`. O(columns)."""
    cells = tally.problem.cells
    rule = tally.problem.rule
    codes = tally.problem.codes
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
            loss = column_loss(rule[c], line["present"], line["lo"], line["hi"], codes)
            of_class[b]["loss"] += loss - line["loss"]
            line["loss"] = loss
            price(b, c, tally, partition)
    price_size(b, tally, partition)

"""What it costs a class to take in one more record, and where that is least."""

from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel
from anonymizer.algorithms.records.criteria import ROUNDING, column_loss
from anonymizer.algorithms.records.partition import Float32Array, Partition, UInt64Array
from anonymizer.algorithms.records.tally import Tally
from anonymizer.domain.arrays import Int32Array

Orders: TypeAlias = tuple[Int32Array, Int32Array]
"""Orders in which records near each other are alike: `order`, and `rank`, which tells where each
record is in them; both of shape (orders, n)."""

MOST_PRICED = 4096
"""Up to so many classes, each is looked at for a record; of more, those of near records."""
_NEAR = 24
_REFUSALS = 8


@inner_kernel
def lacks(b: int, bit: int, bits: UInt64Array) -> bool:
    """Return whether a bit of a class is not set; of a negative one, False."""
    return bit >= 0 and (bits[b, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1) == 0


@inner_kernel
def join_cost(i: int, b: int, bound: float, tally: Tally, partition: Partition) -> float:
    """Return what a class costs more with record `i`; infinite where not below `bound`.

    Infinite also where a bound on shares may then be broken. O(columns).
    """
    (cells, rule, _, codes), head, column, _ = tally
    _, of_class, outline, bits, _ = partition
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
    """Note what each code of a column would add to the loss of a class. O(size of the domain).

    `prices[row, b]`: the rows of all QIs' codes follow each other, then one for what a record
    costs that adds nothing, then one for the members. So the costs of a record in all classes are
    sums of a few rows. Where there is no room for prices, nothing is done.
    """
    (_, rule, _, codes), _, column, _ = tally
    _, _, outline, bits, prices = partition
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
    """Note what depends on the size of a class. O(1)."""
    _, head, _, _ = tally
    _, of_class, _, _, prices = partition
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
    """Return the class that record `i` costs least in, and what; -1 where none is below `bound`.

    Where classes are many, among those of near records alone. `avoid`: any but this one.
    """
    _, head, _, _ = tally
    of_record, _, _, _, prices = partition
    if len(prices) > 0 and head[0]["n_classes"] <= MOST_PRICED:
        return _cheapest(i, avoid, bound, tally, partition, costs)
    order, rank = orders
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
    """Return the same among all classes. O(classes columns), a few at a time.

    Prices are rounded: the cheapest by them are looked at again, and may be refused.
    """
    (cells, rule, _, _), head, _, _ = tally
    _, _, _, _, prices = partition
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
    """Return where the least of the first `n` costs is."""
    least = 0
    for b in range(1, n):
        if costs[b] < costs[least]:
            least = b
    return least

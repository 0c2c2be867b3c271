"""A partition under change: what is known of every class, in memory linear in the records.

The members of a class are linked, and its outline is kept: what it would publish. Here are the
lists; `outlining` keeps the outlines.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.kernels import inner_kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.tally import Tally
from anonymizer.domain.arrays import IntArray, RecordArray

Float32Array: TypeAlias = NDArray[np.float32]
UInt64Array: TypeAlias = NDArray[np.uint64]

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
"""A partition as kernels take it: `of_record`, `of_class`, `outline`, `bits` and `prices`.

of_record, of_class
    Of `OF_RECORD`, shape (n,), and of `OF_CLASS`, shape (most classes,).
outline
    Of `OUTLINE`, shape (most classes, columns).
bits
    The codes of each class where sets are the cost, shape (most classes, words).
prices
    See `price`, shape (codes of all QIs + 2, most classes) or empty.
"""


def partition_cost(partition: Partition, tally: Tally) -> float:
    """Return what all classes cost."""
    _, head, _, _ = tally
    classes = partition[1][: int(head[0]["n_classes"])]
    crowding = float(head[0]["crowding"]) * float((classes["size"] ** 2).sum())
    return float((classes["size"] * classes["loss"]).sum()) + crowding


@inner_kernel
def link(i: int, b: int, partition: Partition) -> None:
    """Put a record of no class in the list of `b`. O(1)."""
    of_record, of_class, _, _, _ = partition
    first = of_class[b]["first"]
    of_record[i]["number"] = b
    of_record[i]["last"] = -1
    of_record[i]["next"] = first
    if first >= 0:
        of_record[first]["last"] = i
    of_class[b]["first"] = i


@inner_kernel
def unlink(i: int, partition: Partition) -> None:
    """Take a record out of the list of its class. O(1)."""
    of_record, of_class, _, _, _ = partition
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
    of_record, of_class, _, _, _ = partition
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
    _, head, _, _ = tally
    of_record, of_class, outline, bits, prices = partition
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
    """Return what a class costs."""
    _, head, _, _ = tally
    _, of_class, _, _, _ = partition
    size = of_class[a]["size"]
    return float(size * of_class[a]["loss"] + head[0]["crowding"] * size * size)

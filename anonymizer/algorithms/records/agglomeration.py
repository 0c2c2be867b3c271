"""Agglomeration: equal records are classes at first, and classes merge until they keep the promise.

A class that breaks the promise merges with the class near it that makes this cheapest, the smallest
classes first [1]_. Where records have many quasi-identifiers, this loses far less than cuts of an
order. It may end with records that no class near them can take, and is then of no use.

References
----------
.. [1] A. Gionis, A. Mazza and T. Tassa, "k-anonymization revisited", ICDE 2008.
"""

from collections.abc import Callable

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.classes import SUPPRESSED, without_gaps
from anonymizer.algorithms.records.criteria import column_loss
from anonymizer.algorithms.records.neighbors import Neighbors
from anonymizer.algorithms.records.partition import (
    Partition,
    lacks,
    link,
    partition_of,
    unlink,
    widen,
)
from anonymizer.algorithms.records.tally import Tally, add, clear, tally_keeps
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray

_CLASSES_PER_CALL = 500
_ASKING = 16
"""Members of a class whose neighbours are looked at."""
_COPIES = 2
_MOST_ROUNDS = 24


def agglomerate(
    tally: Tally, neighbors: Neighbors, *, keep_going: Callable[[], bool]
) -> Int32Array | None:
    """Return the class of each record; `SUPPRESSED` where none near it keeps the promise with it.

    None if time ran out. Expected O(n columns near log k).
    """
    if not keep_going():  # no class may be left to merge, and then nothing asks below
        return None
    n_tuples = len(neighbors.near)
    partition = partition_of(neighbors.tuple_of, tally)
    breaks = np.ones(n_tuples, bool)
    asked = np.zeros(n_tuples, np.int64)
    examine(np.arange(n_tuples), breaks, tally, partition)
    for _ in range(_MOST_ROUNDS):
        todo = np.flatnonzero(breaks)
        todo = todo[np.argsort(partition.of_class["size"][todo], kind="stable")]
        n_merged = 0
        for begin in range(0, len(todo), _CLASSES_PER_CALL):
            if not keep_going():
                return None
            part = todo[begin : begin + _CLASSES_PER_CALL]
            n_merged += merge(part, breaks, asked, neighbors, tally, partition)
        if n_merged == 0:
            break
    class_of = partition.of_record["number"].copy()
    class_of[breaks[class_of]] = SUPPRESSED
    return without_gaps(class_of)


@kernel
def examine(classes: IntArray, breaks: BoolArray, tally: Tally, partition: Partition) -> None:
    """Note which of the classes break the promise."""
    for a in classes:
        breaks[a] = not _keeps(a, tally, partition)


@inner_kernel
def _keeps(a: int, tally: Tally, partition: Partition) -> bool:
    """Return whether a class keeps the promise. O(members columns)."""
    clear(tally)
    i = partition.of_class[a]["first"]
    while i >= 0:
        add(i, tally)
        i = partition.of_record[i]["next"]
    return tally_keeps(tally)


@kernel
def merge(
    todo: IntArray,
    breaks: BoolArray,
    asked: IntArray,
    neighbors: Neighbors,
    tally: Tally,
    partition: Partition,
) -> int:
    """Merge each class that breaks the promise with its cheapest partner; return how many merged.

    `breaks`: whether a class breaks the promise, changed in place, False where it has no members
    left; `asked`: the look in which a class was last a candidate.
    """
    of_record, of_class = partition.of_record, partition.of_class
    n_merged = 0
    for a in todo:
        if not breaks[a]:
            continue
        b = cheapest_partner(a, asked, neighbors, tally, partition)
        if b < 0:
            continue
        if of_class[b]["size"] < of_class[a]["size"]:
            a, b = b, a  # noqa: PLW2901  the smaller one moves
        i = of_class[a]["first"]
        while i >= 0:
            after = of_record[i]["next"]
            unlink(i, partition)
            widen(i, b, tally, partition)
            link(i, b, partition)
            i = after
        of_class[a]["size"] = 0
        breaks[a] = False
        breaks[b] = not _keeps(b, tally, partition)
        n_merged += 1
    return n_merged


@inner_kernel
def cheapest_partner(
    a: int, asked: IntArray, neighbors: Neighbors, tally: Tally, partition: Partition
) -> int:
    """Return the class near `a` whose merger with it costs least; -1: there is none."""
    tuple_of, first, near = neighbors
    of_record, head = partition.of_record, tally.head
    head[0]["looks"] += 1
    look = head[0]["looks"]
    asked[a] = look
    partner, bound = -1, np.inf
    n_asking = 0
    i = partition.of_class[a]["first"]
    while i >= 0 and n_asking < _ASKING:
        n_asking += 1
        own = tuple_of[i]
        for x in range(-1, near.shape[1]):
            t = own if x < 0 else near[own, x]
            if t < 0:
                break
            n_copies = int(first[t + 1] - first[t])
            for y in range(min(n_copies, _COPIES)):
                b = of_record[first[t] + (look + y) % n_copies]["number"]
                if asked[b] != look:
                    asked[b] = look
                    cost = merger_cost(a, b, bound, tally, partition)
                    if cost < bound:
                        partner, bound = b, cost
        i = of_record[i]["next"]
    return partner


@inner_kernel
def merger_cost(a: int, b: int, bound: float, tally: Tally, partition: Partition) -> float:
    """Return how much the cost grows where `a` and `b` merge; infinite if not below `bound`."""
    rule, codes = tally.problem.rule, tally.problem.codes
    head, column = tally.head, tally.column
    of_class, outline, bits = partition.of_class, partition.outline, partition.bits
    n, m = of_class[a]["size"], of_class[b]["size"]
    cost = 2 * head[0]["crowding"] * n * m
    for c in range(head[0]["n_qis"]):
        one, other = outline[a, c], outline[b, c]
        n_codes = one["present"]
        if column[c]["bit"] >= 0:
            for code in range(other["lo"], other["hi"] + 1):
                bit = column[c]["bit"] + code
                n_codes += lacks(a, bit, bits) and not lacks(b, bit, bits)
        lo, hi = min(one["lo"], other["lo"]), max(one["hi"], other["hi"])
        loss = column_loss(rule[c], n_codes, int(lo), int(hi), codes)
        cost += n * (loss - one["loss"]) + m * (loss - other["loss"])
        if cost >= bound:
            return np.inf
    return float(cost)

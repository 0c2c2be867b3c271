"""Refill, a move of the local search: a class gets a narrower label, and its members change.

Members outside the new label leave for other classes. The places are filled with records that the
label covers, taken from classes that have more than k and lose more. So a class of k records, from
which none may leave alone, can still be improved.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.cover import BITS, UInt64Array, below_common, lowest
from anonymizer.algorithms.records.partition import Partition, cost_of
from anonymizer.algorithms.records.problem import Cost, ProblemArrays
from anonymizer.algorithms.records.tally import (
    Tally,
    add,
    clear,
    share_penalty,
    tally_cost,
    tally_keeps,
)
from anonymizer.domain.arrays import Int32Array, IntArray, RecordArray

TAKEN = np.dtype([("record", np.int64), ("donor", np.int64), ("worth", np.float64)], align=True)
"""A record that a class takes, the class that gives it, and by how much that lowers its cost."""

_MOST_CODES = 128
_MOST_WORDS = 512
"""Of records near each other in the table, among which those within a label are looked for."""
_MOST_TAKEN = 64
_TAXONOMY = int(Cost.TAXONOMY)


class Reach(NamedTuple):
    """Which records lie within a label, as kernels take them."""

    less: UInt64Array
    """Bits of the records whose code in a column is less than each code, shape (codes and one more
    for each column of few codes, words)."""
    first_row: IntArray
    """Row of the first code of each column, -1 where the codes are too many."""
    label: Int32Array
    """Working memory: first and last code of a label, shape (2, columns)."""
    found: UInt64Array
    """Working memory: the records within the label, shape (words,)."""
    taken: RecordArray
    """Working memory, of `TAKEN`."""
    n_given: IntArray
    """Working memory: how many records each class gives, all 0, shape (most classes,)."""


def reach_of(problem: ProblemArrays, n_qis: int, n_classes: int) -> Reach:
    """Return which records lie within labels.

    O(n codes); at most 129 bits for each record and column.
    """
    size = problem.rule["size"][:n_qis]
    few = size <= _MOST_CODES
    n_rows = np.where(few, size + 1, 0)
    n_words = -(-len(problem.cells) // BITS)
    reach = Reach(
        np.zeros((int(n_rows.sum()), n_words), np.uint64),
        np.where(few, np.cumsum(n_rows) - n_rows, -1),
        np.zeros((2, n_qis), np.int32),
        np.zeros(n_words, np.uint64),
        np.zeros(_MOST_TAKEN, TAKEN),
        np.zeros(n_classes, np.int64),
    )
    _fill(reach, problem, n_qis)
    return reach


@kernel
def _fill(reach: Reach, problem: ProblemArrays, n_qis: int) -> None:
    less, cells = reach.less, problem.cells
    for c in range(n_qis):
        first = reach.first_row[c]
        if first < 0:
            continue
        for i in range(len(cells)):
            less[first + cells[i, c] + 1, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
        for x in range(first + 1, first + problem.rule[c]["size"] + 1):
            for w in range(less.shape[1]):
                less[x, w] |= less[x - 1, w]


@inner_kernel
def find_within(i: int, reach: Reach, problem: ProblemArrays) -> tuple[int, int]:
    """Write to `found` which records near `i` in the table lie within the label.

    Only words between the two that are returned are written. Columns of many codes, and with sets
    as the cost the codes that a label leaves out, are not looked at. O(words columns).
    """
    less, first_row, label, found, _, _ = reach
    begin = max(0, min((i >> 6) - _MOST_WORDS // 2, len(found) - _MOST_WORDS))
    end = min(begin + _MOST_WORDS, len(found))
    for w in range(begin, end):
        found[w] = ~np.uint64(0)
    for c in range(len(first_row)):
        lo, hi = label[0, c], label[1, c]
        if first_row[c] < 0 or (lo == 0 and hi == problem.rule[c]["size"] - 1):
            continue
        from_row, to_row = first_row[c] + lo, first_row[c] + hi + 1
        for w in range(begin, end):
            found[w] &= less[to_row, w] & ~less[from_row, w]
    return begin, end


@inner_kernel
def set_label(tally: Tally, partition: Partition, reach: Reach) -> None:
    """Set the label to that of the class that is tallied."""
    rule, column, label = tally.problem.rule, tally.column, reach.label
    for c in range(label.shape[1]):
        lo, hi = int(column[c]["lo"]), int(column[c]["hi"])
        if rule[c]["form"] == _TAXONOMY and lo != hi:
            lo, hi = below_common(lo, hi, rule[c], tally.problem, partition.cover.leaves)
        label[0, c], label[1, c] = lo, hi


@inner_kernel
def _is_within(i: int, tally: Tally, reach: Reach) -> bool:
    """Return whether the label covers a record; the class of the label is tallied. O(columns)."""
    cells, rule, label = tally.problem.cells, tally.problem.rule, reach.label
    turn, seen = tally.head[0]["turn"], tally.seen
    for c in range(label.shape[1]):
        code = cells[i, c]
        if tally.column[c]["bit"] >= 0:
            if seen[rule[c]["first_position"] + code]["turn"] != turn:
                return False
        elif not label[0, c] <= code <= label[1, c]:
            return False
    return True


@inner_kernel
def choose(i: int, a: int, n: int, tally: Tally, partition: Partition, reach: Reach) -> int:
    """Choose the `n` records within the label of the tallied class whose classes lose most.

    Writes them to `taken`, and returns how many there are. No class gives so many that fewer than k
    records remain. `i` and `a` are a record and the class that takes them. O(words columns + n^2).
    """
    head, found, taken, n_given = tally.head, reach.found, reach.taken, reach.n_given
    of_record, of_class = partition.of_record, partition.of_class
    set_label(tally, partition, reach)
    begin, end = find_within(i, reach, tally.problem)
    n_taken = 0
    for w in range(begin, end):
        left = found[w]
        while left != 0:
            j = w * BITS + lowest(left)
            left &= left - np.uint64(1)
            if j >= len(of_record):
                break
            b = of_record[j]["number"]
            if b < 0 or b == a:
                continue
            size = of_class[b]["size"]
            worth = of_class[b]["loss"] + head[0]["crowding"] * (2 * size - 1)
            if n_taken == n and worth <= taken[n - 1]["worth"]:
                continue
            if n_given[b] >= size - head[0]["k"] or not _is_within(j, tally, reach):
                continue
            if n_taken == n:
                n_taken -= 1
                n_given[taken[n_taken]["donor"]] -= 1
            x = n_taken
            while x > 0 and taken[x - 1]["worth"] < worth:
                taken[x] = taken[x - 1]
                x -= 1
            taken[x]["record"], taken[x]["donor"], taken[x]["worth"] = j, b, worth
            n_given[b] += 1
            n_taken += 1
    for x in range(n_taken):
        n_given[taken[x]["donor"]] = 0
    return n_taken


@inner_kernel
def gained(n_taken: int, tally: Tally, partition: Partition, reach: Reach) -> float:
    """Return by how much the cost of the donors falls; -1 if one would break the promise.

    O(members of the donors times columns).
    """
    of_record, of_class, taken = partition.of_record, partition.of_class, reach.taken
    gain = 0.0
    for x in range(n_taken):
        b = taken[x]["donor"]
        if gives_before(b, x, taken):
            continue
        clear(tally)
        j = of_class[b]["first"]
        while j >= 0:
            if not is_taken(j, n_taken, taken):
                add(j, tally)
            j = of_record[j]["next"]
        if not tally_keeps(tally):
            return -1.0
        gain += cost_of(b, tally, partition) - tally_cost(tally) - share_penalty(tally)
    return gain


@inner_kernel
def gives_before(b: int, x: int, taken: RecordArray) -> bool:
    """Return whether class `b` gives one of the first `x` records."""
    for y in range(x):  # noqa: SIM110  numba knows no generators
        if taken[y]["donor"] == b:
            return True
    return False


@inner_kernel
def is_taken(j: int, n_taken: int, taken: RecordArray) -> bool:
    """Return whether record `j` is taken."""
    for x in range(n_taken):  # noqa: SIM110  numba knows no generators
        if taken[x]["record"] == j:
            return True
    return False

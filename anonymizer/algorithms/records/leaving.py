"""Which members leave their class in a move of the local search.

Those that leave are written to `journal`, those that stay to `stay`.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel
from anonymizer.algorithms.records.cover import below_node
from anonymizer.algorithms.records.draws import below
from anonymizer.algorithms.records.partition import OUTLINE, Partition
from anonymizer.algorithms.records.problem import Cost
from anonymizer.algorithms.records.refill import Reach, reach_of
from anonymizer.algorithms.records.tally import Tally
from anonymizer.domain.arrays import IntArray, RecordArray

_TAXONOMY = int(Cost.TAXONOMY)

JOURNAL = np.dtype(
    [
        ("record", np.int64),
        ("target", np.int64),
        ("size", np.int64),
        ("loss", np.float64),
    ],
    align=True,
)
"""A record that leaves: its target, and the size and loss of the target before."""


class Scratch(NamedTuple):
    """Working memory of the moves."""

    stay: IntArray
    """The records that stay in their class, shape (n,)."""
    journal: RecordArray
    """The records that leave, of `JOURNAL`, shape (most that leave at once,)."""
    outline_before: RecordArray
    """The `OUTLINE` that each target class had before, shape (most that leave at once, columns)."""
    asked: IntArray
    """The look in which each class was last asked, shape (most classes,)."""
    reach: Reach
    """Which records lie within a label."""


def blank_scratch(tally: Tally, partition: Partition, most: int) -> Scratch:
    """Return working memory for moves of up to `most` records at once."""
    n_qis = int(tally.head[0]["n_qis"])
    of_record, of_class, outline = (
        partition.of_record,
        partition.of_class,
        partition.outline,
    )
    return Scratch(
        np.zeros(len(of_record), np.int64),
        np.zeros(most, JOURNAL),
        np.zeros((most, outline.shape[1]), OUTLINE),
        np.zeros(len(of_class), np.int64),
        reach_of(tally.problem, n_qis, len(of_class)),
    )


@inner_kernel
def all_leave(a: int, partition: Partition, scratch: Scratch) -> tuple[int, int]:
    """Let all members leave; return how many leave and stay, (0, 0) if they are too many."""
    of_record, of_class = partition.of_record, partition.of_class
    journal = scratch.journal
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
    of_record, of_class = partition.of_record, partition.of_class
    stay, journal = scratch.stay, scratch.journal
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
    """Let the members leave that make a column expensive; return how many leave and stay.

    With sets as the cost, the members of the class of record `i` that have its code; with ranges,
    those at one end, or from that code on; with a hierarchy also those outside a node above the
    code. (0, 0) if more would leave than stay. Uses five random numbers. O(members).
    """
    cells = tally.problem.cells
    rule = tally.problem.rule
    head = tally.head
    column = tally.column
    of_record, of_class, outline = (
        partition.of_record,
        partition.of_class,
        partition.outline,
    )
    stay, journal = scratch.stay, scratch.journal
    a, c = int(of_record[i]["number"]), below(draws, head[0]["n_qis"])
    wanted, line, code = rule[c], outline[a, c], int(cells[i, c])
    up, at_the_end, by_node = below(draws, 2), below(draws, 2), below(draws, 2)
    level = below(draws, max(1, wanted["height"] - 1))
    lo, hi, inside = (code, wanted["size"], True) if up == 1 else (0, code, True)
    if column[c]["bit"] >= 0:
        lo, hi = code, code
    elif wanted["form"] == _TAXONOMY and by_node == 1:
        lo, hi = below_node(code, level, wanted, tally.problem, partition.cover.leaves)
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
def outer_leave(
    i: int, draws: IntArray, tally: Tally, partition: Partition, scratch: Scratch
) -> tuple[int, int]:
    """Let the members leave that lie outside a narrower label; return how many leave and stay.

    The label is narrower in one column, and still covers record `i`. (0, 0) if none leave, or more
    than the journal has room for. Uses five random numbers. O(members).
    """
    cells, rule, n_qis = tally.problem.cells, tally.problem.rule, tally.head[0]["n_qis"]
    of_record, of_class, outline = partition.of_record, partition.of_class, partition.outline
    stay, journal = scratch.stay, scratch.journal
    a, c = int(of_record[i]["number"]), below(draws, n_qis)
    for _ in range(2):
        other = below(draws, n_qis)
        if outline[a, c]["loss"] == 0:
            c = other
    wanted, line, code = rule[c], outline[a, c], int(cells[i, c])
    up, level = below(draws, 2), below(draws, max(1, wanted["height"] - 1))
    if line["loss"] == 0 or of_class[a]["size"] > len(journal):
        return 0, 0
    if wanted["form"] == _TAXONOMY:
        lo, hi = below_node(code, level, wanted, tally.problem, partition.cover.leaves)
    elif up == 1:
        lo, hi = code, int(line["hi"]) - (code == line["lo"])
    else:
        lo, hi = int(line["lo"]) + (code == line["hi"]), code
    n_go, n_stay = 0, 0
    j = of_class[a]["first"]
    while j >= 0:
        if lo <= cells[j, c] <= hi:
            stay[n_stay] = j
            n_stay += 1
        else:
            journal[n_go]["record"] = j
            n_go += 1
        j = of_record[j]["next"]
    return n_go, n_stay

"""Who leaves a class in a move of the local search: written to `journal`, who stays to `stay`."""

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel
from anonymizer.algorithms.records.drawing import below
from anonymizer.algorithms.records.joining import Scratch
from anonymizer.algorithms.records.partition import Partition
from anonymizer.algorithms.records.problem import Codes, Cost
from anonymizer.algorithms.records.tally import Tally
from anonymizer.domain.arrays import IntArray

_TAXONOMY = int(Cost.TAXONOMY)


@inner_kernel
def all_leave(a: int, partition: Partition, scratch: Scratch) -> tuple[int, int]:
    """Let all members leave; return how many leave and stay, (0, 0) where they are too many."""
    of_record, of_class, _, _, _ = partition
    _, journal, _, _ = scratch
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
    of_record, of_class, _, _, _ = partition
    stay, journal, _, _ = scratch
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
    """Let those leave who make a column cost what it does; return how many leave and stay.

    Where sets are the cost, those of the class of record `i` that have its code; in a range, those
    at one end, or from that code on; in a hierarchy also those outside a node above the code.
    (0, 0) where more would leave than stay. Uses up five random numbers. O(members).
    """
    (cells, rule, _, codes), head, column, _ = tally
    of_record, of_class, outline, _, _ = partition
    stay, journal, _, _ = scratch
    a, c = int(of_record[i]["number"]), below(draws, head[0]["n_qis"])
    wanted, line, code = rule[c], outline[a, c], int(cells[i, c])
    up, at_the_end, by_node = below(draws, 2), below(draws, 2), below(draws, 2)
    level = below(draws, max(1, wanted["height"] - 1))
    lo, hi, inside = (code, wanted["size"], True) if up == 1 else (0, code, True)
    if column[c]["bit"] >= 0:
        lo, hi = code, code
    elif wanted["form"] == _TAXONOMY and by_node == 1:
        lo, hi = _codes_below(code, level, wanted, codes)
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
def _codes_below(code: int, level: int, wanted: np.void, codes: Codes) -> tuple[int, int]:
    """Return the first and the last code below the node above `code` at a level."""
    _, _, ancestor, _ = codes
    first, height = wanted["first_ancestor"] + level, wanted["height"]
    node = ancestor[first + code * height]
    lo, hi = code, code
    while lo > 0 and ancestor[first + (lo - 1) * height] == node:
        lo -= 1
    while hi + 1 < wanted["size"] and ancestor[first + (hi + 1) * height] == node:
        hi += 1
    return lo, hi

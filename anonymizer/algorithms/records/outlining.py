"""The outlines of the classes of a partition.

Records that join move the outline in O(columns); where some leave it is drawn anew from those that
stay.
"""

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import column_loss
from anonymizer.algorithms.records.partition import (
    OF_CLASS,
    OF_RECORD,
    OUTLINE,
    Partition,
    link,
)
from anonymizer.algorithms.records.pricing import MOST_PRICED, lacks, price, price_size
from anonymizer.algorithms.records.tally import Tally
from anonymizer.algorithms.records.tallying import add, clear
from anonymizer.domain.arrays import Int32Array, RecordArray

_WORD = 64
_PRICES_A_RECORD = 64


def partition_of(class_of: Int32Array, tally: Tally) -> Partition:
    """Return a partition, given the class of each record, dense from 0 or `SUPPRESSED`.

    O(n columns). Where sets are the cost, a bit for each class and code besides.
    """
    (_, rule, _, _), head, column, _ = tally
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
    of_record, of_class, _, _, _ = partition
    of_record["number"] = SUPPRESSED
    of_class["first"] = -1
    head["n_classes"] = class_of.max(initial=SUPPRESSED) + 1
    _fill(class_of, partition)
    redraw_all(tally, partition)
    return partition


def _priced(class_of: Int32Array, room: int, rule: RecordArray) -> tuple[int, int]:
    """Return the shape of the prices; none where they would be too many to be looked through.

    Nor where they would be more than linear in the records.
    """
    n_rows = int(rule["size"].sum()) + 2
    if class_of.max() >= MOST_PRICED or n_rows * room > _PRICES_A_RECORD * len(class_of):
        return 0, 0
    return n_rows, room


@kernel
def _fill(class_of: Int32Array, partition: Partition) -> None:
    for i in range(len(class_of) - 1, -1, -1):
        if class_of[i] >= 0:
            link(i, class_of[i], partition)


@kernel
def redraw_all(tally: Tally, partition: Partition) -> None:
    """Draw the outlines of all classes anew. O(n columns)."""
    _, head, _, _ = tally
    of_record, of_class, _, _, _ = partition
    for a in range(head[0]["n_classes"]):
        clear(tally)
        i = of_class[a]["first"]
        while i >= 0:
            add(i, tally)
            i = of_record[i]["next"]
        redraw(a, tally, partition)


@inner_kernel
def redraw(a: int, tally: Tally, partition: Partition) -> None:
    """Draw the outline of a class, which the tally is of. O(columns), with sets O(members)."""
    (cells, _, _, _), head, column, _ = tally
    of_record, of_class, outline, bits, _ = partition
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
    """Count record `i` in a class, and draw its outline so. O(columns)."""
    (cells, rule, _, codes), head, column, _ = tally
    _, of_class, outline, bits, _ = partition
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

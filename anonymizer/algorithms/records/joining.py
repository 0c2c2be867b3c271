"""Records that join classes for the time being: noted in a journal, so as to be taken back."""

from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel
from anonymizer.algorithms.records.keeping import tally_keeps
from anonymizer.algorithms.records.outlining import widen
from anonymizer.algorithms.records.partition import OUTLINE, Float32Array, Partition
from anonymizer.algorithms.records.pricing import price, price_size
from anonymizer.algorithms.records.tally import Tally
from anonymizer.algorithms.records.tallying import add, clear
from anonymizer.domain.arrays import IntArray, RecordArray

JOURNAL = np.dtype(
    [("record", np.int64), ("target", np.int64), ("size", np.int64), ("loss", np.float64)],
    align=True,
)
"""Who goes where, and what size and loss the target had before."""

Scratch: TypeAlias = tuple[IntArray, RecordArray, RecordArray, Float32Array]
"""Space that moves need: `stay`, `journal`, `outline_before` and `costs`.

stay
    Who stays, shape (n,).
journal, outline_before
    Of `JOURNAL`, shape (most that go at once,); the `OUTLINE` that each target had before, shape
    (most that go at once, columns).
costs
    Of a record in each class, shape (most classes,).
"""


def blank_scratch(partition: Partition, most: int) -> Scratch:
    """Return space to let up to `most` records go at once."""
    of_record, of_class, outline, _, _ = partition
    return (
        np.zeros(len(of_record), np.int64),
        np.zeros(most, JOURNAL),
        np.zeros((most, outline.shape[1]), OUTLINE),
        np.zeros(len(of_class), np.float32),
    )


@inner_kernel
def join(x: int, b: int, tally: Tally, partition: Partition, scratch: Scratch) -> None:
    """Count the record of a journal entry in class `b`, and note what that was before."""
    _, of_class, outline, _, _ = partition
    _, journal, outline_before, _ = scratch
    journal[x]["target"] = b
    journal[x]["size"] = of_class[b]["size"]
    journal[x]["loss"] = of_class[b]["loss"]
    for c in range(outline.shape[1]):
        outline_before[x, c] = outline[b, c]
    widen(journal[x]["record"], b, tally, partition)


@inner_kernel
def take_back(x: int, tally: Tally, partition: Partition, scratch: Scratch) -> None:
    """Undo what `join` did; the last one first."""
    (cells, _, _, _), _, column, _ = tally
    _, of_class, outline, bits, _ = partition
    _, journal, outline_before, _ = scratch
    b = journal[x]["target"]
    of_class[b]["size"] = journal[x]["size"]
    of_class[b]["loss"] = journal[x]["loss"]
    for c in range(outline.shape[1]):
        if column[c]["bit"] >= 0 and outline[b, c]["present"] > outline_before[x, c]["present"]:
            bit = column[c]["bit"] + cells[journal[x]["record"], c]
            bits[b, bit >> 6] ^= np.uint64(1) << np.uint64(bit & 63)
        wider = outline[b, c]["loss"] != outline_before[x, c]["loss"]
        outline[b, c] = outline_before[x, c]
        if wider:
            price(b, c, tally, partition)
    price_size(b, tally, partition)


@inner_kernel
def targets_keep(n_joined: int, tally: Tally, partition: Partition, scratch: Scratch) -> bool:
    """Return whether all classes that got bigger keep the promise.

    Distinct values and spread only grow, and shares were looked at; for the rest they are tallied.
    O(their records columns).
    """
    _, head, _, _ = tally
    of_record, of_class, _, _, _ = partition
    _, journal, _, _ = scratch
    if head[0]["may_break"] == 0:
        return True
    for x in range(n_joined):
        b = journal[x]["target"]
        if _is_seen(x, journal):
            continue
        clear(tally)
        i = of_class[b]["first"]
        while i >= 0:
            add(i, tally)
            i = of_record[i]["next"]
        for y in range(x, n_joined):
            if journal[y]["target"] == b:
                add(journal[y]["record"], tally)
        head[0]["judged"] += head[0]["size"]
        if not tally_keeps(tally):
            return False
    return True


@inner_kernel
def _is_seen(x: int, journal: RecordArray) -> bool:
    for y in range(x):  # noqa: SIM110  numba knows no generators
        if journal[y]["target"] == journal[x]["target"]:
            return True
    return False

"""The core of most moves: some members of a class leave it for those where they cost least."""

from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.judging import class_keeps
from anonymizer.algorithms.records.partition import (
    OUTLINE,
    Partition,
    cost_of,
    drop,
    link,
    members,
    redraw,
    unlink,
    widen,
)
from anonymizer.algorithms.records.pricing import (
    Float32Array,
    UInt64Array,
    best_target,
    price,
    price_size,
)
from anonymizer.algorithms.records.tallying import add, clear, tally_cost, tally_keeps
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray

JOURNAL = np.dtype(
    [("record", np.int64), ("target", np.int64), ("size", np.int64), ("loss", np.float64)],
    align=True,
)
"""Who goes where, and what size and loss the target had before."""

Scratch: TypeAlias = tuple[IntArray, RecordArray, RecordArray, Float32Array]
"""Space for who stays, shape (n,); `JOURNAL` shape (most that go at once,); the `OUTLINE` each
target had before, shape (most that go at once, columns); costs, shape (most classes,)."""


def blank_scratch(partition: Partition, most: int) -> Scratch:
    """Return space to let up to `most` records go at once."""
    of_record, of_class, outline, _, _ = partition
    return (
        np.zeros(len(of_record), np.int64),
        np.zeros(most, JOURNAL),
        np.zeros((most, outline.shape[1]), OUTLINE),
        np.zeros(len(of_class), np.float32),
    )


@kernel
def evict(
    a: int,
    n_go: int,
    n_stay: int,
    goal: float,
    order: Int32Array,
    rank: Int32Array,
    cells: Int32Array,
    rule: RecordArray,
    person: Int32Array,
    position: FloatArray,
    usual: FloatArray,
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
    stay: IntArray,
    journal: RecordArray,
    outline_before: RecordArray,
    costs: Float32Array,
) -> float:
    """Send those who go to where they cost least, if all costs change by less than `goal`.

    Returns
    -------
    change
        Of the costs; infinite where nothing was done.

    Notes
    -----
    Who goes stands in `journal`, who stays in `stay`; together they are the class `a`. Where
    nobody stays, `a` is gone, and the last class has its number.
    """
    clear(head, column, seen)
    for x in range(n_stay):
        add(stay[x], cells, rule, person, position, ancestor, n_leaves, head, column, seen)
    if n_stay > 0 and not tally_keeps(
        stay[:n_stay], cells, rule, person, position, usual, head, column
    ):
        return np.inf
    room = cost_of(a, head, of_class) - tally_cost(head) + goal
    n_placed = 0
    while n_placed < n_go:
        i = journal[n_placed]["record"]
        b, cost = best_target(
            i,
            a,
            room,
            order,
            rank,
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
            costs,
        )
        if b < 0:
            break
        _remember(n_placed, b, of_class, outline, journal, outline_before)
        widen(
            i,
            b,
            cells,
            rule,
            position,
            ancestor,
            n_leaves,
            head,
            column,
            of_class,
            outline,
            bits,
            prices,
        )
        room -= cost
        n_placed += 1
    if n_placed < n_go or not _targets_keep(
        n_go, cells, rule, person, position, usual, head, of_record, of_class, journal
    ):
        for x in range(n_placed - 1, -1, -1):
            _take_back(
                x,
                cells,
                rule,
                position,
                ancestor,
                n_leaves,
                head,
                column,
                of_class,
                outline,
                bits,
                prices,
                journal,
                outline_before,
            )
        return np.inf
    for x in range(n_go):
        unlink(journal[x]["record"], of_record, of_class)
        link(journal[x]["record"], journal[x]["target"], of_record, of_class)
    if n_stay > 0:
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
    else:
        drop(a, head, of_record, of_class, outline, bits, prices)
    return goal - room


@kernel
def _remember(
    x: int,
    b: int,
    of_class: RecordArray,
    outline: RecordArray,
    journal: RecordArray,
    outline_before: RecordArray,
) -> None:
    journal[x]["target"] = b
    journal[x]["size"] = of_class[b]["size"]
    journal[x]["loss"] = of_class[b]["loss"]
    for c in range(outline.shape[1]):
        outline_before[x, c] = outline[b, c]


@kernel
def _take_back(
    x: int,
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
    journal: RecordArray,
    outline_before: RecordArray,
) -> None:
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
            price(b, c, rule, position, ancestor, n_leaves, column, outline, bits, prices)
    price_size(b, head, of_class, prices)


@kernel
def _targets_keep(
    n_go: int,
    cells: Int32Array,
    rule: RecordArray,
    person: Int32Array,
    position: FloatArray,
    usual: FloatArray,
    head: RecordArray,
    of_record: RecordArray,
    of_class: RecordArray,
    journal: RecordArray,
) -> bool:
    """Return whether all classes that got bigger keep the promise.

    Distinct values and spread only grow, and shares were looked at; the rest is judged.
    """
    if head[0]["decides"] == 1:
        return True
    for x in range(n_go):
        b = journal[x]["target"]
        if _is_seen(x, journal):
            continue
        now = np.empty(of_class[b]["size"], np.int64)
        m = members(b, now, of_record, of_class)
        for y in range(x, n_go):
            if journal[y]["target"] == b:
                now[m] = journal[y]["record"]
                m += 1
        if not class_keeps(cells, rule, person, head[0]["k"], position, usual, now):
            return False
    return True


@kernel
def _is_seen(x: int, journal: RecordArray) -> bool:
    for y in range(x):  # noqa: SIM110  numba knows no generators
        if journal[y]["target"] == journal[x]["target"]:
            return True
    return False


@kernel
def admit(
    order: Int32Array,
    rank: Int32Array,
    cells: Int32Array,
    rule: RecordArray,
    person: Int32Array,
    position: FloatArray,
    usual: FloatArray,
    ancestor: Int32Array,
    n_leaves: Int32Array,
    head: RecordArray,
    column: RecordArray,
    seen: RecordArray,  # noqa: ARG001  all take the same scratch space
    of_record: RecordArray,
    of_class: RecordArray,
    outline: RecordArray,
    bits: UInt64Array,
    prices: Float32Array,
    stay: IntArray,  # noqa: ARG001
    journal: RecordArray,
    outline_before: RecordArray,
    costs: Float32Array,
) -> int:
    """Take suppressed records into classes that keep the promise with them; return how many.

    O(suppressed records times classes times columns) where the tally decides.
    """
    n_admitted = 0
    for i in range(len(of_record)):
        if of_record[i]["number"] >= 0:
            continue
        b, _ = best_target(
            i,
            -1,
            np.inf,
            order,
            rank,
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
            costs,
        )
        if b < 0:
            continue
        journal[0]["record"] = i
        _remember(0, b, of_class, outline, journal, outline_before)
        widen(
            i,
            b,
            cells,
            rule,
            position,
            ancestor,
            n_leaves,
            head,
            column,
            of_class,
            outline,
            bits,
            prices,
        )
        if _targets_keep(
            1, cells, rule, person, position, usual, head, of_record, of_class, journal
        ):
            link(i, b, of_record, of_class)
            n_admitted += 1
        else:
            _take_back(
                0,
                cells,
                rule,
                position,
                ancestor,
                n_leaves,
                head,
                column,
                of_class,
                outline,
                bits,
                prices,
                journal,
                outline_before,
            )
    return n_admitted

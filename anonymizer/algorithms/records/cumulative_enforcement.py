"""Classes that leave enough of every member over many windows, and not in this one alone."""

from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.cumulative import (
    NO_COMPANY,
    Lasting,
    Memory,
    advance,
    codes_in_classes,
    short,
)
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import NO_CODE, Records, Schema

MOST_MOVES = 4
"""As often a record may look for another class before it is left out."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Enforced:
    """Classes after enforcement.

    Attributes
    ----------
    class_of
        Class of each record, 0 and up without a gap, `SUPPRESSED` where it has none.
    n_moved
        Records that are in another class than they were given.
    n_suppressed
        Records that had a class and have none now.
    """

    class_of: Int32Array
    n_moved: int
    n_suppressed: int


def violators(
    memory: Memory, lasting: Lasting, records: Records, class_of: Int32Array
) -> BoolArray:
    """Return which records' persons would have too little left if these classes were published.

    Shape (n,). O(n times the values of a class).
    """
    after = advance(memory, lasting, records, class_of, first_company=0)
    return np.asarray(short(after, lasting)[records.person] & (class_of >= 0))


def enforce(
    memory: Memory,
    lasting: Lasting,
    records: Records,
    schema: Schema,
    promise: Promise,
    class_of: Int32Array,
) -> Enforced:
    """Return classes that keep `promise` and leave at least the floor of every member.

    Parameters
    ----------
    memory, lasting
        What is left of each person, and of which columns it is asked.
    records, schema, promise
        The window, and what each class must keep by itself.
    class_of
        Where to start from, dense, `SUPPRESSED` where a record has none, shape (n,).

    Notes
    -----
    In rounds: who would have too little left leaves his class; a class that then breaks the
    promise is given up. Whoever leaves joins the class whose loss grows the least by him, of those
    that leave enough of him; where there is none, or after `MOST_MOVES`, he is suppressed. If the
    newcomers broke a class (its shares, its entropy), they go first. A newcomer only adds values,
    so that nobody who is there loses by him.

    It ends: every round moves or suppresses somebody, which can happen to a record only so often.
    A round is O(n log n), and O(classes times columns) for each who moves. A person of whom too
    little was left before stays suppressed until he is forgotten.
    """
    start, class_of = class_of, class_of.copy()
    moves = np.zeros(records.n, np.int64)
    while (
        leaves := _leaving(memory, lasting, records, schema, promise, class_of, moves > 0)
    ).any():
        class_of[leaves] = SUPPRESSED
        moving = np.flatnonzero(leaves & (moves < MOST_MOVES))
        class_of[moving] = _homes(memory, lasting, records, schema, class_of, moving)
        moves[moving] += 1
    kept = class_of >= 0
    class_of[kept] = np.unique(class_of[kept], return_inverse=True)[1]
    return Enforced(
        class_of,
        int((kept & (start != SUPPRESSED) & (moves > 0)).sum()),
        int(((start >= 0) & ~kept).sum()),
    )


def keep_company(
    memory: Memory, lasting: Lasting, records: Records, schema: Schema, promise: Promise
) -> Int32Array:
    """Return the classes of those who stay together; the rest is `SUPPRESSED`: partition it afresh.

    Members of one class who are here again and keep the promise among themselves are a class
    again: no value of theirs is new or lost, so that what is left of them hardly shrinks. Whoever
    would have too little left even so stays behind.
    """
    company = memory.company[records.person]
    class_of = np.full(records.n, SUPPRESSED, np.int32)
    known = company != NO_COMPANY
    class_of[known] = np.unique(company[known], return_inverse=True)[1]
    nobody = np.zeros(records.n, bool)
    while (leaves := _leaving(memory, lasting, records, schema, promise, class_of, nobody)).any():
        class_of[leaves] = SUPPRESSED
    kept = class_of >= 0
    class_of[kept] = np.unique(class_of[kept], return_inverse=True)[1]
    return class_of


def _leaving(
    memory: Memory,
    lasting: Lasting,
    records: Records,
    schema: Schema,
    promise: Promise,
    class_of: Int32Array,
    moved: BoolArray,
) -> BoolArray:
    """Return who must leave his class: by what he has left, or with a class that breaks."""
    leaves = violators(memory, lasting, records, class_of)
    broken = sorted({v.class_number for v in verify_classes(records, schema, promise, class_of)})
    inside = np.isin(class_of, broken)
    with_newcomers = np.isin(class_of, class_of[inside & moved])
    return np.asarray(leaves | (inside & (moved | ~with_newcomers)))


def _homes(
    memory: Memory,
    lasting: Lasting,
    records: Records,
    schema: Schema,
    class_of: Int32Array,
    moving: IntArray,
) -> Int32Array:
    """Return the class for each record that is to move, `SUPPRESSED` where none leaves enough."""
    cells = lasting.cells(records)
    no_markers = np.full(len(schema.qis), NO_CODE, np.int32)
    return _cheapest(
        class_of[class_of >= 0],
        records.person[moving],
        memory.first_of,
        memory.code,
        cells[moving],
        lasting.missing,
        lasting.floor,
        *codes_in_classes(cells, lasting.missing, class_of),
        records.qi[moving],
        np.array([a.size for a in schema.qis], np.int64),
        np.array([a.numeric for a in schema.qis], np.bool_),
        *codes_in_classes(records.qi, no_markers, class_of),
    )


@kernel
def _cheapest(
    class_of: Int32Array,
    person: Int32Array,
    first_of: IntArray,
    code: Int32Array,
    own: Int32Array,
    missing: Int32Array,
    floor: IntArray,
    first_value: IntArray,
    value: Int32Array,
    qi: Int32Array,
    size: IntArray,
    numeric: BoolArray,
    first_there: IntArray,
    there: Int32Array,
) -> Int32Array:
    """Return for each mover the class that his joining makes the least worse, all in all."""
    n_columns, n_qis = own.shape[1], qi.shape[1]
    n_members = np.bincount(class_of)
    home = np.full(len(person), SUPPRESSED, np.int32)
    for i in range(len(person)):
        least = np.inf
        for c in range(len(n_members)):
            if n_members[c] == 0:
                continue
            cost = 0.0
            for q in range(n_qis):
                label = there[first_there[c * n_qis + q] : first_there[c * n_qis + q + 1]]
                cost += _worse(label, qi[i, q], size[q], numeric[q], n_members[c])
            if cost >= least:
                continue
            enough = True
            for a in range(n_columns):
                row, of = person[i] * n_columns + a, c * n_columns + a
                left = code[first_of[row] : first_of[row + 1]]
                said = value[first_value[of] : first_value[of + 1]]
                if own[i, a] != missing[a]:
                    enough &= _left_with(left, said, own[i, a]) >= floor[a]
            if enough:
                home[i], least = c, cost
    return home


@kernel
def _worse(label: Int32Array, own: int, size: int, numeric: bool, n_members: int) -> float:  # noqa: FBT001  numba knows no keyword-only parameters
    """Return by how much the loss of a class grows, summed over all who are then in it."""
    if size < 2:
        return 0.0
    if numeric:
        before = label[-1] - label[0]
        after = max(label[-1], own) - min(label[0], own)
    else:
        before = len(label) - 1
        at = np.searchsorted(label, own)
        after = before + (at == len(label) or label[at] != own)
    return float(((n_members + 1) * after - n_members * before) / (size - 1))


@kernel
def _left_with(left: Int32Array, said: Int32Array, own: int) -> int:
    """Return how many values are left of one who joins a class of these values."""
    at = np.searchsorted(left, own)
    anew = at == len(left) or left[at] != own
    n = 1
    for v in said:
        if v != own:
            i = np.searchsorted(left, v)
            n += anew or (i < len(left) and left[i] == v)
    return n

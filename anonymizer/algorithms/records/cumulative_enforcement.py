"""Enforcement over many windows: classes that leave every member enough values in all of them.

`cumulative` computes what the classes of earlier windows and of this one together leave open for
a person. Here classes are changed until that is at least the floor for every member.
"""

from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import SUPPRESSED, without_gaps
from anonymizer.algorithms.records.criteria import column_loss
from anonymizer.algorithms.records.cumulative import (
    NO_COMPANY,
    LastingColumns,
    Memory,
    advance,
    codes_in_classes,
    short,
)
from anonymizer.algorithms.records.problem import Codes, Cost, Problem, make_problem
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, RecordArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import NO_CODE, Records, Schema

MOST_MOVES = 4
"""How often a record may move to another class before it is suppressed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Enforced:
    """Classes after enforcement."""

    class_of: Int32Array
    n_moved: int
    n_suppressed: int


def violators(
    memory: Memory, lasting: LastingColumns, records: Records, class_of: Int32Array
) -> BoolArray:
    """Return the records whose persons would be left below the floor by publishing these classes.

    Shape (n,). O(n times the values of a class).
    """
    after = advance(memory, lasting, records, class_of, first_company=0)
    return np.asarray(short(after, lasting)[records.person] & (class_of >= 0))


def enforce(
    memory: Memory,
    lasting: LastingColumns,
    records: Records,
    schema: Schema,
    promise: Promise,
    class_of: Int32Array,
    *,
    cost: Cost = Cost.RANGE,
) -> Enforced:
    """Return classes that keep `promise` and leave at least the floor for every member.

    `memory`, `lasting`: the values left for each person, and the columns to which the floor
    applies; `class_of`: to start from, dense, `SUPPRESSED` where a record has none, shape (n,);
    `cost`: the information loss by which a moving record selects its class.

    Notes
    -----
    In rounds: a record whose person would be left below the floor leaves its class; a class that
    then breaks the promise is dissolved. A record that leaves moves to the class whose information
    loss grows least, among those that leave its person enough; if there is none, or after
    `MOST_MOVES`, it is suppressed. If newcomers break a class (its shares, its entropy), they leave
    first. A newcomer only adds values, so present members lose nothing by it.

    It terminates: every round moves or suppresses a record, and the moves of a record are limited.
    A round is O(n log n), plus O(classes times columns) for each moving record. A person who was
    below the floor before stays suppressed until forgotten.
    """
    start, class_of = class_of, class_of.copy()
    moves = np.zeros(records.n, np.int64)
    problem = make_problem(records, schema, promise, cost=cost)
    while (
        leaves := _leaving(memory, lasting, records, schema, promise, class_of, moves > 0)
    ).any():
        class_of[leaves] = SUPPRESSED
        moving = np.flatnonzero(leaves & (moves < MOST_MOVES))
        class_of[moving] = _targets(memory, lasting, records, problem, class_of, moving)
        moves[moving] += 1
    class_of = without_gaps(class_of)
    kept = class_of != SUPPRESSED
    return Enforced(
        class_of,
        int((kept & (start != SUPPRESSED) & (moves > 0)).sum()),
        int(((start != SUPPRESSED) & ~kept).sum()),
    )


def keep_company(
    memory: Memory, lasting: LastingColumns, records: Records, schema: Schema, promise: Promise
) -> Int32Array:
    """Return the classes of members who stay together; the rest, to be partitioned, `SUPPRESSED`.

    Members of one class who are present again and keep the promise among themselves form a class
    again: they add no values and lose none, so that what is left for them hardly shrinks. Whoever
    would be left below the floor even so is not among them.
    """
    company = memory.company[records.person]
    class_of = without_gaps(
        np.where(company == NO_COMPANY, SUPPRESSED, np.unique(company, return_inverse=True)[1])
    )
    nobody = np.zeros(records.n, bool)
    while (leaves := _leaving(memory, lasting, records, schema, promise, class_of, nobody)).any():
        class_of[leaves] = SUPPRESSED
    return without_gaps(class_of)


def _leaving(
    memory: Memory,
    lasting: LastingColumns,
    records: Records,
    schema: Schema,
    promise: Promise,
    class_of: Int32Array,
    moved: BoolArray,
) -> BoolArray:
    """Return the records that must leave: left below the floor, or in a class that is broken."""
    leaves = violators(memory, lasting, records, class_of)
    broken = sorted({v.class_number for v in verify_classes(records, schema, promise, class_of)})
    inside = np.isin(class_of, broken)
    with_newcomers = np.isin(class_of, class_of[inside & moved])
    return np.asarray(leaves | (inside & (moved | ~with_newcomers)))


def _targets(
    memory: Memory,
    lasting: LastingColumns,
    records: Records,
    problem: Problem,
    class_of: Int32Array,
    moving: IntArray,
) -> Int32Array:
    """Return the class for each moving record, `SUPPRESSED` where none leaves enough."""
    cells = lasting.cells(records)
    no_markers = np.full(problem.n_qis, NO_CODE, np.int32)
    rule, codes = problem.arrays.rule, problem.arrays.codes
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
        rule,
        codes,
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
    rule: RecordArray,
    codes: Codes,
    first_present: IntArray,
    present: Int32Array,
) -> Int32Array:
    """Return the class whose total loss grows least by each moving record, if it leaves enough."""
    n_columns, n_qis = own.shape[1], qi.shape[1]
    n_members = np.bincount(class_of)
    target = np.full(len(person), SUPPRESSED, np.int32)
    for i in range(len(person)):
        least = np.inf
        for c in range(len(n_members)):
            if n_members[c] == 0:
                continue
            growth = 0.0
            for q in range(n_qis):
                mine = present[first_present[c * n_qis + q] : first_present[c * n_qis + q + 1]]
                growth += _loss_growth(mine, qi[i, q], n_members[c], rule[q], codes)
            if growth >= least:
                continue
            enough = True
            for a in range(n_columns):
                row, of = person[i] * n_columns + a, c * n_columns + a
                left = code[first_of[row] : first_of[row + 1]]
                values = value[first_value[of] : first_value[of + 1]]
                if own[i, a] != missing[a]:
                    enough &= _n_left_in(left, values, own[i, a]) >= floor[a]
            if enough:
                target[i], least = c, growth
    return target


@kernel
def _loss_growth(
    present: Int32Array, code: int, n_members: int, rule: np.void, codes: Codes
) -> float:
    """Return the growth of the loss of a column, summed over all members, newcomer included."""
    lo, hi, n = present[0], present[-1], len(present)
    before = column_loss(rule, n, lo, hi, codes)
    at = np.searchsorted(present, code)
    n_after = n + (at == n or present[at] != code)
    after = column_loss(rule, n_after, min(lo, code), max(hi, code), codes)
    return float((n_members + 1) * after - n_members * before)


@kernel
def _n_left_in(left: Int32Array, values: Int32Array, own: int) -> int:
    """Return how many values are left for a person who joins a class with these values."""
    at = np.searchsorted(left, own)
    starts_over = at == len(left) or left[at] != own
    n = 1
    for v in values:
        if v != own:
            i = np.searchsorted(left, v)
            n += starts_over or (i < len(left) and left[i] == v)
    return n

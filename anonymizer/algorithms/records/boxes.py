"""Boxes: cuts the table from the top, each time where the cut saves most.

As in Mondrian [1]_, a class is divided at a border of one quasi-identifier while both parts keep
the promise. Mondrian cuts the widest one at its median. Here every border is tried, on a sample of
the class, and the loss that the cut saves counts by how even the parts are: many records can be cut
only log2(n / k) times, so no cut may be wasted on a few.

References
----------
.. [1] K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity", 2006.
"""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.cells.nodes import LEAF, NODE
from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.best_borders import SAMPLED, Sample, blank_sample, find_borders
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.problem import Problem, ProblemArrays
from anonymizer.algorithms.records.sweep import (
    ClassCounts,
    add,
    add_value,
    clear,
    column_holds,
    holds,
    no_counts,
)
from anonymizer.domain.arrays import Int32Array, IntArray, RecordArray

_WORK_PER_CALL = 5_000_000
_ALL = 2**31 - 1
"""A border that no code is above."""


class _Rows(NamedTuple):
    """The records in the order of the parts, so that those of a part lie side by side in memory.

    `counts`: of a problem with the records in this order; `grows`: whether a class that keeps the
    promise keeps it whatever joins, but for bounds on shares; `member`: the record of each row;
    `cells`, `pair`, `person`, `record`: room for the rows that are moved.
    """

    counts: ClassCounts
    grows: bool
    member: IntArray
    cells: Int32Array
    pair: Int32Array
    person: Int32Array
    record: IntArray


def boxes(
    problem: Problem,
    order: IntArray,
    *,
    keep_going: Callable[[], bool] = lambda: True,
) -> tuple[Int32Array, IntArray]:
    """Return the class of each record, and all records class by class.

    Parameters
    ----------
    order
        All records; those of a class stay in this order.
    keep_going
        Once False, the classes are returned as they are.

    Notes
    -----
    Records with equal quasi-identifiers share a class. `SUPPRESSED` everywhere if the whole table
    does not keep the promise. O(n log n + n columns + n qis^2), about 3 us a record at eleven
    columns; 6 bytes a record and column, and 40 a record and 100 a class.
    """
    n = problem.n
    if not n:
        return np.zeros(0, np.int32), order.copy()
    rows = _rows_of(problem, order)
    if not _may_be_class(n, problem.k, rows):
        return np.full(n, SUPPRESSED, np.int32), rows.member
    parts = _cut(problem, rows, keep_going)
    class_of = np.empty(n, np.int32)
    first = np.sort(parts["start"][parts["left"] == LEAF])
    begins = np.zeros(n, np.int32)
    begins[first[1:]] = 1
    class_of[rows.member] = np.cumsum(begins)
    return class_of, rows.member


def first_cuts(problem: Problem) -> RecordArray:
    """Return the cuts of the table as a tree over its codes, a record array of `NODE`.

    A cut in two is made where both parts keep the promise, be it of a much larger k than that of
    classes: then these are the first of their cuts. At least one record.
    """
    rows = _rows_of(problem, np.arange(problem.n))
    return _cut(problem, rows, lambda: True)


def _cut(problem: Problem, rows: _Rows, keep_going: Callable[[], bool]) -> RecordArray:
    """Return all parts, a record array of `NODE`: a leaf is the rows from its start on."""
    part = np.zeros(2 * (problem.n // problem.k) + 1, NODE)  # one that is cut has 2 k rows at least
    part["left"][0], part["size"][0] = LEAF, problem.n
    state = np.array([0, 1, 0], np.int64)
    sample = blank_sample(problem)
    while state[_AT] < state[_N_PARTS] and keep_going():
        _divide(problem.k, problem.n_qis, part, state, rows, sample)
    return part[: state[_N_PARTS]]


def _rows_of(problem: Problem, order: IntArray) -> _Rows:
    repeats = len(problem.person) > 0
    placed = replace(
        problem,
        cells=problem.cells.take(order, axis=0),
        person=problem.person[order] if repeats else problem.person,
    )
    counts, rule, half = no_counts(placed), problem.rule, problem.n // 2
    falls = (rule["margin"] > 0) | (rule["entropy"] > 0) | (rule["closeness"] < inf)
    return _Rows(
        counts,
        not repeats and not falls.any(),
        order.copy(),
        np.empty((half, placed.cells.shape[1]), np.int32),
        np.empty((half, counts.pair.shape[1]), np.int32),
        np.empty(half if repeats else 0, np.int32),
        np.empty(half, np.int64),
    )


def near_together(
    problem: Problem, cells: Int32Array, *, at_least: int
) -> tuple[Int32Array, IntArray]:
    """Return groups of near rows, whatever is promised, and all rows group by group.

    Parameters
    ----------
    cells
        Codes in the quasi-identifiers of the problem, shape (rows, qis).
    at_least
        Rows of a group, if there are as many.
    """
    return boxes(_of_rows(problem, cells, at_least), np.arange(len(cells)))


def nearness(problem: Problem, cells: Int32Array) -> tuple[RecordArray, IntArray]:
    """Return the cuts of rows, at least one, as a tree of `NODE`, and the rows in its order.

    `cells`: as of `near_together`. A leaf has one row, or equal ones.
    """
    of = _of_rows(problem, cells, 1)
    rows = _rows_of(of, np.arange(len(cells)))
    return _cut(of, rows, lambda: True), rows.member


def _of_rows(problem: Problem, cells: Int32Array, at_least: int) -> Problem:
    """Return the problem of groups of so many rows that promise nothing else."""
    n, q = cells.shape
    rule = problem.rule[:q].copy()
    rule["distinct"], rule["share"], rule["closeness"] = 1, 1.0, np.inf
    rule["spread"] = rule["entropy"] = rule["margin"] = rule["left"] = 0
    return replace(
        problem,
        cells=cells,
        rule=rule,
        plain=problem.plain[:q],
        person=problem.person[:0],
        n_persons=n,
        k=max(min(at_least, n), 1),
    )


_AT, _N_PARTS, _TURN = range(3)
"""Of the state: next part, number of parts, last class that was counted."""


@kernel
def _may_be_class(n: int, k: int, rows: _Rows) -> bool:
    """Return whether the whole table may be one class."""
    return n >= k and _keeps(0, n, 0, _ALL, n, k, 0, rows)


@kernel
def _divide(
    k: int,
    n_qis: int,
    part: RecordArray,
    state: IntArray,
    rows: _Rows,
    sample: Sample,
) -> None:
    """Cut parts, the oldest first, until a call has taken long enough."""
    problem = rows.counts.problem
    work = 0
    while state[_AT] < state[_N_PARTS] and work < _WORK_PER_CALL:
        at = state[_AT]
        state[_AT] += 1
        first, m = part[at]["start"], part[at]["size"]
        n_low = 0
        if m >= 2 * k:
            find_borders(first, m, k, problem, n_qis, sample)
            work += min(m, SAMPLED) * n_qis * (n_qis + 4) // 4
            while n_low == 0:
                c = int(np.argmax(sample.merit))
                if sample.merit[c] <= 0:
                    break
                border = sample.border[c]
                n_low = _count_low(first, m, c, border, problem)
                work += 4 * m
                state[_TURN] += 2
                turn = state[_TURN]
                if not (
                    min(n_low, m - n_low) >= k
                    and _keeps(first, m, c, border, n_low, k, turn, rows)
                    and _keeps(first, m, c, ~border, m - n_low, k, turn + 1, rows)
                ):
                    sample.merit[c], n_low = 0.0, 0
        if n_low == 0:
            continue
        _move(first, m, c, border, n_low, rows)
        child = state[_N_PARTS]
        part[at]["feature"], part[at]["threshold"] = c, border
        part[at]["left"], part[at]["right"] = child, child + 1
        part[child]["left"], part[child + 1]["left"] = LEAF, LEAF
        part[child]["start"], part[child]["size"] = first, n_low
        part[child + 1]["start"], part[child + 1]["size"] = first + n_low, m - n_low
        state[_N_PARTS] += 2


@inner_kernel
def _keeps(
    first: int, m: int, c: int, border: int, n_part: int, k: int, turn: int, rows: _Rows
) -> bool:
    """Return whether the rows up to a border may be one class; the turn is new.

    `border`: where it is negative, the rows above the border `~border`. `n_part`: how many they
    are. O(m columns), and mostly less: values that can break nothing are not counted.
    """
    counts, last = rows.counts, first + m
    cells = counts.problem.cells
    clear(counts)
    if rows.grows:
        for own in range(len(counts.column)):
            asked, here, row = counts.problem.rule[own], counts.column[own], first
            while not column_holds(n_part, n_part - here["n"], asked, here):
                if row == last:
                    return False
                if cells[row, c] <= border if border >= 0 else cells[row, c] > ~border:
                    add_value(row, own, turn, counts)
                row += 1
        return n_part >= k
    n_persons = 0
    for row in range(first, last):
        if cells[row, c] <= border if border >= 0 else cells[row, c] > ~border:
            n_persons += add(row, turn, counts)
    return n_persons >= k and holds(n_persons, turn, counts)


@inner_kernel
def _count_low(first: int, m: int, c: int, border: int, problem: ProblemArrays) -> int:
    n_low = 0
    for row in range(first, first + m):
        n_low += problem.cells[row, c] <= border
    return n_low


@inner_kernel
def _move(first: int, m: int, c: int, border: int, n_low: int, rows: _Rows) -> None:
    """Bring the rows up to the border before the others, each in their order.

    Those of the larger side close up in place; the others wait in the room for half of all rows.
    """
    problem, pair = rows.counts.problem, rows.counts.pair
    cells, person, member = problem.cells, problem.person, rows.member
    low_stays = 2 * n_low >= m
    step, row = (1, first) if low_stays else (-1, first + m - 1)
    to, n_waiting = row, 0
    for _ in range(m):
        if (cells[row, c] <= border) == low_stays:
            _copy_row(cells, row, cells, to)
            _copy_row(pair, row, pair, to)
            if len(person) > 0:
                person[to] = person[row]
            member[to] = member[row]
            to += step
        else:
            _copy_row(cells, row, rows.cells, n_waiting)
            _copy_row(pair, row, rows.pair, n_waiting)
            if len(person) > 0:
                rows.person[n_waiting] = person[row]
            rows.record[n_waiting] = member[row]
            n_waiting += 1
        row += step
    for x in range(n_waiting):
        _copy_row(rows.cells, x, cells, to)
        _copy_row(rows.pair, x, pair, to)
        if len(person) > 0:
            person[to] = rows.person[x]
        member[to] = rows.record[x]
        to += step


@inner_kernel
def _copy_row(source: Int32Array, at: int, target: Int32Array, to: int) -> None:
    """Copy a row; of a table without columns nothing."""
    for c in range(source.shape[1]):
        target[to, c] = source[at, c]

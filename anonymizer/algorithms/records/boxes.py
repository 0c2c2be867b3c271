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

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel, sort_in_place
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import column_loss
from anonymizer.algorithms.records.problem import Problem, ProblemArrays
from anonymizer.algorithms.records.sweep import ClassCounts, add, clear, holds, no_counts
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

SAMPLED = 512
"""Members by which a cut is chosen. Whether both parts keep the promise is seen from all."""
_WORK_PER_CALL = 5_000_000
_NEVER = -1


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
    does not keep the promise. O(n log n columns + n qis^2), about 10 us a record at eleven columns;
    40 bytes a record.
    """
    n, k, member = problem.n, problem.k, order.copy()
    if not n:
        return np.zeros(0, np.int32), member
    counts = no_counts(problem)
    if not _may_be_class(member, k, counts):
        return np.full(n, SUPPRESSED, np.int32), member
    # Part p is member[start[p] : start[p] + size[p]]. A part that is cut has k records at least.
    start, size = np.zeros((2, 2 * (n // k) + 1), np.int64)
    size[0] = n
    is_class = np.zeros(len(start), bool)
    state = np.array([0, 1, 0, 0], np.int64)
    beside = np.empty(n, np.int64)
    seen = np.full(len(problem.position), _NEVER, np.int64)
    while state[_AT] < state[_N_PARTS] and keep_going():
        _divide(member, k, problem.n_qis, start, size, is_class, state, beside, seen, counts)
    is_class[state[_AT] : state[_N_PARTS]] = True
    class_of = np.empty(n, np.int32)
    first = np.sort(start[is_class])
    begins = np.zeros(n, np.int32)
    begins[first[1:]] = 1
    class_of[member] = np.cumsum(begins)
    return class_of, member


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
    n, q = cells.shape
    rule = problem.rule[:q].copy()
    rule["distinct"], rule["share"], rule["closeness"] = 1, 1.0, np.inf
    rule["spread"] = rule["entropy"] = rule["margin"] = rule["left"] = 0
    rows = replace(
        problem,
        cells=cells,
        rule=rule,
        plain=problem.plain[:q],
        person=problem.person[:0],
        n_persons=n,
        k=max(min(at_least, n), 1),
    )
    return boxes(rows, np.arange(n))


_AT, _N_PARTS, _TURN, _LOOK = range(4)
"""Of the state: next part, number of parts, last class that was counted, last outline."""


@kernel
def _may_be_class(member: IntArray, k: int, counts: ClassCounts) -> bool:
    """Return whether the whole table may be one class."""
    return _keeps(member, k, 0, counts)


@kernel
def _divide(
    member: IntArray,
    k: int,
    n_qis: int,
    start: IntArray,
    size: IntArray,
    is_class: BoolArray,
    state: IntArray,
    beside: IntArray,
    seen: IntArray,
    counts: ClassCounts,
) -> None:
    """Cut parts, the oldest first, until a call has taken long enough."""
    cells = counts.problem.cells
    n_columns = cells.shape[1]
    work = 0
    while state[_AT] < state[_N_PARTS] and work < _WORK_PER_CALL:
        at = state[_AT]
        state[_AT] += 1
        m = size[at]
        part, both = member[start[at] : start[at] + m], beside[:m]
        n_low = 0
        if m >= 2 * k:
            merit, border = _borders(part, k, counts.problem, n_qis, seen, state)
            work += min(m, SAMPLED) * n_qis * (n_qis + 4) // 2
            while n_low == 0:
                c = int(np.argmax(merit))
                if merit[c] <= 0:
                    break
                n_low = _cut(part, cells, c, border[c], both)
                work += m * (n_columns + 2) // 2
                state[_TURN] += 2
                if not (
                    min(n_low, m - n_low) >= k
                    and _keeps(both[:n_low], k, state[_TURN], counts)
                    and _keeps(both[n_low:], k, state[_TURN] + 1, counts)
                ):
                    merit[c], n_low = 0.0, 0
        if n_low == 0:
            is_class[at] = True
            continue
        part[:] = both
        child = state[_N_PARTS]
        start[child], size[child] = start[at], n_low
        start[child + 1], size[child + 1] = start[at] + n_low, m - n_low
        state[_N_PARTS] += 2


@inner_kernel
def _keeps(part: IntArray, k: int, turn: int, counts: ClassCounts) -> bool:
    """Return whether the records may be one class; the turn is new. O(m columns)."""
    clear(counts)
    n_persons = 0
    for record in part:
        n_persons += add(record, turn, counts)
    return n_persons >= k and holds(n_persons, turn, counts)


@inner_kernel
def _cut(part: IntArray, cells: Int32Array, c: int, border: int, out: IntArray) -> int:
    """Write the records up to the border, then the others, in their order; return how many."""
    n_low = 0
    for record in part:
        n_low += cells[record, c] <= border
    low, high = 0, n_low
    for record in part:
        if cells[record, c] <= border:
            out[low] = record
            low += 1
        else:
            out[high] = record
            high += 1
    return n_low


@kernel
def _borders(
    part: IntArray, k: int, problem: ProblemArrays, n_qis: int, seen: IntArray, state: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return the best cut of each quasi-identifier: its merit, 0 if there is none, and last code.

    The merit is the loss saved, times the entropy of the two parts.
    """
    merit, border = np.zeros(n_qis), np.zeros(n_qis, np.int64)
    m = min(len(part), SAMPLED)
    fewest = max(k * m // len(part), 1)
    lo, hi, n_codes = np.empty((3, n_qis), np.int64)
    sample, code, ordered = np.empty((3, m), np.int64)
    loss_up_to = np.empty(m)
    for i in range(m):
        sample[i] = part[i * len(part) // m]
    for c in range(n_qis):
        _sort(problem.cells[:, c], sample, code, ordered)
        if code[0] == code[m - 1]:
            continue
        _start(lo, hi, n_codes, state)
        for i in range(m):
            _join(ordered[i], problem, n_qis, lo, hi, n_codes, seen, state[_LOOK])
            if i + 1 == m or code[i] != code[i + 1]:
                loss_up_to[i] = (i + 1) * _loss(problem, n_qis, lo, hi, n_codes)
        _start(lo, hi, n_codes, state)
        for i in range(m - 1, fewest - 1, -1):
            _join(ordered[i], problem, n_qis, lo, hi, n_codes, seen, state[_LOOK])
            if code[i] == code[i - 1] or m - i < fewest:
                continue
            after = loss_up_to[i - 1] + (m - i) * _loss(problem, n_qis, lo, hi, n_codes)
            share = i / m
            entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
            saved = (loss_up_to[m - 1] - after) * entropy
            if saved > merit[c]:
                merit[c], border[c] = saved, code[i - 1]
    return merit, border


@inner_kernel
def _sort(column: Int32Array, sample: IntArray, code: IntArray, ordered: IntArray) -> None:
    """Order a sample by a column; write its codes, too."""
    m = len(sample)
    for i in range(m):
        code[i] = np.int64(column[sample[i]]) * m + i
    sort_in_place(code)
    for i in range(m):
        ordered[i] = sample[code[i] % m]
        code[i] //= m


@inner_kernel
def _start(lo: IntArray, hi: IntArray, n_codes: IntArray, state: IntArray) -> None:
    """Begin an outline."""
    state[_LOOK] += 1
    for c in range(len(lo)):
        lo[c], hi[c], n_codes[c] = 2**31, -1, 0


@inner_kernel
def _join(
    record: int,
    problem: ProblemArrays,
    n_qis: int,
    lo: IntArray,
    hi: IntArray,
    n_codes: IntArray,
    seen: IntArray,
    look: int,
) -> None:
    """Widen an outline by a record."""
    for c in range(n_qis):
        code = problem.cells[record, c]
        lo[c], hi[c] = min(lo[c], code), max(hi[c], code)
        at = problem.rule[c]["first_position"] + code
        if seen[at] != look:
            seen[at] = look
            n_codes[c] += 1


@inner_kernel
def _loss(
    problem: ProblemArrays, n_qis: int, lo: IntArray, hi: IntArray, n_codes: IntArray
) -> float:
    """Return the loss of a record within an outline."""
    total = 0.0
    for c in range(n_qis):
        total += column_loss(problem.rule[c], n_codes[c], lo[c], hi[c], problem.codes)
    return total

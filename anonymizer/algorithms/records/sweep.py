"""Sweep along an order: a class closes as soon as it keeps the promise (Algorithms 2 and 3 [1]_).

Running counts of the open class tell when that is. They agree with `criteria`, but a record costs
O(columns), however large its class is.

References
----------
.. [1] "Efficient Multi-Source Anonymity for Aggregated Internet of Vehicles Datasets",
   Applied Sciences 14(8), 3230, 2024.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inlined_kernel, inner_kernel, kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import ROUNDING
from anonymizer.algorithms.records.problem import Problem, ProblemArrays
from anonymizer.algorithms.records.tally import (
    SEEN,
    is_close,
    is_kept_without,
    n_log_n_gain,
    person_pairs,
)
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, RecordArray

COLUMN = np.dtype(
    [
        ("n", np.int64),
        ("n_distinct", np.int64),
        ("most", np.int64),
        ("lo", np.float64),
        ("hi", np.float64),
        ("n_log_n", np.float64),
        ("close_at", np.float64),
    ],
    align=True,
)
"""One column of the class.

n, n_distinct, most
    Values, not counting a person twice; distinct values without the missing marker; frequency of
    the most frequent one.
lo, hi
    Ends of their positions.
n_log_n
    Sum over the values of times x log(times), where entropy is a criterion.
close_at
    With fewer values than this the distribution cannot be close enough.
"""

_NEVER = -1


class ClassCounts(NamedTuple):
    """Running counts of a class that grows, as kernels take them.

    `pair`: the result of `person_pairs` for each column where persons repeat; `column`: of
    `COLUMN`, shape (columns,); `seen`: of `SEEN`, laid out as `position`, the turn being the number
    of a class; `pair_in`, `person_in`: the class in which each was last seen.
    """

    problem: ProblemArrays
    pair: Int32Array
    column: RecordArray
    seen: RecordArray
    pair_in: Int32Array
    person_in: Int32Array


def no_counts(problem: Problem) -> ClassCounts:
    """Return the counts before any record: O(codes); with repeats O(n columns log n)."""
    repeats = len(problem.person) > 0
    pair = person_pairs(problem.cells, problem) if repeats else np.zeros((0, 0), np.int32)
    seen = np.zeros(len(problem.position), SEEN)
    seen["turn"] = _NEVER
    return ClassCounts(
        problem.arrays,
        pair,
        np.zeros(len(problem.rule), COLUMN),
        seen,
        np.full(int(pair.max(initial=-1)) + 1, _NEVER, np.int32),
        np.full(problem.n_persons if repeats else 0, _NEVER, np.int32),
    )


@inner_kernel
def clear(counts: ClassCounts) -> None:
    """Start a class; its number must not have been used before."""
    column = counts.column
    for c in range(len(column)):
        column[c]["n"], column[c]["n_distinct"], column[c]["most"] = 0, 0, 0
        column[c]["lo"], column[c]["hi"] = np.inf, -np.inf
        column[c]["n_log_n"], column[c]["close_at"] = 0.0, 0.0


@inner_kernel
def add(record: int, number: int, counts: ClassCounts) -> int:
    """Add a record to the class `number`; return how many persons it adds, 0 or 1."""
    person, person_in = counts.problem.person, counts.person_in
    for c in range(len(counts.column)):
        add_value(record, c, number, counts)
    if len(person) == 0:
        return 1
    fresh = person_in[person[record]] != number
    person_in[person[record]] = number
    return 1 if fresh else 0


@inlined_kernel
def add_value(record: int, c: int, number: int, counts: ClassCounts) -> None:
    """Add a record to one column of the class `number`."""
    problem, pair, column, seen, pair_in, _ = counts
    cells, rule, position = problem.cells, problem.rule, problem.codes.position
    if len(problem.person) > 0:
        both = pair[record, c]
        if pair_in[both] == number:
            return
        pair_in[both] = number
    here, value = column[c], cells[record, c]
    code = rule[c]["first_position"] + value
    mark = seen[code]
    times = 1 if mark["turn"] != number else mark["times"] + 1
    mark["turn"], mark["times"] = number, times
    here["n"] += 1
    here["most"] = max(here["most"], times)
    if rule[c]["entropy"] > 0:
        here["n_log_n"] += n_log_n_gain(times)
    if times == 1 and value != rule[c]["missing"]:
        here["n_distinct"] += 1
        here["lo"] = min(here["lo"], position[code])
        here["hi"] = max(here["hi"], position[code])


@inner_kernel
def holds(n_persons: int, number: int, counts: ClassCounts) -> bool:
    """Return whether the class `number` meets all criteria but k.

    O(columns); for t-closeness see `is_close`.
    """
    rule, codes = counts.problem.rule, counts.problem.codes
    column, seen = counts.column, counts.seen
    for c in range(len(rule)):
        if not column_holds(n_persons, 0, rule[c], column[c]):
            return False
    for c in range(len(rule)):
        asked, here = rule[c], column[c]
        if asked["margin"] > 0:
            values = seen[asked["first_position"] : asked["first_position"] + asked["size"]]
            if not is_kept_without(here["n"], number, values, here["most"], asked, codes):
                return False
        elif asked["closeness"] < np.inf:
            values = seen[asked["first_position"] : asked["first_position"] + asked["size"]]
            if not is_close(here["n"], number, values, here, asked, codes):
                return False
    return True


@inner_kernel
def column_holds(n_persons: int, n_more: int, asked: np.void, here: np.void) -> bool:
    """Return whether a column meets all criteria but t-closeness, whatever `n_more` others are.

    O(1). Some of the persons are yet to be counted only where nothing is asked of entropy.
    """
    if here["n_distinct"] < asked["distinct"]:
        return False
    if here["most"] + n_more > asked["share"] * n_persons + ROUNDING:
        return False
    if asked["spread"] > 0 and not here["hi"] - here["lo"] >= asked["spread"] - ROUNDING:
        return False
    if asked["entropy"] <= 0:
        return True
    entropy = np.log(here["n"]) - here["n_log_n"] / here["n"]
    return bool(entropy >= asked["entropy"] - ROUNDING)


_BLOCK = 256
"""Records fetched at a time: in a loop of their own, fetches from a large table overlap."""


def sweep(problem: Problem, order: IntArray) -> Int32Array:
    """Return the class of each record, filling one class after the other.

    `order`: all records, similar ones near each other, see `hilbert_order`. Classes are in that
    order, each a stretch of it; `SUPPRESSED` everywhere if none keeps the promise, for which
    `why_impossible` may give the reason.

    Notes
    -----
    O(n columns), and t-closeness O(size of the domain) now and then; memory: 4 bytes a record,
    which are the result. Where a person has several records, O(n columns log n), and 8 bytes a
    record and column.

    The remaining records, too few for a class, join the last class. Where that would break a limit
    on shares, entropy or closeness, they are merged with as few of the last classes as keep the
    promise together; if not even all classes do, the remaining records are suppressed.

    Deviations from the paper [1]_:

    - The inner loop of Algorithm 2 runs while there are fewer than k records *and* fewer than d
      values. Taken literally, a class would close on either; it must be *or*.
    - Algorithm 3 reads records from lists F, one for each sensitive value, alongside the main loop
      over the order, and adds `F[i]` where it has looked up `F[index]`: a record may be in two
      classes, or in none, as F is not kept in step with the loop. It never ends where the
      attribute has fewer than l values. Here only the closing rule differs: the same sweep, with l
      sensitive values required as well, each record exactly once.
    - Both listings drop the remaining records; here they are merged.
    """
    if len(problem.person) or bounded(problem.rule).any():
        return _sweep(order, problem.k, no_counts(problem))
    class_of, n_classes = _sweep_counts(problem.cells, problem.rule, problem.k, order)
    # Remaining records join the last class; if there is none, this is SUPPRESSED.
    np.minimum(class_of, n_classes - 1, out=class_of)
    return class_of


def bounded(rule: RecordArray) -> BoolArray:
    """Return which columns have criteria other than distinct values."""
    bounded: BoolArray = (
        (rule["share"] < 1)
        | (rule["spread"] > 0)
        | (rule["entropy"] > 0)
        | (rule["closeness"] < inf)
        | (rule["left"] > 0)
    )
    return bounded


@kernel
def _sweep_counts(
    cells: Int32Array, rule: RecordArray, k: int, order: IntArray
) -> tuple[Int32Array, int]:
    """Close classes by k and distinct values alone; remaining records get the next number."""
    asked = np.flatnonzero(
        (rule["distinct"] > 1) | ((rule["distinct"] == 1) & (rule["missing"] >= 0))
    )
    first, missing = rule["first_position"][asked], rule["missing"][asked]
    needed = rule["distinct"][asked]
    last_class = np.full(np.sum(rule["size"]), -1, np.int32)
    class_of = np.empty(len(order), np.int32)
    left = needed.copy()
    number, size, n_unmet = 0, 0, len(asked)
    rows, numbers = np.empty((_BLOCK, len(asked)), np.int32), np.empty(_BLOCK, np.int32)
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        for i in range(len(block)):
            for a in range(len(asked)):
                rows[i, a] = cells[block[i], asked[a]]
        for i in range(len(block)):
            numbers[i] = number
            size += 1
            for a in range(len(asked)):
                value = rows[i, a]
                if last_class[first[a] + value] != number and value != missing[a]:
                    last_class[first[a] + value] = number
                    left[a] -= 1
                    n_unmet -= left[a] == 0
            if size >= k and n_unmet == 0:
                left[:] = needed
                number, size, n_unmet = number + 1, 0, len(asked)
        for i in range(len(block)):
            class_of[block[i]] = numbers[i]
    return class_of, number


@kernel
def _sweep(order: IntArray, k: int, counts: ClassCounts) -> Int32Array:
    """Close classes by the whole promise, and merge remaining records into the last ones."""
    class_of = np.empty(len(order), np.int32)
    n_classes = _close(order, k, counts, class_of)
    if len(order) > 0 and class_of[order[-1]] == n_classes:
        _merge_rest(n_classes, order, k, counts, class_of)
    return class_of


@inner_kernel
def _close(order: IntArray, k: int, counts: ClassCounts, class_of: Int32Array) -> int:
    """Close classes one after the other; return how many. Remaining records get that number."""
    number, n_persons = 0, 0
    clear(counts)
    for record in order:
        class_of[record] = number
        n_persons += add(record, number, counts)
        if n_persons >= k and holds(n_persons, number, counts):
            number, n_persons = number + 1, 0
            clear(counts)
    return number


@inner_kernel
def _merge_rest(
    rest: int, order: IntArray, k: int, counts: ClassCounts, class_of: Int32Array
) -> None:
    """Merge the remaining records with as few of the last classes as keep the promise together."""
    n_persons = 0
    clear(counts)
    for at in range(len(order) - 1, -1, -1):
        n_persons += add(order[at], rest + 1, counts)
        c = class_of[order[at]]
        whole = at == 0 or class_of[order[at - 1]] < c
        if whole and n_persons >= k and holds(n_persons, rest + 1, counts):
            for joined in order[at:]:
                class_of[joined] = c
            return
    for record in order:
        if class_of[record] == rest:
            class_of[record] = SUPPRESSED

"""Running counts of a class that grows by one record at a time, to tell when it may close.

`judging` says the same of a class at hand; here a record costs O(columns), however large the
class is, and a class is emptied in O(columns).
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.judging import ROUNDING, distance
from anonymizer.algorithms.records.problem import Problem
from anonymizer.domain.arrays import FloatArray, Int32Array, RecordArray

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
"""What is known of one column of the class.

n, n_distinct, most
    Values, a person's repeats left out; different ones but for the marker; times of the most
    frequent.
lo, hi
    Ends of their positions.
n_log_n
    Sum over the values of times x log(times), where entropy is asked for.
close_at
    With fewer values than this the distribution cannot have come close enough.
"""


class Counts(NamedTuple):
    """The counts, and what they are judged by, in the order in which the kernels take them.

    Attributes
    ----------
    cells, rule, person, position, usual
        As in `Problem`.
    pair
        A number for each (person, value) of each column, where persons repeat, shape (n, columns);
        else without a row.
    column
        Of `COLUMN`, shape (columns,).
    times_of, counted_in
        How often each code is there, and the class of which this is true, laid out as `position`.
    pair_in, person_in
        The class in which each pair and each person was last seen.
    """

    cells: Int32Array
    rule: RecordArray
    person: Int32Array
    position: FloatArray
    usual: FloatArray
    pair: Int32Array
    column: RecordArray
    times_of: Int32Array
    counted_in: Int32Array
    pair_in: Int32Array
    person_in: Int32Array


def no_counts(problem: Problem) -> Counts:
    """Return the counts before any record: O(codes); with repeats O(n columns log n)."""
    repeats = len(problem.person) > 0
    n_columns = len(problem.rule)
    pair = np.zeros((problem.n if repeats else 0, n_columns), np.int32)
    for c in range(n_columns if repeats else 0):
        both = problem.cells[:, c].astype(np.int64) * problem.n_persons + problem.person
        pair[:, c] = np.unique(both, return_inverse=True)[1]
    never = -1
    return Counts(
        cells=problem.cells,
        rule=problem.rule,
        person=problem.person,
        position=problem.position,
        usual=problem.usual,
        pair=pair,
        column=np.zeros(n_columns, COLUMN),
        times_of=np.zeros(len(problem.position), np.int32),
        counted_in=np.full(len(problem.position), never, np.int32),
        pair_in=np.full(pair.size, never, np.int32),
        person_in=np.full(problem.n_persons if repeats else 0, never, np.int32),
    )


@kernel
def clear(column: RecordArray) -> None:
    """Begin a class; its number must not have been used before."""
    for c in range(len(column)):
        column[c]["n"], column[c]["n_distinct"], column[c]["most"] = 0, 0, 0
        column[c]["lo"], column[c]["hi"] = np.inf, -np.inf
        column[c]["n_log_n"], column[c]["close_at"] = 0.0, 0.0


@kernel
def add(
    record: int,
    number: int,
    cells: Int32Array,
    rule: RecordArray,
    person: Int32Array,
    position: FloatArray,
    usual: FloatArray,  # noqa: ARG001  all take the fields of `Counts`
    pair: Int32Array,
    column: RecordArray,
    times_of: Int32Array,
    counted_in: Int32Array,
    pair_in: Int32Array,
    person_in: Int32Array,
) -> int:
    """Count a record in the class `number`; return how many persons it brings, 0 or 1."""
    repeats = len(person) > 0
    for c in range(len(rule)):
        if repeats:
            of_both = c * len(cells) + pair[record, c]
            if pair_in[of_both] == number:
                continue
            pair_in[of_both] = number
        here, value = column[c], cells[record, c]
        code = rule[c]["first_position"] + value
        times = 1 if counted_in[code] != number else times_of[code] + 1
        counted_in[code], times_of[code] = number, times
        here["n"] += 1
        here["most"] = max(here["most"], times)
        if times > 1 and rule[c]["entropy"] > 0:
            here["n_log_n"] += times * np.log(times) - (times - 1) * np.log(times - 1)
        if times == 1 and value != rule[c]["missing"]:
            here["n_distinct"] += 1
            here["lo"] = min(here["lo"], position[code])
            here["hi"] = max(here["hi"], position[code])
    if not repeats:
        return 1
    fresh = person_in[person[record]] != number
    person_in[person[record]] = number
    return 1 if fresh else 0


@kernel
def holds(
    n_persons: int,
    k: int,
    number: int,
    rule: RecordArray,
    position: FloatArray,
    usual: FloatArray,
    column: RecordArray,
    times_of: Int32Array,
    counted_in: Int32Array,
) -> bool:
    """Return whether the class `number` of so many persons keeps the promise.

    Notes
    -----
    O(columns). Where t-closeness alone is missed, by D - t, O(size of the domain), and then not
    again before the class has grown by the factor exp(D - t): the n-th value moves a distribution
    by 1/n at most, and the sum of these is less than the logarithm of the growth.
    """
    if n_persons < k:
        return False
    for c in range(len(rule)):
        if not _counts_hold(n_persons, rule[c], column[c]):
            return False
    for c in range(len(rule)):
        asked, here = rule[c], column[c]
        if asked["closeness"] == np.inf:
            continue
        if here["n"] < here["close_at"]:
            return False
        off = _distance(number, asked, here["n"], position, usual, times_of, counted_in)
        if off > asked["closeness"] + ROUNDING:
            here["close_at"] = here["n"] * np.exp(off - asked["closeness"] - 2 * ROUNDING)
            return False
    return True


@kernel
def _counts_hold(n_persons: int, asked: np.void, here: np.void) -> bool:
    """Return whether a column meets all but closeness. O(1)."""
    if here["n_distinct"] < asked["distinct"]:
        return False
    if here["most"] > asked["share"] * n_persons + ROUNDING:
        return False
    if asked["spread"] > 0 and not here["hi"] - here["lo"] >= asked["spread"] - ROUNDING:
        return False
    if asked["entropy"] <= 0:
        return True
    entropy = np.log(here["n"]) - here["n_log_n"] / here["n"]
    return bool(entropy >= asked["entropy"] - ROUNDING)


@kernel
def _distance(
    number: int,
    rule: np.void,
    n: int,
    position: FloatArray,
    usual: FloatArray,
    times_of: Int32Array,
    counted_in: Int32Array,
) -> float:
    """Return how far the column's values are from the usual ones."""
    first = rule["first_position"]
    share = np.zeros(rule["size"])
    for v in range(rule["size"]):
        if counted_in[first + v] == number:
            share[v] = times_of[first + v] / n
    return distance(share, rule, position, usual)

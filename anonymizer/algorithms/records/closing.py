"""Running counts of a class that grows by one record at a time, to tell when it may close.

`judging` says the same of a class at hand; here a record costs O(columns), however large the
class is, and a class is emptied in O(columns).
"""

from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel
from anonymizer.algorithms.records.criteria import ROUNDING
from anonymizer.algorithms.records.keeping import is_close
from anonymizer.algorithms.records.problem import Problem, ProblemArrays
from anonymizer.algorithms.records.tally import SEEN, person_pairs
from anonymizer.algorithms.records.tallying import n_log_n_gain
from anonymizer.domain.arrays import Int32Array, RecordArray

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

_NEVER = -1

Counts: TypeAlias = tuple[
    ProblemArrays, Int32Array, RecordArray, RecordArray, Int32Array, Int32Array
]
"""The counts, and what they are judged by: a problem, `pair`, `column`, `seen`, `pair_in` and
`person_in`.

pair
    As `person_pairs`, of each column, where persons repeat; else without a row.
column
    Of `COLUMN`, shape (columns,).
seen
    Of `SEEN`, a turn being the number of a class, laid out as `position`.
pair_in, person_in
    The class in which each pair and each person was last seen.
"""


def no_counts(problem: Problem) -> Counts:
    """Return the counts before any record: O(codes); with repeats O(n columns log n)."""
    repeats = len(problem.person) > 0
    pair = person_pairs(problem.cells, problem) if repeats else np.zeros((0, 0), np.int32)
    seen = np.zeros(len(problem.position), SEEN)
    seen["turn"] = _NEVER
    return (
        problem.arrays,
        pair,
        np.zeros(len(problem.rule), COLUMN),
        seen,
        np.full(int(pair.max(initial=-1)) + 1, _NEVER, np.int32),
        np.full(problem.n_persons if repeats else 0, _NEVER, np.int32),
    )


@inner_kernel
def clear(counts: Counts) -> None:
    """Begin a class; its number must not have been used before."""
    _, _, column, _, _, _ = counts
    for c in range(len(column)):
        column[c]["n"], column[c]["n_distinct"], column[c]["most"] = 0, 0, 0
        column[c]["lo"], column[c]["hi"] = np.inf, -np.inf
        column[c]["n_log_n"], column[c]["close_at"] = 0.0, 0.0


@inner_kernel
def add(record: int, number: int, counts: Counts) -> int:
    """Count a record in the class `number`; return how many persons it brings, 0 or 1."""
    problem, pair, column, seen, pair_in, person_in = counts
    cells, rule, person, codes = problem
    position, _, _, _ = codes
    repeats = len(person) > 0
    for c in range(len(rule)):
        if repeats:
            both = pair[record, c]
            if pair_in[both] == number:
                continue
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
    if not repeats:
        return 1
    fresh = person_in[person[record]] != number
    person_in[person[record]] = number
    return 1 if fresh else 0


@inner_kernel
def holds(n_persons: int, number: int, counts: Counts) -> bool:
    """Return whether the class `number` of so many persons keeps all of the promise but k.

    O(columns); for t-closeness see `is_close`.
    """
    (_, rule, _, codes), _, column, seen, _, _ = counts
    for c in range(len(rule)):
        if not _counts_hold(n_persons, rule[c], column[c]):
            return False
    for c in range(len(rule)):
        asked, here = rule[c], column[c]
        if asked["closeness"] < np.inf:
            values = seen[asked["first_position"] : asked["first_position"] + asked["size"]]
            if not is_close(here["n"], number, values, here, asked, codes):
                return False
    return True


@inner_kernel
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

"""A running tally of one class: records are added one by one, and cost and promise are at hand.

The same figures as `judging` has, in O(columns) a record added and nothing to allocate.
"""

from math import inf
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel
from anonymizer.algorithms.records.judging import ROUNDING, class_keeps, column_loss
from anonymizer.algorithms.records.problem import Cost, Problem, ProblemArrays
from anonymizer.domain.arrays import IntArray, RecordArray

HEAD = np.dtype(
    [
        ("k", np.int64),
        ("n_qis", np.int64),
        ("decides", np.int64),
        ("crowding", np.float64),
        ("n_classes", np.int64),
        ("turn", np.int64),
        ("size", np.int64),
        ("persons", np.int64),
        ("loss", np.float64),
    ],
    align=True,
)
"""What is asked and what is tallied.

k, n_qis
    As in `Problem`.
decides
    1 where a tally alone decides if a class keeps the promise.
crowding
    A class costs its information loss and so many times its size squared.
n_classes
    Of the partition that is worked on.
turn, size, persons, loss
    Which class the tally is of, its records and persons, and the loss of each record.
"""

COLUMN = np.dtype(
    [
        ("bit", np.int64),
        ("present", np.int64),
        ("distinct", np.int64),
        ("mode", np.int64),
        ("most", np.int64),
        ("next_most", np.int64),
        ("lo", np.int64),
        ("hi", np.int64),
        ("real_lo", np.int64),
        ("real_hi", np.int64),
        ("loss", np.float64),
    ],
    align=True,
)
"""What is in one column of a class.

bit
    Where the codes of the column begin in a set of codes, -1: nowhere. Not of one class.
present, distinct
    Codes, and codes but the missing marker.
mode, most, next_most
    Most frequent code, its records, and the records of the next one.
lo, hi, real_lo, real_hi
    First and last code, with the missing marker and without.
loss
    Of the column.
"""

SEEN = np.dtype([("turn", np.int32), ("times", np.int32)])
"""How often a code was added; in an earlier class, and so not at all, where `turn` is not now's."""

_LAST_TURN = 2_000_000_000
_SET = int(Cost.SET)

Tally: TypeAlias = tuple[ProblemArrays, RecordArray, RecordArray, RecordArray]
"""A tally as kernels take it: `problem`, `head`, `column` and `seen`.

problem
    Its columns that cost or ask anything.
head, column
    Of `HEAD`, shape (1,), and of `COLUMN`, shape (columns,).
seen
    Of `SEEN`, shape (codes of all columns + persons who repeat,).
"""


def blank_tally(problem: Problem, crowding: float = 0.0) -> Tally:
    """Return what kernels read of a problem, and scratch space for one class after the other.

    Notes
    -----
    Columns that neither cost nor ask anything are left out. A tally does not decide where persons
    repeat, nor where the distribution of a sensitive attribute counts: there it only tells of
    some classes that they break the promise. O(n columns).
    """
    rule, repeats = problem.rule, len(problem.person) > 0
    by_distribution = (rule["entropy"] > 0) | (rule["closeness"] < inf)
    is_qi = np.arange(len(rule)) < problem.n_qis
    matters = is_qi | (rule["distinct"] > 1) | (rule["share"] < 1) | by_distribution
    head = np.zeros(1, HEAD)
    head["k"], head["n_qis"], head["crowding"] = problem.k, problem.n_qis, crowding
    head["decides"] = not repeats and not by_distribution.any()
    column = np.zeros(int(matters.sum()), COLUMN)
    sets = ((rule["form"] == _SET) & is_qi)[matters]
    sizes = np.where(sets, rule["size"][matters], 0)
    column["bit"] = np.where(sets, np.cumsum(sizes) - sizes, -1)
    _, _, person, codes = problem.arrays
    cells = np.ascontiguousarray(problem.cells[:, matters])
    seen = np.zeros(len(problem.position) + (problem.n_persons if repeats else 0), SEEN)
    return (cells, rule[matters], person, codes), head, column, seen


@inner_kernel
def clear(tally: Tally) -> None:
    """Begin a class. O(columns)."""
    _, head, column, seen = tally
    head[0]["turn"] += 1
    if head[0]["turn"] == _LAST_TURN:  # before the 32 bits of `seen` come round
        head[0]["turn"] = 1
        for mark in range(len(seen)):
            seen[mark]["turn"] = 0
    head[0]["size"] = 0
    head[0]["persons"] = 0
    head[0]["loss"] = 0.0
    for c in range(len(column)):
        entry = column[c]
        entry["present"] = 0
        entry["distinct"] = 0
        entry["mode"] = -1
        entry["most"] = 0
        entry["next_most"] = 0
        entry["loss"] = 0.0


@inner_kernel
def add(record: int, tally: Tally) -> None:
    """Add a record to the class. O(columns)."""
    problem, head, column, seen = tally
    cells, rule, person, codes = problem
    position, _, _, _ = codes
    turn = np.int32(head[0]["turn"])
    n_qis = head[0]["n_qis"]
    head[0]["size"] += 1
    if len(person) > 0:
        who = seen[len(position) + person[record]]
        if who["turn"] != turn:
            who["turn"] = turn
            head[0]["persons"] += 1
    for c in range(len(rule)):
        code = int(cells[record, c])
        entry, wanted = column[c], rule[c]
        mark = seen[wanted["first_position"] + code]
        if mark["turn"] == turn:
            mark["times"] += 1
        else:
            mark["turn"] = turn
            mark["times"] = 1
            inside = entry["present"] > 0 and entry["lo"] <= code <= entry["hi"]
            _meet(code, entry, wanted)
            if c < n_qis and not (inside and entry["bit"] < 0):
                lo, hi = entry["lo"], entry["hi"]
                now = column_loss(wanted, entry["present"], lo, hi, codes)
                head[0]["loss"] += now - entry["loss"]
                entry["loss"] = now
        if wanted["share"] < 1:
            _weigh(code, int(mark["times"]), entry)


@inner_kernel
def _meet(code: int, entry: np.void, wanted: np.void) -> None:
    """Take in a code that is new to the class."""
    if entry["present"] == 0:
        entry["lo"] = code
        entry["hi"] = code
    else:
        entry["lo"] = min(entry["lo"], code)
        entry["hi"] = max(entry["hi"], code)
    entry["present"] += 1
    if code == wanted["missing"]:
        return
    if entry["distinct"] == 0:
        entry["real_lo"] = code
        entry["real_hi"] = code
    else:
        entry["real_lo"] = min(entry["real_lo"], code)
        entry["real_hi"] = max(entry["real_hi"], code)
    entry["distinct"] += 1


@inner_kernel
def _weigh(code: int, times: int, entry: np.void) -> None:
    """Take in that a code is there so many times, one more than before."""
    if code == entry["mode"]:
        entry["most"] = times
    elif times > entry["most"]:
        entry["next_most"] = entry["most"]
        entry["mode"] = code
        entry["most"] = times
    elif times > entry["next_most"]:
        entry["next_most"] = times


@inner_kernel
def may_keep(tally: Tally) -> bool:
    """Return False where the class surely breaks the promise. O(columns)."""
    problem, head, column, _ = tally
    _, rule, person, codes = problem
    position, _, _, _ = codes
    size = head[0]["size"]
    if (size if len(person) == 0 else head[0]["persons"]) < head[0]["k"]:
        return False
    for c in range(len(rule)):
        entry, wanted = column[c], rule[c]
        if entry["distinct"] < wanted["distinct"]:
            return False
        if len(person) == 0 and entry["most"] > wanted["share"] * size + ROUNDING:
            return False
        if wanted["spread"] > 0:
            if entry["distinct"] == 0:
                return False
            first = wanted["first_position"]
            wide = position[first + entry["real_hi"]] - position[first + entry["real_lo"]]
            if not wide >= wanted["spread"] - ROUNDING:
                return False
    return True


@inner_kernel
def tally_keeps(member: IntArray, tally: Tally) -> bool:
    """Return whether the class, which is of the records `member`, keeps the promise.

    O(columns) where the tally decides, else as `class_keeps`.
    """
    problem, head, _, _ = tally
    if not may_keep(tally):
        return False
    if head[0]["decides"] == 1:
        return True
    return class_keeps(problem, head[0]["k"], member)


@inner_kernel
def tally_cost(tally: Tally) -> float:
    """Return what the class costs."""
    _, head, _, _ = tally
    size = head[0]["size"]
    return float(size * head[0]["loss"] + head[0]["crowding"] * size * size)

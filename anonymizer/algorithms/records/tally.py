"""What a tally of a class holds, as arrays that kernels write."""

from math import inf
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.records.problem import Cost, Problem, ProblemArrays
from anonymizer.domain.arrays import BoolArray, Int32Array, RecordArray

HEAD = np.dtype(
    [
        ("k", np.int64),
        ("n_qis", np.int64),
        ("may_break", np.int64),
        ("crowding", np.float64),
        ("n_classes", np.int64),
        ("turn", np.int64),
        ("size", np.int64),
        ("persons", np.int64),
        ("loss", np.float64),
        ("judged", np.int64),
    ],
    align=True,
)
"""What is asked and what is tallied.

k, n_qis
    As in `Problem`.
may_break
    1 where a class that grows may break the promise other than by shares of its records; then its
    distributions are tallied too.
crowding
    A class costs its information loss and so many times its size squared.
n_classes
    Of the partition that is worked on.
turn, size, persons, loss
    Which class the tally is of, its records and persons, and the loss of each record.
judged
    Records of all classes so far that were tallied to see whether they may grow.
"""

COLUMN = np.dtype(
    [
        ("bit", np.int64),
        ("pairs", np.int64),
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
        ("values", np.int64),
        ("most_persons", np.int64),
        ("n_log_n", np.float64),
        ("close_at", np.float64),
    ],
    align=True,
)
"""What is in one column of a class.

bit
    Where the codes of the column begin in a set of codes, -1: nowhere. Not of one class.
pairs
    Which column of the cells has its pairs of person and code, -1: none. Not of one class.
present, distinct
    Codes, and codes but the missing marker.
mode, most, next_most
    Most frequent code, its records, and the records of the next one.
lo, hi, real_lo, real_hi
    First and last code, with the missing marker and without.
loss
    Of the column.
values, most_persons, n_log_n, close_at
    Where `may_break`: values, a person's repeats left out; persons of the most frequent one, where
    persons repeat; sum over the values of times x log(times), where entropy is asked for; and with
    fewer values than this the distribution cannot have come close enough.
"""

SEEN = np.dtype([("turn", np.int32), ("times", np.int32)])
"""How often a code was added; in an earlier class, and so not at all, where `turn` is not now's."""

_SET = int(Cost.SET)

Tally: TypeAlias = tuple[ProblemArrays, RecordArray, RecordArray, RecordArray]
"""A tally as kernels take it: `problem`, `head`, `column` and `seen`.

problem
    Its columns that cost or ask anything. Where persons repeat, the cells have a further column for
    each whose distribution counts: a number for each (person, code), no number in two of them.
head, column
    Of `HEAD`, shape (1,), and of `COLUMN`, shape (columns,).
seen
    Of `SEEN`, shape (codes of all columns,); where persons repeat, then the codes again, a person's
    repeats left out, the persons, and the pairs of person and code.
"""


def blank_tally(problem: Problem, crowding: float = 0.0) -> Tally:
    """Return what kernels read of a problem, and scratch space for one class after the other.

    Notes
    -----
    Columns that neither cost nor ask anything are left out. O(n columns), and where persons repeat
    O(n columns log n) and 12 bytes a record and column whose distribution counts.
    """
    rule, repeats = problem.rule, len(problem.person) > 0
    is_qi = np.arange(len(rule)) < problem.n_qis
    matters = is_qi | _asks(rule)
    rule, is_qi = rule[matters], is_qi[matters]
    by_distribution = (rule["entropy"] > 0) | (rule["closeness"] < inf)
    paired = np.flatnonzero(by_distribution | (rule["share"] < 1)) if repeats else np.zeros(0, int)
    head = np.zeros(1, HEAD)
    head["k"], head["n_qis"], head["crowding"] = problem.k, problem.n_qis, crowding
    head["may_break"] = len(paired) > 0 or by_distribution.any()
    column = np.zeros(len(rule), COLUMN)
    sets = (rule["form"] == _SET) & is_qi
    sizes = np.where(sets, rule["size"], 0)
    column["bit"] = np.where(sets, np.cumsum(sizes) - sizes, -1)
    column["pairs"] = -1
    column["pairs"][paired] = len(rule) + np.arange(len(paired))
    _, _, person, codes = problem.arrays
    cells = problem.cells
    if not matters.all():
        cells = np.ascontiguousarray(cells[:, matters])
    n_seen = len(problem.position)
    if repeats:
        pair = person_pairs(cells[:, paired], problem)
        cells = np.ascontiguousarray(np.column_stack([cells, pair]))
        n_seen += n_seen + problem.n_persons + int(pair.max(initial=-1)) + 1
    return (cells, rule, person, codes), head, column, np.zeros(n_seen, SEEN)


def _asks(rule: RecordArray) -> BoolArray:
    """Return which columns ask anything of a class."""
    some = (rule["distinct"] > 1) | ((rule["distinct"] == 1) & (rule["missing"] >= 0))
    uneven = (rule["share"] < 1) | (rule["entropy"] > 0) | (rule["closeness"] < inf)
    asks: BoolArray = some | uneven | (rule["spread"] > 0)
    return asks


def person_pairs(cells: Int32Array, problem: Problem) -> Int32Array:
    """Return a number for each person and code of each column, no number in two columns."""
    pair = np.zeros(cells.shape, np.int32)
    n_pairs = 0
    for c in range(cells.shape[1]):
        both = cells[:, c].astype(np.int64) * problem.n_persons + problem.person
        pair[:, c] = n_pairs + np.unique(both, return_inverse=True)[1]
        n_pairs = int(pair[:, c].max(initial=-1)) + 1
    return pair

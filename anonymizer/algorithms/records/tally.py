"""Running tally of one class: records are added one by one; cost and criteria follow from it.

Computes what `criteria` computes for a class at hand, in O(columns) for each record added, and
without allocating: the local search and the cuts form millions of classes.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.criteria import (
    ROUNDING,
    column_loss,
    distance,
    keeps_without,
)
from anonymizer.algorithms.records.problem import Codes, Cost, Problem, ProblemArrays
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, RecordArray

HEAD = np.dtype(
    [
        ("k", np.int64),
        ("n_qis", np.int64),
        ("may_break", np.int64),
        ("crowding", np.float64),
        ("share_price", np.float64),
        ("n_classes", np.int64),
        ("turn", np.int64),
        ("size", np.int64),
        ("persons", np.int64),
        ("loss", np.float64),
        ("tallied", np.int64),
        ("looks", np.int64),
    ],
    align=True,
)
"""The criteria, and the tally of the class.

k, n_qis
    As in `Problem`.
may_break
    1 if a growing class can break the promise other than by shares of its records; then its
    distributions are tallied too.
crowding
    The cost of a class is its information loss plus this times its size squared.
share_price
    What a record costs more for each column of which a value has more than the preferred share of
    its class; 0: nothing.
n_classes
    Number of classes of the partition being searched.
turn, size, persons, loss
    Number of the class being tallied, its records and persons, and the loss of each record.
tallied
    Records tallied so far to check whether classes may grow.
looks
    Looks so far for a class among those near.
"""

COLUMN = np.dtype(
    [
        ("bit", np.int64),
        ("pairs", np.int64),
        ("table", np.int64),
        ("preferred", np.float64),
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
"""One column of the class.

bit
    Start of the codes of the column in a set of codes, -1: none. The same for all classes.
pairs
    Column of the cells with its pairs of person and code, -1: none. The same for all classes.
table
    Start of the column in `Tally.losses`, -1: not there. The same for all classes.
preferred
    Preferred largest share of a value in a class, 1: none. The same for all classes.
present, distinct
    Number of codes, with and without the missing marker.
mode, most, next_most
    Most frequent code, its frequency, and that of the next one.
lo, hi, real_lo, real_hi
    First and last code, with the missing marker and without.
loss
    Of the column.
values, most_persons, n_log_n, close_at
    Only if `may_break`: values, not counting a person twice; persons of the most frequent value,
    where persons repeat; sum over the values of times x log(times), where entropy is a criterion;
    with fewer values than this the distribution cannot be close enough.
"""

SEEN = np.dtype([("turn", np.int32), ("times", np.int32)])
"""How often a code was added; in an earlier class, and so not at all, where `turn` is not now's."""

_SET = int(Cost.SET)


class Tally(NamedTuple):
    """The tally of one class, as kernels take it."""

    problem: ProblemArrays
    """The columns with a cost or a criterion. Where persons repeat, the cells have a further column
    for each whose distribution counts: a number for each (person, code), distinct over all
    columns."""
    head: RecordArray
    """Of `HEAD`, shape (1,)."""
    column: RecordArray
    """Of `COLUMN`, shape (columns,)."""
    seen: RecordArray
    """Of `SEEN`, shape (codes of all columns,). Where persons repeat, followed by the codes again,
    not counting a person twice, then the persons, then the pairs of person and code."""
    losses: FloatArray
    """The loss of each column by its first and last code, see `loss_of`."""


def blank_tally(
    problem: Problem,
    crowding: float = 0.0,
    *,
    prefer_share: float = 1.0,
    share_price: float = 0.0,
) -> Tally:
    """Return what kernels read of a problem, and scratch space for one class after the other.

    `crowding`, `share_price`: see `HEAD`. `prefer_share`: preferred largest share of a value in a
    class, of each QI and sensitive attribute of which no value has more than that in the whole
    table.

    Notes
    -----
    Columns that neither cost nor ask anything are left out. O(n columns), and where persons repeat
    O(n columns log n) and 12 bytes a record and column whose distribution counts.
    """
    rule, repeats = problem.rule, len(problem.person) > 0
    is_qi = np.arange(len(rule)) < problem.n_qis
    preferred = np.where(may_prefer(problem, prefer_share), prefer_share, 1.0)
    matters = is_qi | _has_criterion(rule) | (preferred < 1)
    rule, is_qi = rule[matters], is_qi[matters]
    by_distribution = (rule["entropy"] > 0) | (rule["closeness"] < inf)
    paired = np.flatnonzero(by_distribution | (rule["share"] < 1)) if repeats else np.zeros(0, int)
    head = np.zeros(1, HEAD)
    head["k"], head["n_qis"], head["crowding"] = problem.k, problem.n_qis, crowding
    head["share_price"] = share_price
    head["may_break"] = len(paired) > 0 or by_distribution.any()
    column = np.zeros(len(rule), COLUMN)
    sets = (rule["form"] == _SET) & is_qi
    sizes = np.where(sets, rule["size"], 0)
    column["bit"] = np.where(sets, np.cumsum(sizes) - sizes, -1)
    column["pairs"], column["preferred"] = -1, preferred[matters]
    column["pairs"][paired] = len(rule) + np.arange(len(paired))
    person, codes = problem.arrays.person, problem.arrays.codes
    cells = problem.cells
    if not matters.all():
        cells = np.ascontiguousarray(cells[:, matters])
    n_seen = len(problem.position)
    if repeats:
        pair = person_pairs(cells[:, paired], problem)
        cells = np.ascontiguousarray(np.column_stack([cells, pair]))
        n_seen += n_seen + problem.n_persons + int(pair.max(initial=-1)) + 1
    problem_arrays = ProblemArrays(cells, rule, person, codes)
    losses = _tabulated(column, problem_arrays, problem.n_qis)
    return Tally(problem_arrays, head, column, np.zeros(n_seen, SEEN), losses)


_MOST_TABULATED = 128
"""Codes of a column whose losses are tabulated."""


def _tabulated(column: RecordArray, problem: ProblemArrays, n_qis: int) -> FloatArray:
    """Return the losses by first and last code; note in `column` where those of each begin."""
    size = problem.rule["size"][:n_qis]
    small = (column["bit"][:n_qis] < 0) & (size <= _MOST_TABULATED)
    n_losses = np.where(small, size**2, 0)
    column["table"] = -1
    column["table"][:n_qis] = np.where(small, np.cumsum(n_losses) - n_losses, -1)
    losses = np.zeros(int(n_losses.sum()))
    _tabulate(losses, column, problem, n_qis)
    return losses


@kernel
def _tabulate(losses: FloatArray, column: RecordArray, problem: ProblemArrays, n_qis: int) -> None:
    for c in range(n_qis):
        first, size = column[c]["table"], problem.rule[c]["size"]
        if first < 0:
            continue
        for lo in range(size):
            for hi in range(lo, size):
                loss = column_loss(problem.rule[c], 2, lo, hi, problem.codes)
                losses[first + lo * size + hi] = loss
                losses[first + hi * size + lo] = loss


@inner_kernel
def loss_of(c: int, n_codes: int, lo: int, hi: int, tally: Tally) -> float:
    """Return the loss of a quasi-identifier, see `column_loss`. O(1) where the domain is small."""
    rule, table = tally.problem.rule[c], tally.column[c]["table"]
    if table >= 0:
        return float(tally.losses[table + lo * rule["size"] + hi])
    return column_loss(rule, n_codes, lo, hi, tally.problem.codes)


def may_prefer(problem: Problem, share: float) -> BoolArray:
    """Return the columns in which no value is more frequent than `share` in the whole table.

    Joint tuples of a source are never among them: only quasi-identifiers and sensitive attributes.
    """
    rule = problem.rule
    most = np.array(
        [problem.usual[r["first_position"] :][: r["size"]].max(initial=0.0) for r in rule]
    )
    chosen: BoolArray = (most <= share + ROUNDING) & problem.plain
    return chosen


def _has_criterion(rule: RecordArray) -> BoolArray:
    """Return which columns have a criterion."""
    some = (rule["distinct"] > 1) | ((rule["distinct"] == 1) & (rule["missing"] >= 0))
    uneven = (rule["share"] < 1) | (rule["entropy"] > 0) | (rule["closeness"] < inf)
    asks: BoolArray = some | uneven | (rule["spread"] > 0)
    return asks


def person_pairs(cells: Int32Array, problem: Problem) -> Int32Array:
    """Return a number for each (person, code) of each column, distinct over all columns."""
    pair = np.zeros(cells.shape, np.int32)
    n_pairs = 0
    for c in range(cells.shape[1]):
        both = cells[:, c].astype(np.int64) * problem.n_persons + problem.person
        pair[:, c] = n_pairs + np.unique(both, return_inverse=True)[1]
        n_pairs = int(pair[:, c].max(initial=-1)) + 1
    return pair


_LAST_TURN = 2_000_000_000


@inner_kernel
def clear(tally: Tally) -> None:
    """Start a new class. O(columns)."""
    head, column, seen = tally.head, tally.column, tally.seen
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
        entry["values"] = 0
        entry["most_persons"] = 0
        entry["n_log_n"] = 0.0
        entry["close_at"] = 0.0


@inner_kernel
def add(record: int, tally: Tally) -> None:
    """Add a record to the class. O(columns)."""
    problem, head, column, seen = tally.problem, tally.head, tally.column, tally.seen
    cells, rule, person, codes = (
        problem.cells,
        problem.rule,
        problem.person,
        problem.codes,
    )
    position = codes.position
    turn = np.int32(head[0]["turn"])
    n_qis = head[0]["n_qis"]
    head[0]["size"] += 1
    if len(person) > 0:
        who = seen[2 * len(position) + person[record]]
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
                now = loss_of(c, entry["present"], int(lo), int(hi), tally)
                head[0]["loss"] += now - entry["loss"]
                entry["loss"] = now
        if wanted["share"] < 1 or entry["preferred"] < 1:
            _weigh(code, int(mark["times"]), entry)
    if head[0]["may_break"] == 1:
        _distribute(record, tally)


@inner_kernel
def tally_members(member: IntArray, tally: Tally) -> None:
    """Start a new class and add these records. O(members times columns)."""
    clear(tally)
    for record in member:
        add(record, tally)


@inner_kernel
def _meet(code: int, entry: np.void, wanted: np.void) -> None:
    """Count a code that is new to the class."""
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
    """Update the most frequent codes: a code has occurred once more, `times` in all."""
    if code == entry["mode"]:
        entry["most"] = times
    elif times > entry["most"]:
        entry["next_most"] = entry["most"]
        entry["mode"] = code
        entry["most"] = times
    elif times > entry["next_most"]:
        entry["next_most"] = times


@inner_kernel
def _distribute(record: int, tally: Tally) -> None:
    """Count a record in the distributions, which count each value of a person once."""
    cells = tally.problem.cells
    rule = tally.problem.rule
    person = tally.problem.person
    codes = tally.problem.codes
    head = tally.head
    column = tally.column
    seen = tally.seen
    position = codes.position
    turn = np.int32(head[0]["turn"])
    for c in range(len(rule)):
        entry, wanted = column[c], rule[c]
        first = wanted["first_position"]
        if len(person) > 0:
            if entry["pairs"] < 0 or not _is_new(record, entry, tally):
                continue
            first += len(position)
            mark = seen[first + cells[record, c]]
            if mark["turn"] != turn:
                mark["turn"] = turn
                mark["times"] = 0
            mark["times"] += 1
            entry["values"] += 1
            entry["most_persons"] = max(entry["most_persons"], mark["times"])
        if wanted["entropy"] > 0:
            entry["n_log_n"] += n_log_n_gain(seen[first + cells[record, c]]["times"])


@inner_kernel
def n_log_n_gain(times: int) -> float:
    """Return times x log(times) minus its value for one time less."""
    if times < 2:
        return 0.0
    return float(times * np.log(times) - (times - 1) * np.log(times - 1))


@inner_kernel
def _is_new(record: int, entry: np.void, tally: Tally) -> bool:
    """Return whether this (person, code) of a column is new to the class."""
    cells, head, seen = tally.problem.cells, tally.head, tally.seen
    pair = len(seen) - 1 - cells[record, entry["pairs"]]
    fresh = bool(seen[pair]["turn"] != head[0]["turn"])
    seen[pair]["turn"] = head[0]["turn"]
    return fresh


@inner_kernel
def share_penalty(tally: Tally) -> float:
    """Return what the class costs more for values above the preferred share. O(columns)."""
    head, column = tally.head, tally.column
    if head[0]["share_price"] == 0:
        return 0.0
    size, n_above = head[0]["size"], 0
    for c in range(len(column)):
        n_above += is_above(column[c]["most"], size, column[c]["preferred"])
    return float(head[0]["share_price"] * size * n_above)


@inner_kernel
def is_above(most: int, size: int, preferred: float) -> bool:
    """Return whether a value that `most` of `size` records have is above the preferred share."""
    return preferred < 1 and most > preferred * size + ROUNDING


@inner_kernel
def tally_cost(tally: Tally) -> float:
    """Return the cost of the class, without its `share_penalty`; it never falls as it grows."""
    head = tally.head
    size = head[0]["size"]
    return float(size * head[0]["loss"] + head[0]["crowding"] * size * size)


@inner_kernel
def tally_keeps(tally: Tally) -> bool:
    """Return whether the class keeps the promise. O(columns); for t-closeness see `is_close`."""
    rule = tally.problem.rule
    person = tally.problem.person
    codes = tally.problem.codes
    head = tally.head
    column = tally.column
    repeats = len(person) > 0
    size = head[0]["size"]
    n_persons = head[0]["persons"] if repeats else size
    if n_persons < head[0]["k"]:
        return False
    for c in range(len(rule)):
        entry, wanted = column[c], rule[c]
        if entry["distinct"] < wanted["distinct"]:
            return False
        most = entry["most_persons"] if repeats else entry["most"]
        if most > wanted["share"] * n_persons + ROUNDING:
            return False
        if wanted["spread"] > 0 and not _is_wide(entry, wanted, codes):
            return False
        if wanted["entropy"] > 0:
            n = entry["values"] if repeats else size
            if np.log(n) - entry["n_log_n"] / n < wanted["entropy"] - ROUNDING:
                return False
    return _keeps_margins(tally) and (head[0]["may_break"] == 0 or _is_close(tally))


@inner_kernel
def _keeps_margins(tally: Tally) -> bool:
    """Return whether all columns keep their margins. O(columns); with a margin O(codes)."""
    rule, head = tally.problem.rule, tally.head
    for c in range(len(rule)):
        wanted = rule[c]
        if wanted["margin"] > 0:
            here = tally.seen[wanted["first_position"] :][: wanted["size"]]
            n, most = head[0]["size"], tally.column[c]["most"]
            if not is_kept_without(n, head[0]["turn"], here, most, wanted, tally.problem.codes):
                return False
    return True


@inner_kernel
def is_kept_without(
    n: int, turn: int, here: RecordArray, most: int, wanted: np.void, codes: Codes
) -> bool:
    """Return whether a column of `n` members keeps its margin, see `keeps_without`.

    `turn`, `here`: as of `is_close`.
    """
    asks_more = wanted["left"] > 0 or wanted["spread"] > 0 or wanted["entropy"] > 0
    if not asks_more and wanted["closeness"] == np.inf:
        if wanted["share"] >= 1:
            return True
        return bool(most <= wanted["share"] * (n - wanted["margin"]) + ROUNDING)
    for mark in here:
        if mark["turn"] != turn:
            mark["times"] = 0
    return keeps_without(here["times"], n, most, wanted, codes)


@inner_kernel
def _is_wide(entry: np.void, wanted: np.void, codes: Codes) -> bool:
    """Return whether a column has the required spread. O(1)."""
    position = codes.position
    if entry["distinct"] == 0:
        return False
    first = wanted["first_position"]
    wide = position[first + entry["real_hi"]] - position[first + entry["real_lo"]]
    return bool(wide >= wanted["spread"] - ROUNDING)


@inner_kernel
def _is_close(tally: Tally) -> bool:
    """Return whether the distribution of each column meets t-closeness."""
    rule = tally.problem.rule
    person = tally.problem.person
    codes = tally.problem.codes
    head = tally.head
    column = tally.column
    seen = tally.seen
    position = codes.position
    repeats = len(person) > 0
    for c in range(len(rule)):
        entry, wanted = column[c], rule[c]
        if wanted["closeness"] < np.inf:
            n = entry["values"] if repeats else head[0]["size"]
            first = wanted["first_position"] + (len(position) if repeats else 0)
            here = seen[first : first + wanted["size"]]
            if not is_close(n, head[0]["turn"], here, entry, wanted, codes):
                return False
    return True


@inner_kernel
def is_close(
    n: int, turn: int, here: RecordArray, entry: np.void, wanted: np.void, codes: Codes
) -> bool:
    """Return whether the distribution of a column of `n` values meets t-closeness.

    `turn`, `here`: of this class, and the marks of the column's codes, of `SEEN`. `entry` has a
    `close_at`, 0 in a new class: with fewer values the class cannot be close enough.

    Notes
    -----
    O(size of the domain). If the distance D exceeds t, it is not computed again before the class
    has grown by the factor exp(D - t): the n-th value moves a distribution by 1/n at most, and the
    sum of these is less than the logarithm of the growth.
    """
    if n < entry["close_at"]:
        return False
    for mark in here:
        if mark["turn"] != turn:
            mark["times"] = 0
    off = distance(here["times"], n, wanted, codes)
    if off <= wanted["closeness"] + ROUNDING:
        return True
    entry["close_at"] = n * np.exp(off - wanted["closeness"] - 2 * ROUNDING)
    return False

"""A running tally of one class: records are added one by one, and its cost is at hand.

The same figures as `judging` has, in O(columns) a record added and nothing to allocate. Whether
the class keeps the promise, `keeping` tells from them.
"""

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel
from anonymizer.algorithms.records.criteria import column_loss
from anonymizer.algorithms.records.tally import Tally
from anonymizer.domain.arrays import IntArray

_LAST_TURN = 2_000_000_000


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
        entry["values"] = 0
        entry["most_persons"] = 0
        entry["n_log_n"] = 0.0
        entry["close_at"] = 0.0


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
                now = column_loss(wanted, entry["present"], lo, hi, codes)
                head[0]["loss"] += now - entry["loss"]
                entry["loss"] = now
        if wanted["share"] < 1:
            _weigh(code, int(mark["times"]), entry)
    if head[0]["may_break"] == 1:
        _distribute(record, tally)


@inner_kernel
def tally_members(member: IntArray, tally: Tally) -> None:
    """Begin a class, of these records. O(members columns)."""
    clear(tally)
    for record in member:
        add(record, tally)


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
def _distribute(record: int, tally: Tally) -> None:
    """Take in a record in the distributions, which have each value of a person once."""
    (cells, rule, person, codes), head, column, seen = tally
    position, _, _, _ = codes
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
    """Return times x log(times), less that of one time less."""
    if times < 2:
        return 0.0
    return float(times * np.log(times) - (times - 1) * np.log(times - 1))


@inner_kernel
def _is_new(record: int, entry: np.void, tally: Tally) -> bool:
    """Return whether the class has not yet had the code of a column from this person."""
    (cells, _, _, _), head, _, seen = tally
    pair = len(seen) - 1 - cells[record, entry["pairs"]]
    fresh = bool(seen[pair]["turn"] != head[0]["turn"])
    seen[pair]["turn"] = head[0]["turn"]
    return fresh


@inner_kernel
def tally_cost(tally: Tally) -> float:
    """Return what the class costs."""
    _, head, _, _ = tally
    size = head[0]["size"]
    return float(size * head[0]["loss"] + head[0]["crowding"] * size * size)

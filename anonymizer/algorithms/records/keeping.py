"""Whether the class that is tallied keeps the promise.

`judging` says the same of a class at hand; here it costs O(columns), however large the class is.
"""

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel
from anonymizer.algorithms.records.criteria import ROUNDING, distance
from anonymizer.algorithms.records.problem import Codes
from anonymizer.algorithms.records.tally import Tally
from anonymizer.domain.arrays import RecordArray


@inner_kernel
def tally_keeps(tally: Tally) -> bool:
    """Return whether the class keeps the promise. O(columns); for t-closeness see `is_close`."""
    (_, rule, person, codes), head, column, _ = tally
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
    return head[0]["may_break"] == 0 or _is_close(tally)


@inner_kernel
def _is_wide(entry: np.void, wanted: np.void, codes: Codes) -> bool:
    """Return whether a column has the spread asked for. O(1)."""
    position, _, _, _ = codes
    if entry["distinct"] == 0:
        return False
    first = wanted["first_position"]
    wide = position[first + entry["real_hi"]] - position[first + entry["real_lo"]]
    return bool(wide >= wanted["spread"] - ROUNDING)


@inner_kernel
def _is_close(tally: Tally) -> bool:
    """Return whether the values of each column are as close to the usual ones as asked for."""
    (_, rule, person, codes), head, column, seen = tally
    position, _, _, _ = codes
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
    """Return whether the distribution of a column of `n` values is as close as asked for.

    Parameters
    ----------
    turn, here
        Of this class, and the marks of the column's codes, of `SEEN`.
    entry
        Has a `close_at`, 0 in a new class: with fewer values it cannot have come close enough.

    Notes
    -----
    O(size of the domain). Where it is missed, by D - t, not again before the class has grown by
    the factor exp(D - t): the n-th value moves a distribution by 1/n at most, and the sum of these
    is less than the logarithm of the growth.
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

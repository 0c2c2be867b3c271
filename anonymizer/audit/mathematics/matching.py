"""The matching attack: which device each pseudonym is, if a device has one pseudonym at a time.

Intersection considers each pseudonym by itself. Here all pseudonyms that are alive together
compete for the devices, and the adversary considers every assignment equally likely.

Pseudonyms whose lives do not overlap may belong to the same device, so only those alive at a
common instant are matched. The fewest instants are chosen such that every life contains one: all
sessions of an epoch meet in a single instant. The candidates are always those of the whole life.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.mathematics.intersection import Bits, members
from anonymizer.audit.mathematics.posterior import balanced_shares, exact_shares, log_states
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

NOBODY = -1
_MAX_LOG_WORK = np.log(200_000)
"""Logarithm of states times devices: a larger block is balanced instead of counted."""
_TIE = 1e-6
"""Relative difference below which two posteriors count as equal, because of the balancing."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Matching:
    """The adversary's belief about each pseudonym."""

    largest: FloatArray
    """Probability of the most likely device, shape (pseudonyms,). NaN if he is misled: the true
    device is not among the candidates (an unsound release), or has two pseudonyms at once."""
    of_truth: FloatArray
    """Probability of the true device, likewise."""
    guess: IntArray
    """A most likely device, ties broken at random; `NOBODY` if he is misled."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shares:
    """Probability that a device belongs to a row, for every pair with a probability above 0."""

    row: IntArray
    device: IntArray
    share: FloatArray


def match(
    observed: Observed,
    *,
    class_of: IntArray,
    candidates: Bits,
    device_of: IntArray,
    rng: np.random.Generator,
) -> Matching:
    """Match the pseudonyms that are alive together with the devices that they may be.

    Parameters
    ----------
    observed
        All pseudonyms.
    class_of
        Class of each pseudonym, see `indistinguishable_classes`: its members are interchangeable.
    candidates
        Devices that were always inside, for each class, see `intersect`.
    device_of
        True device of each pseudonym.
    rng
        Breaks ties of the best guess.

    Notes
    -----
    For a pseudonym that is alive at several instants, the one that reveals most counts. An
    instant costs O(candidate pairs), and the rounds of `balanced_shares` over them.
    """
    result = Matching(
        np.full(observed.n_pseudonyms, np.nan),
        np.full(observed.n_pseudonyms, np.nan),
        np.full(observed.n_pseudonyms, NOBODY, np.int64),
    )
    first, last = observed.first_tick_of, observed.last_tick_of
    for tick in meeting_ticks(first, last):
        alive = np.flatnonzero((first <= tick) & (tick <= last))
        _match_alive(result, alive, class_of[alive], candidates, device_of[alive], rng)
    return result


def meeting_ticks(first: IntArray, last: IntArray) -> list[int]:
    """Return the fewest ticks, rising, such that each life [first, last] contains one."""
    ticks: list[int] = []
    order = np.argsort(last, kind="stable")
    for start, end in zip(first[order].tolist(), last[order].tolist(), strict=True):
        if not ticks or start > ticks[-1]:
            ticks.append(end)
    return ticks


def shares_of(row: IntArray, device: IntArray, home: IntArray) -> Shares:
    """Return the marginal probabilities over all assignments of devices to rows.

    Parameters
    ----------
    row, device
        The possible pairs, shape (pairs,).
    home
        Any one assignment: the row of each device, `NOBODY` for a device left over. It defines
        the capacity of each row and helps to find the pairs that occur in some assignment; the
        result does not depend on which assignment it is.

    Notes
    -----
    The leftover devices of a connected part fill an additional row that accepts any device, so
    that every device has a row. A pair occurs in some full assignment if and only if it is on an
    alternating cycle of a given one, that is, inside a strongly connected block of the graph
    "device -> its home -> every device that the home may take". Blocks are independent and are
    solved one by one: exactly if small, by balancing otherwise.
    """
    row, device, home = _with_leftovers(row, device, home)
    n_rows = int(row.max()) + 1
    known = np.flatnonzero(home != NOBODY)
    tail = np.concatenate([row, n_rows + known])
    head = np.concatenate([n_rows + device, home[known]])
    block_of = _components(tail, head, n_rows + len(home), strong=True)
    block = block_of[row]
    possible = block == block_of[n_rows + device]
    row, device, block = row[possible], device[possible], block[possible]
    capacity = np.bincount(home[known], minlength=n_rows)

    share = np.ones(len(row))  # correct for a block with one row, which takes all its devices
    rows_in = np.bincount(block_of[:n_rows], minlength=int(block_of.max()) + 1)
    crowded = np.flatnonzero(rows_in[block] > 1)
    by_block = crowded[np.argsort(block[crowded], kind="stable")]
    edges = np.flatnonzero(np.diff(block[by_block], prepend=-1, append=-1))
    large = [np.zeros(0, np.int64)]
    for start, end in pairwise(edges.tolist()):
        pairs = by_block[start:end]
        exact = _exact_block(row[pairs], device[pairs], capacity)
        if exact is None:
            large.append(pairs)
        else:
            share[pairs] = exact
    pairs = np.concatenate(large)
    if len(pairs):
        rows, r = np.unique(row[pairs], return_inverse=True)
        d = np.unique(device[pairs], return_inverse=True)[1]
        share[pairs] = balanced_shares(r, d, capacity[rows])
    return Shares(row, device, share)


def _match_alive(
    result: Matching,
    alive: IntArray,
    class_of: IntArray,
    candidates: Bits,
    device_of: IntArray,
    rng: np.random.Generator,
) -> None:
    """Match the pseudonyms of one instant; keep results that reveal more than earlier ones."""
    classes, row_of = np.unique(class_of, return_inverse=True)
    row, device = members(candidates, classes)
    misled = ~_first_of_each(device_of) | ~_contains(row, device, row_of, device_of)
    alive, row_of, device_of = alive[~misled], row_of[~misled], device_of[~misled]
    if not len(alive):
        return
    home = np.full(candidates.shape[1] * 64, NOBODY, np.int64)
    home[device_of] = row_of
    kept = np.isin(row, row_of)
    shares = shares_of(row[kept], device[kept], home)
    n_members = np.bincount(row_of)
    order = np.lexsort((-shares.share, shares.row))
    order = order[shares.row[order] < len(n_members)]
    s_row, s_device, s_share = shares.row[order], shares.device[order], shares.share[order]
    first = np.searchsorted(s_row, np.arange(len(n_members)))
    top = s_share[np.minimum(first, len(order) - 1)]
    n_best = np.bincount(s_row[s_share >= top[s_row] * (1 - _TIE)], minlength=len(n_members))

    largest = top[row_of] / n_members[row_of]
    better = ~(result.largest[alive] >= largest)  # NaN: no result yet
    alive, row_of, device_of = alive[better], row_of[better], device_of[better]
    result.largest[alive] = largest[better]
    result.guess[alive] = s_device[first[row_of] + rng.integers(n_best[row_of])]
    share_of_home = np.zeros(len(home))
    at_home = home[s_device] == s_row
    share_of_home[s_device[at_home]] = s_share[at_home]
    result.of_truth[alive] = share_of_home[device_of] / n_members[row_of]


def _first_of_each(device_of: IntArray) -> BoolArray:
    """Mark the first pseudonym of each device."""
    first = np.zeros(len(device_of), bool)
    first[np.unique(device_of, return_index=True)[1]] = True
    return first


def _contains(row: IntArray, device: IntArray, row_of: IntArray, device_of: IntArray) -> BoolArray:
    """Return whether each pair (row_of, device_of) is among the pairs (row, device)."""
    width = int(max(device.max(initial=0), device_of.max())) + 1
    contained: BoolArray = np.isin(row_of * width + device_of, row * width + device)
    return contained


def _components(tail: IntArray, head: IntArray, n: int, *, strong: bool) -> IntArray:
    graph = coo_array((np.ones(len(tail), np.int8), (tail, head)), shape=(n, n)).tocsr()
    _, part = connected_components(graph, connection="strong" if strong else "weak")
    return part.astype(np.int64)


def _with_leftovers(
    row: IntArray, device: IntArray, home: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Add a row to each connected part with leftover devices, which are assigned to it."""
    n_rows = int(row.max()) + 1
    part = _components(row, n_rows + device, n_rows + len(home), strong=False)[n_rows:]
    named = np.zeros(len(home), bool)
    named[device] = True
    left_over = np.flatnonzero(named & (home == NOBODY))
    parts, extra = np.unique(part[left_over], return_inverse=True)
    home = home.copy()
    home[left_over] = n_rows + extra
    in_part = np.flatnonzero(named & np.isin(part, parts))
    return (
        np.concatenate([row, n_rows + np.searchsorted(parts, part[in_part])]),
        np.concatenate([device, in_part]),
        home,
    )


def _exact_block(row: IntArray, device: IntArray, capacity: IntArray) -> FloatArray | None:
    """Return the exact shares of a block's pairs, None if it is too large to count."""
    rows, r = np.unique(row, return_inverse=True)
    devices, d = np.unique(device, return_inverse=True)
    if log_states(capacity[rows]) + np.log(len(devices)) > _MAX_LOG_WORK:
        return None
    allowed = np.zeros((len(devices), len(rows)), bool)
    allowed[d, r] = True
    return exact_shares(allowed, capacity[rows])[d, r]

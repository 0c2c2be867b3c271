"""The linking attack: which new pseudonym continues one that has ended."""

from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.mathematics.reachability import (
    DrivingGraph,
    Spread,
    new_spread,
    roads_of,
    spread_from,
)
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork

NO_SUCCESSOR = -1
_REACH_WEIGHT = 1e-3
"""Weight of reachability in the score: it decides only between equal overlaps."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Links:
    """Ended pseudonyms whose device continued under another one, and the adversary's guess."""

    ended: IntArray
    successor: IntArray
    guess: IntArray
    """`ended`, `successor`, `guess`: the ended pseudonym, its true successor and the guessed one,
    shape (ended,)."""


def successors(observed: Observed, device_of: IntArray, *, within_s: float) -> IntArray:
    """Return the next pseudonym of the same device, shape (pseudonyms,).

    `NO_SUCCESSOR` if none starts within `within_s` after the end of the pseudonym.
    """
    order = np.lexsort((observed.first_tick_of, device_of))
    before, after = order[:-1], order[1:]
    gap_s = (
        observed.time[observed.first_tick_of[after]] - observed.time[observed.last_tick_of[before]]
    )
    continues = (device_of[before] == device_of[after]) & (gap_s > 0) & (gap_s <= within_s)
    successor = np.full(observed.n_pseudonyms, NO_SUCCESSOR, np.int64)
    successor[before[continues]] = after[continues]
    return successor


def chain_lengths(links: Links) -> IntArray:
    """Return the length of each chain: pseudonyms of a device in a row, each guessed from the last.

    A chain begins with a pseudonym that has a successor and was not itself guessed right, and ends
    with the first wrong guess; its length is at least 1. In the order of `links.ended`. O(ended).
    """
    right = links.guess == links.successor
    after = dict(zip(links.ended[right].tolist(), links.successor[right].tolist(), strict=True))
    found = set(after.values())
    lengths = []
    for first in links.ended.tolist():
        if first in found:
            continue
        last, n = first, 1
        while last in after:
            last, n = after[last], n + 1
        lengths.append(n)
    return np.array(lengths, np.int64)


def link(
    observed: Observed,
    network: RoadNetwork,
    *,
    device_of: IntArray,
    within_s: float,
    rng: np.random.Generator,
) -> Links:
    """Guess the successor of each pseudonym that has one.

    Every pseudonym that starts within `within_s` after the end is a candidate. The best one has
    the first region most similar to the last region of the ended pseudonym (Jaccard index).
    Among equals, the one with the largest share of its first region reachable in the time
    between wins; remaining ties are broken at random.

    Notes
    -----
    Pseudonyms with the same end or the same start are compared once. O(ends * starts in the time
    * nodes of a region), and one search of `within_s` for each end.
    """
    successor = successors(observed, device_of, within_s=within_s)
    ended = np.flatnonzero(successor != NO_SUCCESSOR)
    last_record = observed.first_record_of[1:][ended] - 1
    end_tick, end_region, end_of = _distinct(observed, last_record)
    start_tick, start_region, start_of = _distinct(observed, observed.first_record_of[:-1])
    starters = np.argsort(start_of, kind="stable")
    first_starter_of = np.searchsorted(start_of[starters], np.arange(len(start_tick) + 1))
    best = _best_starts(
        observed.time[end_tick],
        end_region,
        observed.time[start_tick],
        start_region,
        observed.first_node_of,
        observed.node,
        roads_of(network),
        new_spread(network.n_nodes),
        float(within_s),
        _REACH_WEIGHT,
    )
    pools: dict[int, IntArray] = {}
    guess = np.empty(len(ended), np.int64)
    for i, end in enumerate(end_of.tolist()):
        if end not in pools:
            pools[end] = np.concatenate(
                [starters[first_starter_of[s] : first_starter_of[s + 1]] for s in best[end]]
            )
        guess[i] = rng.choice(pools[end])
    return Links(ended, successor[ended], guess)


def _distinct(observed: Observed, records: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the distinct (tick, region) of records by rising tick, and the index of each."""
    pair = observed.tick_of[records].astype(np.int64) * observed.n_regions
    distinct, index = np.unique(pair + observed.region_of[records], return_inverse=True)
    tick, region = np.divmod(distinct, observed.n_regions)
    return tick, region, index


@kernel
def _best_starts(
    end_s: FloatArray,
    end_region: IntArray,
    start_s: FloatArray,
    start_region: IntArray,
    first_node_of: IntArray,
    node: Int32Array,
    roads: DrivingGraph,
    search: Spread,
    within_s: float,
    reach_weight: float,
) -> list[IntArray]:
    best = []
    inside = np.zeros(len(search.queue), np.bool_)
    for e in range(len(end_s)):
        last = node[first_node_of[end_region[e]] : first_node_of[end_region[e] + 1]]
        inside[last] = True
        spread_from(roads, search, last, within_s)
        low = np.searchsorted(start_s, end_s[e], "right")
        high = np.searchsorted(start_s, end_s[e] + within_s, "right")
        score = np.empty(high - low)
        for s in range(low, high):
            first = node[first_node_of[start_region[s]] : first_node_of[start_region[s] + 1]]
            n_common, n_reached = 0, 0
            for v in first:
                n_common += inside[v]
                n_reached += search.reach_s[v] <= start_s[s] - end_s[e]
            overlap = n_common / (len(first) + len(last) - n_common)
            score[s - low] = overlap + reach_weight * n_reached / len(first)
        best.append(low + np.flatnonzero(score == score.max()))
        inside[last] = False
    return best

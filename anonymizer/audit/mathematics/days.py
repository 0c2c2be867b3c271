"""Homes: where devices vanish day after day.

Golle and Partridge show how few pairs of home and work are shared [1]_,
and Krumm finds homes in tracks by where they end [2]_; here there is a crowd's map in place of
tracks, and a release in which nobody can be followed for long.

References
----------
.. [1] P. Golle, K. Partridge, "On the anonymity of home/work location pairs", Pervasive 2009.
.. [2] J. Krumm, "Inference attacks on location tracks", Pervasive 2007.
"""

import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.algorithms.releases.pieces import PieceRegions
from anonymizer.audit.mathematics.reachability import new_spread, roads_of, spread_from
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray, starts_of
from anonymizer.domain.network import RoadNetwork

DAY_S = 86_400.0


def day_of(time: FloatArray) -> IntArray:
    """Return the day (UTC) of each of at least one moment; the first day is 0."""
    day = np.floor(time / DAY_S).astype(np.int64)
    since: IntArray = day - day.min()
    return since


def pieces_held_at(observed: Observed, regions: PieceRegions, piece_of: IntArray) -> BoolArray:
    """Return which pieces may hold a device at each tick, shape (ticks, pieces).

    Parameters
    ----------
    regions
        From `read_regions`. A node of one of their pieces may hold a device.
    piece_of
        Piece of each node, negative if it is in none, shape (nodes,).
    """
    pair = np.unique(observed.tick_of.astype(np.int64) * observed.n_regions + observed.region_of)
    tick, region = np.divmod(pair, observed.n_regions)
    first_of = regions.first_node_of[regions.first_piece_of]
    n = np.diff(first_of)[region]
    slot = np.arange(n.sum()) + np.repeat(first_of[region] - (np.cumsum(n) - n), n)
    piece, tick = piece_of[regions.node[slot]], np.repeat(tick, n)
    held = np.zeros((len(observed.time), int(piece_of.max(initial=-1)) + 1), bool)
    held[tick[piece >= 0], piece[piece >= 0]] = True
    return held


def pieces_within(network: RoadNetwork, piece_of: IntArray, *, reach_s: float) -> csr_array:
    """Return which pieces a device can be in after some seconds, as a matrix of ones.

    A row is the piece that the device is in before. At 0 s, it has pieces that touch as well: the
    device may be at the end of its own one.

    Notes
    -----
    One search at free-flow speed from each piece: O(pieces * roads within reach).
    """
    roads, search = roads_of(network), new_spread(network.n_nodes)
    order = np.argsort(piece_of, kind="stable").astype(np.int32)
    n = int(piece_of.max(initial=-1)) + 1
    first = np.searchsorted(piece_of[order], np.arange(n + 1))
    reached = []
    for p in range(n):
        spread_from(roads, search, order[first[p] : first[p + 1]], reach_s)
        there = np.unique(piece_of[search.touched[: search.n_touched[0]]])
        reached.append(there[there >= 0])
    ones = np.ones(sum(map(len, reached)), np.float32)
    return csr_array(
        (ones, np.concatenate(reached), starts_of(np.array([len(each) for each in reached]))),
        shape=(n, n),
    )


def vanishings(
    held: BoolArray, reached: csr_array, time: FloatArray, *, within_s: float
) -> BoolArray:
    """Return which pieces lose their device at each tick, same shape as `held`.

    A piece is held at the tick, and within `within_s` after it no piece that can be reached from
    it (from `pieces_within`) is held: a device that had moved on would be there. The end of the
    release counts as such. O(ticks * pieces).
    """
    near = (csr_array(held.astype(np.float32)) @ reached.T).toarray() > 0
    lost = np.zeros_like(held)
    next_s = np.full(held.shape[1], np.inf)
    for t in range(len(held) - 1, -1, -1):
        lost[t] = held[t] & (next_s - time[t] > within_s)
        next_s = np.where(near[t], time[t], next_s)
    return lost


def n_days_with(events: BoolArray, day: IntArray) -> IntArray:
    """Return on how many days each column has an event; `day` is that of each row."""
    n: IntArray = np.array([events[day == d].any(axis=0) for d in np.unique(day)]).sum(axis=0)
    return n

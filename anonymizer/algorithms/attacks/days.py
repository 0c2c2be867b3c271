"""Attacks over several days: where devices vanish day after day, and who goes where they always go.

Both use only what recurs. Golle and Partridge show how few pairs of home and work are shared [1]_,
and Krumm finds homes in tracks by where they end [2]_; here there is a crowd's map in place of
tracks, and a release in which nobody can be followed for long.

References
----------
.. [1] P. Golle, K. Partridge, "On the anonymity of home/work location pairs", Pervasive 2009.
.. [2] J. Krumm, "Inference attacks on location tracks", Pervasive 2007.
"""

import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.attacks.observed import Observed
from anonymizer.algorithms.attacks.pieces import PieceRegions
from anonymizer.algorithms.attacks.reachability import new_spread, roads_of, spread_from
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, starts_of
from anonymizer.domain.network import RoadNetwork

DAY_S = 86_400.0


def day_of(time: FloatArray) -> IntArray:
    """Return the day (UTC) of each moment, 0 for the first of them, which is not empty."""
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
    """Return which pieces lose their device at each tick, shape of `held`.

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


def likeliest_lives(
    observed: Observed,
    place: Int32Array,
    chosen: IntArray,
    *,
    n_nodes: int,
    late_s: float,
    rng: np.random.Generator,
) -> IntArray:
    """Guess a pseudonym of each day for each device, from where it was on the day before.

    A record speaks for a device if its region has a node where the device was on the day before,
    at the same time of day or `late_s` earlier or later. The pseudonym with the largest share of
    such records is the guess, a longer one among equals, then at random.

    Parameters
    ----------
    place
        Node of each device at each tick, negative if absent, shape (ticks, devices).
    chosen
        Pseudonyms to guess from: one of each class of equal ones.

    Returns
    -------
    guess
        Shape (days, devices): -1 on the first day, and where no record speaks for the device.
    """
    some, day = observed.of_pseudonyms(chosen), day_of(observed.time)
    earlier = np.stack(
        [_tick_near(observed.time, observed.time - DAY_S + off) for off in (-late_s, 0.0, late_s)]
    )
    n_records = np.diff(some.first_record_of)
    score = _count_hits(
        some.first_record_of, some.tick_of, some.region_of, some.first_node_of, some.node,
        np.ascontiguousarray(place),
        earlier, n_nodes,
    ) / (n_records + 1)[:, None]  # fmt: skip
    score += np.where(score > 0, 1e-9 * rng.random(score.shape), 0.0)
    life_day = day[some.tick_of[some.first_record_of[:-1]]]
    guess = np.full((int(day.max()) + 1, place.shape[1]), -1)
    for d in range(1, len(guess)):
        lives = np.flatnonzero(life_day == d)
        if len(lives):
            best = score[lives].argmax(axis=0)
            known = score[lives][best, np.arange(len(best))] > 0
            guess[d, known] = chosen[lives[best[known]]]
    return guess


def _tick_near(time: FloatArray, moments: FloatArray) -> IntArray:
    """Return the last tick up to each moment if it is of the same minute, else -1."""
    tick = np.searchsorted(time, moments, "right") - 1
    return np.where((tick >= 0) & (moments - time[np.maximum(tick, 0)] <= 60.0), tick, -1)


@kernel
def _count_hits(
    first_record_of: IntArray,
    tick_of: IntArray,
    region_of: IntArray,
    first_node_of: IntArray,
    node: Int32Array,
    place: Int32Array,
    earlier: IntArray,
    n_nodes: int,
) -> FloatArray:
    n_devices = place.shape[1]
    hits = np.zeros((len(first_record_of) - 1, n_devices))
    inside = np.zeros(n_nodes, np.bool_)
    for p in range(len(first_record_of) - 1):
        for i in range(first_record_of[p], first_record_of[p + 1]):
            region = node[first_node_of[region_of[i]] : first_node_of[region_of[i] + 1]]
            inside[region] = True
            for d in range(n_devices):
                for k in range(len(earlier)):
                    t = earlier[k, tick_of[i]]
                    if t >= 0 and place[t, d] >= 0 and inside[place[t, d]]:
                        hits[p, d] += 1
                        break
            inside[region] = False
    return hits

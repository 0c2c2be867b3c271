"""Motion model of the tracking attack: how devices move over the network from tick to tick.

A state is a node and the neighbour from which a device came, or the node alone if that is unknown,
or the node at which a device stands. At each tick a device that drives stays at its node or makes
one or more moves, or stops and stands; one that stands seldom leaves. Without standing, a parked
car would look like a slow driver, however often it is seen in the same place. Staying depends on
the node, the next node depends on the state: a first-order Markov chain over arcs. All
probabilities are learned from the positions of some devices, and fall back on the free-flow speeds
and on the shape of the network where few of them passed.

Shokri et al. learn such a chain for each user [1]_; this one is the crowd's, because the adversary
knows one position of the target and no history.

References
----------
.. [1] R. Shokri, G. Theodorakopoulos, J.-Y. Le Boudec, J.-P. Hubaux, "Quantifying location
   privacy", IEEE Symposium on Security and Privacy, 2011.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, starts_of
from anonymizer.domain.network import RoadNetwork

MOST_MOVES = 16
"""A device that jumps farther in one tick is counted as if it had made this many moves."""
_NEGLECTED = 1e-3
"""Share of the longest jumps that are shortened, to bound the cost of a step."""
_PRIOR_TICKS = 10.0
_PRIOR_TURNS = 2.0
_PRIOR_BACK = (1.0, 10.0)
_PRIOR_STANDS = 3.0
"""Weight of what is usual at all nodes, in stands."""
STAND_S = 60.0
"""A device stands that stays at a node for as long, and for two ticks."""
_FORBIDDEN = 0.02
"""Weight of an arc against the direction of a one-way road, where a drivable one has 1: the
nearest node may be on the other carriageway."""


class Motion(NamedTuple):
    """The motion model in the form that kernels need.

    The states of node v are `first_state_of[v]` to `first_state_of[v + 1]`, exclusive: the first
    one is "origin unknown", the last one "stands", and those between follow the order of the
    neighbours from which a device came.
    """

    first_state_of: IntArray
    """Shape (nodes + 1,)."""
    node_of: Int32Array
    """Node of each state, shape (states,)."""
    first_arc_of: Int32Array
    """As in `RoadNetwork`, shape (nodes + 1,)."""
    next_state_of: IntArray
    """State after a move along each arc, shape (arcs,)."""
    leave: FloatArray
    """Probability of leaving each node within a tick of a device that drives, shape (nodes,)."""
    stands: FloatArray
    settles: FloatArray
    """`stands`, `settles`: probability that a device at each node stands, and that one that drives
    and does not leave comes to a stand there, shape (nodes,)."""
    sets_off: float
    """Probability that a device that stands leaves within a tick."""
    first_turn_of: IntArray
    turn: FloatArray
    """`first_turn_of`, `turn`: probability of each arc out of its node for a device that leaves in
    state s: `turn[first_turn_of[s]:first_turn_of[s + 1]]`, in the order of the node's arcs."""
    stop: FloatArray
    """Probability that a device that leaves stops after its first, second, ... move if it has made
    that many; the last one is 1."""
    density: FloatArray
    """Share of the devices at each node, at any time, shape (nodes,)."""

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.node_of)

    def states_at(self, node: IntArray) -> tuple[IntArray, Int32Array, FloatArray]:
        """Return the states of devices that are at some nodes, as far as anybody knows.

        Returns
        -------
        row, state, share
            Index into `node`, state and its probability, shape (2 * n,).
        """
        row = np.tile(np.arange(len(node)), 2)
        state = np.concatenate([self.first_state_of[node], self.first_state_of[node + 1] - 1])
        share = np.concatenate([1.0 - self.stands[node], self.stands[node]])
        return row, state.astype(np.int32), share


class _Counts(NamedTuple):
    visits: FloatArray
    leaves: FloatArray
    jumps: FloatArray
    turns: FloatArray
    standing: FloatArray
    stands: FloatArray
    set_off: FloatArray


def learn_motion(
    network: RoadNetwork,
    place: Int32Array,
    *,
    learned_from: BoolArray,
    tick_s: float,
    every: int = 1,
) -> Motion:
    """Learn the motion model from the positions of some devices.

    Parameters
    ----------
    place
        Node of each device at each tick, negative if it is not present, shape (ticks, devices).
    learned_from
        The devices to learn from, shape (devices,). An adversary does not know the history of the
        target: leave it out.
    tick_s
        Length of a tick of `place`.
    every
        A tick of the model has so many ticks of `place`.

    Notes
    -----
    The time at a node is geometric in this model; that of a driving car is more regular. A longer
    tick has several moves, whose number is more regular too. The turns are learned from the short
    ticks: who has made several moves may have turned anywhere. The model
    is the same for all releases, so that comparisons between them are fair. O(devices * ticks),
    and a search over up to `MOST_MOVES` moves for each jump.
    """
    degree = np.diff(network.first_arc_of).astype(np.int64)
    first_state_of = starts_of(degree + 2)
    node_of = np.repeat(np.arange(network.n_nodes, dtype=np.int32), degree + 2)
    first_turn_of = starts_of(degree[node_of])
    came_by = network.opposite_arcs()
    next_state_of = came_by + 2 * network.neighbour_of.astype(np.int64) + 1
    devices = np.flatnonzero(learned_from)
    roads = network.first_arc_of, network.neighbour_of, came_by, first_turn_of
    place = np.ascontiguousarray(place)
    fine = _no_counts(network.n_nodes, int(first_turn_of[-1]))
    _count_moves(place, devices, *roads, max(int(np.ceil(STAND_S / tick_s)), 2), fine)
    model_s, coarse = every * tick_s, fine
    if every > 1:
        coarse = _no_counts(network.n_nodes, int(first_turn_of[-1]))
        least = max(int(np.ceil(STAND_S / model_s)), 2)
        _count_moves(np.ascontiguousarray(place[::every]), devices, *roads, least, coarse)
    stands, settles, sets_off = _stands(coarse)
    return Motion(
        first_state_of,
        node_of,
        network.first_arc_of,
        next_state_of,
        _leave(network, coarse, model_s),
        stands,
        settles,
        sets_off,
        first_turn_of,
        _turns(network, fine.turns, first_turn_of, node_of, first_state_of),
        _stops(coarse.jumps),
        _density(coarse.visits + coarse.standing),
    )


def _no_counts(n_nodes: int, n_turns: int) -> _Counts:
    return _Counts(
        np.zeros(n_nodes),
        np.zeros(n_nodes),
        np.zeros(MOST_MOVES + 1),
        np.zeros(n_turns),
        np.zeros(n_nodes),
        np.zeros(n_nodes),
        np.zeros(n_nodes),
    )


def _stands(counts: _Counts) -> tuple[FloatArray, FloatArray, float]:
    """Return the fields of `Motion` about devices that stand.

    A device that stands for an hour is one case, not an hour of them. Where nobody was seen,
    devices stand as often as they do alone: a full car park says nothing about other places.
    """
    n_stands, ticks = float(counts.stands.sum()), float(counts.standing.sum())
    n_driving = float(counts.visits.sum())
    long = max(ticks / n_stands, 1.0) if n_stands else 1.0
    alone = float(counts.standing[counts.stands <= 1].sum())
    usual = alone / max(alone + n_driving, 1.0)
    here = (counts.standing + counts.visits) / long
    stands = (counts.standing / long + _PRIOR_STANDS * usual) / (here + _PRIOR_STANDS)
    often = n_stands / max(n_driving, 1.0)
    settles = (counts.stands + _PRIOR_TICKS * often) / (counts.visits + _PRIOR_TICKS)
    sets_off = float(counts.set_off.sum()) / ticks if ticks else 1.0
    return stands, np.minimum(settles, 1.0), sets_off


def _leave(network: RoadNetwork, counts: _Counts, tick_s: float) -> FloatArray:
    degree = np.diff(network.first_arc_of)
    seconds = network.length_m / network.speed_mps
    tail = np.repeat(np.arange(network.n_nodes), degree)
    dwell_s = np.bincount(tail, seconds, network.n_nodes) / np.maximum(degree, 1)
    dwell_s = np.where(degree > 0, np.maximum(dwell_s, 1e-3), np.inf)
    expected = float((counts.visits / dwell_s).sum())
    moved = float(counts.leaves.sum())
    rate_s = moved / expected if moved > 0 and expected > 0 else tick_s
    prior = np.minimum(rate_s / dwell_s, 1.0)
    leave = (counts.leaves + _PRIOR_TICKS * prior) / (counts.visits + _PRIOR_TICKS)
    return np.where(degree > 0, leave, 0.0)


def _density(visits: FloatArray) -> FloatArray:
    """Return the share of devices at each node, half of it counted and half uniform."""
    uniform = np.full(len(visits), 1 / len(visits))
    density: FloatArray = (uniform + visits / visits.sum()) / 2 if visits.any() else uniform
    return density


def _stops(jumps: FloatArray) -> FloatArray:
    n = jumps[1:].copy()
    n[0] += 1.0
    longer = np.cumsum(n[::-1])[::-1]
    kept = n[: max(1, int((longer > _NEGLECTED * longer[0]).sum()))]
    stop: FloatArray = kept / longer[: len(kept)]
    stop[-1] = 1.0
    return stop


def _turns(
    network: RoadNetwork,
    counted: FloatArray,
    first_turn_of: IntArray,
    node_of: Int32Array,
    first_state_of: IntArray,
) -> FloatArray:
    """Return the turn probabilities: what was counted, and a prior of popular arcs."""
    n_turns = np.diff(first_turn_of)
    state = np.repeat(np.arange(len(node_of)), n_turns)
    slot = np.arange(len(state)) - first_turn_of[state]
    arc = network.first_arc_of[node_of[state]] + slot
    origin = state - first_state_of[node_of[state]]
    back = origin == slot + 1
    popular = np.bincount(arc, counted, len(network.neighbour_of))
    popular = popular + np.where(network.drivable, 1.0, _FORBIDDEN)
    onward = np.where(back, 0.0, popular[arc])
    onward_sum = np.bincount(state, onward, len(node_of))[state]
    known = (origin > 0) & (origin <= n_turns[state])
    share_back = (counted[back].sum() + _PRIOR_BACK[0]) / (counted[known].sum() + _PRIOR_BACK[1])
    share_onward = np.where(known, 1.0 - share_back, 1.0)
    prior = np.where(back, share_back, share_onward * onward / np.maximum(onward_sum, 1e-300))
    prior = np.where(onward_sum > 0, prior, 1.0)
    turn = counted + _PRIOR_TURNS * prior
    probability: FloatArray = turn / np.bincount(state, turn, len(node_of))[state]
    return probability


@kernel
def _count_moves(
    place: Int32Array,
    devices: IntArray,
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
    arc_back_of: IntArray,
    first_turn_of: IntArray,
    least: int,
    counts: _Counts,
) -> None:
    """Count moves; a device that stays at a node for `least` ticks or longer stands."""
    n_nodes = len(first_arc_of) - 1
    seen = np.full(n_nodes, -1, np.int64)
    queue = np.empty(n_nodes, np.int32)
    search = 0
    for d in devices:
        origin, stays_from = 0, 0
        for t in range(1, len(place)):
            u, v = place[t - 1, d], place[t, d]
            if u < 0 or v < 0:
                origin, stays_from = 0, t
                continue
            if u == v:
                if t + 1 == len(place) or place[t + 1, d] != v:
                    _end_stay(counts, v, t - stays_from, least, t + 1 < len(place))
                continue
            stayed = t - 1 - stays_from
            stays_from = t
            if stayed >= least:
                # It sets off as one of which nobody knows where it came from.
                origin = 0
            else:
                counts.visits[u] += 1
                counts.leaves[u] += 1
            arc = _arc_to(first_arc_of, neighbour_of, u, v)
            if arc >= 0:
                counts.jumps[1] += 1
                turns = first_turn_of[first_arc_of[u] + 2 * u + origin]
                counts.turns[turns + arc - first_arc_of[u]] += 1
                origin = 1 + arc_back_of[arc] - first_arc_of[v]
            else:
                search += 1
                n = _n_moves(first_arc_of, neighbour_of, u, v, seen, queue, search)
                counts.jumps[n] += 1
                origin = 0


@inner_kernel
def _end_stay(counts: _Counts, node: int, ticks: int, least: int, leaves: bool) -> None:  # noqa: FBT001  a kernel takes no keywords
    if ticks >= least:
        counts.standing[node] += ticks
        counts.stands[node] += 1
        counts.set_off[node] += 1 if leaves else 0
    else:
        counts.visits[node] += ticks


@inner_kernel
def _arc_to(first_arc_of: Int32Array, neighbour_of: Int32Array, u: int, v: int) -> int:
    for arc in range(first_arc_of[u], first_arc_of[u + 1]):
        if neighbour_of[arc] == v:
            return arc
    return -1


@inner_kernel
def _n_moves(
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
    u: int,
    v: int,
    seen: IntArray,
    queue: Int32Array,
    search: int,
) -> int:
    """Return the fewest moves from u to v, at most `MOST_MOVES`."""
    queue[0] = u
    seen[u] = search
    start, end = 0, 1
    for n in range(1, MOST_MOVES):
        last = end
        while start < last:
            at = queue[start]
            start += 1
            for arc in range(first_arc_of[at], first_arc_of[at + 1]):
                w = neighbour_of[arc]
                if w == v:
                    return n
                if seen[w] != search:
                    seen[w] = search
                    queue[end] = w
                    end += 1
    return MOST_MOVES

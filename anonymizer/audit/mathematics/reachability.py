"""Reachability: travel times over the network, and the velocity attack that uses them.

A device is known by its nearest node, so it is somewhere between the midpoints of the roads
around that node. It may reach the next node in no time; the node after that takes at least half
of each road. One-way roads are used in both directions, because the nearest node may be on the
other carriageway. This also makes reachability symmetric.

The velocity attack (maximum movement boundary) rules out nodes of a region that cannot be reached
from the previous region, or from which the next region cannot be reached.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.releases.observed import Observed
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork


class DrivingGraph(NamedTuple):
    """The graph of a network with driving times at free-flow speed, in the form kernels need."""

    first_arc_of: Int32Array
    neighbour_of: Int32Array
    seconds: FloatArray


class Spread(NamedTuple):
    """State of a search that is reused many times: marks are reset, not reallocated."""

    reach_s: FloatArray
    """Fewest seconds until a device can have each node as its nearest one, infinite if unreachable,
    shape (nodes,)."""
    pass_s: FloatArray
    """Fewest seconds until it can be at the node itself, shape (nodes,)."""
    touched: Int32Array
    n_touched: Int32Array
    """`touched`, `n_touched`: nodes with marks: the first `n_touched[0]` entries."""
    queue: Int32Array
    queued: BoolArray
    """`queue`, `queued`: ring buffer of the nodes to visit, and whether a node is in it."""


def roads_of(network: RoadNetwork) -> DrivingGraph:
    """Return the driving times of a network."""
    seconds = network.length_m / network.speed_mps
    return DrivingGraph(network.first_arc_of, network.neighbour_of, seconds)


def new_spread(n_nodes: int) -> Spread:
    """Return the state of a search that has not reached any node."""
    return Spread(
        np.full(n_nodes, np.inf),
        np.full(n_nodes, np.inf),
        np.empty(n_nodes, np.int32),
        np.zeros(1, np.int32),
        np.empty(n_nodes, np.int32),
        np.zeros(n_nodes, np.bool_),
    )


@kernel
def spread_from(roads: DrivingGraph, search: Spread, sources: Int32Array, budget_s: float) -> None:
    """Find all nodes that can be reached from any of the distinct sources within a budget.

    The result is in `search.reach_s` until the next call.

    Notes
    -----
    Label correcting with a queue: O(roads within the budget) times the number of corrections of
    a label, which is about two on street networks.
    """
    n = len(search.queue)
    _clear(search)
    for u in sources:
        _reach(search, u, 0.0)
    head, waiting = 0, 0
    for u in sources:
        for arc in range(roads.first_arc_of[u], roads.first_arc_of[u + 1]):
            v = roads.neighbour_of[arc]
            _reach(search, v, 0.0)
            waiting = _pass(search, v, roads.seconds[arc] / 2, budget_s, head, waiting)
    while waiting:
        u = search.queue[head]
        head = (head + 1) % n
        waiting -= 1
        search.queued[u] = False
        for arc in range(roads.first_arc_of[u], roads.first_arc_of[u + 1]):
            v = roads.neighbour_of[arc]
            half_way_s = search.pass_s[u] + roads.seconds[arc] / 2
            if half_way_s <= budget_s:
                _reach(search, v, half_way_s)
                there_s = search.pass_s[u] + roads.seconds[arc]
                waiting = _pass(search, v, there_s, budget_s, head, waiting)


@kernel
def _clear(search: Spread) -> None:
    for v in search.touched[: search.n_touched[0]]:
        search.reach_s[v] = np.inf
        search.pass_s[v] = np.inf
    search.n_touched[0] = 0


@kernel
def _reach(search: Spread, v: int, at_s: float) -> None:
    if search.reach_s[v] == np.inf:
        search.touched[search.n_touched[0]] = v
        search.n_touched[0] += 1
    search.reach_s[v] = min(search.reach_s[v], at_s)


@kernel
def _pass(search: Spread, v: int, at_s: float, budget_s: float, head: int, waiting: int) -> int:
    """Mark the node itself as reached and queue it; return the new length of the queue."""
    if at_s <= budget_s and at_s < search.pass_s[v]:
        search.pass_s[v] = at_s
        if not search.queued[v]:
            search.queue[(head + waiting) % len(search.queue)] = v
            search.queued[v] = True
            return waiting + 1
    return waiting


def surviving_share(observed: Observed, network: RoadNetwork) -> FloatArray:
    """Return the share of each record's region where its device could be, shape (records,).

    A node survives if it can be reached at free-flow speed from a surviving node of the previous
    region of the pseudonym, and a surviving node of the next region can be reached from it.

    Notes
    -----
    If no node survives, the device broke the speed limit and speeds prove nothing: the whole
    region counts as surviving, and the search continues from there. Two searches a record.
    """
    return _surviving_share(
        observed.first_record_of,
        observed.time[observed.tick_of],
        observed.region_of,
        observed.first_node_of,
        observed.node,
        roads_of(network),
        new_spread(network.n_nodes),
    )


@kernel
def _surviving_share(
    first_record_of: IntArray,
    time: FloatArray,
    region_of: IntArray,
    first_node_of: IntArray,
    node: Int32Array,
    roads: DrivingGraph,
    search: Spread,
) -> FloatArray:
    share = np.empty(len(time))
    for p in range(len(first_record_of) - 1):
        start, end = first_record_of[p], first_record_of[p + 1]
        first_slot_of = np.zeros(end - start + 1, np.int64)
        for i in range(start, end):
            size = first_node_of[region_of[i] + 1] - first_node_of[region_of[i]]
            first_slot_of[i - start + 1] = first_slot_of[i - start] + size
        forward = np.ones(first_slot_of[end - start], np.bool_)
        backward = forward.copy()
        for step in range(1, end - start):
            i, j = start + step, end - 1 - step
            for alive, now, before in ((forward, i, i - 1), (backward, j, j + 1)):
                _narrow(
                    roads,
                    search,
                    _region(node, first_node_of, region_of[before]),
                    alive[first_slot_of[before - start] : first_slot_of[before - start + 1]],
                    _region(node, first_node_of, region_of[now]),
                    alive[first_slot_of[now - start] : first_slot_of[now - start + 1]],
                    abs(time[now] - time[before]),
                )
        for i in range(start, end):
            slots = slice(first_slot_of[i - start], first_slot_of[i - start + 1])
            survives = forward[slots] & backward[slots]
            share[i] = survives.mean() if survives.any() else 1.0
    return share


@kernel
def _region(node: Int32Array, first_node_of: IntArray, region: int) -> Int32Array:
    return node[first_node_of[region] : first_node_of[region + 1]]


@kernel
def _narrow(
    roads: DrivingGraph,
    search: Spread,
    source: Int32Array,
    source_alive: BoolArray,
    target: Int32Array,
    target_alive: BoolArray,
    seconds: float,
) -> None:
    spread_from(roads, search, source[source_alive], seconds)
    target_alive[:] = search.reach_s[target] <= seconds
    if not target_alive.any():
        target_alive[:] = True

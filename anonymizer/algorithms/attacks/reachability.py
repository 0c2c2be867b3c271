"""How far a device can have come: travel times over the network from a set of nodes.

A device is known by its nearest node, so at any time it is somewhere between the midpoints of
the roads around that node. From one node to the next it may have come in no time at all; to
the one after, it takes at least half of each road. One-way roads are taken both ways, since the
nearest node may be on the other carriageway; this also makes reach symmetric.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array
from anonymizer.domain.network import RoadNetwork


class Roads(NamedTuple):
    """The network's graph with driving times at free flow, as kernels take it."""

    first_arc_of: Int32Array
    neighbour_of: Int32Array
    seconds: FloatArray


class Spread(NamedTuple):
    """A search that is used many times over: its marks are undone, never made anew.

    Attributes
    ----------
    reach_s
        Least seconds until a device is nearest to each node, infinite outside, shape (nodes,).
    pass_s
        Least seconds until it can be at the node itself.
    touched
        Nodes with marks, the first `n_touched[0]` of them.
    """

    reach_s: FloatArray
    pass_s: FloatArray
    touched: Int32Array
    n_touched: Int32Array
    queue: Int32Array
    queued: BoolArray


def roads_of(network: RoadNetwork) -> Roads:
    """Return the driving times of a network."""
    seconds = network.length_m / network.speed_mps
    return Roads(network.first_arc_of, network.neighbour_of, seconds)


def new_spread(n_nodes: int) -> Spread:
    """Return a search that has reached nothing yet."""
    return Spread(
        np.full(n_nodes, np.inf),
        np.full(n_nodes, np.inf),
        np.empty(n_nodes, np.int32),
        np.zeros(1, np.int32),
        np.empty(n_nodes, np.int32),
        np.zeros(n_nodes, np.bool_),
    )


@kernel
def spread_from(roads: Roads, search: Spread, sources: Int32Array, budget_s: float) -> None:
    """Reach all that can be reached from any of the sources (distinct) within a budget.

    Afterwards `search.reach_s` tells where and when, until the next call.

    Notes
    -----
    Label correcting with a queue: O(roads within the budget) times how often a label is
    corrected, which over street networks is about twice.
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
    """Note that the node itself is reached, and queue it; return how many are queued."""
    if at_s <= budget_s and at_s < search.pass_s[v]:
        search.pass_s[v] = at_s
        if not search.queued[v]:
            search.queue[(head + waiting) % len(search.queue)] = v
            search.queued[v] = True
            return waiting + 1
    return waiting

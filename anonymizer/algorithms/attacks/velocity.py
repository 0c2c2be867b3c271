"""Velocity: how much of a region survives what can be driven from the last and to the next."""

import numpy as np

from anonymizer.algorithms.attacks.observed import Observed
from anonymizer.algorithms.attacks.reachability import (
    Roads,
    Spread,
    new_spread,
    roads_of,
    spread_from,
)
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork


def surviving_share(observed: Observed, network: RoadNetwork) -> FloatArray:
    """Return the share of each record's region that a device could be in, shape (records,).

    A node survives if it can be reached at free-flow speed from a surviving node of the same
    pseudonym's region before, and a surviving node of the one after can be reached from it.

    Notes
    -----
    Where no node survives, the device broke the speed limit and nothing follows from speeds:
    the whole region counts as surviving, and the search goes on from there. Two searches a
    record, see `anonymizer.algorithms.attacks.reachability`.
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
    roads: Roads,
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
    roads: Roads,
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

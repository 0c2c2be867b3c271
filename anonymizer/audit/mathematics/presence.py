"""Presence in regions: whether a region contains a node, and how many devices are inside."""

from dataclasses import replace

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.mathematics.truth import Truth
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.hops import hops_of
from anonymizer.domain.network import RoadNetwork

OUTSIDE = -1


def slot_in_region(observed: Observed, node: Int32Array, *, region: IntArray) -> IntArray:
    """Return the index in `observed.node` at which a region has a node, or `OUTSIDE`, shape (n,).

    Parameters
    ----------
    node, region
        The node to find, and the region to search, shape (n,).

    Notes
    -----
    O(n * nodes of a region). A release is sound if every true node is inside its region.
    """
    return _slot_in_region(region, observed.first_node_of, observed.node, node)


def devices_inside(
    observed: Observed, truth: Truth, *, tick: IntArray, region: IntArray, n_nodes: int
) -> IntArray:
    """Return how many distinct devices were inside a region at a tick, shape (n,).

    Parameters
    ----------
    tick, region
        The pairs to count for, by rising tick, shape (n,).

    Notes
    -----
    O(devices * ticks + nodes of the regions).
    """
    return _devices_inside(
        truth.place, tick, region, observed.first_node_of, observed.node, n_nodes
    )


def devices_near(
    network: RoadNetwork, truth: Truth, *, tick: IntArray, node: Int32Array
) -> IntArray:
    """Return the density of ADKA: devices at a junction and its neighbours at a tick, shape (n,).

    `tick` must be rising. O(devices * ticks + n * degree).
    """
    hops = hops_of(network)
    at = np.where(truth.place < 0, truth.place, hops.junction_of[truth.place])
    return _devices_near(at, tick, hops.junction_of[node], hops.first_arc_of, hops.neighbour_of)


def covered_in_zones(
    truth: Truth, observed: Observed, network: RoadNetwork, zone_of: Int32Array
) -> Truth:
    """Return the truth as an adversary sees it who knows the privacy zones.

    A device inside a zone is covered at a node of the zone that does not depend on where inside it
    is, and no more after a while. So it may be at any node of each zone that it has been in since
    it was last seen outside: it is taken to be at one in its published region. The node nearest to
    a position at the rim of a zone may be outside, and next to several zones.

    Parameters
    ----------
    zone_of
        Zone of each node inside one, negative for the others, shape (nodes,).

    Notes
    -----
    O(ticks inside a zone * degree * nodes of a region) for each record.
    """
    if truth.device_of is None or not (zone_of >= 0).any():
        return truth
    device = truth.devices_of_records(observed)
    node = truth.place[observed.tick_of, device]
    outside = slot_in_region(observed, node, region=observed.region_of) == OUTSIDE
    record = np.flatnonzero(outside & (node >= 0))
    at = observed.tick_of[record], device[record]
    place = truth.place.copy()
    place[at] = _covers(
        truth.place,
        *at,
        observed.region_of[record],
        observed.first_node_of,
        observed.node,
        zone_of,
        network.first_arc_of,
        network.neighbour_of,
    )
    return replace(truth, place=place)


@kernel
def _covers(
    place: Int32Array,
    tick_of: IntArray,
    device_of: IntArray,
    region_of: IntArray,
    first_node_of: IntArray,
    node_of: Int32Array,
    zone_of: Int32Array,
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
) -> Int32Array:
    """Return for each record a node of its region in a zone of the device, or the device's own."""
    found = np.empty(len(tick_of), np.int32)
    for i in range(len(tick_of)):
        region = node_of[first_node_of[region_of[i]] : first_node_of[region_of[i] + 1]]
        tick = tick_of[i]
        found[i] = place[tick, device_of[i]]
        covered, hidden = False, True
        while hidden and not covered and tick >= 0:
            node = place[tick, device_of[i]]
            hidden = False
            if node >= 0:
                around = neighbour_of[first_arc_of[node] : first_arc_of[node + 1]]
                for j in range(-1, len(around)):
                    zone = zone_of[node] if j < 0 else zone_of[around[j]]
                    if zone < 0:
                        continue
                    hidden = True
                    for each in region:
                        if not covered and zone_of[each] == zone:
                            found[i], covered = each, True
            tick -= 1
    return found


@kernel
def _slot_in_region(
    region_of: IntArray, first_node_of: IntArray, node: Int32Array, node_of: Int32Array
) -> IntArray:
    slot = np.full(len(region_of), OUTSIDE, np.int64)
    for i in range(len(region_of)):
        for j in range(first_node_of[region_of[i]], first_node_of[region_of[i] + 1]):
            if node[j] == node_of[i]:
                slot[i] = j
                break
    return slot


@kernel
def _recount(devices_at: IntArray, place: Int32Array, old: int, new: int) -> None:
    """Update the number of devices at each node from the old tick (-1: none) to the new one."""
    for d in range(place.shape[1]):
        if old >= 0 and place[old, d] >= 0:
            devices_at[place[old, d]] -= 1
        if place[new, d] >= 0:
            devices_at[place[new, d]] += 1


@kernel
def _devices_inside(
    place: Int32Array,
    tick: IntArray,
    region: IntArray,
    first_node_of: IntArray,
    node: Int32Array,
    n_nodes: int,
) -> IntArray:
    devices_at = np.zeros(n_nodes, np.int64)
    n_inside = np.zeros(len(tick), np.int64)
    now = -1
    for i in range(len(tick)):
        if tick[i] != now:
            _recount(devices_at, place, now, tick[i])
            now = tick[i]
        for v in node[first_node_of[region[i]] : first_node_of[region[i] + 1]]:
            n_inside[i] += devices_at[v]
    return n_inside


@kernel
def _devices_near(
    place: Int32Array,
    tick: IntArray,
    node: Int32Array,
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
) -> IntArray:
    devices_at = np.zeros(len(first_arc_of) - 1, np.int64)
    n_near = np.zeros(len(tick), np.int64)
    now = -1
    for i in range(len(tick)):
        if tick[i] != now:
            _recount(devices_at, place, now, tick[i])
            now = tick[i]
        n_near[i] = devices_at[node[i]]
        for arc in range(first_arc_of[node[i]], first_arc_of[node[i] + 1]):
            n_near[i] += devices_at[neighbour_of[arc]]
    return n_near

"""Road networks with privacy zones.

Not imported by `anonymizer.networks` itself, so that loading a network imports no compiler.
"""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from anonymizer.algorithms.positions.protection import NO_ZONE, ZonedNetwork, Zones
from anonymizer.domain.arrays import BoolArray, Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import SettingsError


def with_zones(network: RoadNetwork, zones: Zones) -> ZonedNetwork:
    """Return a network with its privacy zones.

    Raises `SettingsError` if there are zones and the network has no coordinates.
    """
    if not len(zones):
        return ZonedNetwork(network, zones, np.full(network.n_nodes, NO_ZONE, np.int32))
    if not network.has_coordinates:
        raise SettingsError("zones: the network has no coordinates")
    inside = zones.contains(network.lat, network.lon)
    return ZonedNetwork(network, zones, _connected(network, inside))


def _connected(network: RoadNetwork, inside: BoolArray) -> Int32Array:
    """Return the connected part of the marked nodes that each is in, `NO_ZONE` for the others."""
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    between = inside[tail] & inside[network.neighbour_of]
    arcs = (tail[between], network.neighbour_of[between])
    shape = (network.n_nodes, network.n_nodes)
    links = coo_array((np.ones(int(between.sum()), bool), arcs), shape=shape)
    _, part_of = connected_components(links, directed=False)
    zone_of = np.full(network.n_nodes, NO_ZONE, np.int32)
    zone_of[inside] = np.unique(part_of[inside], return_inverse=True)[1]
    return zone_of

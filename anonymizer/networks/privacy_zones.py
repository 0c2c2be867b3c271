"""Road networks with privacy zones: no road leads to a node inside a zone, or through one.

Not imported by `anonymizer.networks` itself, so that loading a network imports no compiler.
"""

import numpy as np

from anonymizer.algorithms.positions.protection import ZonedNetwork, Zones
from anonymizer.domain.arrays import BoolArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import SettingsError
from anonymizer.networks.construction import from_arcs


def with_zones(network: RoadNetwork, zones: Zones) -> ZonedNetwork:
    """Return a network with its privacy zones.

    Raises
    ------
    SettingsError
        If there are zones and the network has no coordinates.
    """
    if not len(zones):
        return ZonedNetwork(network, zones, np.zeros(network.n_nodes, bool))
    if not network.has_coordinates:
        raise SettingsError("zones: the network has no coordinates")
    closed = zones.contains(network.lat, network.lon)
    return ZonedNetwork(without_nodes(network, closed), zones, closed)


def without_nodes(network: RoadNetwork, closed: BoolArray) -> RoadNetwork:
    """Return the network without the roads at closed nodes.

    Nodes keep their indices, names and coordinates; a closed node is a component by itself.
    Neighbours keep their order.

    Parameters
    ----------
    network
        Any network.
    closed
        Which nodes to cut off, shape (nodes,).

    Notes
    -----
    Regions grow along arcs, so none reaches a closed node from elsewhere. A closed node at which
    devices are counted can still be a region by itself: keep positions out of it with
    `ZonedNetwork.keep_out`. A road between two open nodes stays, even if its drawing crosses
    the zone. O(m log m), once.
    """
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    kept = ~(closed[tail] | closed[network.neighbour_of])
    return from_arcs(
        node_id=network.node_id,
        lat=network.lat,
        lon=network.lon,
        tail=tail[kept],
        head=network.neighbour_of[kept].astype(np.int64),
        length_m=network.length_m[kept],
        speed_mps=network.speed_mps[kept],
        drivable=network.drivable[kept],
    )

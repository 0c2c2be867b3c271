"""A road network with some nodes cut off, so that nothing leads to them or through them."""

import numpy as np

from anonymizer.domain.arrays import BoolArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks.construction import from_arcs


def without_nodes(network: RoadNetwork, closed: BoolArray) -> RoadNetwork:
    """Return the network with every road at a closed node taken away.

    Nodes keep their indices, names and coordinates; a closed one is a component by itself.
    Neighbours keep their order.

    Parameters
    ----------
    network
        Any.
    closed
        Which nodes to cut off, shape (nodes,).

    Notes
    -----
    Regions grow along arcs, so none reaches a closed node from elsewhere. One *at* which
    devices count as being can still be a region by itself: keep positions out of them
    (`anonymizer.algorithms.positions.protection.keep_out`). A road between two open nodes stays,
    also where its drawing crosses the place that the closed ones are in. O(m log m), once.
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

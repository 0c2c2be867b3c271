"""Roads of a network, each once: the columns that are published and that analysts read."""

from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork


class Roads(NamedTuple):
    """Each road once, from `u` to `v`; shape (roads,) each.

    Attributes
    ----------
    u, v
        Nodes at both ends.
    length_m, speed_mps
        Length and free-flow speed.
    forward, backward
        Whether it may be driven from `u` to `v`, and from `v` to `u`.
    way
        Way of OpenStreetMap, 0 for none; that from `u` to `v` if there are two.
    """

    u: IntArray
    v: IntArray
    length_m: FloatArray
    speed_mps: FloatArray
    forward: BoolArray
    backward: BoolArray
    way: IntArray


def roads_of(network: RoadNetwork) -> Roads:
    """Return the roads of a network, from the smaller node to the larger, in adjacency order."""
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    head = network.neighbour_of.astype(np.int64)
    there = np.flatnonzero(tail < head)
    return Roads(
        tail[there],
        head[there],
        network.length_m[there],
        network.speed_mps[there],
        network.drivable[there],
        network.drivable[network.opposite_arcs()[there]],
        np.zeros(len(there), np.int64) if network.way_of is None else network.way_of[there],
    )

"""Roads of a network, each once: the columns that are published and that analysts read."""

from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork


class Roads(NamedTuple):
    """Each road once, from `u` to `v`; shape (roads,) each."""

    u: IntArray
    v: IntArray
    """`u`, `v`: nodes at both ends."""
    length_m: FloatArray
    speed_mps: FloatArray
    """`length_m`, `speed_mps`: length and free-flow speed."""
    forward: BoolArray
    backward: BoolArray
    """`forward`, `backward`: whether it may be driven from `u` to `v`, and from `v` to `u`."""
    way: IntArray
    """Way of OpenStreetMap, 0 for none; that from `u` to `v` if there are two."""


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

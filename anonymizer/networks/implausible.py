"""Places and lengths that no road has: a node at 0, 0, and a length in kilometres.

Programs write 0, 0 where they know no place. One such node makes a road across the earth, which
gets nodes in between: regions and density are then those of another network.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.networks.drawn_roads import Nodes

_FAR_DEG = 1.0
"""A network that comes as near to 0, 0 may be there."""
_LEAST, _MOST = 0.9, 3.0
"""Lengths of roads by the distance of their ends: few are more bent, and none is shorter."""
_LEAST_M = 50.0
"""Nearer ends may be those of a long loop."""


class WithoutNullIsland(NamedTuple):
    """Nodes that are somewhere, and the roads between them.

    `kept`: which of the given roads these are, shape (given roads,); `ends`: their nodes, shape
    (roads, 2); `node`: which of the given nodes are there, shape (given nodes,).
    """

    nodes: Nodes
    node: BoolArray
    kept: BoolArray
    ends: IntArray


def null_island(lat: FloatArray, lon: FloatArray) -> BoolArray:
    """Return which nodes are at 0, 0 exactly, if all others are far from there."""
    there: BoolArray = (lat == 0) & (lon == 0)
    others = ~there & np.isfinite(lat)
    is_far = np.maximum(np.abs(lat[others]), np.abs(lon[others])) > _FAR_DEG
    return there if others.any() and bool(is_far.all()) else np.zeros(len(lat), np.bool_)


def without_null_island(nodes: Nodes, ends: IntArray) -> WithoutNullIsland:
    """Return the nodes that are not at 0, 0, and the roads that lead to none that is.

    `ends`: the nodes of each road, shape (n, 2).
    """
    there = ~null_island(nodes.lat, nodes.lon)
    kept: BoolArray = np.logical_and(there[ends[:, 0]], there[ends[:, 1]])
    number = np.cumsum(there) - 1
    somewhere = Nodes(nodes.node_id[there], nodes.lat[there], nodes.lon[there])
    return WithoutNullIsland(somewhere, there, kept, number[ends[kept]])


def lengths_in_doubt(
    nodes: Nodes, tail: IntArray, head: IntArray, length_m: FloatArray
) -> BoolArray:
    """Return which lengths would be right a thousand times as long, or as short.

    So are those in kilometres or millimetres. Of nodes without coordinates, none.
    """
    a, b = tail, head
    straight_m = haversine_m(nodes.lat[a], nodes.lon[a], nodes.lat[b], nodes.lon[b])
    ratio = length_m / np.where(straight_m >= _LEAST_M, straight_m, np.nan)
    off: BoolArray = np.zeros(len(ratio), np.bool_)
    for times in (1e3, 1e-3):
        off |= (ratio * times >= _LEAST) & (ratio * times <= _MOST)
    return off

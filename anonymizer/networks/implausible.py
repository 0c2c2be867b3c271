"""Places and lengths that no road has: a node at 0, 0, a length in kilometres, one point for all.

Programs write 0, 0 where they know no place. One such node makes a road across the earth, which
gets nodes in between: regions and density are then those of another network.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks.drawn_roads import Nodes

_FAR_DEG = 1.0
"""A network that comes as near to 0, 0 may be there."""
_LEAST, _MOST = 0.9, 3.0
"""Lengths of roads by the distance of their ends: few are more bent, and none is shorter."""
_LEAST_M = 50.0
"""Nearer ends may be those of a long loop."""
_SHORTEST_M = 1.0
"""Half of all roads are longer."""
_LEAST_SHARE, _FEWEST_PARTS = 0.25, 4
"""The largest part of a network of roads has more of its nodes; islands are fewer."""


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


def doubts(network: RoadNetwork) -> str:
    """Return why roads are certainly not drawn as they are, and what to do; empty if they may be.

    That latitude and longitude are exchanged cannot be seen here, but where positions are known.
    """
    if not (network.has_coordinates and network.n_roads):
        return ""
    lat, lon = network.lat, network.lon
    if float(haversine_m(lat, lon, lat[:1], lon[:1]).max()) < _SHORTEST_M:
        return "all nodes are at one place: see which columns have the coordinates"
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    head = network.neighbour_of
    drawn_m = haversine_m(lat[tail], lon[tail], lat[head], lon[head])
    if float(np.median(np.maximum(drawn_m, network.length_m))) < _SHORTEST_M:
        return "half of the roads are shorter than a metre: are coordinates in another unit?"
    n_of = np.bincount(network.component_of)
    if len(n_of) >= _FEWEST_PARTS and n_of.max() < _LEAST_SHARE * network.n_nodes:
        return (
            f"roads hardly meet: {len(n_of):,} parts, and the largest has few of the nodes; roads"
            " meet at equal coordinates, or where both name one node"
        )
    return ""

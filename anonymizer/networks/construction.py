"""Construction of a `RoadNetwork` from columns of roads."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.fixes import on_earth
from anonymizer.domain.network import NodeIndex, NodeNames, RoadNetwork, Shapes
from anonymizer.errors import InputError
from anonymizer.networks.drawn_roads import (
    TWIN_M,
    Arcs,
    Corners,
    Nodes,
    corners_of_arcs,
    with_nodes_between,
)
from anonymizer.networks.implausible import lengths_in_doubt

MIN_LENGTH_M = 0.01
"""Shorter roads count as this: every road takes time, and sparse solvers read 0 as *no road*."""

_POLE_DEG = 90.0

UNKNOWN_LENGTH_M = 1.0
"""Length of a road with neither a length nor coordinates: distances then count roads."""

Kind = TypeVar("Kind", bound=np.generic)


def index_of(ids: NodeNames, wanted: NodeNames) -> IntArray:
    """Return the index of each node at the end of a road; see `NodeIndex`.

    Raises `InputError` if one is not in `ids`; the message names the first.
    """
    found = NodeIndex(ids).find(wanted)
    if n_lost := int((found < 0).sum()):
        name = wanted[found < 0][0]
        more = f" (so do {n_lost - 1:,} other ends)" if n_lost > 1 else ""
        raise InputError(f"a road leads to node {name}, which is not among the nodes{more}")
    return found


def from_arrays(
    *,
    node_id: NodeNames,
    lat: FloatArray,
    lon: FloatArray,
    u: IntArray,
    v: IntArray,
    length_m: FloatArray,
    speed_mps: FloatArray,
    forward: BoolArray,
    backward: BoolArray,
    corners: Corners | None = None,
    max_spacing_m: float = 0.0,
    twin_m: float = TWIN_M,
    way: IntArray | None = None,
    load: FloatArray | None = None,
) -> RoadNetwork:
    """Build a network from roads; neighbours are in the order in which roads first name them.

    Parameters
    ----------
    node_id, lat, lon
        The nodes, shape (n,): unique ids; WGS84 degrees, or NaN throughout.
    u, v
        Ends of each road as indices of nodes, shape (m,). A pair may occur again, in either
        direction: of parallel roads the shortest drivable one is kept for each direction of
        travel. Loops are dropped. Of drawn roads that get nodes, none is left out.
    length_m
        Shape (m,); NaN if unknown: then the great-circle distance between the ends is used, or
        `UNKNOWN_LENGTH_M` in a network without coordinates. So are lengths that are a thousand
        times off that distance; the account tells how many.
    speed_mps
        Free-flow speed, shape (m,).
    forward, backward
        Whether the road may be driven from u to v and from v to u, shape (m,).
    corners
        Of each road between its ends, from u to v. None: the source draws no roads, and no node is
        added to them.
    max_spacing_m
        Drawn roads that are longer get nodes in between; 0: none (see `with_nodes_between`).
    twin_m
        See `TWIN_M`.
    way
        Way of OpenStreetMap of each road, 0 for none, shape (m,); None: the source has no ways.
    load
        Devices expected at each node, or anything proportional, shape (n,); None: nobody knows.

    Raises
    ------
    InputError
        If ids repeat, a coordinate is missing or not on the earth, or a length or speed is
        invalid. The message does not name the source.

    Notes
    -----
    O((n + m) log m), all of it vectorized.
    """
    return from_arcs(
        node_id=node_id,
        lat=lat,
        lon=lon,
        tail=_interleaved(u, v),
        head=_interleaved(v, u),
        length_m=np.repeat(length_m, 2),
        speed_mps=np.repeat(speed_mps, 2),
        drivable=_interleaved(forward, backward),
        road_of=np.repeat(np.arange(len(u)), 2),
        along=np.tile([True, False], len(u)),
        corners=corners,
        max_spacing_m=max_spacing_m,
        twin_m=twin_m,
        way=None if way is None else np.repeat(way, 2),
        load=load,
    )


def from_arcs(
    *,
    node_id: NodeNames,
    lat: FloatArray,
    lon: FloatArray,
    tail: IntArray,
    head: IntArray,
    length_m: FloatArray,
    speed_mps: FloatArray,
    drivable: BoolArray,
    road_of: IntArray | None = None,
    along: BoolArray | None = None,
    corners: Corners | None = None,
    max_spacing_m: float = 0.0,
    twin_m: float = TWIN_M,
    way: IntArray | None = None,
    load: FloatArray | None = None,
) -> RoadNetwork:
    """Build a network from arcs; neighbours are in the order in which arcs first name them.

    As `from_arrays`, for sources with an adjacency order of their own: each road must be listed
    as an arc from both of its ends. Where there are `corners`, `road_of` is the drawn road of each
    arc, and `along` whether the arc has the direction in which it is drawn.
    """
    nodes = Nodes(node_id, lat, lon)
    _check_nodes(nodes)
    if load is not None and not ((load >= 0) & (load < np.inf)).all():
        raise InputError("a node has no load of 0 or more; give all of them or none")
    if road_of is None or along is None or np.isnan(lat).any():
        corners = None
        road_of, along = np.zeros(len(tail), np.int64), np.ones(len(tail), np.bool_)
    ways = np.zeros(len(tail), np.int64) if way is None else way
    off = lengths_in_doubt(nodes, tail, head, length_m)
    length_m = np.where(off, np.nan, length_m)
    arcs = Arcs(tail, head, length_m, speed_mps, drivable, road_of, along, ways)
    if corners is not None:
        nodes, arcs, corners = with_nodes_between(
            nodes, arcs, corners, max_spacing_m=max_spacing_m, twin_m=twin_m
        )
    arcs = arcs._replace(length_m=_complete_lengths(nodes, arcs))
    if not (np.isfinite(speed_mps) & (speed_mps > 0)).all():
        raise InputError("a road has no speed above 0")
    n_nodes = len(nodes.node_id)
    inner = np.arange(n_nodes) >= len(node_id)
    kept = simple_arcs(n_nodes, arcs.tail, arcs.head, arcs.length_m, arcs.drivable)
    first_arc_of = np.zeros(n_nodes + 1, dtype=np.int32)
    first_arc_of[1:] = np.cumsum(np.bincount(arcs.tail[kept], minlength=n_nodes))
    neighbour_of = arcs.head[kept].astype(np.int32)
    return RoadNetwork(
        node_id=nodes.node_id,
        lat=nodes.lat,
        lon=nodes.lon,
        first_arc_of=first_arc_of,
        neighbour_of=neighbour_of,
        length_m=arcs.length_m[kept],
        speed_mps=arcs.speed_mps[kept],
        drivable=arcs.drivable[kept],
        component_of=components_by_size(first_arc_of, neighbour_of),
        shapes=None if corners is None else Shapes(*corners_of_arcs(corners, arcs, kept)),
        way_of=None if way is None else arcs.way[kept],
        # Nodes between the given ones come after them.
        load_at=None if load is None else np.append(load, np.zeros(n_nodes - len(load))),
        inner=inner if inner.any() else None,
        account=_account_of_lengths(int(off.sum()) // 2),
    )


def _account_of_lengths(n_off: int) -> str:
    """Return what is said of roads whose lengths are implausible; nothing if there are none."""
    if not n_off:
        return ""
    return f"{n_off:,} lengths are 1,000 times off the geometry, as in km: it counts in their place"


def _interleaved(first: NDArray[Kind], second: NDArray[Kind]) -> NDArray[Kind]:
    return np.stack((first, second), axis=1).ravel()


def _check_nodes(nodes: Nodes) -> None:
    node_id, lat, lon = nodes
    if len(np.unique(node_id)) < len(node_id):
        raise InputError("two nodes have the same id")
    if np.isnan(lat).all() and np.isnan(lon).all():
        return
    if n_nowhere := int((~(np.isfinite(lat) & np.isfinite(lon))).sum()):
        raise InputError(
            f"{n_nowhere:,} of {len(lat):,} nodes have no latitude or longitude; give all of them"
            " or none"
        )
    if not (there := on_earth(lat, lon)).all():
        if on_earth(lon, lat).all() and np.median(np.abs(lat)) > _POLE_DEG:
            raise InputError("latitude and longitude are exchanged")
        raise InputError(
            f"coordinates are not WGS84 degrees in {int((~there).sum()):,} of {len(lat):,} nodes;"
            " if they are projected, convert them to EPSG:4326"
        )


def _complete_lengths(nodes: Nodes, arcs: Arcs) -> FloatArray:
    length_m = arcs.length_m
    unknown = np.isnan(length_m)
    if unknown.any():
        a, b = arcs.tail[unknown], arcs.head[unknown]
        straight_m = haversine_m(nodes.lat[a], nodes.lon[a], nodes.lat[b], nodes.lon[b])
        length_m = length_m.copy()
        length_m[unknown] = np.where(np.isnan(straight_m), UNKNOWN_LENGTH_M, straight_m)
    if not (np.isfinite(length_m) & (length_m >= 0)).all():
        raise InputError("a road has a negative or infinite length")
    return np.maximum(length_m, MIN_LENGTH_M)


def simple_arcs(
    n_nodes: int, tail: IntArray, head: IntArray, length_m: FloatArray, drivable: BoolArray
) -> IntArray:
    """Return the arcs to keep, sorted by tail and then by the first occurrence of their pair.

    Of parallel arcs the shortest drivable one is kept, of loops none.
    """
    arc = np.flatnonzero(tail != head)
    pair = tail[arc] * n_nodes + head[arc]
    arc = arc[np.lexsort((length_m[arc], ~drivable[arc], pair))]
    pair = tail[arc] * n_nodes + head[arc]
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    best = arc[starts]
    listed = np.minimum.reduceat(arc, starts) if len(starts) else arc
    return best[np.lexsort((listed, tail[best]))]


def components_by_size(first_arc_of: Int32Array, neighbour_of: Int32Array) -> Int32Array:
    """Return the component of each node, see `RoadNetwork.component_of`."""
    n_nodes = len(first_arc_of) - 1
    present = np.ones(len(neighbour_of), dtype=np.int8)
    graph = csr_array((present, neighbour_of, first_arc_of), shape=(n_nodes, n_nodes))
    _, label = connected_components(graph, directed=False)
    _, first_node, size = np.unique(label, return_index=True, return_counts=True)
    number = np.empty(len(size), dtype=np.int32)
    number[np.lexsort((first_node, -size))] = np.arange(len(size), dtype=np.int32)
    return number[label]

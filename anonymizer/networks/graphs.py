"""Networkx graphs, in memory or as GraphML, with the conventions of OSMnx."""

import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard, cast
from xml.etree.ElementTree import ParseError

import numpy as np

from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.extras import extra
from anonymizer.networks.construction import from_arcs
from anonymizer.networks.drawn_roads import (
    MAX_SPACING_M,
    Corners,
    Nodes,
    corners_of_lines,
    read_wkt,
)
from anonymizer.networks.edge_accounts import ISLAND, accounted, edges_became
from anonymizer.networks.implausible import null_island
from anonymizer.networks.markup import check_markup
from anonymizer.networks.node_ids import node_ids
from anonymizer.networks.speeds import KMH, free_flow_mps

if TYPE_CHECKING:
    import networkx as nx

Attributes: TypeAlias = Mapping[str, Any]
AnyGraph: TypeAlias = "nx.Graph[Any]"
Degrees: TypeAlias = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


def is_graph(value: object) -> TypeGuard[AnyGraph]:
    """Return whether a value is a graph of networkx, without importing it for other values."""
    nx = sys.modules.get("networkx")  # the owner of a graph has imported it
    return nx is not None and isinstance(value, nx.Graph)


def load_graphml(path: Path, *, max_spacing_m: float = MAX_SPACING_M) -> RoadNetwork:
    """Load GraphML, plain or `.gz`, with typed keys or with all values as text (as OSMnx saves).

    Raises `InputError` if the file is not GraphML, or the graph is not a road network (see
    `from_networkx`).
    """
    import networkx as nx  # noqa: PLC0415  half a second, which no other form of network needs

    check_markup(path)
    try:
        graph = nx.read_graphml(path, force_multigraph=True)
    except (
        nx.NetworkXError,
        ParseError,
        KeyError,
        ValueError,
        OSError,
        EOFError,
        zlib.error,
    ) as error:
        raise InputError("is not readable GraphML") from error
    return from_networkx(graph, max_spacing_m=max_spacing_m)


def from_networkx(graph: AnyGraph, *, max_spacing_m: float = MAX_SPACING_M) -> RoadNetwork:
    """Build a network from a graph, in the node and adjacency order of the graph.

    Node attributes: `x` is the longitude, `y` the latitude, or `lon` and `lat` (`long`, `lng`,
    `longitude` and `latitude`), in any case; a graph may have none. If its
    attribute `crs` names another reference system, `x` and `y` are converted from that. Edge
    attributes, each optional, typed or text: `length` in metres; `speed_kph`, or else `maxspeed`
    and `highway` (of lists, as OSMnx makes them, the lowest limit and the first class count);
    `oneway`; `osmid`, the way of OpenStreetMap (of a list the first one); `geometry`, a line of
    longitude and latitude, as an object whose text is well-known text or as that text. If any edge
    has one, the others are straight, and edges longer than
    `max_spacing_m` get nodes in between (0: none). The graph is not changed.

    An edge of a directed graph is open in its own direction, and in the opposite direction only if
    there is an edge for it too or if `oneway` is false; neighbours are successors, then
    predecessors. The edges of an undirected graph are open in both directions.

    Raises
    ------
    InputError
        If an attribute has an unusable value, or as for `from_arrays`.
    """
    names = list(graph)
    in_degrees = _degrees(graph.graph.get("crs"))
    lat, lon = _places([graph.nodes[node] for node in names], in_degrees)
    there = ~null_island(lat, lon)
    names = [node for node, is_there in zip(names, there.tolist(), strict=True) if is_there]
    index = {node: place for place, node in enumerate(names)}
    arcs = [arc for node in names for arc in _arcs_out_of(graph, node) if arc.head in index]
    ends = np.array([(index[arc.tail], index[arc.head]) for arc in arcs], np.int64).reshape(-1, 2)
    nodes = Nodes(node_ids(names), lat[there], lon[there])
    number: dict[int, int] = {}
    road_of = np.array([number.setdefault(id(arc.road), len(number)) for arc in arcs], np.int64)
    first = np.unique(road_of, return_index=True)[1]
    along = np.zeros(len(arcs), np.bool_)
    if graph.is_directed():
        along[:] = [arc.ahead for arc in arcs]
    else:
        along[first] = True
    drawn = np.flatnonzero(along)[np.argsort(road_of[along], kind="stable")]
    corners = _corners([arcs[i].road for i in drawn.tolist()], nodes, ends[drawn], in_degrees)
    network = from_arcs(
        node_id=nodes.node_id,
        lat=nodes.lat,
        lon=nodes.lon,
        tail=ends[:, 0],
        head=ends[:, 1],
        length_m=_numbers([arc.road for arc in arcs], "length"),
        speed_mps=np.array([_speed_mps(arc.road) for arc in arcs], dtype=np.float64),
        drivable=np.array([arc.drivable for arc in arcs], dtype=np.bool_),
        road_of=road_of,
        along=along,
        corners=corners,
        max_spacing_m=max_spacing_m,
        way=_ways([arc.road for arc in arcs]),
    )
    given = ends[drawn]
    became = edges_became(
        nodes, given, corners, np.full(len(given), graph.is_directed()), max_spacing_m=max_spacing_m
    )
    became[ISLAND] = graph.number_of_edges() - len(given)
    return accounted(network, "edge", became)


def to_networkx(network: RoadNetwork) -> "nx.DiGraph[Any]":
    """Return the network as a graph with the conventions of OSMnx, which `from_networkx` reads.

    An edge for each direction in which a road is open, with `length` in metres, `speed_kph`, and
    `osmid` and `geometry` (well-known text) where the network has them; nodes have `x` and `y`
    where it has coordinates. Neighbours keep their order, unless some roads are one-way.

    About 10 µs a road.
    """
    import networkx as nx  # noqa: PLC0415  as above

    graph: nx.DiGraph[Any] = nx.DiGraph()
    names = network.node_id.tolist()
    for name, lat, lon in zip(names, network.lat.tolist(), network.lon.tolist(), strict=True):
        graph.add_node(name, **({"y": lat, "x": lon} if network.has_coordinates else {}))
    drawn = _drawn(network)
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    for arc in np.flatnonzero(network.drivable).tolist():
        u, v = int(tail[arc]), int(network.neighbour_of[arc])
        road: dict[str, Any] = {
            "length": float(network.length_m[arc]),
            "speed_kph": float(network.speed_mps[arc]) / KMH,
        }
        if network.way_of is not None and network.way_of[arc]:
            road["osmid"] = int(network.way_of[arc])
        line = drawn.get((min(u, v), max(u, v)))
        if line is not None:
            points = line if u < v else line[::-1]
            road["geometry"] = f"LINESTRING ({', '.join(f'{x!r} {y!r}' for x, y in points)})"
        graph.add_edge(names[u], names[v], **road)
    return graph


def _drawn(network: RoadNetwork) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """Return the longitude and latitude of the points of each road that is not straight."""
    lines = network.lines()
    ends = zip(lines.tail.tolist(), lines.head.tolist(), strict=True)
    bounds = lines.first_point_of.tolist()
    return {
        pair: list(zip(lines.lon[a:b].tolist(), lines.lat[a:b].tolist(), strict=True))
        for pair, a, b in zip(ends, bounds, bounds[1:], strict=False)
        if b - a > 2  # not its two ends alone
    }


class _Arc(NamedTuple):
    """An arc with the attributes of its edge.

    `ahead`: the edge itself, and not the way back along it.
    """

    tail: object
    head: object
    road: Attributes
    ahead: bool
    drivable: bool


def _arcs_out_of(graph: AnyGraph, node: object) -> Iterator[_Arc]:
    if not graph.is_directed():
        for _, head, road in graph.edges(node, data=True):
            yield _Arc(node, head, road, ahead=True, drivable=True)
            if head == node:
                yield _Arc(node, head, road, ahead=False, drivable=True)
        return
    directed = cast("nx.DiGraph[Any]", graph)
    for _, head, road in directed.out_edges(node, data=True):
        yield _Arc(node, head, road, ahead=True, drivable=True)
    for head, _, road in directed.in_edges(node, data=True):
        both = str(road.get("oneway")).lower() in {"false", "no", "0"}
        yield _Arc(node, head, road, ahead=False, drivable=both)


def _degrees(crs: object) -> Degrees:
    """Return what makes latitude and longitude of y and x in a reference system."""
    if crs is None or str(crs).lower() in _WGS84:
        return lambda y, x: (y, x)
    with extra("sumo"):
        import pyproj  # noqa: PLC0415  an extra

    try:
        convert = pyproj.Transformer.from_crs(str(crs), "EPSG:4326", always_xy=True)
    except pyproj.exceptions.ProjError as error:
        raise InputError(
            "names a reference system (crs) that is not known: write its code, as EPSG:32635, or"
            " project the graph to EPSG:4326"
        ) from error

    def in_degrees(y: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        lon, lat = convert.transform(x, y)
        # Infinite where the system has no such place; NaN stays NaN.
        return np.asarray(lat, np.float64), np.asarray(lon, np.float64)

    return in_degrees


def _places(nodes: Sequence[Attributes], in_degrees: Degrees) -> tuple[FloatArray, FloatArray]:
    """Return latitude and longitude of each node, NaN where none is stated."""
    there = {str(name).lower(): name for node in nodes for name in node}
    there |= {name: name for name in ("x", "y") if any(name in node for node in nodes)}
    for lat, lon in (("y", "x"), *_PLACES):
        if lat in there and lon in there:
            stated = _numbers(nodes, there[lat]), _numbers(nodes, there[lon])
            return in_degrees(*stated) if lat == "y" else stated
    return _numbers(nodes, "y"), _numbers(nodes, "x")


_PLACES = (("lat", "lon"), ("lat", "long"), ("lat", "lng"), ("latitude", "longitude"))
"""Names of coordinates that are degrees."""
_WGS84 = frozenset({"epsg:4326", "ogc:crs84", "wgs84", "none", "nan", ""})


def _corners(
    roads: Sequence[Attributes], nodes: Nodes, ends: IntArray, in_degrees: Degrees
) -> Corners | None:
    """Return the corners of all roads; None if the graph draws none."""
    lines = [str(road.get("geometry") or "") for road in roads]
    if not any(lines):
        return None
    first_point_of, y, x = read_wkt(lines)
    return corners_of_lines(first_point_of, *in_degrees(y, x), nodes, ends)


def _ways(roads: Sequence[Attributes]) -> IntArray | None:
    """Return the way of each edge, 0 for none; None if no edge has one."""
    if not any("osmid" in road for road in roads):
        return None
    return np.array([way_number(road.get("osmid")) for road in roads], np.int64)


def way_number(value: object) -> int:
    """Return a way of OpenStreetMap, of several the first one; 0 if there is none."""
    way = _WAY.match(str(value))
    return int(way[1]) if way else 0


_WAY = re.compile(r"\[?'?([1-9][0-9]{0,17})(?![0-9.])")


def _numbers(owners: Sequence[Attributes], name: str) -> FloatArray:
    """Return an attribute of each node or edge; NaN where it is missing."""
    try:
        return np.array([owner.get(name, np.nan) for owner in owners]).astype(np.float64)
    except (ValueError, TypeError) as error:
        raise InputError(f"attribute {name!r} is not a number everywhere") from error


def _speed_mps(road: Attributes) -> float:
    if "speed_kph" in road:
        return float(_numbers([road], "speed_kph")[0]) * KMH
    highway, maxspeed = tag_values(road.get("highway")), tag_values(road.get("maxspeed"))
    return free_flow_mps(highway[0] if highway else None, ";".join(maxspeed))


def tag_values(value: object) -> list[str]:
    """Return the values of a tag that is missing, single, a list, or a list saved as text."""
    if value is None:
        return []
    if isinstance(value, list):
        return [str(item) for item in value]
    text = str(value)
    return re.findall("'([^']*)'", text) if text.startswith("[") else [text]

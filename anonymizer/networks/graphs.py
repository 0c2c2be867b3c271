"""Networkx graphs, in memory or as GraphML, with the conventions of OSMnx."""

import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast
from xml.etree.ElementTree import ParseError

import numpy as np

from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks.construction import from_arcs, node_ids
from anonymizer.networks.speeds import KMH, free_flow_mps

if TYPE_CHECKING:
    import networkx as nx

Attributes: TypeAlias = Mapping[str, Any]
AnyGraph: TypeAlias = "nx.Graph[Any]"


def is_graph(value: object) -> TypeGuard[AnyGraph]:
    """Return whether a value is a graph of networkx, without importing it for other values."""
    nx = sys.modules.get("networkx")  # the owner of a graph has imported it
    return nx is not None and isinstance(value, nx.Graph)


def load_graphml(path: Path) -> RoadNetwork:
    """Load GraphML, plain or `.gz`, with typed keys or with all values as text (as OSMnx saves).

    Raises
    ------
    InputError
        If the file is not GraphML, or the graph is not a road network (see `from_graph`).
    """
    import networkx as nx  # noqa: PLC0415  half a second, which no other form of network needs

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
    return from_graph(graph)


def from_graph(graph: AnyGraph) -> RoadNetwork:
    """Build a network from a graph, in the node and adjacency order of the graph.

    Node attributes: `x` is the longitude, `y` the latitude; a graph may have neither. Edge
    attributes, each optional, typed or text: `length` in metres; `speed_kph`, or else `maxspeed`
    and `highway` (of lists, as OSMnx makes them, the lowest limit and the first class count);
    `oneway`. The graph is not changed.

    An edge of a directed graph is open in its own direction, and in the opposite direction only if
    there is an edge for it too or if `oneway` is false; neighbours are successors, then
    predecessors. The edges of an undirected graph are open in both directions.

    Raises
    ------
    InputError
        If an attribute has an unusable value, or as for `from_arrays`.
    """
    nodes = list(graph)
    index = {node: place for place, node in enumerate(nodes)}
    arcs = [arc for node in nodes for arc in _arcs_out_of(graph, node)]
    ends = np.array([(index[u], index[v]) for u, v, _, _ in arcs], dtype=np.int64).reshape(-1, 2)
    return from_arcs(
        node_id=node_ids(nodes),
        lat=_numbers([graph.nodes[node] for node in nodes], "y"),
        lon=_numbers([graph.nodes[node] for node in nodes], "x"),
        tail=ends[:, 0],
        head=ends[:, 1],
        length_m=_numbers([road for _, _, road, _ in arcs], "length"),
        speed_mps=np.array([_speed_mps(road) for _, _, road, _ in arcs], dtype=np.float64),
        drivable=np.array([may for _, _, _, may in arcs], dtype=np.bool_),
    )


def _arcs_out_of(
    graph: AnyGraph, node: object
) -> Iterator[tuple[object, object, Attributes, bool]]:
    """Yield tail, head, attributes of the edge and whether the arc may be driven."""
    if not graph.is_directed():
        for _, head, road in graph.edges(node, data=True):
            yield node, head, road, True
        return
    directed = cast("nx.DiGraph[Any]", graph)
    for _, head, road in directed.out_edges(node, data=True):
        yield node, head, road, True
    for head, _, road in directed.in_edges(node, data=True):
        yield node, head, road, str(road.get("oneway")).lower() in {"false", "no", "0"}


def _numbers(owners: Sequence[Attributes], name: str) -> FloatArray:
    """Return an attribute of each node or edge; NaN where it is missing."""
    try:
        return np.array([owner.get(name, np.nan) for owner in owners]).astype(np.float64)
    except (ValueError, TypeError) as error:
        raise InputError(f"attribute {name!r} is not a number everywhere") from error


def _speed_mps(road: Attributes) -> float:
    if "speed_kph" in road:
        return float(_numbers([road], "speed_kph")[0]) * KMH
    highway, maxspeed = _texts(road.get("highway")), _texts(road.get("maxspeed"))
    return free_flow_mps(highway[0] if highway else None, ";".join(maxspeed))


def _texts(value: object) -> list[str]:
    """Return the values of a tag that is missing, single, a list, or a list saved as text."""
    if value is None:
        return []
    if isinstance(value, list):
        return [str(item) for item in value]
    text = str(value)
    return re.findall("'([^']*)'", text) if text.startswith("[") else [text]

"""Obvious twins: the same networks as plain networkx graphs and lists."""

import networkx as nx
import numpy as np

from anonymizer.domain.network import RoadNetwork


def neighbours(network: RoadNetwork, node: int) -> list[int]:
    first, last = network.first_arc_of[node : node + 2]
    return network.neighbour_of[first:last].tolist()  # type: ignore[no-any-return]


def arcs(network: RoadNetwork) -> list[tuple[int, int, float, bool]]:
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    columns = (tail, network.neighbour_of, network.length_m, network.drivable)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def as_graph(network: RoadNetwork) -> "nx.Graph[int]":
    """Return the undirected graph, nodes by index."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(network.n_nodes))
    graph.add_weighted_edges_from((u, v, length) for u, v, length, _ in arcs(network))
    return graph


def as_digraph(network: RoadNetwork) -> "nx.DiGraph[int]":
    """Return what may be driven, nodes by index."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(network.n_nodes))
    graph.add_weighted_edges_from((u, v, length) for u, v, length, may in arcs(network) if may)
    return graph


def components(graph: "nx.Graph[int]") -> list[int]:
    """Return the component of each node, numbered by size, ties by smallest node."""
    parts = sorted(nx.connected_components(graph), key=lambda part: (-len(part), min(part)))
    number = {node: place for place, part in enumerate(parts) for node in part}
    return [number[node] for node in sorted(number)]

"""Small road networks for tests."""

from collections.abc import Iterable

import networkx as nx
from hypothesis import strategies as st

from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import from_networkx


def network_of(n_nodes: int, roads: Iterable[tuple[int, int]]) -> RoadNetwork:
    """Return a network without coordinates; node `v` has the id `v`."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(n_nodes))
    graph.add_edges_from(roads)
    return from_networkx(graph)


def two_islands() -> RoadNetwork:
    """Return a network of three components: a square with a tail, a pair, and a lone node.

    ::

        0 - 1
        |   |      5 - 6      7
        3 - 2 - 4
    """
    return network_of(8, [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (5, 6)])


@st.composite
def networks(draw: st.DrawFn, *, max_nodes: int = 14) -> RoadNetwork:
    """Draw a network of trees plus a few more roads, in any number of components."""
    n = draw(st.integers(1, max_nodes))
    below = [draw(st.integers(0, v)) for v in range(1, n)]
    # A node whose parent would be itself starts a component.
    roads = [(u - 1, v) for v, u in enumerate(below, 1) if u > 0]
    nodes = st.integers(0, n - 1)
    more = draw(st.lists(st.tuples(nodes, nodes), max_size=4))
    shuffled = draw(st.permutations(range(n)))
    return network_of(n, [(shuffled[a], shuffled[b]) for a, b in [*roads, *more] if a != b])

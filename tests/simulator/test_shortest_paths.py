"""Shortest paths and strongly connected components against networkx."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.network import RoadNetwork
from simulator.shortest_paths import Router
from tests.simulator.support import Road, network

N_NODES = 7
nodes = st.integers(0, N_NODES - 1)
any_roads = st.lists(
    st.tuples(nodes, nodes, st.booleans(), st.booleans()).filter(lambda r: r[0] < r[1]),
    max_size=12,
    unique_by=lambda road: road[:2],
)


def as_graph(roads: RoadNetwork) -> "nx.DiGraph[int]":
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(roads.n_nodes))
    for tail in range(roads.n_nodes):
        for arc in range(roads.first_arc_of[tail], roads.first_arc_of[tail + 1]):
            if roads.drivable[arc]:
                travel_s = roads.length_m[arc] / roads.speed_mps[arc]
                graph.add_edge(tail, int(roads.neighbour_of[arc]), travel_s=travel_s, arc=arc)
    return graph


def check_against_networkx(roads: RoadNetwork, target: int) -> None:
    router, graph = Router(roads), as_graph(roads)
    next_arc_of = router.next_arcs_to(target)
    expected = nx.single_source_dijkstra_path_length(graph.reverse(), target, weight="travel_s")
    for start in range(roads.n_nodes):
        node, travel_s = start, 0.0
        while next_arc_of[node] >= 0:
            arc = next_arc_of[node]
            assert router.tail_of[arc] == node
            assert roads.drivable[arc]
            travel_s += roads.length_m[arc] / roads.speed_mps[arc]
            node = int(roads.neighbour_of[arc])
        if start in expected:
            assert node == target
            assert travel_s == pytest.approx(expected[start])
        else:
            assert node == start


@given(roads=any_roads, target=nodes)
def test_paths_are_as_fast_as_those_of_networkx_or_do_not_exist(
    roads: list[Road], target: int
) -> None:
    speeds = [5.0 + 3 * i for i in range(len(roads))]
    check_against_networkx(network(roads, n_nodes=N_NODES, speeds_mps=speeds), target)


@given(roads=any_roads)
def test_strong_components_are_those_of_networkx(roads: list[Road]) -> None:
    built = network(roads, n_nodes=N_NODES)
    strong_of = Router(built).strong_of
    found = {frozenset(np.flatnonzero(strong_of == c).tolist()) for c in strong_of.tolist()}
    assert found == {frozenset(c) for c in nx.strongly_connected_components(as_graph(built))}

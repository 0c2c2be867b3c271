"""The spanning forest and the recursive bisection behind it."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from anonymizer.algorithms.positions.spanning_forest import (
    compact_parts,
    planar_coordinates,
    road_metres,
    spanning_forest,
)
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from tests import naive
from tests.graphs import network_of, networks, two_islands

CITY = load_network("city:400")


def forest_is_spanning(network: RoadNetwork) -> bool:
    forest = spanning_forest(network)
    graph = naive.graph_of(network).to_undirected()
    roads = [(v, p) for v, p in enumerate(forest.parent_of.tolist()) if v != p]
    tree: nx.Graph[int] = nx.Graph(roads)
    tree.add_nodes_from(graph)
    return (
        all(graph.has_edge(*road) for road in roads)
        and nx.is_forest(tree)
        and sorted(map(sorted, nx.connected_components(tree)))
        == sorted(map(sorted, nx.connected_components(graph)))
    )


@given(networks())
def test_the_forest_spans_each_component_with_one_tree(network: RoadNetwork) -> None:
    assert forest_is_spanning(network)


@pytest.mark.parametrize("source", ["grid:1x2", "grid:7x9", "city:400"])
def test_the_forest_spans_a_network_with_coordinates(source: str) -> None:
    assert forest_is_spanning(load_network(source))


@given(networks())
def test_the_order_has_every_node_once_and_parents_before_children(network: RoadNetwork) -> None:
    forest = spanning_forest(network)
    order = forest.order.tolist()
    assert sorted(order) == list(range(network.n_nodes))
    place_of = {v: i for i, v in enumerate(order)}
    for v, p in enumerate(forest.parent_of.tolist()):
        assert place_of[p] < place_of[v] or p == v


@given(networks())
def test_trees_are_consecutive_in_the_order_and_each_starts_with_its_smallest_node(
    network: RoadNetwork,
) -> None:
    forest = spanning_forest(network)
    trees = network.component_of[forest.order]
    roots = forest.order[forest.parent_of[forest.order] == forest.order]
    assert len(roots) == network.n_components == 1 + (np.diff(trees) != 0).sum()
    for root in roots.tolist():
        component = np.flatnonzero(network.component_of == network.component_of[root])
        assert root == component.min()


@pytest.mark.parametrize("network", [CITY, load_network("grid:9x7"), network_of(37, [])])
@pytest.mark.parametrize("n", [1, 2, 8, 16])
def test_there_are_as_many_parts_as_requested_of_sizes_that_differ_by_one_at_most(
    network: RoadNetwork, n: int
) -> None:
    sizes = np.bincount(compact_parts(network, n), minlength=n)
    assert len(sizes) == n
    assert sizes.max() - sizes.min() <= 1


def test_with_more_parts_than_nodes_each_node_has_a_part_of_its_own() -> None:
    assert len(set(compact_parts(network_of(3, []), 64).tolist())) == 3


def test_parts_are_compact() -> None:
    x, y = planar_coordinates(CITY)
    part = compact_parts(CITY, 16)
    area = np.ptp(x) * np.ptp(y)
    boxes = [np.ptp(x[part == p]) * np.ptp(y[part == p]) for p in range(16)]
    assert sum(boxes) < area, "boxes of random parts would cover it 16 times"


def test_the_forest_joins_neighbours_in_the_same_part_first() -> None:
    # The tree leaves each of 16 parts by few roads, so it is nearly connected within each.
    part, parent_of = compact_parts(CITY, 16), spanning_forest(CITY).parent_of
    crossing = part != part[parent_of]
    assert crossing.sum() < 2 * 16


def test_a_network_without_coordinates_is_bisected_by_the_order_of_its_nodes() -> None:
    assert compact_parts(two_islands(), 2).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_equal_networks_give_equal_forests() -> None:
    once, again = spanning_forest(CITY), spanning_forest(load_network("city:400"))
    assert once.parent_of.tolist() == again.parent_of.tolist()
    assert once.order.tolist() == again.order.tolist()


def test_every_road_counts_half_at_each_of_its_ends() -> None:
    metres = road_metres(CITY)
    assert metres.sum() == pytest.approx(CITY.length_m.sum() / 2)
    arcs = slice(*CITY.first_arc_of[7:9].tolist())
    assert metres[7] == pytest.approx(CITY.length_m[arcs].sum() / 2)

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from anonymizer.algorithms.positions.spanning_forest import (
    plane,
    quarters,
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
def test_parents_come_before_children_and_every_node_once(network: RoadNetwork) -> None:
    forest = spanning_forest(network)
    order = forest.order.tolist()
    assert sorted(order) == list(range(network.n_nodes))
    place_of = {v: i for i, v in enumerate(order)}
    for v, p in enumerate(forest.parent_of.tolist()):
        assert place_of[p] < place_of[v] or p == v


@given(networks())
def test_the_trees_stand_one_after_the_other_each_behind_its_smallest_node(
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
def test_quarters_are_as_many_as_asked_and_of_equal_size_but_for_rounding(
    network: RoadNetwork, n: int
) -> None:
    sizes = np.bincount(quarters(network, n), minlength=n)
    assert len(sizes) == n
    assert sizes.max() - sizes.min() <= 1


def test_more_quarters_than_nodes_leave_each_node_its_own() -> None:
    assert len(set(quarters(network_of(3, []), 64).tolist())) == 3


def test_quarters_are_compact() -> None:
    x, y = plane(CITY)
    quarter = quarters(CITY, 16)
    area = np.ptp(x) * np.ptp(y)
    boxes = [np.ptp(x[quarter == q]) * np.ptp(y[quarter == q]) for q in range(16)]
    assert sum(boxes) < area, "boxes of random parts would cover it 16 times"


def test_the_forest_joins_neighbours_of_one_quarter_first() -> None:
    # A tree leaves each of 16 quarters by few roads: it is nearly one piece within each.
    quarter, parent_of = quarters(CITY, 16), spanning_forest(CITY).parent_of
    crossing = quarter != quarter[parent_of]
    assert crossing.sum() < 2 * 16


def test_without_coordinates_the_order_of_nodes_stands_in_for_them() -> None:
    assert quarters(two_islands(), 2).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_equal_networks_give_equal_forests() -> None:
    once, again = spanning_forest(CITY), spanning_forest(load_network("city:400"))
    assert once.parent_of.tolist() == again.parent_of.tolist()
    assert once.order.tolist() == again.order.tolist()


def test_every_road_is_shared_by_its_ends() -> None:
    metres = road_metres(CITY)
    assert metres.sum() == pytest.approx(CITY.length_m.sum() / 2)
    arcs = slice(*CITY.first_arc_of[7:9].tolist())
    assert metres[7] == pytest.approx(CITY.length_m[arcs].sum() / 2)

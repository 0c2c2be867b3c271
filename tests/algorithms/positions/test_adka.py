"""ADKA: regions and k against naive twins, and the worked example of the seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.adka import DensityRule, Regions, grow_regions
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.networks import load_network
from tests import naive
from tests.algorithms.positions.releases import devices_at
from tests.graphs import network_of, two_islands
from tests.lanes import each_of_both, some

RULE = DensityRule()


def grow(
    density: DensityMap, root: list[int], k: list[int], *, max_nodes: int = 1000
) -> list[list[int] | Outcome]:
    regions = grow_regions(
        density, np.array(root, np.int32), np.array(k, np.int32), max_nodes=max_nodes
    )
    return unpacked(regions)


def unpacked(regions: Regions) -> list[list[int] | Outcome]:
    starts = regions.first_node_of.tolist()
    return [
        regions.node[starts[r] : starts[r + 1]].tolist() if outcome == Outcome.HELD else outcome
        for r, outcome in enumerate(map(Outcome, regions.outcome.tolist()))
    ]


def assert_equal_to_the_twin_on_every_node(
    network: RoadNetwork, nodes: list[int], *, max_nodes: int
) -> None:
    density = devices_at(network, nodes)
    graph = naive.graph_of(network)
    at: dict[int, set[int]] = {}
    for device, node in enumerate(nodes):
        at.setdefault(node, set()).add(device)
    n_at = {v: len(devices) for v, devices in at.items()}
    n_near = naive.density(graph, at)
    expected_k = [naive.k_for(n_near[v], steps=(4, 10), values=(10, 5, 2), floor=2) for v in graph]
    k = RULE.k_for(density.n_near)
    assert k.tolist() == expected_k
    population = naive.component_population(graph, n_at)
    assert grow(density, list(graph), expected_k, max_nodes=max_nodes) == [
        naive.bfs_region(graph, n_at, population, v, expected_k[v], max_nodes=max_nodes)
        for v in graph
    ]


def test_the_worked_example_of_the_seed() -> None:
    density = devices_at(load_network("grid:5x5"), [7, 2, 6, 6, 12, 8])
    assert density.n_near[7] == 6
    assert RULE.k_for(density.n_near[[7]]).tolist() == [5]
    [region] = grow(density, [7], [5])
    assert region == [7, 2, 6, 12]  # north, west, south; east was not needed


@pytest.mark.parametrize(
    ("load", "source"), each_of_both([0.05, 0.3, 1.0, 5.0], ["grid:50x50", "grid:5x5"])
)
def test_every_node_of_a_grid_gets_the_twin_s_region(load: float, source: str) -> None:
    network = load_network(source)
    rng = np.random.default_rng(7)
    for max_nodes in (5, 1000):
        nodes = rng.integers(0, network.n_nodes, round(load * network.n_nodes)).tolist()
        assert_equal_to_the_twin_on_every_node(network, nodes, max_nodes=max_nodes)


@pytest.mark.parametrize("load", some([0.1, 1.0, 10.0], [1.0]))
def test_every_node_of_an_irregular_city_gets_the_twin_s_region(load: float) -> None:
    network = load_network("city:10000")
    rng = np.random.default_rng(8)
    nodes = rng.integers(0, network.n_nodes, round(load * network.n_nodes)).tolist()
    assert_equal_to_the_twin_on_every_node(network, nodes, max_nodes=60)


@given(
    st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=15),
    st.lists(st.integers(0, 9), max_size=15),
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), max_size=12),
    st.integers(1, 10),
)
def test_any_graph_any_devices_any_roots_and_any_k_give_the_twin_s_regions(
    roads: set[tuple[int, int]],
    nodes: list[int],
    requests: list[tuple[int, int]],
    max_nodes: int,
) -> None:
    network = network_of(10, sorted(roads))
    graph = naive.graph_of(network)
    n_at = {v: nodes.count(v) for v in graph}
    population = naive.component_population(graph, n_at)
    root, k = [v for v, _ in requests], [k for _, k in requests]
    assert grow(devices_at(network, nodes), root, k, max_nodes=max_nodes) == [
        naive.bfs_region(graph, n_at, population, v, k, max_nodes=max_nodes) for v, k in requests
    ]


def test_a_region_at_the_cap_is_returned_and_one_beyond_it_is_refused() -> None:
    density = devices_at(load_network("grid:5x5"), [0, 24])
    [region] = grow(density, [0], [2])
    assert isinstance(region, list)
    assert len(region) == 25
    assert grow(density, [0], [2], max_nodes=25) == [region]
    assert grow(density, [0], [2], max_nodes=24) == [Outcome.SUPPRESSED__REGION_TOO_LARGE]


def test_a_refused_region_does_not_disturb_the_others() -> None:
    density = devices_at(load_network("grid:5x5"), [0, 0, 24])
    assert grow(density, [12, 0, 24, 0], [3, 2, 4, 1], max_nodes=2) == [
        Outcome.SUPPRESSED__REGION_TOO_LARGE,
        [0],
        Outcome.SUPPRESSED__TOO_FEW_DEVICES,
        [0],
    ]


def test_a_component_with_fewer_than_k_devices_has_no_region_even_if_others_have_more() -> None:
    density = devices_at(two_islands(), [0, 1, 2, 3, 5])
    assert grow(density, [5, 7, 0], [2, 2, 2]) == [
        Outcome.SUPPRESSED__TOO_FEW_DEVICES,
        Outcome.SUPPRESSED__TOO_FEW_DEVICES,
        [0, 1],
    ]


def test_a_cap_beyond_the_network_costs_no_memory() -> None:
    density = devices_at(two_islands(), [0, 1])
    assert grow(density, [0], [2], max_nodes=2**40) == [[0, 1]]


def test_the_buffer_grows_for_many_large_regions() -> None:
    network = load_network("grid:20x20")
    density = devices_at(network, [0, 399])
    regions = grow(density, list(range(400)), [2] * 400)
    assert all(isinstance(region, list) and {0, 399} <= set(region) for region in regions)


@given(
    st.sets(st.integers(1, 20), max_size=4).map(sorted),
    st.lists(st.integers(1, 20), min_size=5, max_size=5),
    st.integers(2, 8),
)
def test_k_follows_any_steps_values_and_floor(
    steps: list[int], values: list[int], floor: int
) -> None:
    values = values[: len(steps) + 1]
    rule = DensityRule(tuple(steps), tuple(values), floor)
    densities = np.arange(25, dtype=np.int32)
    expected = [naive.k_for(d, steps=steps, values=values, floor=floor) for d in range(25)]
    assert rule.k_for(densities).tolist() == expected
    assert min(expected) >= floor


def test_k_falls_at_the_densities_of_the_paper() -> None:
    k = RULE.k_for(np.array([0, 3, 4, 9, 10, 10_000], np.int32))
    assert k.tolist() == [10, 10, 5, 5, 2, 2]

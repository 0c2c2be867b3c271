"""Nodes that were put into long roads are places, and no junctions: the source's graph is known."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.adka import grow_regions
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.hops import hops_of
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.networks import load_network
from anonymizer.networks.as_loaded import as_loaded, network_for
from anonymizer.networks.layers import joined
from tests import naive
from tests.networks.test_drawn_roads import build, drawn_m, roads

EQUAL = ("node_id", "lat", "lon", "first_arc_of", "neighbour_of", "speed_mps", "drivable")
spacings = st.sampled_from([60.0, 130.0, 400.0])


def assert_equal(found: RoadNetwork, loaded: RoadNetwork) -> None:
    for name in (*EQUAL, "component_of"):
        np.testing.assert_array_equal(getattr(found, name), getattr(loaded, name), err_msg=name)
    np.testing.assert_allclose(found.length_m, loaded.length_m)
    np.testing.assert_allclose(drawn_m(found), drawn_m(loaded), rtol=1e-6)
    assert found.inner is None
    assert network_version(found) == network_version(loaded)


@given(roads, spacings)
def test_taking_nodes_out_of_roads_gives_the_network_that_is_loaded_without_them(
    drawn: list[tuple[int, int, int]], spacing_m: float
) -> None:
    assert_equal(as_loaded(build(drawn, max_spacing_m=spacing_m)), build(drawn, max_spacing_m=0))


@given(roads, roads, spacings)
def test_of_several_networks_each_is_as_it_was_loaded(
    some: list[tuple[int, int, int]], others: list[tuple[int, int, int]], spacing_m: float
) -> None:
    names = ("a", "b")
    fine = joined(names, [build(each, max_spacing_m=spacing_m) for each in (some, others)])
    coarse = joined(names, [build(each, max_spacing_m=0) for each in (some, others)])
    found = as_loaded(fine)
    assert_equal(found, coarse)
    assert [each.nodes for each in found.layers] == [each.nodes for each in coarse.layers]


@given(roads, spacings, st.lists(st.integers(0, 200), max_size=30), st.data())
def test_density_counts_junctions_however_long_their_roads_are(
    drawn: list[tuple[int, int, int]], spacing_m: float, places: list[int], data: st.DataObject
) -> None:
    fine, loaded = build(drawn, max_spacing_m=spacing_m), build(drawn, max_spacing_m=0)
    node = np.array(places, np.int32) % fine.n_nodes
    slot = np.arange(len(node), dtype=np.int32)
    density = DensityMap.empty(fine)
    density.advance(slot, np.zeros(len(node)), node)
    at = density.hops.junction_of[node]
    assert (at < loaded.n_nodes).all()
    beside = DensityMap.empty(loaded)
    beside.advance(slot, np.zeros(len(node)), at)
    everywhere = np.arange(fine.n_nodes, dtype=np.int32)
    junction_of = density.hops.junction_of
    np.testing.assert_array_equal(density.near(everywhere), beside.n_near[junction_of])
    chosen = np.zeros(len(density.node_of), bool)
    chosen[: len(node)] = data.draw(st.lists(st.booleans(), min_size=len(node), max_size=len(node)))
    few = beside.near_only(chosen)[junction_of]
    np.testing.assert_array_equal(density.near_only(chosen), few)
    leaving = slot[: len(slot) // 2]
    density.remove(leaving)
    beside.remove(leaving)
    np.testing.assert_array_equal(density.near(everywhere), beside.n_near[junction_of])


@given(roads, spacings)
def test_a_node_within_a_road_belongs_to_the_nearer_end(
    drawn: list[tuple[int, int, int]], spacing_m: float
) -> None:
    fine = build(drawn, max_spacing_m=spacing_m)
    graph = naive.graph_of(fine)
    junction_of = hops_of(fine).junction_of.tolist()
    for v in range(fine.n_nodes):
        if v < 6:
            assert junction_of[v] == v
            continue
        ends = []
        for step in graph[v]:
            way = [v, step]
            while way[-1] >= 6:
                way.append(next(u for u in graph[way[-1]] if u != way[-2]))
            metres = [fine.length_m[naive._arc(fine, *pair)] for pair in pairwise(way)]
            ends.append((round(float(sum(metres)), 3), way[-1]))
        assert junction_of[v] == min(ends)[1]


def test_networks_without_such_nodes_stay_as_they_are() -> None:
    for source in ("grid:4x5", "city:300"):
        network = load_network(source)
        assert network.inner is None
        assert as_loaded(network) is network
        assert network_for("adka", network) is network


def test_only_adka_takes_them_out_and_it_refuses_to_grow_over_them() -> None:
    fine = build([(0, 1, 0), (1, 2, 0)], max_spacing_m=100)
    assert network_for("session", fine) is fine
    assert network_for("adka", fine).n_nodes == 6
    root = np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="as loaded"):
        grow_regions(DensityMap.empty(fine), root, np.ones(1, np.int32), max_nodes=5)

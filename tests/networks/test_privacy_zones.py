import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.protection import Circle, Zones, keep_out
from anonymizer.domain.arrays import BoolArray
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import without_nodes
from anonymizer.pipeline.positions.factory import cloaking_operator
from anonymizer.settings import Settings
from tests.networks.twins import arcs, as_graph, components

GRID = load_network("grid:6x6")
CITY = load_network("city:300")

closures = st.lists(st.booleans(), min_size=36, max_size=36).map(np.array)


def settings(mode: str, min_nodes: int) -> Settings:
    tables = {
        "region": {"mode": mode, "min_nodes": min_nodes},
        "adka": {"k_values": [2], "density_steps": []},
        "session": {"settle_s": 0, "epoch_s": 4, "cells": 2},
    }
    return Settings.model_validate(tables)


@given(closures)
def test_just_the_roads_at_closed_nodes_are_gone_and_components_are_those_of_the_rest(
    closed: BoolArray,
) -> None:
    rest = without_nodes(GRID, closed)
    kept = [arc for arc in arcs(GRID) if not (closed[arc[0]] or closed[arc[1]])]
    assert arcs(rest) == kept
    assert rest.component_of.tolist() == components(as_graph(rest))
    for name in ("node_id", "lat", "lon"):
        np.testing.assert_array_equal(getattr(rest, name), getattr(GRID, name))


def test_one_way_streets_and_speeds_of_a_city_stay_what_they_were() -> None:
    rest = without_nodes(CITY, np.zeros(CITY.n_nodes, bool))
    assert arcs(rest) == arcs(CITY)
    for name in ("first_arc_of", "speed_mps", "component_of"):
        np.testing.assert_array_equal(getattr(rest, name), getattr(CITY, name))


def test_a_network_wholly_closed_is_nodes_alone() -> None:
    rest = without_nodes(GRID, np.ones(36, bool))
    assert (rest.n_roads, rest.n_components) == (0, 36)


@pytest.mark.parametrize("min_nodes", [1, 4])
@pytest.mark.parametrize("mode", ["bfs", "snapshot", "session"])
@given(closures, st.integers(0, 1000))
def test_no_region_of_any_cloak_contains_or_passes_through_a_closed_node(
    mode: str, min_nodes: int, closed: BoolArray, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    operator = cloaking_operator(settings(mode, min_nodes), without_nodes(GRID, closed))
    slot = np.arange(14, dtype=np.int32)
    for now in range(8):
        node = keep_out(rng.integers(-1, 36, 14).astype(np.int32), closed=closed)
        release = operator.tick(slot, np.full(14, float(now)), node, now=now).release
        assert not closed[release.node].any()


def test_a_wall_of_closed_nodes_keeps_devices_on_either_side_apart() -> None:
    closed = np.arange(36) // 6 == 2
    slot = np.array([0, 1, 2], np.int32)
    node = np.array([6, 18, 19], np.int32)
    for mode in ("bfs", "snapshot"):
        for network, n_released in ((GRID, 3), (without_nodes(GRID, closed), 2)):
            operator = cloaking_operator(settings(mode, 1), network)
            release = operator.tick(slot, np.zeros(3), node, now=0).release
            assert len(release.member) == n_released, mode


@pytest.mark.parametrize("mode", ["bfs", "snapshot", "session"])
def test_devices_at_a_closed_node_would_make_it_a_region_and_so_are_kept_out(mode: str) -> None:
    closed = np.arange(36) == 14
    slot, at = np.arange(3, dtype=np.int32), np.full(3, 14, np.int32)
    for node, regions in ((at, [14]), (keep_out(at, closed=closed), [])):
        operator = cloaking_operator(settings(mode, 1), without_nodes(GRID, closed))
        release = operator.tick(slot, np.zeros(3), node, now=0).release
        assert release.node.tolist() == regions
        assert operator.density.n_devices == len(regions) * 3


def test_a_device_that_enters_a_zone_leaves_the_density_map_as_if_off_the_graph() -> None:
    zones = Zones([Circle(float(GRID.lat[14]), float(GRID.lon[14]), 10)])
    closed = zones.contains(GRID.lat, GRID.lon)
    assert np.flatnonzero(closed).tolist() == [14]
    operator = cloaking_operator(settings("bfs", 1), without_nodes(GRID, closed))
    slot = np.arange(3, dtype=np.int32)
    operator.tick(slot, np.zeros(3), np.full(3, 13, np.int32), now=0)
    node = keep_out(np.array([14, 13, 13], np.int32), closed=closed)
    result = operator.tick(slot, np.ones(3), node, now=1)
    assert operator.density.n_devices == 2
    assert result.release.member.tolist() == [1, 2]

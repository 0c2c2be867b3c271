"""Map matching against brute force, at the limit and across the date line."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.positions.map_matching import OFF_GRAPH, NodeLocator
from anonymizer.networks import load_network
from tests import naive
from tests.graphs import two_islands

GRID = load_network("grid:5x5")
CITY = load_network("city:300")

# Up to about 300 m beyond the nodes.
near_the_city = st.tuples(
    st.floats(float(CITY.lat.min()) - 0.003, float(CITY.lat.max()) + 0.003),
    st.floats(float(CITY.lon.min()) - 0.006, float(CITY.lon.max()) + 0.006),
)


@given(st.lists(near_the_city, max_size=10), st.floats(1, 500))
@settings(max_examples=50)
def test_the_nearest_node_is_the_one_that_brute_force_finds(
    where: list[tuple[float, float]], limit_m: float
) -> None:
    lat, lon = np.array(where, np.float64).reshape(-1, 2).T
    found = NodeLocator(CITY, limit_m=limit_m).locate(lat, lon).tolist()
    for (a, b), node in zip(where, found, strict=True):
        nearest, distance_m = naive.nearest_node(CITY, a, b)
        if node == OFF_GRAPH:
            assert distance_m > limit_m - 1e-6
        else:
            # If two distances differ by less than a micrometre, either node will do.
            there_m = naive.haversine_m(a, b, float(CITY.lat[node]), float(CITY.lon[node]))
            assert node == nearest or there_m == pytest.approx(distance_m, abs=1e-6)
            assert distance_m <= limit_m + 1e-6


def test_every_node_is_nearest_to_itself() -> None:
    nodes = NodeLocator(CITY, limit_m=0.001).locate(CITY.lat, CITY.lon)
    np.testing.assert_array_equal(nodes, np.arange(CITY.n_nodes))


def test_a_position_beyond_the_limit_is_off_the_graph_and_one_within_is_not() -> None:
    lat = GRID.lat[[12]] + np.degrees(30.0 / 6_371_008.8)
    lon = GRID.lon[[12]]
    assert NodeLocator(GRID, limit_m=29.99).locate(lat, lon).tolist() == [OFF_GRAPH]
    assert NodeLocator(GRID, limit_m=30.01).locate(lat, lon).tolist() == [12]


def test_a_position_across_the_date_line_finds_its_node() -> None:
    grid = load_network("grid:2x2")
    moved = replace(grid, lat=np.zeros(4), lon=np.array([179.9999, 179.0, 0.0, -179.0]))
    locator = NodeLocator(moved, limit_m=100)
    assert locator.locate(np.zeros(1), np.array([-179.9999])).tolist() == [0]


def test_an_empty_batch_gives_no_nodes() -> None:
    nodes = NodeLocator(GRID, limit_m=10).locate(np.zeros(0), np.zeros(0))
    assert nodes.shape == (0,)
    assert nodes.dtype == np.int32


def test_a_network_without_coordinates_cannot_locate_positions() -> None:
    with pytest.raises(ValueError, match="without coordinates"):
        NodeLocator(two_islands(), limit_m=10)


@pytest.mark.data
def test_positions_in_san_francisco_find_the_same_nodes_as_brute_force() -> None:
    folder = Path(os.environ["ANONYMIZER_DATA"])
    network = load_network(str(folder / "networks" / "san_francisco"))
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(37.70, 37.82, 30), rng.uniform(-122.52, -122.36, 30)
    found = NodeLocator(network, limit_m=150).locate(lat, lon).tolist()
    for a, b, node in zip(lat.tolist(), lon.tolist(), found, strict=True):
        nearest, distance_m = naive.nearest_node(network, a, b)
        assert node == (nearest if distance_m <= 150 else OFF_GRAPH)

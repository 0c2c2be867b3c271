"""Map matching against brute force, at the limit and across the date line."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.map_matching import OFF_GRAPH, NodeLocator
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import from_arrays, load_network
from anonymizer.networks.drawn_roads import Corners
from tests import naive
from tests.graphs import two_islands


def network_of_line(lat: list[float], lon: list[float]) -> RoadNetwork:
    """Return one road with corners between two nodes."""
    return from_arrays(
        node_id=np.arange(2),
        lat=np.array([lat[0], lat[-1]]),
        lon=np.array([lon[0], lon[-1]]),
        u=np.zeros(1, np.int64),
        v=np.ones(1, np.int64),
        length_m=np.full(1, np.nan),
        speed_mps=np.ones(1),
        forward=np.ones(1, np.bool_),
        backward=np.ones(1, np.bool_),
        corners=Corners(np.array([0, len(lat) - 2]), np.array(lat[1:-1]), np.array(lon[1:-1])),
    )


def bent(network: RoadNetwork) -> RoadNetwork:
    """Return a network with the same nodes, whose roads have up to three corners, and one node
    without a road."""
    rng = np.random.default_rng(1)
    lines = network.lines()
    n = rng.integers(0, 4, len(lines.tail))
    road = np.repeat(np.arange(len(n)), n)
    middle_lat = (network.lat[lines.tail] + network.lat[lines.head])[road] / 2
    middle_lon = (network.lon[lines.tail] + network.lon[lines.head])[road] / 2
    return from_arrays(
        node_id=np.arange(network.n_nodes + 1),
        lat=np.append(network.lat, network.lat.max() + 0.001),
        lon=np.append(network.lon, network.lon.mean()),
        u=lines.tail.astype(np.int64),
        v=lines.head.astype(np.int64),
        length_m=np.full(len(n), np.nan),
        speed_mps=np.ones(len(n)),
        forward=np.ones(len(n), np.bool_),
        backward=np.ones(len(n), np.bool_),
        corners=Corners(
            np.concatenate(([0], np.cumsum(n))),
            middle_lat + rng.normal(0, 2e-4, len(road)),
            middle_lon + rng.normal(0, 4e-4, len(road)),
        ),
        max_spacing_m=300.0,
    )


GRID = load_network("grid:5x5")
CITY = load_network("city:300")
COUNTRY = bent(CITY)

# Up to about 300 m beyond the nodes.
near_the_city = st.tuples(
    st.floats(float(CITY.lat.min()) - 0.003, float(CITY.lat.max()) + 0.003),
    st.floats(float(CITY.lon.min()) - 0.006, float(CITY.lon.max()) + 0.006),
)


@given(st.lists(near_the_city, max_size=6), st.floats(1, 500))
@settings(max_examples=30)
@pytest.mark.parametrize("network", [CITY, COUNTRY], ids=["city", "country"])
def test_a_position_is_at_the_nearer_end_of_the_road_that_brute_force_finds(
    network: RoadNetwork, where: list[tuple[float, float]], limit_m: float
) -> None:
    lat, lon = np.array(where, np.float64).reshape(-1, 2).T
    found = NodeLocator(network, limit_m=limit_m).locate(lat, lon).tolist()
    for (a, b), node in zip(where, found, strict=True):
        _, distance_m = naive.located(network, a, b)
        if node == OFF_GRAPH:
            assert distance_m > limit_m - 1e-6
        else:
            assert node in naive.may_be_located_at(network, a, b)
            assert distance_m <= limit_m + 1e-6


def test_every_node_is_located_at_itself() -> None:
    nodes = NodeLocator(CITY, limit_m=0.001).locate(CITY.lat, CITY.lon)
    np.testing.assert_array_equal(nodes, np.arange(CITY.n_nodes))


def test_on_a_grid_the_nearer_end_of_the_nearest_road_is_the_nearest_node() -> None:
    rng = np.random.default_rng(0)
    lat = rng.uniform(GRID.lat.min() - 2e-4, GRID.lat.max() + 2e-4, 500)
    lon = rng.uniform(GRID.lon.min() - 4e-4, GRID.lon.max() + 4e-4, 500)
    nearest = haversine_m(lat[:, None], lon[:, None], GRID.lat, GRID.lon).argmin(axis=1)
    np.testing.assert_array_equal(NodeLocator(GRID, limit_m=150).locate(lat, lon), nearest)


def test_a_position_on_a_long_road_is_on_the_graph_however_far_its_ends_are() -> None:
    lat, lon = np.full(3, 60.0), np.array([24.01, 24.04, 24.06])
    road = network_of_line([60.0, 60.0], [24.0, 24.09])
    assert NodeLocator(road, limit_m=3).locate(lat, lon).tolist() == [0, 0, 1]


def test_the_nearer_end_is_measured_along_the_road_and_not_across_its_bends() -> None:
    # A hairpin: its middle corner is far east; both ends are in the west, one above the other.
    hairpin = network_of_line([60.0, 60.0, 60.002], [24.0, 24.02, 24.0])
    places = np.array([60.0, 60.002]), np.array([24.001, 24.001])
    assert NodeLocator(hairpin, limit_m=50).locate(*places).tolist() == [0, 1]


def test_a_position_at_a_corner_beyond_the_middle_is_at_the_far_end() -> None:
    # A straight road of 3 km, and then a zigzag: each position is outside one of its corners.
    tip = np.arange(8.0)
    lat, lon = 60 + 0.0005 * (tip % 2), 24.06 + 0.001 * tip
    road = network_of_line([60.0, *lat.tolist()], [24.0, *lon.tolist()])
    outside = lat + 1e-4 * (2 * (tip % 2) - 1)
    assert NodeLocator(road, limit_m=50).locate(outside, lon).tolist() == [1] * 8


def test_a_position_beyond_the_limit_is_off_the_graph_and_one_within_is_not() -> None:
    lat = GRID.lat[[2]] + np.degrees(30.0 / 6_371_008.8)
    lon = GRID.lon[[2]]
    assert NodeLocator(GRID, limit_m=29.99).locate(lat, lon).tolist() == [OFF_GRAPH]
    assert NodeLocator(GRID, limit_m=30.01).locate(lat, lon).tolist() == [2]


def test_a_position_far_from_every_road_finds_the_nearest_one_without_a_limit() -> None:
    lat, lon = np.array([-60.0, 60.3]), np.array([-155.0, 25.2])
    found = NodeLocator(CITY, limit_m=np.inf).locate(lat, lon).tolist()
    for a, b, node in zip(lat.tolist(), lon.tolist(), found, strict=True):
        assert node in naive.may_be_located_at(CITY, a, b)


@pytest.mark.parametrize("lat", [0.0, 65.0, 89.9999])
def test_a_position_across_the_date_line_is_on_the_road_that_crosses_it(lat: float) -> None:
    road = network_of_line([lat, lat], [179.999, -179.999])
    locator = NodeLocator(road, limit_m=5)
    where = np.full(2, lat), np.array([179.9995, -179.9995])
    assert locator.locate(*where).tolist() == [0, 1]


def test_a_network_around_the_world_is_searched_without_a_gap() -> None:
    lat, lon = [0.0, 0.0, 0.0, 0.0, 80.0], [0.0, 100.0, -160.0, -80.0, -80.0]
    around = network_of_line(lat, lon)
    places = np.array([1e-4, -1e-4, 0.0, 79.0]), np.array([60.0, 140.0, -100.0, -80.0])
    found = NodeLocator(around, limit_m=100).locate(*places).tolist()
    for a, b, node in zip(*(each.tolist() for each in places), found, strict=True):
        assert node in naive.may_be_located_at(around, a, b)


@given(st.lists(st.tuples(near_the_city, st.floats(0, 360)), max_size=6), st.floats(1, 300))
@settings(max_examples=30)
@pytest.mark.parametrize("of", ["city", "country"])
def test_with_a_heading_a_position_is_on_the_road_that_is_likeliest(
    of: str, where: list[tuple[tuple[float, float], float]], limit_m: float
) -> None:
    network = {"city": CITY, "country": COUNTRY}[of]  # hypothesis would print all of it
    lat, lon = np.array([place for place, _ in where], np.float64).reshape(-1, 2).T
    heading = np.array([heading for _, heading in where])
    locator = NodeLocator(network, limit_m=limit_m)
    found = locator.locate(lat, lon, heading).tolist()
    nearest = locator.locate(lat, lon).tolist()
    without_road = set(np.flatnonzero(np.diff(network.first_arc_of) == 0).tolist())
    for ((a, b), toward), node, without in zip(where, found, nearest, strict=True):
        assert (node == OFF_GRAPH) == (without == OFF_GRAPH)
        if node != OFF_GRAPH and without not in without_road:
            right = naive.may_be_located_with_heading(network, a, b, toward, limit_m=limit_m)
            assert node in right | without_road


def roads(*lines: tuple[float, float, float, float, bool]) -> RoadNetwork:
    """Return straight roads from x, y to x, y, in metres around 60, 24; some are two-way."""
    x, y = np.array([[line[:3:2], line[1:4:2]] for line in lines]).transpose(1, 0, 2).reshape(2, -1)
    n = len(lines)
    return from_arrays(
        node_id=np.arange(2 * n),
        lat=60 + y / METRES,
        lon=24 + x / METRES / np.cos(np.radians(60)),
        u=np.arange(n) * 2,
        v=np.arange(n) * 2 + 1,
        length_m=np.full(n, np.nan),
        speed_mps=np.ones(n),
        forward=np.ones(n, np.bool_),
        backward=np.array([line[4] for line in lines]),
    )


METRES = 6_371_008.8 * np.pi / 180
"""Metres of a degree of latitude."""
EAST, WEST, NORTH = 90.0, 270.0, 0.0


@pytest.mark.parametrize(
    ("network", "metres_north", "heading", "road"),
    [
        # A main road to the east, and 8 m north of it the end of a side road.
        (CORNER := roads((-50, 0, 50, 0, True), (0, 8, 0, 80, True)), 5, np.nan, 1),
        (CORNER, 5, EAST, 0),
        (CORNER, 5, WEST, 0),  # in both directions
        (CORNER, 5, NORTH, 1),
        (CORNER, 5, 360 + EAST, 0),
        (CORNER, 3, 45.0, 0),  # fits neither: the nearer one
        (roads((-50, 0, 50, 0, True), (0, 30, 0, 90, True)), 28, EAST, 1),  # not equally near
        # Carriageways 10 m apart, to the east and, north of it, to the west.
        (PAIR := roads((-50, 0, 50, 0, False), (50, 10, -50, 10, False)), 6, np.nan, 1),
        (PAIR, 6, EAST, 0),
        (PAIR, 6, WEST, 1),
        (PAIR, 4, WEST, 1),
    ],
)
def test_of_two_roads_equally_near_the_heading_decides(
    network: RoadNetwork, metres_north: float, heading: float, road: int
) -> None:
    lat, lon = np.array([60 + metres_north / METRES]), np.array([24.0])
    found = NodeLocator(network, limit_m=50).locate(lat, lon, np.array([heading]))
    assert found[0] // 2 == road


def test_positions_without_a_heading_are_where_they_were() -> None:
    rng = np.random.default_rng(2)
    lat = rng.uniform(COUNTRY.lat.min(), COUNTRY.lat.max(), 5000)
    lon = rng.uniform(COUNTRY.lon.min(), COUNTRY.lon.max(), 5000)
    locator = NodeLocator(COUNTRY, limit_m=100)
    heading = np.where(rng.random(5000) < 0.5, np.nan, rng.uniform(0, 360, 5000))
    nearest, found = locator.locate(lat, lon), locator.locate(lat, lon, heading)
    silent = np.isnan(heading)
    np.testing.assert_array_equal(found[silent], nearest[silent])
    assert (found != nearest).any()


def test_each_position_of_a_batch_is_where_it_is_alone() -> None:
    rng = np.random.default_rng(3)
    network = load_network("city:400")
    at = rng.integers(network.n_nodes, size=300)
    lat = network.lat[at] + rng.normal(0, 1e-3, len(at))
    lon = network.lon[at] + rng.normal(0, 1e-3, len(at))
    toward = np.where(rng.random(len(at)) < 0.5, np.nan, rng.uniform(0, 360, len(at)))
    locator = NodeLocator(network, limit_m=100.0)
    alone = [
        locator.locate(lat[i : i + 1], lon[i : i + 1], toward[i : i + 1])[0] for i in range(len(at))
    ]
    assert locator.locate(lat, lon, toward).tolist() == alone
    assert OFF_GRAPH in alone


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
    lat, lon = rng.uniform(37.70, 37.82, 5), rng.uniform(-122.52, -122.36, 5)
    found = NodeLocator(network, limit_m=150).locate(lat, lon).tolist()
    for a, b, node in zip(lat.tolist(), lon.tolist(), found, strict=True):
        _, distance_m = naive.located(network, a, b)
        right = naive.may_be_located_at(network, a, b) if distance_m <= 150 else {OFF_GRAPH}
        assert node in right

from functools import cache

import networkx as nx
import numpy as np
import pytest

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from anonymizer.networks.speeds import CLASS_SPEED_KMH, KMH
from tests.networks.twins import arcs, as_graph, neighbours

SIZES = (4, 5, 10, 100, 2_000, 10_000)
city = cache(load_network)


def columns(network: RoadNetwork) -> list[list[object]]:
    names = ("node_id", "lat", "lon", "first_arc_of", "neighbour_of", "length_m", "speed_mps")
    return [getattr(network, name).tolist() for name in names]


def ends(network: RoadNetwork) -> tuple[IntArray, IntArray]:
    """Return the ends of each road once."""
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    once = tail < network.neighbour_of
    return tail[once], network.neighbour_of[once].astype(np.int64)


def n_crossings(u: IntArray, v: IntArray, x: FloatArray, y: FloatArray) -> int:
    """Count meetings of two roads elsewhere than at a common end, each twice."""

    def side(a: IntArray, b: IntArray, c: IntArray) -> FloatArray:
        turn = (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a])
        return np.asarray(np.sign(turn), dtype=np.float64)

    crossings = 0
    for road in range(len(u)):
        a, b = np.full(len(u), u[road]), np.full(len(u), v[road])
        apart = (u != a) & (u != b) & (v != a) & (v != b)
        mutual = (side(a, b, u) * side(a, b, v) <= 0) & (side(u, v, a) * side(u, v, b) <= 0)
        crossings += int((apart & mutual).sum())
    return crossings


def test_the_neighbours_of_the_worked_example_stand_north_west_south_east() -> None:
    network = load_network("grid:5x5")
    assert neighbours(network, 7) == [2, 6, 12, 8]
    assert network.node_id.tolist() == list(range(25))


@pytest.mark.parametrize(("rows", "n_columns"), [(5, 5), (1, 2), (2, 1), (3, 7), (50, 50)])
def test_a_grid_is_the_grid_of_networkx(rows: int, n_columns: int) -> None:
    network = load_network(f"grid:{rows}x{n_columns}")
    twin = nx.grid_2d_graph(rows, n_columns)
    expected = {frozenset((a * n_columns + b, c * n_columns + d)) for (a, b), (c, d) in twin.edges}
    assert {frozenset((u, v)) for u, v, _, _ in arcs(network)} == expected
    assert network.n_components == 1
    assert network.drivable.all()


def test_a_grid_lies_on_the_earth_north_up_a_hundred_metres_a_step() -> None:
    network = load_network("grid:5x7")
    lat, lon = network.lat.reshape(5, 7), network.lon.reshape(5, 7)
    assert (np.diff(lat, axis=0) < 0).all()
    assert (np.diff(lon, axis=1) > 0).all()
    u, v = ends(network)
    straight_m = haversine_m(network.lat[u], network.lon[u], network.lat[v], network.lon[v])
    np.testing.assert_allclose(straight_m, 100.0, rtol=1e-3)
    assert set(network.length_m.tolist()) == {100.0}
    assert lat.mean() == pytest.approx(60.1699)
    assert lon.mean() == pytest.approx(24.9384)


@pytest.mark.parametrize("n_nodes", SIZES)
def test_a_city_has_exactly_the_nodes_asked_for_all_connected_on_a_plane(n_nodes: int) -> None:
    network = city(f"city:{n_nodes}")
    assert network.node_id.tolist() == list(range(n_nodes))
    assert network.n_components == 1
    assert nx.check_planarity(as_graph(network))[0]
    assert network.drivable.all()
    assert network.has_coordinates


@pytest.mark.parametrize("n_nodes", [10, 100, 2_000])
def test_no_two_roads_of_a_city_cross(n_nodes: int) -> None:
    network = city(f"city:{n_nodes}")
    assert n_crossings(*ends(network), network.lon, network.lat) == 0


def test_a_crossing_would_be_seen() -> None:
    u, v = np.array([0, 2]), np.array([1, 3])
    assert n_crossings(u, v, np.array([0.0, 1, 0, 1]), np.array([0.0, 1, 1, 0])) == 2


@pytest.mark.parametrize("source", ["city:100", "city:2000", "city:2000:5", "city:10000"])
def test_a_junction_has_three_roads_on_average(source: str) -> None:
    assert 2.8 <= np.diff(city(source).first_arc_of).mean() <= 3.2


@pytest.mark.parametrize("source", ["city:2000", "city:2000:5", "city:10000"])
def test_most_junctions_have_three_or_four_roads_and_some_are_dead_ends(source: str) -> None:
    degree = np.diff(city(source).first_arc_of)
    share = np.bincount(degree) / len(degree)
    assert share[3] + share[4] > 0.7
    assert 0.04 < share[1] < 0.2
    assert degree.max() <= 8


@pytest.mark.parametrize("n_nodes", [2_000, 10_000])
def test_a_city_has_roads_of_all_classes_in_natural_shares(n_nodes: int) -> None:
    network = city(f"city:{n_nodes}")
    kmh = np.round(network.speed_mps / KMH)
    share = {
        name: float((kmh == CLASS_SPEED_KMH[name]).mean())
        for name in ("primary", "secondary", "tertiary", "residential")
    }
    assert sum(share.values()) == pytest.approx(1.0)
    assert 0.02 < share["primary"] < share["secondary"] < share["tertiary"] < share["residential"]


def test_arterial_roads_lead_through_the_city() -> None:
    network = city("city:10000")
    main = as_graph(network).edge_subgraph(
        (u, v)
        for (u, v, _, _), mps in zip(arcs(network), network.speed_mps, strict=True)
        if mps > 45 * KMH
    )
    through = max(nx.connected_components(main), key=len)
    assert len(through) > 0.9 * main.number_of_nodes()
    for axis in (network.lat, network.lon):
        assert np.ptp(axis[list(through)]) > 0.9 * np.ptp(axis)


def test_a_city_is_denser_in_its_centre() -> None:
    network = city("city:10000")
    u, v = ends(network)
    from_centre_m = haversine_m(network.lat[u], network.lon[u], 60.1699, 24.9384)
    length_m = haversine_m(network.lat[u], network.lon[u], network.lat[v], network.lon[v])
    inner, outer = np.quantile(from_centre_m, [0.1, 0.9])
    assert length_m[from_centre_m < inner].mean() < 0.8 * length_m[from_centre_m > outer].mean()


def test_streets_of_a_city_have_the_lengths_of_streets() -> None:
    length_m = city("city:10000").length_m
    assert 80 < np.median(length_m) < 180
    assert length_m.min() > 1
    assert np.quantile(length_m, 0.99) < 400


@pytest.mark.parametrize("source", ["city:100", "city:2000:7"])
def test_equal_sizes_and_seeds_give_equal_cities(source: str) -> None:
    assert columns(load_network(source)) == columns(load_network(source))


def test_seeds_give_different_cities_and_none_is_seed_zero() -> None:
    assert columns(city("city:100")) == columns(city("city:100:0"))
    assert columns(city("city:100")) != columns(city("city:100:1"))


@pytest.mark.parametrize("seed", range(1, 13))
def test_small_cities_of_any_seed_are_whole(seed: int) -> None:
    network = load_network(f"city:30:{seed}")
    assert network.n_components == 1
    assert n_crossings(*ends(network), network.lon, network.lat) == 0

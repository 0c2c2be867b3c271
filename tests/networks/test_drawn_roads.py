from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks import from_arrays, from_networkx, load_network
from anonymizer.networks.drawn_roads import Corners
from tests.networks.twins import arcs, as_graph

# Nodes on a lattice of about 1.1 km by 0.6 km; corners a little off the middle of a road.
ends = st.integers(0, 5)
roads = st.lists(st.tuples(ends, ends, st.integers(0, 3)), min_size=1, max_size=8)
LAT = np.array([60.0, 60.0, 60.0, 60.01, 60.01, 60.01])
LON = np.array([24.0, 24.01, 24.02, 24.0, 24.01, 24.02])


def build(drawn: list[tuple[int, int, int]], *, max_spacing_m: float) -> RoadNetwork:
    u, v, n = (np.array(column, np.int64) for column in zip(*drawn, strict=True))
    rng = np.random.default_rng(len(drawn))
    road = np.repeat(np.arange(len(n)), n)
    return from_arrays(
        node_id=np.arange(6) * 10,
        lat=LAT,
        lon=LON,
        u=u,
        v=v,
        length_m=np.full(len(n), np.nan),
        speed_mps=np.ones(len(n)),
        forward=np.ones(len(n), np.bool_),
        backward=np.ones(len(n), np.bool_),
        corners=Corners(
            np.concatenate(([0], np.cumsum(n))),
            (LAT[u] + LAT[v])[road] / 2 + rng.uniform(-0.003, 0.003, len(road)),
            (LON[u] + LON[v])[road] / 2 + rng.uniform(-0.003, 0.003, len(road)),
        ),
        max_spacing_m=max_spacing_m,
    )


def drawn_m(network: RoadNetwork) -> list[float]:
    """Return the length of the line of each road."""
    lines = network.lines()
    step_m = haversine_m(lines.lat[:-1], lines.lon[:-1], lines.lat[1:], lines.lon[1:])
    bounds = lines.first_point_of.tolist()
    return [float(step_m[a : b - 1].sum()) for a, b in pairwise(bounds)]


@given(roads, st.sampled_from([70.0, 250.0, 1e6]))
def test_no_piece_of_a_road_is_longer_than_the_spacing(
    drawn: list[tuple[int, int, int]], spacing_m: float
) -> None:
    network = build(drawn, max_spacing_m=spacing_m)
    lengths = drawn_m(network)
    assert all(length_m <= spacing_m * 1.001 for length_m in lengths)
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    by_lines = network.length_m[tail < network.neighbour_of]
    np.testing.assert_allclose(by_lines, lengths, rtol=1e-6, atol=0.01)


@given(roads)
def test_new_nodes_join_the_same_nodes_and_stand_on_the_drawn_roads(
    drawn: list[tuple[int, int, int]],
) -> None:
    whole, cut = build(drawn, max_spacing_m=0), build(drawn, max_spacing_m=70)
    np.testing.assert_array_equal(cut.node_id[:6], whole.node_id)
    assert sorted(cut.node_id[6:].tolist()) == list(range(6 - cut.n_nodes, 0))
    before, after = as_graph(whole), as_graph(cut)
    for u in range(6):
        for v in range(6):
            assert nx.has_path(before, u, v) == nx.has_path(after, u, v)
    # Every inner node has two neighbours: the ones before and behind it.
    assert {after.degree(v) for v in range(6, cut.n_nodes)} <= {2}


@pytest.mark.parametrize(("spacing_m", "n_roads"), [(1000.0, 1 + 2 + 3), (100.0, 6 + 8 + 3)])
def test_loops_and_parallel_roads_are_roads_of_their_own(spacing_m: float, n_roads: int) -> None:
    # A straight road of 556 m, one of 713 m with a bend, and a loop of 291 m.
    network = from_arrays(
        node_id=np.array(["a", "b"]),
        lat=np.array([60.0, 60.0]),
        lon=np.array([24.0, 24.01]),
        u=np.array([0, 0, 0]),
        v=np.array([1, 1, 0]),
        length_m=np.full(3, np.nan),
        speed_mps=np.ones(3),
        forward=np.ones(3, np.bool_),
        backward=np.array([True, False, True]),
        corners=Corners(
            np.array([0, 0, 1, 3]),
            np.array([60.002, 59.999, 59.999]),
            np.array([24.005, 24.0, 24.001]),
        ),
        max_spacing_m=spacing_m,
    )
    assert network.n_roads == n_roads


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-9, 9)), max_size=9))
def test_no_drawn_road_is_left_out(roads: list[tuple[int, int, int]]) -> None:
    """Loops, and several roads between the same corners, each with a bend of its own."""
    corner = np.array([[60.0, 24.0], [60.0, 24.001], [60.001, 24.0], [60.001, 24.001]])
    u, v, bend = np.array(roads, np.int64).reshape(-1, 3).T
    off = np.where(u == v, 4 * bend + 2, bend) * 2e-4
    middle = corner[[u, v]].mean(axis=0) + np.stack((off, off), axis=1)
    one_way = np.ones(len(u), np.bool_)
    network = from_arrays(
        node_id=np.arange(4),
        lat=corner[:, 0],
        lon=corner[:, 1],
        u=u,
        v=v,
        length_m=np.full(len(u), np.nan),
        speed_mps=np.ones(len(u)),
        forward=one_way,
        backward=~one_way,
        corners=Corners(np.arange(len(u) + 1), middle[:, 0], middle[:, 1]),
        max_spacing_m=100.0,
        twin_m=0.5,
    )
    ends = corner[np.stack((u, v))]
    drawn_m = haversine_m(*ends[0].T, *middle.T) + haversine_m(*middle.T, *ends[1].T)
    alike = {(min(a, b), max(a, b), c): m for (a, b, c), m in zip(roads, drawn_m, strict=True)}
    assert network.length_m.sum() / 2 == pytest.approx(sum(alike.values()), rel=1e-6)


def test_the_two_directions_of_a_street_share_its_nodes() -> None:
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    graph.add_node("a", y=60.0, x=24.0)
    graph.add_node("b", y=60.0, x=24.01)
    line = "LINESTRING (24 60, 24.005 60.001, 24.01 60)"
    back = "LINESTRING (24.01 60, 24.005 60.001, 24 60)"
    graph.add_edge("a", "b", geometry=line, length=600.0, oneway=True)
    graph.add_edge("b", "a", geometry=back, length=600.0, oneway=True)
    network = from_networkx(graph)
    assert network.node_id.tolist() == ["a", "b", "~1", "~2", "~3", "~4", "~5"]
    assert network.drivable.all()
    np.testing.assert_allclose(network.length_m, 100.0)


def test_one_way_streets_stay_one_way_along_all_their_pieces() -> None:
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    graph.add_node(1, y=60.0, x=24.0)
    graph.add_node(2, y=60.0, x=24.01)
    graph.add_edge(1, 2, geometry="LINESTRING (24 60, 24.01 60)", oneway=True)
    network = from_networkx(graph)
    driven = nx.DiGraph((u, v) for u, v, _, may in arcs(network) if may)
    assert nx.has_path(driven, 0, 1)
    assert not nx.has_path(driven, 1, 0)
    assert network.node_id[2:].tolist() == [-1, -2, -3, -4, -5]


def test_a_graph_without_geometry_stays_as_it_is() -> None:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_node(1, y=60.0, x=24.0)
    graph.add_node(2, y=60.0, x=24.1)
    graph.add_edge(1, 2)
    assert from_networkx(graph).n_nodes == 2


def test_tables_with_shapes_get_nodes_on_long_roads(tmp_path: Path) -> None:
    pl.DataFrame({"node_id": [1, 2], "lat": [60.0, 60.0], "lon": [24.0, 24.004]}).write_csv(
        tmp_path / "town_nodes.csv"
    )
    edges = {"u": [1], "v": [2], "geometry_wkt": ["LINESTRING Z (24.004 60 3, 24 60.002 1)"]}
    pl.DataFrame(edges).write_csv(tmp_path / "town_edges.csv")
    network = load_network(str(tmp_path / "town"))
    assert network.node_id.tolist() == [1, 2, -1, -2, -3, -4, -5]
    # The line ends 222 m north of its node: the way between is a part of the road.
    assert sum(drawn_m(network)) == pytest.approx(222.4 + 315.1, abs=1)


@pytest.mark.parametrize(
    ("geometry", "complaint"),
    [
        ("POINT (1 2)", "not a LINESTRING"),
        ("LINESTRING (24 60, here)", "LINESTRING of numbers"),
        ("LINESTRING (24 60, 24)", "LINESTRING of numbers"),
        ("LINESTRING (24 60, 24 91)", "not in WGS84 degrees"),
    ],
)
def test_a_shape_that_is_no_line_on_the_earth_is_refused(
    tmp_path: Path, geometry: str, complaint: str
) -> None:
    pl.DataFrame({"node_id": [1, 2], "lat": [60.0, 60.0], "lon": [24.0, 24.004]}).write_csv(
        tmp_path / "town_nodes.csv"
    )
    pl.DataFrame({"u": [1], "v": [2], "geometry_wkt": [geometry]}).write_csv(
        tmp_path / "town_edges.csv"
    )
    with pytest.raises(InputError, match=complaint):
        load_network(str(tmp_path / "town"))

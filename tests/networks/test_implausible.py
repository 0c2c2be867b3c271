"""What no road has is left out or corrected, counted and said, in any source."""

import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer import InputError, load_network
from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks.implausible import null_island

SIDE = 4
LAT, LON = 60.17, 24.9
PLACES = {(i, j): (LAT + i * 1e-3, LON + j * 1e-3) for i in range(SIDE) for j in range(SIDE)}
ROADS = [((i, j), (i, j + 1)) for i in range(SIDE) for j in range(SIDE - 1)]
ROADS += [((j, i), (j + 1, i)) for i in range(SIDE) for j in range(SIDE - 1)]
Place = tuple[float, float]


def number(node: tuple[int, int]) -> int:
    return 1 + node[0] * SIDE + node[1]


class Source:
    """A network as people have it: nodes by number, and roads between them, with lengths."""

    def __init__(self) -> None:
        self.places: dict[int, Place] = {number(node): at for node, at in PLACES.items()}
        self.roads = [(number(u), number(v)) for u, v in ROADS]
        self.times = 1.0

    def length(self, u: int, v: int) -> float:
        a, b = self.places[u], self.places[v]
        return self.times * float(haversine_m(*(np.array([x]) for x in (*a, *b)))[0])


def as_tables(source: Source, folder: Path) -> RoadNetwork:
    nodes = {
        "node_id": [*source.places],
        "lat": [at[0] for at in source.places.values()],
        "lon": [at[1] for at in source.places.values()],
    }
    edges = {
        "u": [u for u, _ in source.roads],
        "v": [v for _, v in source.roads],
        "length_m": [source.length(u, v) for u, v in source.roads],
    }
    pl.DataFrame(nodes).write_csv(folder / "town_nodes.csv")
    pl.DataFrame(edges).write_csv(folder / "town_edges.csv")
    return load_network(folder / "town")


def as_graph(source: Source, _: Path) -> RoadNetwork:
    graph: Any = nx.MultiGraph()
    for node, (lat, lon) in source.places.items():
        graph.add_node(node, y=lat, x=lon)
    for u, v in source.roads:
        graph.add_edge(u, v, length=source.length(u, v))
    return load_network(graph)


def as_lines(source: Source, folder: Path) -> RoadNetwork:
    def drawn(*ends: int) -> list[list[float]]:
        return [[lon, lat] for lat, lon in (source.places[each] for each in ends)]

    return load_network(written(folder, [drawn(u, v) for u, v in source.roads]))


def as_osm(source: Source, folder: Path) -> RoadNetwork:
    nodes = [
        {"type": "node", "id": node, "lat": lat, "lon": lon}
        for node, (lat, lon) in source.places.items()
    ]
    ways = [
        {"type": "way", "id": 900 + i, "nodes": road, "tags": {"highway": "residential"}}
        for i, road in enumerate(source.roads)
    ]
    path = folder / "town.json"
    path.write_text(json.dumps({"version": 0.6, "elements": [*nodes, *ways]}))
    return load_network(path)


def written(folder: Path, lines: list[Any]) -> Path:
    """Lines without coordinates are features without a geometry."""
    features = [
        {
            "type": "Feature",
            "properties": {},
            "geometry": None if line is None else {"type": "LineString", "coordinates": line},
        }
        for line in lines
    ]
    path = folder / "town.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


EVERY: list[Callable[[Source, Path], RoadNetwork]] = [as_tables, as_graph, as_lines, as_osm]
every_source = pytest.mark.parametrize("load", EVERY)
with_lengths = pytest.mark.parametrize("load", [as_tables, as_graph])


@every_source
def test_a_node_at_0_0_among_nodes_elsewhere_is_left_out_and_its_roads_are_counted(
    load: Callable[[Source, Path], RoadNetwork], tmp_path: Path
) -> None:
    source = Source()
    expected = load(source, tmp_path)
    source.places[99] = (0.0, 0.0)
    source.roads += [(99, 1), (2, 99)]
    network = load(source, tmp_path)
    assert network.n_nodes == expected.n_nodes
    assert network.length_m.sum() == pytest.approx(expected.length_m.sum())
    assert "2 at 0, 0" in network.account
    assert f"{len(ROADS)} used" in network.account


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)) | st.just((0.0, 0.0)), max_size=6))
def test_a_network_that_comes_near_0_0_is_as_it_says(places: list[Place]) -> None:
    lat, lon = (np.array([place[i] for place in places]) for i in (0, 1))
    found = null_island(lat, lon)
    others = [place for place in places if place != (0.0, 0.0)]
    is_far = bool(others) and all(max(map(abs, place)) > 1 for place in others)
    assert found.tolist() == [place == (0.0, 0.0) and is_far for place in places]


@with_lengths
@pytest.mark.parametrize("times", [0.001, 0.0013, 1000.0])
def test_lengths_that_are_no_metres_are_those_of_the_geometry_and_it_is_said(
    load: Callable[[Source, Path], RoadNetwork], times: float, tmp_path: Path
) -> None:
    source = Source()
    expected = load(source, tmp_path)
    source.times = times
    network = load(source, tmp_path)
    np.testing.assert_allclose(network.length_m, expected.length_m, rtol=1e-6)
    told = "lengths are 1,000 times off the geometry, as in km: it counts in their place"
    assert network.account.endswith(f"; {len(ROADS)} {told}")
    assert "lengths" not in expected.account


@with_lengths
@pytest.mark.parametrize("times", [0.7, 1.5, 5.0, 60.0])
def test_lengths_of_bent_roads_are_believed(
    load: Callable[[Source, Path], RoadNetwork], times: float, tmp_path: Path
) -> None:
    source = Source()
    source.times = times
    network = load(source, tmp_path)
    assert "lengths" not in network.account
    assert network.length_m.sum() == pytest.approx(
        2 * sum(source.length(u, v) for u, v in source.roads)
    )


@with_lengths
def test_loops_and_repeated_edges_are_counted(
    load: Callable[[Source, Path], RoadNetwork], tmp_path: Path
) -> None:
    source = Source()
    source.roads += [(1, 1), (2, 2), *source.roads[:3]]
    account = load(source, tmp_path).account
    assert account == (
        f"{len(source.roads)} edges: {len(ROADS)} used, 2 from a node to itself, "
        "3 beside a shorter one that may be driven"
    )


@pytest.mark.parametrize(
    "bad", [None, [], [[math.nan, LAT], [LON, LAT]], [[None, LAT], [LON, LAT]]]
)
def test_a_line_without_coordinates_is_counted_without_a_warning(
    bad: Any,  # noqa: ANN401  as JSON has it
    tmp_path: Path,
) -> None:
    lines = [[[LON, LAT], [LON + 1e-3, LAT]], [[LON + 1e-3, LAT], [LON + 2e-3, LAT]]]
    expected = load_network(written(tmp_path, lines))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network = load_network(written(tmp_path, [*lines, bad]))
    assert network.n_nodes == expected.n_nodes
    assert network.account == "3 lines: 2 used, 1 without coordinates"


@pytest.mark.parametrize("load", [as_tables, as_graph, as_lines])
def test_exchanged_degrees_are_named_where_they_can_be_known(
    load: Callable[[Source, Path], RoadNetwork], tmp_path: Path
) -> None:
    source = Source()
    source.places = {node: (lon + 100, lat) for node, (lat, lon) in source.places.items()}
    with pytest.raises(InputError, match="latitude and longitude are exchanged"):
        load(source, tmp_path)


def test_how_many_nodes_lack_coordinates_and_how_many_ends_lack_a_node_is_said(
    tmp_path: Path,
) -> None:
    source = Source()
    source.roads += [(1, 77), (2, 78)]
    source.places |= {77: (0.5, 0.5), 78: (0.5, 0.5)}
    as_tables(source, tmp_path)
    nodes = pl.read_csv(tmp_path / "town_nodes.csv")
    nodes.head(SIDE**2).write_csv(tmp_path / "town_nodes.csv")
    with pytest.raises(InputError, match=r"node 77, which is not among .* \(so do 1 other ends\)"):
        load_network(tmp_path / "town")
    lacking = nodes.with_columns(pl.when(pl.col("node_id") > 3).then("lat"))
    lacking.write_csv(tmp_path / "town_nodes.csv")
    with pytest.raises(InputError, match="3 of 18 nodes have no latitude"):
        load_network(tmp_path / "town")


def test_roads_that_are_certainly_not_there_are_told(tmp_path: Path) -> None:
    source = Source()
    assert "place" not in as_tables(source, tmp_path).account
    at_once = Source()
    at_once.places = dict.fromkeys(at_once.places, (LAT, LON))
    assert "all nodes are at one place" in as_tables(at_once, tmp_path).account
    tiny = Source()
    tiny.places = {n: (LAT + (lat - LAT) * 1e-3, lon) for n, (lat, lon) in tiny.places.items()}
    tiny.places = {n: (lat, LON + (lon - LON) * 1e-3) for n, (lat, lon) in tiny.places.items()}
    tiny.places |= {99: (LAT + 0.01, LON)}
    tiny.roads.append((1, 99))
    assert "half of the roads are shorter than a metre" in as_tables(tiny, tmp_path).account


def test_roads_that_meet_nowhere_are_told(tmp_path: Path) -> None:
    apart = Source()
    apart.roads = [(u, v) for u, v in apart.roads if u % 2 and v == u + 1]
    assert "roads hardly meet: 8 parts" in as_tables(apart, tmp_path).account
    lines = [[[LON + i * 1e-3, LAT], [LON + i * 1e-3, LAT + 1e-3]] for i in range(6)]
    features = [
        {"type": "Feature", "properties": {}, "geometry": {"type": "LineString", "coordinates": at}}
        for at in lines
    ]
    path = tmp_path / "apart.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    assert "roads hardly meet: 6 parts" in load_network(path).account


@pytest.mark.parametrize(
    ("word", "n_arcs", "n_odd"),
    [("backward", 1, 0), ("forward", 1, 0), ("T", 2, 1), ("both", 2, 0)],
)
def test_every_word_for_a_direction_is_known_or_counted(
    word: str, n_arcs: int, n_odd: int, tmp_path: Path
) -> None:
    line = {"type": "LineString", "coordinates": [[LON, LAT], [LON + 5e-4, LAT]]}
    feature = {"type": "Feature", "properties": {"highway": "primary", "oneway": word}}
    path = tmp_path / "road.geojson"
    path.write_text(
        json.dumps({"type": "FeatureCollection", "features": [feature | {"geometry": line}]})
    )
    network = load_network(path)
    assert int(network.drivable.sum()) == n_arcs
    assert ("open both ways: 1" in network.account) == (n_odd == 1)


@pytest.mark.parametrize(
    ("lat", "lon"), [("lat", "lon"), ("Latitude", "Longitude"), ("LAT", "LNG"), ("Y", "X")]
)
def test_coordinates_of_a_graph_are_found_under_each_of_their_names(
    lat: str, lon: str, tmp_path: Path
) -> None:
    graph: nx.Graph[Any] = nx.Graph()
    for node, (at_lat, at_lon) in PLACES.items():
        graph.add_node(number(node), **{lat: at_lat, lon: at_lon})
    graph.add_edges_from((number(u), number(v)) for u, v in ROADS)
    nx.write_graphml(graph, tmp_path / "town.graphml")
    network = load_network(tmp_path / "town.graphml")
    np.testing.assert_allclose(network.lat, [at for at, _ in PLACES.values()])


def test_a_source_without_roads_says_what_is_there(tmp_path: Path) -> None:
    ways = [{"type": "way", "id": i, "nodes": [1, 2], "tags": {"building": "yes"}} for i in (1, 2)]
    (tmp_path / "a.json").write_text(json.dumps({"elements": ways}))
    with pytest.raises(InputError, match=r"no road .2 ways: 2 without highway"):
        load_network(tmp_path / "a.json")
    (tmp_path / "b_edges.csv").write_text("from,to\n1,2\n")
    with pytest.raises(InputError, match="it has from, to; rename what means u, v"):
        load_network(tmp_path / "b")
    (tmp_path / "c.json").write_text('{"type": "FeatureCollection", "features": []}')
    with pytest.raises(InputError, match=r"name GeoJSON .geojson"):
        load_network(tmp_path / "c.json")

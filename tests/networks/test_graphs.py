import gzip
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyproj
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks import from_networkx, load_network, to_networkx
from anonymizer.networks.speeds import KMH
from tests.networks.twins import arcs, neighbours

edges = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=15)

OSMNX = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="y" attr.type="string"/>
  <key id="d1" for="node" attr.name="x" attr.type="string"/>
  <key id="d2" for="edge" attr.name="length" attr.type="string"/>
  <key id="d3" for="edge" attr.name="oneway" attr.type="string"/>
  <key id="d4" for="edge" attr.name="highway" attr.type="string"/>
  <key id="d5" for="edge" attr.name="maxspeed" attr.type="string"/>
  <graph edgedefault="directed">
    <node id="101"><data key="d0">60.1</data><data key="d1">24.9</data></node>
    <node id="55"><data key="d0">60.2</data><data key="d1">24.8</data></node>
    <node id="7"><data key="d0">60.3</data><data key="d1">24.7</data></node>
    <edge source="101" target="55" id="0"><data key="d2">125.0</data><data key="d3">False</data>
      <data key="d4">['tertiary', 'residential']</data><data key="d5">['50', '30 mph']</data></edge>
    <edge source="55" target="101" id="0"><data key="d2">125.0</data><data key="d3">False</data>
      <data key="d4">living_street</data></edge>
    <edge source="7" target="101" id="0"><data key="d2">99.0</data><data key="d3">True</data>
      <data key="d4">primary</data></edge>
    <edge source="7" target="101" id="1"><data key="d2">88.0</data><data key="d3">True</data>
      <data key="d4">primary</data></edge>
  </graph>
</graphml>
"""


@given(edges)
def test_an_undirected_graph_keeps_its_own_adjacency_order(edges: list[tuple[int, int]]) -> None:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(6, -1, -1))
    graph.add_edges_from(edges)
    network = from_networkx(graph)
    assert network.node_id.tolist() == list(graph)
    for place, node in enumerate(graph):
        expected = [other for other in graph.adj[node] if other != node]
        assert network.node_id[neighbours(network, place)].tolist() == expected


@given(edges)
def test_a_directed_graph_lists_successors_then_predecessors(edges: list[tuple[int, int]]) -> None:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(7))
    graph.add_edges_from(edges)
    network = from_networkx(graph)
    for node in graph:
        both = [*graph.successors(node), *graph.predecessors(node)]
        assert neighbours(network, node) == [
            other for other in dict.fromkeys(both) if other != node
        ]
    drivable = {(u, v) for u, v, _, may in arcs(network) if may}
    assert drivable == {(u, v) for u, v in edges if u != v}


def test_a_directed_edge_that_says_it_is_not_one_way_may_be_driven_back() -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edge("a", "b", length=5.0, oneway=False)
    graph.add_edge("b", "c", length=5.0, oneway=True)
    assert arcs(from_networkx(graph)) == [
        (0, 1, 5.0, True),
        (1, 2, 5.0, True),
        (1, 0, 5.0, True),
        (2, 1, 5.0, False),
    ]


@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
def test_the_shortest_of_parallel_edges_is_kept(kind: type["nx.MultiGraph[Any]"]) -> None:
    graph = kind()
    graph.add_edge(0, 1, length=9.0)
    graph.add_edge(0, 1, length=4.0)
    graph.add_edge(0, 0, length=1.0)
    assert from_networkx(graph).length_m.tolist() == [4.0, 4.0]


def test_a_grid_of_networkx_keeps_its_order_and_its_names_as_text() -> None:
    network = from_networkx(nx.grid_2d_graph(2, 2))
    assert network.node_id.tolist() == ["(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"]
    assert not network.has_coordinates


@pytest.mark.parametrize(
    ("attributes", "kmh"),
    [
        ({"maxspeed": 50}, 50),
        ({"maxspeed": "30 mph"}, 30 * 1.609344),
        ({"maxspeed": ["60", "40"]}, 40),
        ({"highway": "motorway"}, 110),
        ({"highway": ["residential", "primary"]}, 30),
        ({"speed_kph": "33.5", "maxspeed": "50"}, 33.5),
        ({}, 40),
    ],
)
def test_speeds_come_from_the_attributes_typed_or_not(
    attributes: dict[str, object], kmh: float
) -> None:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_edge(0, 1, **attributes)
    np.testing.assert_allclose(from_networkx(graph).speed_mps, kmh * KMH)


def test_graphml_as_osmnx_saves_it_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "town.graphml"
    path.write_text(OSMNX, encoding="utf-8")
    network = load_network(str(path))
    assert network.node_id.tolist() == [101, 55, 7]
    assert network.lat.tolist() == [60.1, 60.2, 60.3]
    assert network.lon.tolist() == [24.9, 24.8, 24.7]
    assert arcs(network) == [
        (0, 1, 125.0, True),
        (0, 2, 88.0, False),
        (1, 0, 125.0, True),
        (2, 0, 88.0, True),
    ]
    np.testing.assert_allclose(network.speed_mps / KMH, [30 * 1.609344, 60, 10, 60], rtol=1e-12)


@pytest.mark.parametrize("ending", [".graphml", ".graphml.gz"])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiDiGraph])
def test_a_graph_comes_back_from_graphml_as_it_was(
    tmp_path: Path, ending: str, kind: type["nx.Graph[Any]"]
) -> None:
    graph = kind()
    for node in (5, 3, 8, 1):
        graph.add_node(node, x=24.0 + node / 100, y=60.0 + node / 100)
    for u, v in ((5, 3), (8, 3), (1, 5), (3, 1), (3, 5)):
        graph.add_edge(u, v, length=10.0 * u + v, maxspeed="40", oneway=True)
    path = tmp_path / f"graph{ending}"
    nx.write_graphml(graph, path)
    direct, loaded = from_networkx(graph), load_network(str(path))
    for name in ("node_id", "lat", "lon", "speed_mps", "component_of"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(direct, name))
    # An undirected file lists each edge once: the order of neighbours is that of the file.
    assert sorted(arcs(loaded)) == sorted(arcs(direct))


def test_the_graph_is_not_changed() -> None:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_node(0, x="24.0", y="60.0")
    graph.add_node(1, x="24.1", y="60.1")
    graph.add_edge(0, 1, length="7")
    before = graph.copy()
    from_networkx(graph)
    assert nx.utils.graphs_equal(graph, before)


@pytest.mark.parametrize(("value", "where"), [("north", "y"), ([1.0], "x")])
def test_a_coordinate_that_is_no_number_is_refused(value: object, where: str) -> None:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_node(0, **{"x": 24.0, "y": 60.0, where: value})
    graph.add_node(1, x=24.0, y=60.0)
    with pytest.raises(InputError, match=f"attribute '{where}' is not a number"):
        from_networkx(graph)


def test_a_projected_graph_is_refused_with_a_hint() -> None:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_node(0, x=385_000.0, y=6_672_000.0)
    with pytest.raises(InputError, match="EPSG:4326"):
        from_networkx(graph)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.graphml", b"hello"),
        ("a.graphml", b"<html/>"),
        ("a.graphml", b""),
        ("a.graphml.gz", b"hello"),
        ("a.graphml.gz", gzip.compress(OSMNX.encode())[:-9]),
    ],
)
def test_what_is_not_graphml_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as refusal:
        load_network(str(path))
    assert str(refusal.value) == f"{path}: is not readable GraphML"


@pytest.mark.parametrize(
    ("osmid", "way"),
    [(8, 8), ("8", 8), ([8, 9], 8), ("[8, 9]", 8), ("no way", 0), (-8, 0), (8.5, 0)],
)
def test_roads_keep_the_way_that_osmnx_names(osmid: object, way: int) -> None:
    graph = nx.Graph([(1, 2), (2, 3)])
    graph.edges[1, 2]["osmid"] = osmid
    found = from_networkx(graph).way_of
    assert found is not None
    assert found.tolist() == [way, way, 0, 0]
    assert from_networkx(nx.Graph([(1, 2)])).way_of is None


def same(a: RoadNetwork, b: RoadNetwork) -> bool:
    """Whether two networks have the same nodes, and each the same roads in any order."""

    def roads(network: RoadNetwork) -> dict[tuple[int, int], tuple[Any, ...]]:
        tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
        way = network.way_of if network.way_of is not None else np.zeros(len(tail), np.int64)
        figures = zip(
            network.length_m.round(6).tolist(),
            network.speed_mps.round(6).tolist(),
            network.drivable.tolist(),
            way.tolist(),
            strict=True,
        )
        ends = zip(tail.tolist(), network.neighbour_of.tolist(), strict=True)
        return dict(zip(ends, figures, strict=True))

    lines, others = a.lines(), b.lines()
    points = sorted(zip(lines.lat.tolist(), lines.lon.tolist(), strict=True))
    return (
        a.node_id.tolist() == b.node_id.tolist()
        and np.array_equal(a.lat, b.lat, equal_nan=True)
        and np.array_equal(a.lon, b.lon, equal_nan=True)
        and roads(a) == roads(b)
        and points == sorted(zip(others.lat.tolist(), others.lon.tolist(), strict=True))
    )


def test_a_network_that_became_a_graph_is_read_back_as_it_was() -> None:
    network = load_network("city:500")
    again = from_networkx(to_networkx(network), max_spacing_m=0)
    assert same(network, again)
    assert np.array_equal(network.neighbour_of, again.neighbour_of)


def test_one_way_roads_corners_and_ways_survive_the_graph(tmp_path: Path) -> None:
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    for name, (lat, lon) in enumerate([(60.1, 24.9), (60.1, 24.91), (60.11, 24.9)]):
        graph.add_node(name, y=lat, x=lon)
    bend = "LINESTRING (24.9 60.1, 24.905 60.102, 24.91 60.1)"
    graph.add_edge(0, 1, length=700.0, oneway=True, osmid=4711, geometry=bend, highway="primary")
    graph.add_edge(1, 2, length=1300.0, oneway=False, maxspeed="50")
    network = from_networkx(graph, max_spacing_m=0)
    assert network.shapes is not None
    assert not network.drivable.all()
    made = to_networkx(network)
    assert not made.has_edge(1, 0)
    assert made.has_edge(2, 1)
    assert same(network, from_networkx(made, max_spacing_m=0))
    nx.write_graphml(made, tmp_path / "made.graphml")
    assert same(network, load_network(str(tmp_path / "made.graphml"), max_spacing_m=0))


@pytest.mark.parametrize("crs", ["epsg:32632", "EPSG:3035", "+proj=utm +zone=32 +datum=WGS84"])
@pytest.mark.parametrize("as_file", [True, False])
def test_a_graph_that_names_its_reference_system_is_converted(
    tmp_path: Path, crs: str, *, as_file: bool
) -> None:
    lat, lon = np.array([48.0, 48.001, 48.002]), np.array([11.0, 11.001, 11.003])
    x, y = pyproj.Transformer.from_crs(4326, crs, always_xy=True).transform(lon, lat)
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(crs=crs)
    for node in (0, 2):
        graph.add_node(node, x=x[node], y=y[node])
    line = ", ".join(f"{x[i]} {y[i]}" for i in range(3))
    graph.add_edge(0, 2, geometry=f"LINESTRING ({line})", oneway="False")
    source: Any = graph
    if as_file:
        source = str(tmp_path / "a.graphml")
        nx.write_graphml(graph, source)
    network = load_network(source, max_spacing_m=0)
    np.testing.assert_allclose(network.lat, lat[[0, 2]], atol=1e-7)
    np.testing.assert_allclose(network.lon, lon[[0, 2]], atol=1e-7)
    assert network.shapes is not None
    np.testing.assert_allclose(network.shapes.lat, lat[[1]], atol=1e-7)


def test_an_unknown_reference_system_is_refused() -> None:
    with pytest.raises(InputError, match=r"\(crs\) that is not known: write its code"):
        load_network(nx.Graph(crs="epsg:0"))


@given(edges, st.booleans())
def test_every_edge_of_a_graph_is_accounted_for(
    drawn: list[tuple[int, int]],
    is_directed: bool,  # noqa: FBT001  drawn
) -> None:
    graph: Any = nx.MultiDiGraph() if is_directed else nx.MultiGraph()
    for node in range(7):
        graph.add_node(node, y=60.0 + node * 0.01, x=24.0 + node % 2 * 0.01)
    graph.add_edges_from(drawn)
    network = from_networkx(graph)
    n_loops = sum(u == v for u, v in drawn)
    as_given = {(u, v) if is_directed else (min(u, v), max(u, v)) for u, v in drawn if u != v}
    assert network.n_roads == len({frozenset(pair) for pair in as_given})
    if not drawn:
        assert not network.account
        return
    parts = [part.split(" ", 1) for part in network.account.split(": ")[-1].split(", ")]
    said = {what: n for n, what in parts}
    assert network.account.startswith(f"{len(drawn)} edge")
    assert int(said.get("used", 0)) == len(as_given)
    assert int(said.get("from a node to itself", 0)) == n_loops
    n_beside = int(said.get("beside a shorter one that may be driven", 0))
    assert n_beside == len(drawn) - n_loops - len(as_given)


def test_drawn_loops_and_parallel_roads_are_kept_and_a_point_is_said_to_be_none() -> None:
    graph: Any = nx.MultiDiGraph()
    for node, (y, x) in enumerate([(60.0, 24.0), (60.0, 24.01)]):
        graph.add_node(node, y=y, x=x)
    graph.add_edge(0, 1)
    graph.add_edge(0, 1, geometry="LINESTRING (24 60, 24.005 60.003, 24.01 60)")
    graph.add_edge(1, 1, geometry="LINESTRING (24.01 60, 24.011 60.001, 24.01 60)")
    graph.add_edge(0, 0, geometry="LINESTRING (24 60, 24.00001 60.00001, 24 60)")
    assert from_networkx(graph).account == "4 edges: 3 used, 1 from a node to itself"
    whole = from_networkx(graph, max_spacing_m=0)
    assert whole.account == (
        "4 edges: 1 used, 2 from a node to itself, 1 beside a shorter one that may be driven"
    )

import gzip
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import networkx as nx
import numpy as np
import polars as pl
import pytest

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M, haversine_m
from anonymizer.algorithms.positions.map_matching import OFF_GRAPH, NodeLocator
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.network import Lines, RoadNetwork
from anonymizer.networks import load_network
from anonymizer.settings import NetworkSettings
from tests.networks.twins import as_digraph, components, neighbours

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(os.environ["ANONYMIZER_DATA"]) / "networks"


@pytest.mark.parametrize(
    ("name", "size"),
    [
        # Nodes, rows, roads (rows less loops and parallels), nodes of the largest part.
        ("monaco", (582, 735, 723, 573)),
        ("helsinki_centre", (1_011, 1_114, 1_107, 986)),
        ("andorra", (1_739, 2_058, 2_030, 1_731)),
        ("san_francisco", (9_401, 15_602, 14_891, 9_366)),
        ("porto_alegre", (15_266, 21_171, 21_070, 15_147)),
        ("sydney", (33_113, 75_379, 38_962, 32_956)),
        ("usa_ny_topology", (264_346, 365_050, 365_050, 264_346)),
        pytest.param(
            *("usa_fla_topology", (1_070_376, 1_343_951, 1_343_951, 1_070_376)),
            marks=pytest.mark.soak,
        ),
    ],
)
def test_a_real_network_has_the_size_its_description_states(
    folder: Path, name: str, size: tuple[int, int, int, int]
) -> None:
    n_nodes, n_rows, n_roads, n_largest = size
    rows = pl.read_parquet(folder / f"{name}_edges.parquet", columns=["u", "v"])
    network = load_network(str(folder / name), max_spacing_m=0)
    assert len(rows) == n_rows
    assert network.n_nodes == n_nodes
    assert network.n_roads == n_roads
    assert (network.component_of == 0).sum() == n_largest
    assert network.has_coordinates == (not name.startswith("usa"))


@pytest.mark.parametrize("name", ["monaco", "san_francisco", "sydney"])
def test_a_real_network_is_what_networkx_makes_of_the_same_rows(folder: Path, name: str) -> None:
    network = load_network(str(folder / name), max_spacing_m=0)
    rows = pl.read_parquet(folder / f"{name}_edges.parquet")
    index = {node: place for place, node in enumerate(network.node_id.tolist())}
    roads: nx.Graph[int] = nx.Graph()
    driven: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    roads.add_nodes_from(range(network.n_nodes))
    driven.add_nodes_from(range(network.n_nodes))
    for row in rows.iter_rows(named=True):
        u, v = index[row["u"]], index[row["v"]]
        if u != v:
            roads.add_edge(u, v)
        driven.add_edge(u, v, weight=row["length_m"])
        if not row.get("oneway"):
            driven.add_edge(v, u, weight=row["length_m"])
    assert [neighbours(network, node) for node in roads] == [list(roads[node]) for node in roads]
    assert network.component_of.tolist() == components(roads)
    start = int(np.flatnonzero(network.component_of == 0)[0])
    assert nx.single_source_dijkstra_path_length(
        as_digraph(network), start
    ) == nx.single_source_dijkstra_path_length(driven, start)


@pytest.mark.parametrize(
    ("name", "ending"),
    [("monaco", "osm.gz"), ("helsinki_centre", "osm.pbf"), ("andorra", "osm.pbf")],
)
def test_an_extract_gives_the_network_that_others_made_of_it(
    folder: Path, name: str, ending: str
) -> None:
    ours = load_network(str(folder / "raw" / f"{name}.{ending}"), max_spacing_m=0)
    theirs = load_network(str(folder / name), max_spacing_m=0)
    order = np.argsort(theirs.node_id)
    np.testing.assert_array_equal(ours.node_id, theirs.node_id[order])
    np.testing.assert_allclose(ours.lat, theirs.lat[order], atol=1e-6)
    np.testing.assert_allclose(ours.lon, theirs.lon[order], atol=1e-6)

    def table(network: RoadNetwork) -> pl.DataFrame:
        tail = np.repeat(network.node_id, np.diff(network.first_arc_of))
        return pl.DataFrame(
            {
                "tail": tail,
                "head": network.node_id[network.neighbour_of],
                "length_m": network.length_m,
                "speed_mps": network.speed_mps,
                "drivable": network.drivable,
            }
        ).sort("tail", "head")

    a, b = table(ours), table(theirs)
    assert a.select("tail", "head").equals(b.select("tail", "head"))
    assert a["drivable"].equals(b["drivable"])
    for column in ("length_m", "speed_mps"):
        np.testing.assert_allclose(a[column].to_numpy(), b[column].to_numpy(), atol=0.02)


def test_a_sumo_network_has_the_edges_that_its_file_lets_cars_use(folder: Path) -> None:
    path = folder / "raw" / "sumo_berlin_adlershof.net.xml.gz"
    network = load_network(str(path), max_spacing_m=0)
    with gzip.open(path) as file:
        root = ET.parse(file).getroot()  # noqa: S314  a file of our own
    pairs = set()
    for edge in root.iter("edge"):
        lanes = [
            "passenger" in lane.get("allow", "passenger").split()
            and "passenger" not in lane.get("disallow", "").split()
            for lane in edge.iter("lane")
        ]
        if edge.get("function") is None and any(lanes):
            pairs.add(frozenset((edge.get("from"), edge.get("to"))))
    assert network.n_roads == len({pair for pair in pairs if len(pair) == 2})
    assert network.n_nodes == len(frozenset().union(*pairs))
    # The boundary that its header states.
    assert 13.4538 < network.lon.min() < network.lon.max() < 13.5758
    assert 52.4244 < network.lat.min() < network.lat.max() < 52.4598


NETWORKS = {
    "andorra": "raw/andorra.osm.pbf",
    "monaco": "raw/monaco.osm.gz",
    "helsinki": "raw/helsinki_centre.osm.pbf",
    "san francisco": "san_francisco",
    "porto alegre": "porto_alegre",
    "berlin, of SUMO": "raw/sumo_berlin_adlershof.net.xml.gz",
}


@pytest.mark.parametrize("source", NETWORKS.values(), ids=NETWORKS)
def test_positions_on_the_drawn_roads_are_on_the_graph_and_near_their_node(
    folder: Path, source: str
) -> None:
    whole = load_network(str(folder / source), max_spacing_m=0)
    lat, lon = positions_on(whole.lines(), n=20_000, noise_m=10.0)
    network = load_network(str(folder / source))
    node = NodeLocator(network, limit_m=50.0).locate(lat, lon)
    assert (node == OFF_GRAPH).mean() < 0.0005
    metres = haversine_m(lat, lon, network.lat[node], network.lon[node])[node != OFF_GRAPH]
    # Half a piece of 100 m, and the noise; roads drawn twice are up to 25 m apart.
    assert np.quantile(metres, 0.99) < 75


@pytest.mark.parametrize(
    ("source", "trace", "most"),
    [
        ("san_francisco", "cabspotting_sf_2008-05-19_20.parquet", 0.01),
        ("raw/helsinki_centre.osm.pbf", "helsinki_phones_2016-08-26.csv.gz", 0.01),
    ],
)
def test_recorded_positions_in_the_area_of_a_network_are_on_the_graph(
    folder: Path, source: str, trace: str, most: float
) -> None:
    network = load_network(str(folder / source))
    path = folder.parent / "traces" / trace
    rows = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
    inside = pl.lit(value=True)
    for name, of_node in (("lat", network.lat), ("lon", network.lon)):
        low, high = np.quantile(of_node, [0.005, 0.995])
        inside &= pl.col(name).is_between(low, high)
    here = rows.filter(inside)
    lat, lon = (here[name].cast(pl.Float64).to_numpy() for name in ("lat", "lon"))
    limit_m = NetworkSettings().snap_limit_m
    assert (NodeLocator(network, limit_m=limit_m).locate(lat, lon) == OFF_GRAPH).mean() < most


def positions_on(lines: Lines, *, n: int, noise_m: float) -> tuple[FloatArray, FloatArray]:
    """Draw positions from the roads, uniformly by length, with the noise of a receiver."""
    rng = np.random.default_rng(0)
    first = np.setdiff1d(np.arange(len(lines.lat)), lines.first_point_of[1:] - 1)
    length_m = haversine_m(
        lines.lat[first], lines.lon[first], lines.lat[first + 1], lines.lon[first + 1]
    )
    at = first[rng.choice(len(first), n, p=length_m / length_m.sum())]
    share = rng.random(n)
    north, east = rng.normal(0, noise_m, (2, n)) / (np.pi / 180 * EARTH_RADIUS_M)
    lat = lines.lat[at] + share * (lines.lat[at + 1] - lines.lat[at]) + north
    lon = lines.lon[at] + share * (lines.lon[at + 1] - lines.lon[at])
    return lat, lon + east / np.cos(np.radians(lat))

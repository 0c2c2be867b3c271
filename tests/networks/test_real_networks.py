import gzip
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import networkx as nx
import numpy as np
import polars as pl
import pytest

from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
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
        ("usa_fla_topology", (1_070_376, 1_343_951, 1_343_951, 1_070_376)),
    ],
)
def test_a_real_network_has_the_size_its_description_states(
    folder: Path, name: str, size: tuple[int, int, int, int]
) -> None:
    n_nodes, n_rows, n_roads, n_largest = size
    rows = pl.read_parquet(folder / f"{name}_edges.parquet", columns=["u", "v"])
    network = load_network(str(folder / name))
    assert len(rows) == n_rows
    assert network.n_nodes == n_nodes
    assert network.n_roads == n_roads
    assert (network.component_of == 0).sum() == n_largest
    assert network.has_coordinates == (not name.startswith("usa"))


@pytest.mark.parametrize("name", ["monaco", "san_francisco", "sydney"])
def test_a_real_network_is_what_networkx_makes_of_the_same_rows(folder: Path, name: str) -> None:
    network = load_network(str(folder / name))
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
    ours = load_network(str(folder / "raw" / f"{name}.{ending}"))
    theirs = load_network(str(folder / name))
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
    network = load_network(str(path))
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

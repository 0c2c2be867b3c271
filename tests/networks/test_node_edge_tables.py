from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl
import pytest

from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks import load_network
from anonymizer.networks.speeds import KMH
from tests.networks.twins import arcs

Columns: TypeAlias = dict[str, list[object]]

NODES: Columns = {"node_id": [30, 10, 20], "lat": [60.0, 60.1, 60.2], "lon": [24.0, 24.1, 24.2]}
EDGES: Columns = {
    "u": [10, 20, 30],
    "v": [20, 30, 10],
    "length_m": [5.0, 6.0, 7.0],
    "oneway": ["yes", None, "-1"],
    "highway": ["primary", "footpath", None],
    "maxspeed": ["30", None, None],
    "speed_kmh": [None, None, 72.0],
    "name": ["Aleksanterinkatu", "unread", None],
}


def write(folder: Path, nodes: Columns | None, edges: Columns, ending: str) -> str:
    for kind, columns in (("nodes", nodes), ("edges", edges)):
        if columns is not None:
            table = pl.DataFrame(columns, strict=False)
            path = folder / f"town_{kind}{ending}"
            if ending == ".csv":
                table.write_csv(path)
            else:
                table.write_parquet(path)
    return str(folder / "town")


def load(
    folder: Path,
    *,
    nodes: Columns | None = None,
    edges: Columns | None = None,
    ending: str = ".parquet",
) -> RoadNetwork:
    return load_network(write(folder, nodes, EDGES if edges is None else edges, ending))


both_endings = pytest.mark.parametrize("ending", [".parquet", ".csv"])


@both_endings
def test_tables_become_a_network_in_the_order_of_their_rows(tmp_path: Path, ending: str) -> None:
    network = load(tmp_path, nodes=NODES, ending=ending)
    assert network.node_id.tolist() == [30, 10, 20]
    assert network.lat.tolist() == NODES["lat"]
    assert network.lon.tolist() == NODES["lon"]
    assert arcs(network) == [
        (0, 2, 6.0, True),
        (0, 1, 7.0, False),
        (1, 2, 5.0, True),
        (1, 0, 7.0, True),
        (2, 1, 5.0, False),
        (2, 0, 6.0, True),
    ]
    np.testing.assert_allclose(network.speed_mps / KMH, [40, 72, 30, 72, 30, 40])


@both_endings
def test_one_way_may_be_told_by_truth_values(tmp_path: Path, ending: str) -> None:
    network = load(
        tmp_path, edges={"u": [1, 2], "v": [2, 3], "oneway": [True, False]}, ending=ending
    )
    assert [may for _, _, _, may in arcs(network)] == [True, False, True, True]


@both_endings
def test_without_nodes_and_lengths_there_is_still_the_topology(tmp_path: Path, ending: str) -> None:
    network = load(tmp_path, edges={"u": [5, 7], "v": [3, 5]}, ending=ending)
    assert network.node_id.tolist() == [3, 5, 7]
    assert not network.has_coordinates
    assert arcs(network) == [
        (0, 1, 1.0, True),
        (1, 0, 1.0, True),
        (1, 2, 1.0, True),
        (2, 1, 1.0, True),
    ]


@both_endings
def test_names_that_are_not_all_integers_are_text(tmp_path: Path, ending: str) -> None:
    network = load(tmp_path, edges={"u": ["1", "2"], "v": ["007", "1"]}, ending=ending)
    assert network.node_id.tolist() == ["007", "1", "2"]
    assert network.n_components == 1


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["10", "20", "30", "a"])])
@pytest.mark.parametrize("last", ["30", "a"])
def test_names_may_be_categories(tmp_path: Path, kind: pl.DataType, last: str) -> None:
    u, v = ["10", "20", last], ["20", last, "10"]
    edges = pl.DataFrame({"u": u, "v": v}, schema_overrides={"u": kind, "v": kind})
    edges.write_parquet(tmp_path / "town_edges.parquet")
    network = load_network(str(tmp_path / "town"))
    wanted: list[object] = [10, 20, 30] if last == "30" else ["10", "20", "a"]
    assert network.node_id.tolist() == wanted


@pytest.mark.parametrize("column", ["lat", "length_m"])
def test_categories_are_no_numbers(tmp_path: Path, column: str) -> None:
    load(tmp_path, nodes=NODES)
    path = tmp_path / ("town_nodes.parquet" if column == "lat" else "town_edges.parquet")
    pl.read_parquet(path).with_columns(
        pl.lit("x").cast(pl.Categorical).alias(column)
    ).write_parquet(path)
    with pytest.raises(InputError, match="is not a number everywhere"):
        load_network(str(tmp_path / "town"))


def test_parquet_goes_before_csv(tmp_path: Path) -> None:
    load(tmp_path, edges={"u": [1], "v": [2]}, ending=".csv")
    assert load(tmp_path, edges={"u": [8], "v": [9]}).node_id.tolist() == [8, 9]


def test_a_node_without_roads_stays(tmp_path: Path) -> None:
    network = load(tmp_path, nodes=NODES, edges={"u": [10], "v": [20]})
    assert network.n_nodes == 3
    assert network.component_of.tolist() == [1, 0, 0]


@both_endings
@pytest.mark.parametrize(
    ("nodes", "edges", "complaint"),
    [
        (None, {"u": [1], "w": [2]}, "town_edges.* has no column 'v'"),
        (
            None,
            {"u;v": ["1;2"]},
            "town_edges.* has no column 'u': .* separated by ';'; write commas",
        ),
        ({"node_id": [1], "lat": [2.0]}, EDGES, "town_nodes.* has no column 'lon'"),
        (None, {"u": [1, None], "v": [2, 3]}, "column 'u' has empty cells"),
        (None, {"u": [1], "v": [2], "length_m": ["long"]}, "column 'length_m' is not a number"),
        (NODES, {"u": [10], "v": [11]}, "node 11, which is not among the nodes"),
        (NODES | {"lat": [60.0, None, 60.0]}, EDGES, "no latitude or longitude"),
        (NODES | {"lat": [60.0, 6_677_000.0, 60.0]}, EDGES, "EPSG:4326"),
        (NODES | {"node_id": [10, 20, 10]}, {"u": [10], "v": [20]}, "two nodes have the same id"),
        (None, {"u": [], "v": []}, "has no road"),
    ],
)
def test_tables_that_cannot_be_a_network_are_refused(
    tmp_path: Path,
    nodes: Columns | None,
    edges: Columns,
    complaint: str,
    ending: str,
) -> None:
    with pytest.raises(InputError, match=complaint) as refusal:
        load(tmp_path, nodes=nodes, edges=edges, ending=ending)
    assert str(refusal.value).startswith(f"{tmp_path / 'town'}: ")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("town_edges.parquet", b"hello"),
        ("town_edges.csv", b""),
        ("town_edges.csv", b"u,v\n1,2,3\n"),
        ("town_edges.csv", b"u,v\n\xff\xfe,2\n"),
    ],
)
def test_a_file_that_is_no_table_is_refused_by_name(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f": {name} is not (readable as|well-formed) "):
        load_network(str(tmp_path / "town"))


def test_nodes_alone_are_no_network(tmp_path: Path) -> None:
    pl.DataFrame(NODES).write_csv(tmp_path / "town_nodes.csv")
    with pytest.raises(InputError, match="no table of edges beside it"):
        load_network(str(tmp_path / "town"))


def test_roads_keep_their_ways_of_openstreetmap(tmp_path: Path) -> None:
    assert load(tmp_path, nodes=NODES).way_of is None
    network = load(tmp_path, nodes=NODES, edges=EDGES | {"osm_way_id": [7, None, "unread"]})
    assert network.way_of is not None
    assert sorted(network.way_of.tolist()) == [0, 0, 0, 0, 7, 7]


LONG = "b" * 1_000_000
MANY = 100_000


PLACES: Columns = {"lat": [1.0, 40.0], "lon": [2.0, 70.0]}
DRAWN: Columns = {"geometry_wkt": ["LINESTRING (2 1, 70 40)"]}


@pytest.mark.parametrize(
    ("nodes", "edges", "complaint"),
    [
        ({"node_id": [LONG, "d"]}, {"u": ["a"] * MANY, "v": ["c"] * MANY}, "road leads to node a"),
        (None, {"u": ["a"] * MANY, "v": [LONG] + ["c"] * (MANY - 1)}, "unpacks to more than"),
        ({"node_id": ["a", LONG]}, {"u": ["a"], "v": [LONG]} | DRAWN, "unpacks to more than"),
    ],
    ids=["nodes", "ends", "nodes between"],
)
def test_a_name_of_a_megabyte_is_not_copied_for_all(
    nodes: Columns | None, edges: Columns, complaint: str, tmp_path: Path
) -> None:
    of_nodes = None if nodes is None else nodes | PLACES
    with pytest.raises(InputError, match=complaint):
        load(tmp_path, nodes=of_nodes, edges=edges, ending=".parquet")


def test_names_of_two_networks_are_not_copied_to_the_length_of_the_longest(tmp_path: Path) -> None:
    for name, long in (("one", "a"), ("two", LONG)):
        edges = {"u": ["c"], "v": [long], "length_m": [1.0]}
        pl.DataFrame(edges).write_parquet(tmp_path / f"{name}_edges.parquet")
        nodes = {"node_id": ["c", long], "lat": [0.0, 0.0], "lon": [0.0, 0.001]}
        pl.DataFrame(nodes).write_parquet(tmp_path / f"{name}_nodes.parquet")
    with pytest.raises(InputError, match="unpacks to more than"):
        load_network(f"{tmp_path}/one + {tmp_path}/two + grid:30x30")

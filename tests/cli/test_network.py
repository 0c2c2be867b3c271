"""`anonymizer network export`."""

import json
from pathlib import Path

import networkx as nx

from anonymizer.networks import load_network
from anonymizer.networks.publication import geojson
from tests.cli.support import anonymizer


def test_a_network_is_written_as_geojson_with_the_version_that_is_printed(tmp_path: Path) -> None:
    out = tmp_path / "grid.geojson"
    done = anonymizer("network", "export", "grid:3x4", "--out", out)
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == geojson(load_network("grid:3x4"))
    assert json.loads(out.read_text())["network"] in done.stdout


def test_another_ending_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    out = tmp_path / "grid.kml"
    done = anonymizer("network", "export", "grid:3x4", "--out", out)
    assert done.returncode == 2
    assert "must end in .geojson or .parquet" in done.stderr
    assert not out.exists()


def test_the_network_of_adka_has_no_nodes_within_roads(tmp_path: Path) -> None:
    graphml, out = tmp_path / "roads.graphml", tmp_path / "roads.geojson"
    graph: nx.Graph[int] = nx.Graph()
    graph.add_node(1, y=60.0, x=24.0)
    graph.add_node(2, y=60.01, x=24.0)
    graph.add_edge(1, 2, geometry="LINESTRING (24 60, 24.001 60.005, 24 60.01)")
    nx.write_graphml(graph, graphml)
    n_nodes = {}
    for more in ((), ("--adka",)):
        done = anonymizer("network", "export", graphml, "--out", out, *more)
        assert done.returncode == 0, done.stderr
        said = json.loads(out.read_text())["features"]
        n_nodes[more] = sum(each["properties"]["kind"] == "node" for each in said)
    assert n_nodes[("--adka",)] == 2 < n_nodes[()]

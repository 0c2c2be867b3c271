"""A hundred road files, ten forms of ten towns, beside OSMnx: as long, or a sentence why not.

`make test-maps OSMNX=FOLDER`: `pip install --no-deps --target FOLDER osmnx` makes the folder.
ROADS=FOLDER adds the files of OpenStreetMap's XML that are in one.
"""

import gzip
import json
import os
import random
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import osmium
import pytest

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network

sys.path.append(os.environ["ANONYMIZER_OSMNX"])
ox: Any = import_module("osmnx") if find_spec("osmnx") else None
pytestmark = pytest.mark.skipif(ox is None, reason="OSMNX names no folder with it")
SIDE = 6
WITHIN = 0.01


class Kind(NamedTuple):
    """Where a town lies, and the tags of its streets in turn."""

    lat: float
    lon: float
    tags: tuple[dict[str, str], ...]


STREET = {"highway": "residential"}
TOWNS = {
    "plain": Kind(48.0, 11.0, (STREET,)),
    "left-hand one-way": Kind(51.5, -0.1, (STREET | {"oneway": "yes"}, STREET | {"oneway": "-1"})),
    "roundabouts": Kind(53.0, -1.0, (STREET, STREET | {"junction": "roundabout"})),
    "levels": Kind(52.0, 5.0, (STREET, {"highway": "motorway", "bridge": "yes", "layer": "1"})),
    "private": Kind(47.0, 8.0, (STREET, {"highway": "service", "access": "private"})),
    "ferries": Kind(60.0, 20.0, (STREET, {"route": "ferry"})),
    "date line": Kind(-17.0, 179.99, (STREET,)),
    "southern": Kind(-33.9, 151.2, (STREET, {"highway": "primary", "maxspeed": "60"})),
    "arctic": Kind(69.6, 18.9, (STREET, {"highway": "tertiary"})),
    "limits": Kind(40.7, -74.0, (STREET | {"maxspeed": "25 mph"}, STREET | {"maxspeed": "none"})),
}


class Town(NamedTuple):
    """Nodes as latitude and longitude by their ids, and ways as ids and tags."""

    nodes: dict[int, tuple[float, float]]
    ways: list[tuple[list[int], dict[str, str]]]

    def renamed(self, name: Callable[[int], int]) -> "Town":
        nodes = {name(n): place for n, place in self.nodes.items()}
        return Town(nodes, [([name(n) for n in refs], tags) for refs, tags in self.ways])


def town(kind: str) -> Town:
    """Return bent streets along and across; those of another level meet none of the others."""
    rng, (lat, lon, tags) = random.Random(kind), TOWNS[kind]  # noqa: S311  a map
    nodes: dict[int, tuple[float, float]] = {}

    def node(i: float, j: float) -> int:
        x = lon + j * 0.004 + rng.uniform(-0.0004, 0.0004)
        place = lat + i * 0.003 + rng.uniform(-0.0003, 0.0003), (x + 180) % 360 - 180
        nodes[len(nodes) + 1] = place
        return len(nodes)

    corner = {(i, j): node(i, j) for i in range(SIDE) for j in range(SIDE)}
    ways = []
    for turn, apart in ((False, False), (True, len(tags) > 1 and "layer" in tags[-1])):
        for i in range(SIDE):
            refs = []
            for j in range(SIDE):
                at = (j, i) if turn else (i, j)
                refs.append(node(at[0] + 0.5, at[1] + 0.5) if apart else corner[at])
                if j + 1 < SIDE:
                    refs.append(node(at[0] + 0.5 * turn, at[1] + 0.5 * (not turn)))
            ways.append((refs, tags[-1] if apart else tags[i % len(tags)]))
    return Town(nodes, ways)


def xml(of: Town, *, root: str = "osm", seed: int | None = None) -> bytes:
    parts = [f'<node id="{n}" lat="{y!r}" lon="{x!r}"/>' for n, (y, x) in of.nodes.items()]
    for number, (refs, tags) in enumerate(of.ways, start=1):
        inside = [f'<nd ref="{n}"/>' for n in refs]
        inside += [f'<tag k="{key}" v="{said}"/>' for key, said in tags.items()]
        parts.append(f'<way id="{number}">{"".join(inside)}</way>')
    if seed is not None:
        random.Random(seed).shuffle(parts)  # noqa: S311  an order
    body = "".join(parts)
    body = f"<create>{body}</create>" if root == "osmChange" else body
    return f'<?xml version="1.0"?><{root} version="0.6">{body}</{root}>'.encode()


def overpass(of: Town, *, geometry: bool) -> bytes:
    found: list[dict[str, Any]] = []
    for number, (refs, tags) in enumerate(of.ways, start=1):
        places = [dict(zip(("lat", "lon"), of.nodes[n], strict=True)) for n in refs]
        more = {"geometry": places} if geometry else {}
        found.append({"type": "way", "id": number, "nodes": refs, "tags": tags} | more)
    if not geometry:
        found += [{"type": "node", "id": n, "lat": y, "lon": x} for n, (y, x) in of.nodes.items()]
    return json.dumps({"elements": found}).encode()


def write_pbf(of: Town, path: Path) -> None:
    with osmium.SimpleWriter(str(path)) as writer:
        for number, (refs, tags) in enumerate(of.ways, start=1):
            writer.add_way(osmium.osm.mutable.Way(id=number, nodes=refs, tags=tags))
        for name, (y, x) in of.nodes.items():
            writer.add_node(osmium.osm.mutable.Node(id=name, location=(x, y)))


def as_osmnx(path: Path, *, simplify: bool) -> Any:  # noqa: ANN401  of OSMnx
    """Return OSMnx's graph of the roads in a file: it takes ferries for roads as well."""
    graph = ox.graph_from_xml(path, simplify=False, retain_all=True)
    others = [e for e in graph.edges(keys=True, data="highway") if e[-1] is None]
    graph.remove_edges_from(each[:3] for each in others)
    graph.remove_nodes_from([n for n, degree in dict(graph.degree()).items() if not degree])
    return ox.simplify_graph(graph) if simplify else graph


def write_networkx(graph: Any, path: Path) -> None:  # noqa: ANN401  of OSMnx
    plain: Any = nx.Graph()
    for name, said in graph.nodes(data=True):
        plain.add_node(name, x=said["x"], y=said["y"])
    plain.add_edges_from((u, v) for u, v in graph.edges())
    nx.write_graphml(plain, path)


FORMS: dict[str, tuple[str, Callable[[Town, Any, Path], object]]] = {
    "ways first": ("a.osm", lambda of, _, path: path.write_bytes(xml(of, seed=1))),
    "negative": ("a.osm", lambda of, _, path: path.write_bytes(xml(of.renamed(lambda n: -n)))),
    "packed": ("a.osm.gz", lambda of, _, path: path.write_bytes(
        gzip.compress(xml(of.renamed(lambda n: 2**53 + n), seed=2)))),
    "change": ("a.osc", lambda of, _, path: path.write_bytes(xml(of, root="osmChange"))),
    "out geom": ("a.json", lambda of, _, path: path.write_bytes(overpass(of, geometry=True))),
    "nodes": ("a.json", lambda of, _, path: path.write_bytes(overpass(of, geometry=False))),
    "pbf": ("a.osm.pbf", lambda of, _, path: write_pbf(of, path)),
    "OSMnx": ("a.graphml", lambda _, graph, path: ox.save_graphml(graph, path)),
    "networkx": ("a.graphml", lambda _, graph, path: write_networkx(graph, path)),
    "GeoPackage": ("a.gpkg", lambda _, graph, path: ox.save_graph_geopackage(graph, path)),
}  # fmt: skip


def drawn_m(network: RoadNetwork) -> float:
    """Return the length of all roads, each once."""
    lines = network.lines()
    step_m = haversine_m(lines.lat[:-1], lines.lon[:-1], lines.lat[1:], lines.lon[1:])
    bounds = lines.first_point_of.tolist()
    return sum(float(step_m[a : b - 1].sum()) for a, b in pairwise(bounds))


def theirs_m(graph: Any) -> float:  # noqa: ANN401  of OSMnx
    """Return the length of all roads of an unsimplified graph, each once."""
    length_of = {frozenset((u, v)): said for u, v, said in graph.edges(data="length")}
    return float(sum(length_of.values()))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", TOWNS)
def test_a_road_file_is_as_long_as_osmnx_finds_it(kind: str, form: str, tmp_path: Path) -> None:
    of = town(kind)
    plain = tmp_path / "plain.osm"
    plain.write_bytes(xml(of))
    expected_m = theirs_m(as_osmnx(plain, simplify=False))
    name, write = FORMS[form]
    graph = as_osmnx(plain, simplify=form == "OSMnx")
    write(of, graph, tmp_path / name)
    network = load_network(str(tmp_path / name))
    assert drawn_m(network) == pytest.approx(expected_m, rel=WITHIN)
    assert " used" in network.account
    assert np.isfinite(network.lat).all()


def public_files() -> list[Path]:
    folder = os.environ.get("ANONYMIZER_ROADS")
    return sorted(Path(folder).rglob("*.osm*")) if folder else []


@pytest.mark.parametrize("path", public_files(), ids=lambda path: path.name)
def test_a_file_of_others_is_as_long_or_it_is_said_what_was_left_out(path: Path) -> None:
    network = load_network(str(path))
    try:
        expected_m = theirs_m(as_osmnx(path, simplify=False))
    except Exception:  # noqa: BLE001  whatever OSMnx says of ways without nodes
        assert network.account
        return
    if abs(drawn_m(network) - expected_m) > WITHIN * expected_m:
        assert " used, " in network.account, "what was left out is said"

"""Every form in which people have the roads of OpenStreetMap, and what becomes of each way."""

import bz2
import gzip
import itertools
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import geopandas as gpd
import numpy as np
import osmium
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.geometry import LineString

from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks import load_network
from tests.cli.support import anonymizer

SIDE = 4


class Town(NamedTuple):
    """Nodes as (id, lat, lon), and ways as (id, nodes, tags)."""

    nodes: list[tuple[int, float, float]]
    ways: list[tuple[int, list[int], dict[str, str]]]


def town(number: Callable[[int], int] = lambda n: n) -> Town:
    """Return streets along and across, 200 m apart, whose corners have ids of a kind."""
    nodes = [
        (number(1 + i * SIDE + j), 48.0 + i * 0.002, 11.0 + j * 0.003)
        for i in range(SIDE)
        for j in range(SIDE)
    ]
    names = np.array([name for name, _, _ in nodes], object).reshape(SIDE, SIDE)
    lines = [*names.tolist(), *names.T.tolist()]
    tags = {"highway": "residential"}
    return Town(nodes, [(number(100 + i), line, tags) for i, line in enumerate(lines)])


def element(kind: str, name: int, inner: str = "", **attributes: float) -> str:
    said = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<{kind} id="{name}"{said}>{inner}</{kind}>'


def xml(elements: Sequence[str], root: str = "osm") -> bytes:
    return f'<?xml version="1.0"?>\n<{root} version="0.6">{"".join(elements)}</{root}>'.encode()


def elements(of: Town, **attributes: int) -> list[str]:
    nodes = [
        element("node", name, "", lat=lat, lon=lon, **attributes) for name, lat, lon in of.nodes
    ]
    return nodes + [
        element(
            "way",
            name,
            "".join(f'<nd ref="{ref}"/>' for ref in refs)
            + "".join(f'<tag k="{k}" v="{v}"/>' for k, v in tags.items()),
            **attributes,
        )
        for name, refs, tags in of.ways
    ]


def overpass(of: Town, *, geometry: bool = False, nodes: bool = True) -> list[dict[str, Any]]:
    """Return elements as Overpass writes them: ways, then nodes, or `out geom`."""
    place = {name: {"lat": lat, "lon": lon} for name, lat, lon in of.nodes}
    ways = [
        {
            "type": "way",
            "id": name,
            "tags": tags,
            **({"nodes": refs} if nodes else {}),
            **({"geometry": [place.get(ref) for ref in refs]} if geometry else {}),
        }
        for name, refs, tags in of.ways
    ]
    found = [] if geometry else [{"type": "node", "id": k, **at} for k, at in place.items()]
    return [*ways, *found]


def written(path: Path, content: bytes) -> str:
    packed = {".gz": gzip.compress(content), ".bz2": bz2.compress(content)}
    path.write_bytes(packed.get(path.suffix, content))
    return str(path)


def lengths(network: RoadNetwork) -> list[float]:
    return sorted(network.length_m.round(3).tolist())


KINDS: dict[str, Callable[[int], int]] = {
    "small": lambda n: n,
    "negative": lambda n: -n,
    "beyond what a double holds": lambda n: 2**53 + n,
    "nearly 64 bit": lambda n: 2**63 - 1000 + n,
    "of both signs": lambda n: n * (-1) ** n,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["osm", "osm.gz", "xml.bz2", "osc", "json", "json.gz"])
def test_a_town_is_the_same_whatever_the_ids_and_the_order_of_its_elements(
    tmp_path: Path, kind: str, ending: str
) -> None:
    found = town(KINDS[kind])
    rng = random.Random(ending + kind)  # noqa: S311  an order
    if "json" in ending:
        shuffled: list[Any] = overpass(found)
        rng.shuffle(shuffled)
        content = json.dumps({"version": 0.6, "elements": shuffled}).encode()
    else:
        shuffled = elements(found)
        rng.shuffle(shuffled)
        root, inner = ("osmChange", [f"<create>{''.join(shuffled)}</create>"])
        content = xml(inner, root) if ending == "osc" else xml(shuffled)
    network = load_network(written(tmp_path / f"a.{ending}", content), max_spacing_m=0)
    assert network.node_id.tolist() == sorted(name for name, _, _ in found.nodes)
    assert network.n_roads == 2 * SIDE * (SIDE - 1)
    assert network.account == f"{2 * SIDE} ways: {2 * SIDE} used"
    straight = load_network(written(tmp_path / "b.osm", xml(elements(town()))), max_spacing_m=0)
    assert lengths(network) == lengths(straight)


def test_binary_files_may_have_nodes_behind_their_ways_and_negative_ids(tmp_path: Path) -> None:
    for kind in ("small", "negative", "beyond what a double holds"):
        found = town(KINDS[kind])
        path = tmp_path / f"{kind}.osm.pbf"
        with osmium.SimpleWriter(str(path)) as writer:
            for name, refs, tags in found.ways:
                writer.add_way(osmium.osm.mutable.Way(id=name, nodes=refs, tags=tags))
            for name, lat, lon in found.nodes:
                writer.add_node(osmium.osm.mutable.Node(id=name, location=(lon, lat)))
        network = load_network(str(path), max_spacing_m=0)
        assert network.node_id.tolist() == sorted(name for name, _, _ in found.nodes)
        assert network.account == f"{2 * SIDE} ways: {2 * SIDE} used"


@pytest.mark.parametrize("nodes", [True, False])
def test_what_overpass_draws_needs_no_nodes(tmp_path: Path, *, nodes: bool) -> None:
    found = town()
    drawn = json.dumps({"elements": overpass(found, geometry=True, nodes=nodes)})
    network = load_network(written(tmp_path / "a.json", drawn.encode()), max_spacing_m=0)
    assert network.n_nodes == SIDE * SIDE
    place = {name: (lat, lon) for name, lat, lon in found.nodes}
    ways = [
        element(
            "way",
            name,
            "<bounds minlat='1' minlon='1' maxlat='2' maxlon='2'/>"
            + "".join(
                f'<nd {f"""ref="{ref}" """ * nodes}lat="{place[ref][0]}" lon="{place[ref][1]}"/>'
                for ref in refs
            )
            + '<tag k="highway" v="residential"/>',
        )
        for name, refs, _ in found.ways
    ]
    also = load_network(written(tmp_path / "a.osm", xml(ways)), max_spacing_m=0)
    assert lengths(also) == lengths(network)
    assert also.node_id.tolist() == network.node_id.tolist()
    if nodes:
        assert network.node_id.tolist() == sorted(place)


@settings(max_examples=60, deadline=None)
@given(missing=st.sets(st.integers(1, SIDE * SIDE)), as_json=st.booleans())
def test_of_a_clipped_extract_every_way_is_told(
    tmp_path_factory: pytest.TempPathFactory, missing: set[int], *, as_json: bool
) -> None:
    whole = town()
    found = Town([node for node in whole.nodes if node[0] not in missing], whole.ways)

    def fate(refs: list[int]) -> str:
        there = [ref not in missing for ref in refs]
        if not any(a and b for a, b in itertools.pairwise(there)):
            return "without nodes"
        return "used" if all(there) else "cut at the border"

    become = [fate(refs) for _, refs, _ in found.ways]
    told = ", ".join(
        f"{become.count(each)} {each}"
        for each in ("used", "cut at the border", "without nodes")
        if each in become
    )
    folder = tmp_path_factory.mktemp("clipped")
    path = folder / ("a.json" if as_json else "a.osm")
    written(
        path,
        json.dumps({"elements": overpass(found)}).encode() if as_json else xml(elements(found)),
    )
    pairs = {
        (a, b)
        for _, refs, _ in found.ways
        for a, b in itertools.pairwise(refs)
        if not {a, b} & missing
    }
    if not pairs:
        with pytest.raises(InputError, match=f"has no road .8 ways: {told}.$"):
            load_network(str(path))
        return
    network = load_network(str(path), max_spacing_m=0)
    assert network.account == f"8 ways: {told}"
    assert network.n_roads == len(pairs)


def test_repeated_objects_are_one_and_the_greatest_version_counts(tmp_path: Path) -> None:
    found = town()
    new = elements(found, version=3)
    moved = Town([(name, lat + 1, lon) for name, lat, lon in found.nodes], [])
    old = elements(moved, version=2) + [
        element("way", name, '<nd ref="1"/><nd ref="16"/><tag k="highway" v="path"/>', version=1)
        for name, _, _ in found.ways
    ]
    expected = load_network(written(tmp_path / "a.osm", xml(new)), max_spacing_m=0)
    for content in (new + new, new + old, old + new):
        network = load_network(written(tmp_path / "b.osm", xml(content)), max_spacing_m=0)
        assert network.node_id.tolist() == expected.node_id.tolist()
        assert network.account == expected.account
        np.testing.assert_array_equal(network.length_m, expected.length_m)


@pytest.mark.parametrize(
    "gone",
    [
        lambda each: each.replace(' version="1"', ' version="1" action="delete"', 1),
        lambda each: each.replace(' version="1"', ' version="2" visible="false"', 1),
        lambda each: f"<delete>{each}</delete>",
    ],
)
def test_deleted_ways_and_nodes_are_gone(tmp_path: Path, gone: Callable[[str], str]) -> None:
    *others, last = elements(town(), version=1)
    network = load_network(written(tmp_path / "a.osm", xml([*others, gone(last)])), max_spacing_m=0)
    assert network.account == "7 ways: 7 used"
    assert network.n_roads == 2 * SIDE * (SIDE - 1) - (SIDE - 1)
    first, *others = elements(town(), version=1)
    network = load_network(
        written(tmp_path / "a.osm", xml([gone(first), *others])), max_spacing_m=0
    )
    assert 1 not in network.node_id
    assert network.account == "8 ways: 6 used, 2 cut at the border"


def test_ways_of_one_node_and_nodes_that_come_twice_in_a_row_do_no_harm(tmp_path: Path) -> None:
    tags = {"highway": "residential"}
    found = town()
    found.ways.append((200, [1], tags))
    found.ways.append((201, [], tags))
    found.ways.append((202, [1, 1, 6, 6, 6], tags))
    found.ways.append((203, [1, 1], tags))
    found.ways.append((204, [6, 6, 6], tags))
    network = load_network(written(tmp_path / "a.osm", xml(elements(found))), max_spacing_m=0)
    told = "13 ways: 9 used, 2 without nodes, 2 from a node to itself"
    assert network.account == told
    assert network.n_roads == 2 * SIDE * (SIDE - 1) + 1


def test_what_is_no_road_for_cars_is_counted(tmp_path: Path) -> None:
    """One-way streets, ferries, private access, construction, levels and areas."""
    nodes = town().nodes
    ways = [
        (1, [1, 2, 3], {"highway": "residential", "oneway": "yes"}),
        (2, [3, 4], {"highway": "service", "access": "private"}),
        (3, [5, 6], {"highway": "construction", "construction": "primary"}),
        (4, [2, 6, 10], {"highway": "primary", "layer": "1", "bridge": "yes"}),
        (5, [7, 8], {"route": "ferry"}),
        (6, [9, 10, 14, 9], {"highway": "pedestrian", "area": "yes"}),
        (7, [9, 10, 14, 9], {"highway": "service", "area": "yes"}),
        (8, [5, 6, 7], {"highway": "footway"}),
        (9, [11, 12, 16, 15, 11], {"highway": "tertiary", "junction": "roundabout"}),
        (10, [1, 5], {"building": "yes"}),
    ]
    path = written(tmp_path / "a.osm", xml(elements(Town(nodes, ways))))
    network = load_network(path, max_spacing_m=0)
    assert network.account == "8 ways: 4 used, 1 areas, 3 of other classes"
    tail = np.repeat(network.node_id, np.diff(network.first_arc_of))
    open_to = set(
        zip(
            tail[network.drivable].tolist(),
            network.node_id[network.neighbour_of][network.drivable].tolist(),
            strict=True,
        )
    )
    assert (1, 2) in open_to
    assert (2, 1) not in open_to
    # Left-hand traffic goes round the other way, as it is drawn.
    assert load_network(f"walk:{path}").account == "8 ways: 5 used, 2 areas, 1 of other classes"


def test_an_answer_of_centres_alone_is_refused_with_what_to_ask_for(tmp_path: Path) -> None:
    way = '<center lat="48" lon="11"/><nd ref="1"/><nd ref="2"/><tag k="highway" v="service"/>'
    asked = "out body; >; out skel;"
    with pytest.raises(InputError, match=asked):
        load_network(written(tmp_path / "a.osm", xml([element("way", 1, way)])))
    found = {"type": "way", "id": 1, "center": {"lat": 48, "lon": 11}, "nodes": [1, 2]}
    with pytest.raises(InputError, match=asked):
        load_network(
            written(
                tmp_path / "a.json",
                json.dumps({"elements": [found | {"tags": {"highway": "service"}}]}).encode(),
            )
        )


def test_an_answer_that_overpass_did_not_finish_is_refused(tmp_path: Path) -> None:
    remark = "runtime error: Query timed out in &quot;query&quot; at line 3"
    told = "did not finish its answer: runtime error: Query timed out"
    with pytest.raises(InputError, match=told):
        load_network(
            written(tmp_path / "a.osm", xml([*elements(town()), f"<remark> {remark} </remark>"]))
        )
    with pytest.raises(InputError, match=told):
        load_network(
            written(
                tmp_path / "a.json",
                json.dumps({"elements": overpass(town()), "remark": remark}).encode(),
            )
        )


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.osm", b"<osm><node id='1' lat='north' lon='2'/></osm>", "see line 1"),
        ("a.osm", b"<osm><node lat='1' lon='2'/></osm>", "see line 1"),
        ("a.osm", b"<osm>\n<node id='1' lat='1' lon='2'>", "see line 2"),
        ("a.osm", b"<gpx><wpt/></gpx>", "begins with another element"),
        ("a.osm", b"<osm><node id='9223372036854775808' lat='1' lon='2'/></osm>", "64 bits"),
        ("a.osm", b"<!DOCTYPE osm [<!ENTITY a 'b'>]><osm/>", "declares entities"),
        ("a.osm.gz", b"<osm><node", "see line"),
        ("a.json", b'{"type": "FeatureCollection", "features": []}', "not what Overpass writes"),
        ("a.json", b'{"elements": [{"type": "node", "id": 1, "lat": "x"}]}', "not what Overpass"),
        ("a.json", b'{"elements": [{"type": "node", "id": 36893488147419103232}]}', "64 bits"),
        ("a.json", b'{"elements": [{"type": "way", "id": 1, "geometry": 5}]}', "not what Overpass"),
        ("a.json", b"[" * 100_000, "not what Overpass"),
    ],
)
def test_what_is_no_file_of_openstreetmap_is_refused_in_one_line_without_its_values(
    tmp_path: Path, name: str, content: bytes, told: str
) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(InputError, match=told) as refusal:
        load_network(path)
    assert "north" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def lines_of(found: Town) -> gpd.GeoDataFrame:
    place = {name: (lon, lat) for name, lat, lon in found.nodes}
    return gpd.GeoDataFrame(
        {"highway": [tags["highway"] for _, _, tags in found.ways]},
        geometry=[LineString([place[ref] for ref in refs]) for _, refs, _ in found.ways],
        crs=4326,
    )


@pytest.mark.parametrize("ending", ["gpkg", "geojson", "shp"])
@pytest.mark.parametrize("crs", [4326, 32632])
def test_lines_of_gis_programs_are_roads_that_meet_where_they_share_a_point(
    tmp_path: Path, ending: str, crs: int
) -> None:
    if ending == "geojson":
        crs = 4326  # by its standard
    path = tmp_path / f"a.{ending}"
    lines_of(town()).to_crs(crs).to_file(path)
    network = load_network(str(path), max_spacing_m=0)
    straight = load_network(written(tmp_path / "b.osm", xml(elements(town()))), max_spacing_m=0)
    assert network.account == "8 lines: 8 used"
    assert network.n_nodes == straight.n_nodes
    np.testing.assert_allclose(lengths(network), lengths(straight), rtol=1e-4)


def test_edges_of_osmnx_keep_the_names_of_their_nodes_and_join_their_two_directions(
    tmp_path: Path,
) -> None:
    a, b, c = (11.0, 48.0), (11.001, 48.0005), (11.002, 48.0)
    there = LineString([a, b, c])
    frame = gpd.GeoDataFrame(
        {
            "u": [10, 30, 30],
            "v": [30, 10, 20],
            "osmid": ["[7, 8]", "[8, 7]", "9"],
            "highway": ["['residential', 'service']", "residential", "primary"],
            "oneway": [False, False, True],
            "maxspeed": [None, "30", "50"],
        },
        geometry=[there, there.reverse(), LineString([c, (11.003, 48.0)])],
        crs=4326,
    )
    path = tmp_path / "town.gpkg"
    frame.to_file(path, layer="edges")
    gpd.GeoDataFrame(geometry=gpd.points_from_xy([11.0], [48.0]), crs=4326).to_file(
        path, layer="nodes"
    )
    network = load_network(str(path), max_spacing_m=0)
    assert network.node_id.tolist() == [10, 20, 30]
    assert network.n_roads == 2
    assert int(network.drivable.sum()) == 3
    assert network.account == "3 lines: 2 used, 1 drawn twice"
    assert network.way_of is not None
    assert set(network.way_of.tolist()) == {7, 9}


def test_an_undirected_edge_of_osmnx_may_be_drawn_from_its_second_node_to_its_first(
    tmp_path: Path,
) -> None:
    place = {1: (11.0, 48.0), 2: (11.001, 48.0), 3: (11.001, 48.001), 4: (11.0, 48.001)}
    as_drawn = [(1, 2), (3, 2), (3, 4), (1, 4)]
    frame = gpd.GeoDataFrame(
        {"u": [1, 2, 3, 1], "v": [2, 3, 4, 4], "highway": "residential"},
        geometry=[LineString([place[a], place[b]]) for a, b in as_drawn],
        crs=4326,
    )
    frame.to_file(tmp_path / "a.gpkg", layer="edges")
    network = load_network(str(tmp_path / "a.gpkg"), max_spacing_m=0)
    at = zip(network.lon.tolist(), network.lat.tolist(), strict=True)
    assert dict(zip(network.node_id.tolist(), at, strict=True)) == place
    assert max(network.length_m) < 120


def test_other_tags_and_the_directions_of_geofabrik_are_read(tmp_path: Path) -> None:
    lines = [LineString([(11 + i / 1000, 48), (11.001 + i / 1000, 48)]) for i in range(4)]
    tags = ['"oneway"=>"yes","maxspeed"=>"50"', None, '"area"=>"yes"', None]
    frame = gpd.GeoDataFrame(
        {"highway": ["service", "service", "service", None], "other_tags": tags},
        geometry=lines,
        crs=4326,
    )
    frame.to_file(tmp_path / "a.gpkg", layer="lines")
    network = load_network(str(tmp_path / "a.gpkg"))
    assert network.account == "3 lines: 2 used, 1 areas"
    assert int(network.drivable.sum()) == 3
    ways = {"fclass": ["service"] * 3 + ["footway"], "oneway": ["F", "T", "B", "B"]}
    gpd.GeoDataFrame(ways, geometry=lines, crs=4326).to_file(tmp_path / "b.shp")
    network = load_network(str(tmp_path / "b.shp"))
    assert network.account == "4 lines: 3 used, 1 of other classes"
    assert network.drivable[network.first_arc_of[0]]
    assert int(network.drivable.sum()) == 4


def test_a_file_of_several_layers_must_name_the_one_of_roads(tmp_path: Path) -> None:
    for name in ("canals", "rails"):
        lines_of(town()).to_file(tmp_path / "a.gpkg", layer=name)
    with pytest.raises(InputError, match="named edges, lines or roads: canals, rails"):
        load_network(str(tmp_path / "a.gpkg"))
    (tmp_path / "b.geojson").write_text("hello")
    with pytest.raises(InputError, match="not readable as geojson"):
        load_network(str(tmp_path / "b.geojson"))


def test_check_says_what_became_of_each_way(tmp_path: Path) -> None:
    whole = town()
    for missing, told in (
        (set(), "8 ways: 8 used"),
        ({1}, "8 ways: 6 used, 2 cut at the border"),
        ({1, 2, 3}, "8 ways: 4 used, 3 cut at the border, 1 without nodes"),
    ):
        found = Town([each for each in whole.nodes if each[0] not in missing], whole.ways)
        roads = written(tmp_path / "a.osm", xml(elements(found)))
        config = tmp_path / "gateway.toml"
        config.write_text(f'network.source = "{roads}"\n')
        ran = anonymizer("check", "--config", config)
        assert ran.stdout.splitlines()[0].endswith(f" roads; {told}")

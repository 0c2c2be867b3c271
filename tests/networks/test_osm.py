import bz2
import gzip
import json
from io import BytesIO
from pathlib import Path

import numpy as np
import osmium
import polars as pl
import pytest

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks import load_network
from anonymizer.networks.osm import load_osm
from anonymizer.networks.publication import geojson, geoparquet
from anonymizer.networks.speeds import KMH


def write(path: Path, *ways: tuple[list[int], dict[str, str]], missing: int = 0) -> str:
    """Write ways over nodes 1..9, which lie on a line 0.001 degrees apart."""
    nodes = "".join(
        f'<node id="{node}" version="1" lat="60" lon="{24 + node / 1000}"/>'
        for node in range(1, 10)
        if node != missing
    )
    lines = "".join(
        f'<way id="{number}" version="1">'
        + "".join(f'<nd ref="{ref}"/>' for ref in refs)
        + "".join(f'<tag k="{key}" v="{value}"/>' for key, value in tags.items())
        + "</way>"
        for number, (refs, tags) in enumerate(ways, start=1)
    )
    content = f'<osm version="0.6">{nodes}{lines}</osm>'.encode()
    if path.suffix == ".gz":
        content = gzip.compress(content)
    if path.suffix == ".bz2":
        content = bz2.compress(content)
    path.write_bytes(content)
    return str(path)


def roads(network: RoadNetwork) -> dict[tuple[int, int], bool]:
    """Return the arcs by the ids of their ends, with whether they may be driven."""
    tail = network.node_id[np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))]
    head = network.node_id[network.neighbour_of]
    return dict(
        zip(
            zip(tail.tolist(), head.tolist(), strict=True),
            network.drivable.tolist(),
            strict=True,
        )
    )


STREET = {"highway": "residential"}


@pytest.mark.parametrize("name", ["a.osm", "a.osm.gz", "a.osm.bz2"])
def test_ways_are_split_where_they_meet_and_keep_their_geometry(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, ([1, 2, 3, 4], STREET), ([6, 5, 3], STREET))
    network = load_network(path, max_spacing_m=0)
    assert network.node_id.tolist() == [1, 3, 4, 6]
    assert set(roads(network)) == {(1, 3), (3, 1), (3, 4), (4, 3), (3, 6), (6, 3)}
    step_m = float(haversine_m(60, 24.001, 60, 24.002))
    np.testing.assert_allclose(network.length_m, np.array([2, 2, 1, 3, 1, 3]) * step_m, rtol=1e-6)
    np.testing.assert_allclose(network.lon, [24.001, 24.003, 24.004, 24.006])


def test_the_binary_format_reads_like_the_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.osm", ([1, 2, 3], STREET), ([2, 5], STREET))
    binary = str(tmp_path / "a.osm.pbf")
    with osmium.SimpleWriter(binary) as writer:
        for item in osmium.FileProcessor(path):
            writer.add(item)
    expected, network = load_network(path), load_network(binary)
    for name in ("node_id", "lat", "lon", "first_arc_of", "neighbour_of", "length_m"):
        np.testing.assert_array_equal(getattr(network, name), getattr(expected, name))


def test_a_way_is_split_where_it_crosses_itself(tmp_path: Path) -> None:
    way = ([1, 2, 3, 4, 2, 5], STREET)
    network = load_network(write(tmp_path / "a.osm", way), max_spacing_m=0)
    assert set(roads(network)) == {(1, 2), (2, 1), (2, 5), (5, 2)}


def test_only_what_cars_drive_on_is_a_road(tmp_path: Path) -> None:
    network = load_network(
        write(
            tmp_path / "a.osm",
            ([1, 2], {"highway": "footway"}),
            ([2, 3], {"highway": "service"}),
            ([3, 4], {"railway": "tram"}),
            ([5, 6, 7, 5], {"highway": "residential", "area": "yes"}),
            ([8, 9], {"highway": "trunk_link"}),
        )
    )
    assert set(roads(network)) == {(2, 3), (3, 2), (8, 9), (9, 8)}


WAYS = (
    ([1, 2], {"highway": "motorway"}),
    ([2, 3], STREET | {"oneway": "yes", "maxspeed": "50"}),
    ([3, 4], {"highway": "footway"}),
    ([4, 5], {"highway": "cycleway"}),
    ([5, 6], {"waterway": "canal"}),
    ([6, 7], {"waterway": "stream"}),
    ([8, 9], {"highway": "steps"}),
)


@pytest.mark.parametrize(
    ("profile", "both_ways", "one_way", "kmh"),
    [
        ("", set(), {(1, 2), (2, 3)}, {110, 50}),
        ("drive:", set(), {(1, 2), (2, 3)}, {110, 50}),
        ("walk:", {(2, 3), (3, 4), (4, 5), (8, 9)}, set(), {5, 3}),
        ("cycle:", {(3, 4), (4, 5), (8, 9)}, {(2, 3)}, {18, 5, 3}),
        ("streets:", {(3, 4), (4, 5), (8, 9)}, {(1, 2), (2, 3)}, {110, 50, 18, 5, 3}),
        ("water:", {(5, 6)}, set(), {10}),
    ],
)
def test_each_profile_has_its_ways(
    tmp_path: Path,
    profile: str,
    both_ways: set[tuple[int, int]],
    one_way: set[tuple[int, int]],
    kmh: set[float],
) -> None:
    path = write(tmp_path / "a.osm", *WAYS)
    network = load_network(profile + path)
    may = {arc for arc, drivable in roads(network).items() if drivable}
    assert may == both_ways | one_way | {(v, u) for u, v in both_ways}
    assert set((network.speed_mps / KMH).round(6).tolist()) == kmh


def test_only_files_of_openstreetmap_have_profiles(tmp_path: Path) -> None:
    for source, complaint in (
        ("walk:grid:4x4", r"^walk:grid:4x4: only files of OpenStreetMap have profiles"),
        (f"walk:{tmp_path}/a.osm", "there is no such file"),
    ):
        with pytest.raises(InputError, match=complaint):
            load_network(source)


def test_one_way_streets_are_closed_against_their_direction(tmp_path: Path) -> None:
    network = load_network(
        write(
            tmp_path / "a.osm",
            ([1, 2], STREET | {"oneway": "yes"}),
            ([2, 3], STREET | {"oneway": "-1"}),
            ([3, 4], STREET | {"junction": "roundabout"}),
            ([4, 5], {"highway": "motorway", "oneway": "no"}),
        )
    )
    assert {arc for arc, may in roads(network).items() if may} == {
        (1, 2),
        (3, 2),
        (3, 4),
        (4, 5),
        (5, 4),
    }


def test_speeds_come_from_the_tags(tmp_path: Path) -> None:
    network = load_network(
        write(tmp_path / "a.osm", ([1, 2], STREET | {"maxspeed": "20 mph"}), ([2, 3], STREET))
    )
    np.testing.assert_allclose(
        network.speed_mps, np.array([20 * 1.609344, 20 * 1.609344, 30, 30]) * KMH
    )


def test_a_node_beyond_the_border_of_the_extract_breaks_the_way(tmp_path: Path) -> None:
    path = write(tmp_path / "a.osm", ([1, 2, 3, 4, 5], STREET), ([3, 9], STREET), missing=3)
    network = load_network(path)
    assert set(roads(network)) == {(1, 2), (2, 1), (4, 5), (5, 4)}


@pytest.mark.parametrize(
    ("ways", "told"),
    [
        ([], ""),
        ([([1, 2], {"highway": "path"})], " (1 way: 1 of other classes)"),
        ([([1], STREET)], " (1 way: 1 without nodes)"),
    ],
)
def test_an_extract_without_roads_is_refused(
    tmp_path: Path, ways: list[tuple[list[int], dict[str, str]]], told: str
) -> None:
    path = write(tmp_path / "a.osm", *ways)
    with pytest.raises(InputError) as refusal:
        load_network(path)
    assert str(refusal.value) == f"{path}: has no road{told}"


@pytest.mark.parametrize("ending", [".osm", ".osm.gz", ".osm.bz2", ".osm.pbf"])
def test_what_is_not_osm_data_is_refused_in_one_line(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"hello")
    with pytest.raises(InputError, match=r"is not (readable OSM data|well-formed pbf)") as refusal:
        load_network(str(path))
    assert str(refusal.value).startswith(f"{path}: ")
    assert "\n" not in str(refusal.value)


def ways(network: RoadNetwork) -> dict[tuple[int, int], int]:
    """Return the way of each arc by the ids of its ends."""
    assert network.way_of is not None
    return dict(zip(roads(network), network.way_of.tolist(), strict=True))


def test_roads_keep_the_ids_of_their_ways(tmp_path: Path) -> None:
    path = write(tmp_path / "a.osm", ([1, 2, 3, 4], STREET), ([6, 5, 3], STREET))
    whole = load_network(path, max_spacing_m=0)
    assert ways(whole) == {
        (1, 3): 1, (3, 1): 1, (3, 4): 1, (4, 3): 1, (3, 6): 2, (6, 3): 2,
    }  # fmt: skip
    # Pieces of a road keep the way of the whole.
    assert set(ways(load_network(path, max_spacing_m=30)).values()) == {1, 2}
    said = [each["properties"] for each in json.loads(geojson(whole))["features"]]
    assert {(each["u"], each["v"]): each["way"] for each in said if each["kind"] == "road"} == {
        (1, 3): 1, (3, 4): 1, (3, 6): 2,
    }  # fmt: skip
    frame = pl.read_parquet(BytesIO(geoparquet(whole)))
    assert frame["way"].to_list() == [None] * 4 + [1, 1, 2]


def test_a_country_that_does_not_fit_into_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    country = tmp_path / "country.osm.pbf"
    with country.open("wb") as file:
        file.truncate(1_000_000)  # of zeros: no data, so that reading it would fail otherwise
    limit = tmp_path / "memory.max"
    monkeypatch.setattr("anonymizer.networks.osm._LIMIT", limit)
    limit.write_text("7000000\n")
    with pytest.raises(InputError, match=r"needs 0.0 GB.*osmium extract"):
        load_osm(country)
    for enough in ("9000000\n", "max\n"):
        limit.write_text(enough)
        with pytest.raises(InputError, match="not readable"):
            load_osm(country)

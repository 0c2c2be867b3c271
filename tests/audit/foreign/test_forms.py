# ruff: noqa: E501  a file is a line
"""Releases of others: each form is recognized from files as people have them."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import h3
import numpy as np
import pytest
from google.transit.gtfs_realtime_pb2 import FeedMessage
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.foreign.forms.form import OpenQuestion
from anonymizer.audit.foreign.forms.geohashes import middle_of
from anonymizer.audit.foreign.forms.plain_points import step_of
from anonymizer.audit.foreign.readers.reader import MOST_BYTES
from anonymizer.audit.foreign.registry import read_files, read_foreign
from anonymizer.audit.foreign.release import CountRelease, PointRelease
from anonymizer.errors import InputError
from anonymizer.networks import load_network

Maker = Callable[[Path], list[Path]]
T0 = 1_780_000_000


def _text(name: str, text: str) -> Maker:
    def make(folder: Path) -> list[Path]:
        (folder / name).write_text(text)
        return [folder / name]

    return make


def _gpx(tracks: int, points: int, *, prefix: str = "") -> str:
    body = "".join(
        f"<{prefix}trk><name>Ride</name><{prefix}trkseg>"
        + "".join(
            f'<{prefix}trkpt lat="{47 + i / 1000}" lon="{11 + t / 100}"><ele>500</ele>'
            f"<{prefix}time>2026-05-0{t + 1}T10:00:{i:02d}Z</{prefix}time></{prefix}trkpt>"
            for i in range(points)
        )
        + f"</{prefix}trkseg></{prefix}trk>"
        for t in range(tracks)
    )
    space = f"xmlns{':' if prefix else ''}{prefix[:-1]}"
    return f'<?xml version="1.0"?><{prefix}gpx {space}="http://www.topografix.com/GPX/1/1">{body}</{prefix}gpx>'


def _feature(lat: float, lon: float, **properties: object) -> dict[str, object]:
    return {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [lon, lat]},
        "properties": properties,
    }


def _collection(*features: dict[str, object]) -> str:
    return json.dumps({"type": "FeatureCollection", "features": features})


def _gtfs(folder: Path) -> list[Path]:
    feed = FeedMessage()
    feed.header.gtfs_realtime_version = "2.0"
    for i in range(3):
        entity = feed.entity.add()
        entity.id = f"e{i}"
        entity.vehicle.vehicle.id = f"bus-{i}"
        entity.vehicle.timestamp = T0 + i
        entity.vehicle.position.latitude = 60.1 + i / 100
        entity.vehicle.position.longitude = 24.9
    (folder / "vehicles.pb").write_bytes(feed.SerializeToString())
    return [folder / "vehicles.pb"]


def _gtfs_json(name: str, *, wrapped: bool) -> Maker:
    entity = {
        "id": "e1",
        "vehicle": {
            "vehicle": {"id": "b1"},
            "timestamp": str(T0),
            "position": {"latitude": 52.5, "longitude": 13.4},
        },
    }
    feed: dict[str, object] = {"header": {"timestamp": T0}, "entity": [entity]}
    return _text(name, json.dumps({"response": feed} if wrapped else feed))


def _gbfs(listed: str, name: str, n_files: int) -> Maker:
    def make(folder: Path) -> list[Path]:
        for i in range(n_files):
            bikes = [{name: f"{b}", "lat": 48.1 + b / 100 + i / 999, "lon": 11.5} for b in range(4)]
            stated = {"last_updated": T0 + 60 * i, "ttl": 60, "data": {listed: bikes}}
            (folder / f"{i}.json").write_text(json.dumps(stated))
        return sorted(folder.glob("*.json"))

    return make


def _lines(name: str, *lines: object) -> Maker:
    return _text(name, "".join(json.dumps(line) + "\n" for line in lines))


def _h3(resolution: int, column: str) -> Maker:
    cells = [h3.latlng_to_cell(48 + i / 10, 11, resolution) for i in range(4)]
    rows = "".join(f"p{i % 2},{T0 + i},{cell}\n" for i, cell in enumerate(cells))
    return _text("cells.csv", f"user_id,timestamp,{column}\n{rows}")


POINTS = {
    "csv": (_text("a.csv", "device_id,ts,lat,lon\na,1780000000,48.1,11.5\nb,1780000001,48.2,11.6\n"), 2, 2),
    "csv of ships": (
        _text("a.csv", "MMSI,BaseDateTime,LAT,LON\n211,2026-01-01T00:00:00,54.1,10.2\n212,2026-01-01T00:01:00,54.2,10.3\n"),
        2,
        2,
    ),
    "semicolons and commas": (_text("a.csv", "user;time;latitude;longitude\n7;1780000000;48,15;11,52\n8;1780000060;48,16;11,53\n"), 2, 2),
    "tabs": (_text("a.tsv", "uid\tdatetime\tlat\tlng\nx\t2026-01-01 10:00:00\t1.5\t2.5\nx\t2026-01-01 10:01:00\t1.6\t2.5\n"), 2, 1),
    "features": (
        _text("a.geojson", _collection(_feature(48, 11, id="a", time=T0), _feature(49, 11, id="b", time=T0))),
        2,
        2,
    ),
    "feature ids": (_text("a.json", _collection(_feature(48, 11, vehicle="a", timestamp="2026-01-01T00:00:00Z"))), 1, 1),
    "lines with times": (
        _text(
            "a.geojson",
            _collection(
                {
                    "type": "Feature",
                    "properties": {"user": "u", "coordTimes": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"]},
                    "geometry": {"type": "LineString", "coordinates": [[11, 48], [11.1, 48]]},
                }
            ),
        ),
        2,
        1,
    ),
    "gtfs": (_gtfs, 3, 3),
    "gtfs as json": (_gtfs_json("a.json", wrapped=False), 1, 1),
    "gtfs of a gateway": (_gtfs_json("b.json", wrapped=True), 1, 1),
    "gbfs 2": (_gbfs("bikes", "bike_id", 1), 4, 4),
    "gbfs 3": (_gbfs("vehicles", "vehicle_id", 1), 4, 4),
    "gbfs, three snapshots": (_gbfs("bikes", "bike_id", 3), 12, 4),
    "mqtt": (
        _lines("a.jsonl", *({"topic": f"fleet/{i % 2}", "payload": {"lat": 48 + i / 9, "lon": 11, "time": T0 + i}} for i in range(4))),
        4,
        2,
    ),
    "mqtt, payload in text": (
        _lines("a.ndjson", *({"topic": "t", "time": T0 + i, "payload": json.dumps({"id": f"{i}", "lat": 48.5, "lon": 11})} for i in range(2))),
        2,
        2,
    ),
    "mqtt, place within": (
        _lines("a.jsonl", *({"topic": "t", "payload": {"vehicle": "x", "ts": T0 + i, "location": {"lat": 48, "lon": 11 + i}}} for i in range(2))),
        2,
        1,
    ),
    "geohash": (_text("a.csv", "id,time,geohash\na,1780000000,u281z\nb,1780000000,u282b\n"), 2, 2),
    "short geohash": (_text("a.csv", "user;ts;geo_hash\na;1780000000;u28\na;1780000060;u28\n"), 2, 1),
    "geohash lines": (_lines("a.jsonl", {"device": "a", "time": T0, "geohash": "9q8yyk8"}), 1, 1),
    "h3": (_h3(9, "h3"), 4, 2),
    "coarse h3": (_h3(6, "hex_id"), 4, 2),
    "h3 by its other name": (_h3(8, "h3_cell"), 4, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", POINTS)
def test_points_are_recognized(name: str, tmp_path: Path) -> None:
    make, n_rows, n_ids = POINTS[name]
    release = read_foreign(make(tmp_path), stated={}, network=None)
    assert isinstance(release, PointRelease)
    assert (release.trace.n_rows, release.trace.n_devices) == (n_rows, n_ids)
    assert np.abs(release.trace.lat).max() <= 90
    assert release.trace.ts.min() > 1e9


COUNTS = {
    "struck with a sign": "area,hour,count\nA,8,<10\nA,9,12\nB,8,31\nB,9,<10\n",
    "struck with a star": "zone;start_time;n_trips\nA;2026-01-01 08:00;*\nB;2026-01-01 08:00;20\n",
    "struck with words": "cell_id,day,visitors\nA,1,fewer than 10\nB,1,12\nTotal,1,15\n",
    "places": "lat,lon,hour,devices\n48.1,11.5,8,12\n48.2,11.5,8,<10\n",
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_recognized(name: str, tmp_path: Path) -> None:
    release = read_foreign(_text("counts.csv", COUNTS[name])(tmp_path), stated={}, network=None)
    assert isinstance(release, CountRelease)
    assert release.n_areas == 2
    assert np.isnan(release.count).any()
    assert release.struck[0] == 1
    assert release.struck[1] in {9, 11, 19}
    assert (release.area_of == -1).sum() == ("Total" in COUNTS[name])


@pytest.mark.parametrize(
    ("make", "n_ids"),
    [
        (_text("a.gpx", _gpx(3, 5)), {"_file": 1, "_track": 3}),
        (_text("a.gpx", _gpx(2, 4, prefix="g:")), {"_file": 1, "_track": 2}),
        (_text("export.xml", _gpx(2, 3)), {"_file": 1, "_track": 2}),
    ],
)
def test_of_tracks_it_asks_whose_they_are(
    make: Maker, n_ids: dict[str, int], tmp_path: Path
) -> None:
    paths = make(tmp_path)
    with pytest.raises(InputError, match=r"--columns id=\.\.\., one of _track .*_file"):
        read_foreign(paths, stated={}, network=None)
    asked: list[OpenQuestion] = []

    def answered(answer: str, question: OpenQuestion) -> str:
        asked.append(question)
        return answer

    for answer, n in n_ids.items():
        release = read_foreign(paths, stated={}, network=None, answer=partial(answered, answer))
        assert isinstance(release, PointRelease)
        assert release.trace.n_devices == n
    assert [question.key for question in asked] == ["id", "id"]


def test_regions_of_nodes_are_read_with_their_network(tmp_path: Path) -> None:
    lines = [{"pseudonym": f"p{i}", "time": T0, "region": [0, 1], "k": 2} for i in range(2)]
    lines.append({"pseudonym": "p3", "time": T0, "region": [], "k": 2})
    paths = _lines("pub.jsonl", *lines)(tmp_path)
    with pytest.raises(InputError, match="--network"):
        read_foreign(paths, stated={}, network=None)
    release = read_foreign(paths, stated={}, network=load_network("grid:3x3"))
    assert isinstance(release, PointRelease)
    assert release.trace.n_rows == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "alpha,beta\n1,2\n"),
        ("a.gpx", "<gpx><trk>"),
        ("a.gpx", "<gpx></gpx>"),
        ("a.geojson", '{"type": "FeatureCollection", "features": [1]}'),
        ("a.jsonl", "[1]\n"),
        ("a.jsonl", "{\n"),
        ("a.pb", "no feed"),
        ("a.bin", "\0\1"),
        ("a.json", '{"data": {"bikes": 3}}'),
        ("a.csv", "h3,id,ts\n8ffffffffffffff,a,1780000000\n"),
    ],
)
def test_what_is_no_release_is_said_in_one_sentence(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=name):
        read_foreign(_text(name, text)(tmp_path), stated={}, network=None)


@given(st.floats(-89, 89), st.floats(-179, 179), st.integers(3, 9))
def test_a_geohash_is_a_cell_that_holds_its_middle(lat: float, lon: float, letters: int) -> None:
    """Encoded by bisection here, decoded there."""
    sides, bits = [[-180.0, 180.0], [-90.0, 90.0]], ""
    for i in range(5 * letters):
        side, value = sides[i % 2], (lon, lat)[i % 2]
        middle = sum(side) / 2
        bits += "1" if value >= middle else "0"
        side[0 if value >= middle else 1] = middle
    alphabet = "0123456789bcdefghjkmnpqrstuvwxyz"
    text = "".join(alphabet[int(bits[i : i + 5], 2)] for i in range(0, len(bits), 5))
    found = middle_of(text)
    assert found == pytest.approx((sum(sides[1]) / 2, sum(sides[0]) / 2))


@given(st.integers(2, 12), st.lists(st.integers(-500, 500), min_size=30, max_size=60))
def test_bits_and_decimals_are_found_as_a_grid(bits: int, numbers: list[int]) -> None:
    numbers = [*numbers, 0, 1]
    assert step_of(np.array(numbers) * 2.0**-bits) == pytest.approx(2.0**-bits)
    assert step_of(np.round(np.array(numbers) * 0.001, 3)) == pytest.approx(0.001)


@given(st.integers(0, 2**32 - 1))
def test_positions_as_measured_lie_on_no_grid(seed: int) -> None:
    assert step_of(np.random.default_rng(seed).uniform(48, 49, 60)) == 0.0


@pytest.mark.parametrize("name", ["a.jsonl", "a.geojson", "a.gpx", "a.pb"])
def test_a_file_that_would_fill_the_memory_is_refused_before_it_is_read(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(InputError, match="is larger than 256 MiB"):
        read_files([path])

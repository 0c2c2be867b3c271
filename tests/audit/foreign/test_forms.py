# ruff: noqa: E501  a file is a line
"""Releases of others: each form is recognized from files as people have them."""

import json
import struct
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
from anonymizer.audit.foreign.release import BareRelease, CountRelease, PointRelease
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


def _fit(folder: Path) -> list[Path]:
    """Write a FIT file: a definition of `record`, and three of them, one without a place."""
    definition = struct.pack("<BBBHB", 0x40, 0, 0, 20, 3) + bytes(
        [253, 4, 0x86, 0, 4, 0x85, 1, 4, 0x85]
    )
    nowhere = 0x7FFFFFFF
    body = definition
    for i in range(3):
        lat, lon = (int(each / 180 * 2**31) for each in (48.1 + i / 100, 11.5))
        body += struct.pack(
            "<BIii", 0, T0 - 631_065_600 + i, lat if i else nowhere, lon if i else nowhere
        )
    file = struct.pack("<BBHI4s", 12, 0x10, 2000, len(body), b".FIT") + body
    table = [
        0x0000, 0xCC01, 0xD801, 0x1400, 0xF001, 0x3C00, 0x2800, 0xE401,
        0xA001, 0x6C00, 0x7800, 0xB401, 0x5000, 0x9C01, 0x8801, 0x4400,
    ]  # fmt: skip
    crc = 0
    for byte in file:
        for nibble in (byte & 0xF, byte >> 4):
            crc = (crc >> 4) ^ table[crc & 0xF] ^ table[nibble]
    (folder / "ride.fit").write_bytes(file + struct.pack("<H", crc))
    return [folder / "ride.fit"]


def test_a_ride_in_fit_is_read_and_a_damaged_one_refused(tmp_path: Path) -> None:
    (path,) = _fit(tmp_path)
    frame = read_files([path])
    assert frame["time"].to_list() == [T0 + 1, T0 + 2]
    assert frame["lat"].to_list() == pytest.approx([48.11, 48.12])
    assert frame["lon"].to_list() == pytest.approx([11.5, 11.5])
    whole = path.read_bytes()
    for damaged in (whole[:30], whole[:-1] + b"x", b"no file"):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"ride\.fit"):
            read_files([path])


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


def _h3(resolution: int, column: str, written: Callable[[str], str] = str) -> Maker:
    cells = [h3.latlng_to_cell(48 + i / 10, 11, resolution) for i in range(4)]
    rows = "".join(f"p{i % 2},{T0 + i},{written(cell)}\n" for i, cell in enumerate(cells))
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
    "h3 as numbers": (_h3(8, "h3", lambda cell: str(h3.str_to_int(cell))), 4, 2),
    "h3 with a prefix": (_h3(8, "h3", lambda cell: "0x" + cell.upper()), 4, 2),
    "geohashes in capitals": (_text("a.csv", "id,time,geohash\na,1780000000,U281Z\nb,1780000000,U282B\n"), 2, 2),
    "geohashes of several lengths": (_text("a.csv", "id,time,geohash\na,1780000000,u281z\nb,1780000000,u282bxy\n"), 2, 2),
    "well-known text": (_text("a.csv", f"id,time,geometry\na,{T0},POINT (24.9 60.1)\nb,{T0},POINT (24.9 60.2)\n"), 2, 2),
    "both in one column": (_text("a.csv", f'id,time,location\na,{T0},"60.1, 24.9"\nb,{T0},"60.2, 24.9"\n'), 2, 2),
    "milliseconds by name": (_text("a.csv", f"vehicle_id,timestamp_ms,latitude,longitude\na,{T0}000,60.1,24.9\nb,{T0}000,60.2,24.9\n"), 2, 2),
    "date and time apart": (_text("a.csv", "id,date,time,lat,lon\na,2026-05-01,10:00:00,60.1,24.9\nb,2026-05-01,10:00:09,60.2,24.9\n"), 2, 2),
    "trips of bicycles": (
        _text(
            "a.csv",
            "bike_id,started_at,ended_at,start_station,start_lat,start_lng,end_lat,end_lng\n"
            "7,2026-05-01 10:00:00,2026-05-01 10:20:00,A,60.1,24.9,60.2,24.8\n"
            "8,2026-05-01 11:00:00,2026-05-01 11:20:00,B,60.1,24.9,60.2,24.8\n",
        ),
        4,
        2,
    ),
    "trips of taxis": (
        _text("a.csv", f"id,pickup_datetime,dropoff_datetime,pickup_longitude,pickup_latitude,dropoff_longitude,dropoff_latitude\n1,{T0},{T0 + 60},24.9,60.1,24.8,60.2\n"),
        2,
        1,
    ),
    "a json array": (_text("a.json", json.dumps([{"id": "a", "time": T0, "lat": 60.1, "lon": 24.9}])), 1, 1),
    "an array in an object": (_text("a.json", json.dumps({"data": [{"id": "a", "time": T0, "lat": 60.1, "lon": 24.9}]})), 1, 1),
    "mqtt with a last will": (
        _lines("a.jsonl", {"topic": "fleet/1", "payload": "offline"}, *({"topic": f"fleet/{i}", "payload": {"lat": 48, "lon": 11, "time": T0 + i}} for i in range(2))),
        2,
        2,
    ),
    "mosquitto_sub -v": (_text("a.txt", "".join(f'fleet/{i} {{"lat": 48.5, "lon": 11, "ts": {T0 + i}}}\n' for i in range(2))), 2, 2),
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
    "wide, an hour a column": "area,08:00,09:00,10:00\nA,12,<10,14\nB,31,20,<10\n",
    "wide, an area a column": "date,A,B,Total\n2026-01-01,12,<10,21\n2026-01-02,31,20,51\n",
    "small ones not listed": "area,hour,count\nA,8,12\nA,9,13\nB,9,31\nB,10,20\n",
    "thousands": 'area,hour,count\nA,8,<10\nA,9,"1,012"\nB,8,31\nB,9,<10\n',
    "date and hour apart": "area,date,hour,count\nA,2026-01-01,9,<10\nA,2026-01-01,10,12\nB,2026-01-01,9,31\n",
    "places": "lat,lon,hour,devices\n48.1,11.5,8,12\n48.2,11.5,8,<10\n",
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_recognized(name: str, tmp_path: Path) -> None:
    release = read_foreign(_text("counts.csv", COUNTS[name])(tmp_path), stated={}, network=None)
    assert isinstance(release, CountRelease)
    assert release.n_areas == 2
    assert np.isnan(release.count).any()
    assert release.struck[0] == (name != "small ones not listed")
    assert release.struck[1] in {9, 11, 19}
    assert (release.area_of == -1).any() == ("Total" in COUNTS[name])
    assert not release.is_noisy


def test_times_of_counts_are_in_order_and_areas_have_their_place(tmp_path: Path) -> None:
    cells = [h3.latlng_to_cell(48.1 + i / 10, 11.5, 7) for i in range(2)]
    rows = "".join(f"{cell},2026-01-01 {hour},{hour}\n" for cell in cells for hour in (9, 10, 23))
    release = read_foreign(
        _text("counts.csv", "h3,hour,count\n" + rows)(tmp_path), stated={}, network=None
    )
    assert isinstance(release, CountRelease)
    assert release.start_s is not None
    assert release.place is not None
    assert np.diff(release.start_s).tolist() == [3600.0, 13 * 3600.0]
    table = release.table()
    assert table is not None
    assert table.tolist() == [[9, 10, 23]] * 2
    assert sorted(release.place[:, 0]) == pytest.approx([48.1, 48.2], abs=0.02)


def test_counts_below_zero_are_read_as_noise(tmp_path: Path) -> None:
    text = "area,hour,count\nA,8,-1.5\nA,9,12.25\nB,8,31\n"
    release = read_foreign(_text("counts.csv", text)(tmp_path), stated={}, network=None)
    assert isinstance(release, CountRelease)
    assert release.is_noisy


def _without_ids(folder: Path, *, people: int) -> PointRelease | BareRelease:
    rows = "".join(
        f"{T0 + 60 * i},{48 + p / 10 + i / 1000:.4f},11.5\n"
        for i in range(30)
        for p in range(people)
    )
    found = read_foreign(_text("a.csv", "time,lat,lon\n" + rows)(folder), stated={}, network=None)
    assert isinstance(found, PointRelease | BareRelease)
    return found


def test_positions_without_ids_are_joined_where_one_person_cannot_be_in_all(tmp_path: Path) -> None:
    several = _without_ids(tmp_path, people=4)
    assert isinstance(several, BareRelease)
    assert "without ids" in several.form
    assert several.trace.n_devices == 4
    same = several.trace.lat[several.trace.device_of == several.trace.device_of[0]]
    assert np.ptp(same) < 0.05
    alone = _without_ids(tmp_path, people=1)
    assert isinstance(alone, PointRelease)
    assert "of one person" in alone.form


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
        ("a.json", '{"last_updated": 1, "data": {"stations": []}}'),
        ("a.csv", "id,time,x,y\na,1780000000,691000,5334000\n"),
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


@pytest.mark.parametrize("stated", [{}, {"id": "device"}])
def test_no_row_of_a_file_without_a_header_is_quoted(
    tmp_path: Path, stated: dict[str, str]
) -> None:
    (tmp_path / "r.csv").write_text("anna,2026-01-31 12:00:00,harbour\n" * 3)
    with pytest.raises(InputError, match="whose first row is no header") as refused:
        read_foreign([tmp_path / "r.csv"], stated=stated, network=None)
    said = str(refused.value).replace(str(tmp_path), "")
    assert not any(part in said for part in ("anna", "2026", "harbour"))

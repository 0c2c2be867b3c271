"""Published trips: a class on paper, and intervals for trips whose truth is known."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import anonymizer
from anonymizer import client
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.positions.trip_classes import N_STARTS, WindowTrips, n_cells_of
from anonymizer.client.messages import Collector
from anonymizer.client.published_trips import PublishedTrips
from anonymizer.domain.network_version import network_version
from anonymizer.errors import InputError
from anonymizer.networks import load_network
from anonymizer.networks.publication import parts
from anonymizer.outputs.trips.trip_windows import EndedTrips, TripMessages
from anonymizer.settings import Settings
from tests.client.paper import STEP_DEG, halves, message, street

STREET = client.read_network(street())
HALVES = halves(STREET)
HOUR = 3600.0
HEAD = "class_id,start,from_lat,from_lon,to_lat,to_lon"


def read(folder: Path, *rows: str) -> PublishedTrips:
    (folder / "trips.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    return client.read_trips(folder / "trips.csv", network=STREET)


def spans(first: float, last: float) -> str:
    """Return the range of longitudes that reaches from a node to another, and a bit further."""
    return f"[{first * STEP_DEG - 0.001:.5f}-{last * STEP_DEG + 0.001:.5f}]"


def test_trips_of_a_class_are_where_its_box_says(tmp_path: Path) -> None:
    times = "[1970-01-01T00:30:00Z..1970-01-01T01:30:00Z]"
    west, east = f"[0-0],{spans(0, 1)}", f"[0-0],{spans(2, 3)}"
    trips = read(tmp_path, *[f"0,{times},{west},{east}"] * 6)
    assert len(trips) == 6
    assert repr(trips) == "PublishedTrips(6 in 1 classes)"
    assert (trips.first, trips.last) == (1800, 5400)
    matrix = trips.matrix(HALVES, start=0, end=2 * HOUR)
    rows = zip(*(matrix[name] for name in matrix.columns), strict=True)
    assert list(rows) == [
        ("west", "west", 0, 0, 0),
        ("west", "east", 6, 6, 6),
        ("east", "west", 0, 0, 0),
        ("east", "east", 0, 0, 0),
    ]
    # Half of the time is before one o'clock; the first is there, and the last is not.
    starts = trips.starts(HALVES)
    assert [str(at)[11:13] for at in starts["time"]] == ["00", "00", "01", "01"]
    assert list(starts["trips"]) == pytest.approx([3, 0, 3, 0])
    assert (starts["low"][0], starts["high"][0]) == (1, 5)
    assert trips.matrix(HALVES, start=2 * HOUR, end=3 * HOUR)["trips"].sum() == 0


def test_one_trip_is_at_each_side_of_its_box(tmp_path: Path) -> None:
    """Of a box that ends at the third node, a side is east however many nodes are west."""
    box = f"[0-0],{spans(0, 2)}"
    trips = read(tmp_path, *[f"a,1970-01-01T00:00:00Z,{box},{box}"] * 8)
    starts = trips.starts(HALVES)
    # Four are at sides: one at the first node, one at the third, and two anywhere on the street.
    # The others are at three nodes alike, one of which is east.
    assert list(starts["trips"]) == pytest.approx([1 + 6 * 2 / 3, 1 + 6 / 3])
    assert (starts["low"] < starts["trips"]).all()
    assert (starts["trips"] < starts["high"]).all()
    assert list(trips.matrix(HALVES, start=0, end=1)["trips"]) == pytest.approx(
        8 * np.outer([5 / 8, 3 / 8], [5 / 8, 3 / 8]).ravel()
    )


def test_a_box_without_a_node_is_at_the_nearest(tmp_path: Path) -> None:
    place = f"0.0001,{0.4 * STEP_DEG:.5f}"
    trips = read(tmp_path, f"0,1970-01-01T00:00:00Z,{place},{place}")
    assert list(trips.starts(HALVES)["trips"]) == [1, 0]


def test_tables_of_something_else_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no range"):
        read(tmp_path, "0,noon,1,1,1,1")
    with pytest.raises(InputError, match="no range"):
        read(tmp_path, "0,1970-01-01T00:00:00Z,{a|b},1,1,1")
    with pytest.raises(InputError, match="no trips"):
        read(tmp_path)
    (tmp_path / "other.csv").write_text("class_id,start\n")
    for name in ("other.csv", "none.csv", "none.parquet"):
        with pytest.raises(InputError, match="no table of published trips"):
            client.read_trips(tmp_path / name, network=STREET)
    trips = read(tmp_path, "0,1970-01-01T00:00:00Z,0,0,0,0")
    [row] = zip(*(trips.table()[name] for name in trips.table().columns), strict=True)
    assert row[:2] == ("0, 0, 0, 0",) * 2
    assert list(row[-1]) == []
    with pytest.raises(InputError, match="needs `network`"):
        client.read_trips(tmp_path / "trips.csv")
    with pytest.raises(InputError, match="another network"):
        trips.starts(client.read_network("grid:3x3").grid(100))


def test_intervals_hold_for_trips_that_are_uneven(tmp_path: Path) -> None:
    """Trips from everywhere to three places, as anonymized with the defaults."""
    network = client.read_network("city:1000")
    rng, n = np.random.default_rng(5), 1500
    origin = rng.integers(network.n_nodes, size=n)
    destination = rng.choice(network.n_nodes, 3)[rng.integers(3, size=n)]
    destination = np.where(rng.random(n) < 0.3, rng.integers(network.n_nodes, size=n), destination)
    start_s = rng.uniform(0, 4 * HOUR, n).round()
    true = pl.DataFrame(
        {
            "device_id": np.arange(n),
            "start": (start_s * 1000).astype("datetime64[ms]"),
            "from_lat": network.lat[origin],
            "from_lon": network.lon[origin],
            "to_lat": network.lat[destination],
            "to_lon": network.lon[destination],
        }
    ).with_columns(pl.col("start").dt.to_string("%Y-%m-%dT%H:%M:%SZ"))
    published = anonymizer.anonymize(true, k=5, id="device_id", qi=true.columns[1:]).frame
    published.write_parquet(tmp_path / "trips.parquet")
    trips = client.read_trips(tmp_path / "trips.parquet", network=network)
    assert len(trips) == n
    cells = network.grid(1000)
    asked = (start_s >= HOUR) & (start_s < 3 * HOUR)
    moves = np.zeros((len(cells), len(cells)))
    np.add.at(moves, (cells.cell_of[origin[asked]], cells.cell_of[destination[asked]]), 1)
    matrix = trips.matrix(cells, start=HOUR, end=3 * HOUR)
    assert matrix["trips"].sum() == pytest.approx(asked.sum(), rel=0.02)
    held = (matrix["low"] <= moves.ravel()) & (moves.ravel() <= matrix["high"])
    assert held.mean() >= 0.95
    # The bounds say something: most pairs of cells cannot have many trips.
    assert np.mean(matrix["high"] - matrix["low"]) < 0.02 * asked.sum()


def window(*told: dict[str, object], time: float = 3 * HOUR, **fields: object) -> bytes:
    """Return what a gateway tells of a window: cells of one node each."""
    body = {"v": 1, "time": time, "window_s": HOUR, "network": STREET.version, "k": 10}
    return json.dumps({**body, "n_cells": 4, "trips": told, **fields}).encode()


def told(
    origin: tuple[int, int],
    destination: tuple[int, int],
    start: tuple[float, float] = (2 * HOUR, 3 * HOUR),
    **fields: object,
) -> dict[str, object]:
    ends = [dict(zip(("first", "last"), each, strict=True)) for each in (origin, destination)]
    named = dict(zip(("origin", "destination"), ends, strict=True))
    return {**named, "start": start, "devices": 20, "roads": [], **fields}


def read_told(folder: Path, *lines: bytes) -> PublishedTrips:
    (folder / "trips.jsonl").write_bytes(b"\n".join(lines))
    return client.read_trips(folder / "trips.jsonl", network=STREET)


def test_classes_of_a_gateway_are_a_table(tmp_path: Path) -> None:
    west = told((0, 1), (3, 3), roads=[[10, 11], [12, 11]])
    trips = read_told(tmp_path, window(west, told((2, 2), (2, 3))), window(time=2 * HOUR))
    assert (len(trips), trips.windows) == (40, [2 * HOUR, 3 * HOUR])
    assert (trips.first, trips.last) == (0, 3 * HOUR)
    table = trips.table()
    assert list(table["origin"]) == ["0-1", "2-2"]
    assert list(table["destination"]) == ["3-3", "2-3"]
    assert [str(at)[11:16] for at in table["time"]] == ["02:00"] * 2
    assert [list(table[name]) for name in ("low", "trips", "high")] == [
        [20, 20], [24.5, 24.5], [29, 29]
    ]  # fmt: skip
    assert list(table["roads"]) == [["10-11", "12-11"], []]
    table.write(tmp_path / "days")
    assert pl.read_parquet(tmp_path / "days" / "day=1970-01-01" / "part.parquet").height == 2
    table.write(tmp_path / "trips.csv")
    assert "10-11 12-11" in (tmp_path / "trips.csv").read_text()
    table.write(tmp_path / "trips.geojson")
    route, line = table.to_geopandas().geometry
    assert route.geom_type == "MultiLineString"
    assert route.geoms[1].coords[0] == pytest.approx((2 * STEP_DEG, 0)), "in the way of travel"
    assert np.array(line.coords) == pytest.approx(np.array([[2, 0], [2.5, 0]]) * STEP_DEG)


def test_intervals_hold_however_numbers_were_rounded_and_whenever_trips_began(
    tmp_path: Path,
) -> None:
    windows = [window(time=at * HOUR) for at in (1, 2, 4, 5)]
    sure, late = told((0, 1), (2, 3)), told((2, 3), (0, 1), (1 * HOUR, 3 * HOUR))
    trips = read_told(tmp_path, window(sure, late), *windows)
    matrix = trips.matrix(HALVES, start=2 * HOUR, end=3 * HOUR)
    rows = {pair[:2]: pair[2:] for pair in zip(*(matrix[n] for n in matrix.columns), strict=True)}
    # In one more window trips of the hour may have ended, and fewer than k did.
    assert rows["west", "east"] == (24.5, 20, 29 + 9)
    expected, low, high = rows["east", "west"]
    assert (low, high) == (0, 29 + 9)
    # Most trips ended soon after they began: on three roads of 1 km they last some minutes.
    assert 20 < expected < 24.5
    assert rows["west", "west"] == (0, 0, 9)
    starts = trips.starts(HALVES)
    assert [str(at)[11:13] for at in starts["time"]] == [
        f"{h:02}" for h in (0, 0, 1, 1, 2, 2, 3, 3)
    ]
    east = starts["cell"] == "east"
    assert list(starts["trips"][east]) == pytest.approx([0, 24.5 - expected, expected, 0])


def test_hours_of_which_windows_lack_are_no_zeros(tmp_path: Path) -> None:
    trips = read_told(tmp_path, window(told((0, 1), (2, 3))))
    with pytest.warns(UserWarning, match="1 windows are not there"):
        trips.matrix(HALVES, start=2 * HOUR, end=3 * HOUR)
    with pytest.raises(InputError, match="of no hour are all windows there"):
        trips.starts(HALVES)


def test_a_recorded_stream_has_its_network_with_it(tmp_path: Path) -> None:
    about, bodies = parts(street())
    regions = message("ab", [10], 2 * HOUR, 3 * HOUR, network=STREET.version)
    lines = [
        b"anonymizer/network " + about.encoded(),
        *[b"anonymizer/network/parts/%d %s" % each for each in enumerate(bodies)],
        b"cloaked/positions " + regions,
        b"cloaked/trips " + window(told((0, 1), (2, 3)), told((2, 2), (9, 9))),
        b"cloaked/trips " + window(told((0, 1), (2, 3))),
    ]
    path = tmp_path / "stream.txt"
    path.write_bytes(b"\n".join(lines))
    assert len(client.read_trips(path)) == 20, "what comes again replaces what came before"
    assert client.read(path).devices() == 2
    (tmp_path / "alone.txt").write_bytes(lines[-1])
    with pytest.raises(InputError, match="the network of the trips is not known"):
        client.read_trips(tmp_path / "alone.txt")


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([b""], "no window of trips"),
        ([window(told((0, 1), (2, 3)), network="other")], "not all about network"),
        ([window(), window(time=4 * HOUR, window_s=60)], "of several lengths"),
        ([window(told((0, 1), (4, 7)))], "none of the 4 cells"),
        ([window(told((0, 1), (2, 3)), v=2)], "version 2 of the contract"),
    ],
)
def test_messages_that_cannot_be_read_are_named(
    tmp_path: Path, lines: list[bytes], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        read_told(tmp_path, *lines)


def test_a_road_that_the_network_lacks_is_named(tmp_path: Path) -> None:
    trips = read_told(tmp_path, window(told((0, 1), (2, 3), roads=[[10, 13]])))
    with pytest.raises(InputError, match="lacks a road of the trips"):
        trips.table()


def test_a_message_that_only_looks_like_trips_is_left_out_and_counted() -> None:
    collector = Collector()
    assert not collector.take(b'{"v": 1, "time": 0, "window_s": 60, "trips": 1}')
    assert collector.take(b'{"v": 1, "time": 0, "n_cells": 16, "trips": [1, 2], "devices": [3]}')
    assert (collector.trips, collector.left_out) == ({}, {"not understood": 1, "other topic": 1})


def test_windows_are_kept_for_a_day_longer_than_regions() -> None:
    collector = Collector()
    for hour in range(50):
        collector.take(window(time=hour * HOUR))
    collector.forget(40 * HOUR)
    assert min(collector.trips) == 16 * HOUR


def test_intervals_hold_for_trips_that_a_gateway_tells(tmp_path: Path) -> None:
    """Trips from everywhere to three places, told in windows of an hour."""
    roads, k = load_network("city:1000"), 5
    network = client.read_network(roads)
    rng, n = np.random.default_rng(6), 3000
    origin = rng.integers(network.n_nodes, size=n)
    destination = rng.choice(network.n_nodes, 3)[rng.integers(3, size=n)]
    destination = np.where(rng.random(n) < 0.3, rng.integers(network.n_nodes, size=n), destination)
    east, north = (at[destination] - at[origin] for at in network.plane_m)
    start_s = rng.uniform(0, 5 * HOUR, n)
    number = ((start_s + np.hypot(east, north) / 5) // HOUR).astype(np.int64)
    cell = compact_parts(roads, n_cells_of(roads, k)).astype(np.int64)
    told = TripMessages(
        Settings.model_validate({"counts": {"k": k}, "trips_out": {"every_s": HOUR}}),
        roads,
        version=network_version(roads),
    )
    lines = []
    for each in range(-1, 8):
        rows = np.flatnonzero(number == each)
        step = (start_s[rows] - (each - 1) * HOUR) // (2 * HOUR / N_STARTS)
        trips = WindowTrips(
            rows,
            cell[origin[rows]],
            cell[destination[rows]],
            step.astype(np.int64),
            [np.zeros(0, np.int64)] * len(rows),
        )
        lines.append(told.of(EndedTrips(each, k, trips), wall_ahead_s=0.0).payload)
    (tmp_path / "trips.jsonl").write_bytes(b"\n".join(lines))
    found = client.read_trips(tmp_path / "trips.jsonl", network=network)
    assert len(found) <= n <= len(found) + (k - 1) * len(found.table())
    cells = network.grid(1500)
    asked = (start_s >= HOUR) & (start_s < 3 * HOUR)
    moves = np.zeros((len(cells), len(cells)))
    np.add.at(moves, (cells.cell_of[origin[asked]], cells.cell_of[destination[asked]]), 1)
    matrix = found.matrix(cells, start=HOUR, end=3 * HOUR)
    # Numbers of five to nine are told as five, so that a tenth may be lacking or too much.
    assert matrix["trips"].sum() == pytest.approx(asked.sum(), rel=0.1)
    held = (matrix["low"] <= moves.ravel()) & (moves.ravel() <= matrix["high"])
    assert held.mean() >= 0.95
    assert np.mean(matrix["high"] - matrix["low"]) < 0.1 * asked.sum()

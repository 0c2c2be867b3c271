"""Published trips: a class on paper, and intervals for trips whose truth is known."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import anonymizer
from anonymizer import client
from anonymizer.client.published_trips import PublishedTrips
from anonymizer.errors import InputError
from tests.client.paper import STEP_DEG, halves, street

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

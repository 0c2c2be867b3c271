"""`anonymizer trips`: the trips of a trace, which `anonymize` publishes."""

import stat
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.networks import load_network
from tests.cli.support import anonymizer

START = 1_800_000_000
COLUMNS = "device_id,start,duration_s,from_lat,from_lon,to_lat,to_lon,length_m"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Twelve devices that stay, go 1.1 km to the north in 100 s, and stay."""
    rows = [
        f"d{d},{START + 10 * d + t},{60 + north},{24 + d / 1000}"
        for d in range(12)
        for t, north in ((0, 0), (130, 0), (180, 0.005), (230, 0.01), (400, 0.01))
    ]
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(["device_id,ts,lat,lon", *rows]) + "\n")
    return path


def test_trips_are_written_for_the_owner_alone_and_anonymized(trace: Path, tmp_path: Path) -> None:
    trips, out = tmp_path / "trips.csv", tmp_path / "out.csv"
    done = anonymizer("trips", trace, "--out", trips)
    assert done.returncode == 0, done.stderr
    assert "12 trips of 12 devices" in done.stdout
    assert stat.S_IMODE(trips.stat().st_mode) == 0o600
    lines = trips.read_text().splitlines()
    assert lines[:2] == [COLUMNS, "d0,2027-01-15T08:02:10Z,100,60.0,24.0,60.01,24.0,1112"]
    assert len(lines) == 13
    done = anonymizer(
        *("anonymize", trips, "-k", "3", "--id", "device_id", "--method", "hilbert"),
        *("--qi", "start,from_lat,from_lon", "--qi", "to_lat,to_lon", "--out", out, "-d", "1"),
        *("--max-share", "1", "--max-source-share", "1"),
    )
    assert done.returncode == 0, done.stderr
    sizes = Counter(pl.read_csv(out)["class_id"].to_list())
    assert min(sizes.values()) >= 3


def test_on_a_network_trips_have_cells_and_roads(tmp_path: Path) -> None:
    network = load_network("grid:8x8")
    row = range(8, 14)  # from one node to the next in 20 s
    lines = [
        f"{name},{start + 20 * i},{network.lat[n]},{network.lon[n]}"
        for name, start in (("a", START + 400), ("b", START + 500))
        for i, n in enumerate([8] * 8 + list(row) + [13] * 8)
    ]
    path, out = tmp_path / "trace.csv", tmp_path / "trips.csv"
    far = [f"watch,{START + t},{network.lat[0]},{network.lon[0]}" for t in (0, 3000)]
    path.write_text("\n".join(["device_id,ts,lat,lon", *lines, *far]) + "\n")
    config = tmp_path / "gateway.toml"
    config.write_text("[counts]\nk = 2\n")
    done = anonymizer("trips", path, "--out", out, "--network", "grid:8x8", "--config", config)
    assert done.returncode == 0, done.stderr
    table = pl.read_csv(out)
    cell = compact_parts(network, 16)
    assert table["from_cell"].to_list() == [cell[8]] * 2
    assert table["to_cell"].to_list() == [cell[13]] * 2
    assert table["roads"].to_list() == ["8>9 9>10 10>11 11>12 12>13"] * 2


def test_trips_with_an_end_in_a_zone_are_left_out_and_counted(trace: Path, tmp_path: Path) -> None:
    config, trips = tmp_path / "gateway.toml", tmp_path / "trips.parquet"
    zone = "[[zones]]\ncircle = { lat = 60.01, lon = 24.0, radius_m = 80 }\n"
    config.write_text(f'[network]\nsource = "grid:3x3"\n{zone}')
    done = anonymizer("trips", trace, "--out", trips, "--config", config)
    assert done.returncode == 0, done.stderr
    assert "2 with an end in a zone" in done.stdout
    assert sorted(pl.read_parquet(trips)["device_id"])[:3] == ["d10", "d11", "d2"]


@pytest.mark.parametrize(
    ("rows", "out", "complaint"),
    [
        ("device_id,ts,node\na,1,2\n", "o.csv", "must have lat and lon"),
        ("device_id,ts,lat,lon\na,1,60,24\n", "o.txt", "a table ends in"),
        ("device_id,ts,lat,lon\na,1,60,24\n", "trace.csv", "is named twice"),
    ],
)
def test_what_gives_no_trips_is_refused_in_one_line(
    tmp_path: Path, rows: str, out: str, complaint: str
) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(rows)
    done = anonymizer("trips", path, "--out", tmp_path / out)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1

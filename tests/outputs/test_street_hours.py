"""Traffic by street and hour from a trace, and what an analyst reads of it."""

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anonymizer import client
from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.cli.main import main
from anonymizer.client.tables import Table
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.trace import Trace
from anonymizer.errors import GuaranteeError, InputError
from anonymizer.files.traces import trace_of
from anonymizer.outputs.streets import street_hours as module
from anonymizer.outputs.streets.street_hours import street_hours
from anonymizer.settings import Settings
from tests.cli.support import in_process
from tests.outputs.drives import HOUR, NETWORK, drives


def made(frame: pl.DataFrame, **tables: object) -> module.StreetHourTable:
    return street_hours(
        trace_of(frame),
        NETWORK,
        Settings.model_validate(tables),
        every_s=HOUR,
        rng=np.random.default_rng(1),
    )


def truth(frame: pl.DataFrame) -> dict[tuple[float, str], set[str]]:
    """Return the devices that were on each road in each hour, straight from the positions."""
    found = defaultdict(set)
    ends = [
        (u, v)
        for u in range(64)
        for v in NETWORK.neighbour_of[slice(*NETWORK.first_arc_of[u : u + 2])].tolist()
        if u < v
    ]
    middle = np.array([[(x[u] + x[v]) / 2 for x in (NETWORK.lat, NETWORK.lon)] for u, v in ends])
    for name, ts, lat, lon in frame.iter_rows():
        # On a grid, the road of a position is the one whose middle is nearest.
        u, v = ends[int(((middle - [lat, lon]) ** 2).sum(axis=1).argmin())]
        found[ts // HOUR * HOUR, f"{u}-{v}"].add(name)
    return found


def test_each_figure_is_about_k_devices_and_bounds_the_true_number() -> None:
    frame = drives()
    found, true = made(frame, counts={"k": 5}), truth(frame)
    columns = found.columns
    start = columns["time"].astype("datetime64[s]").astype(np.int64)
    roads_of_hour: Counter[float] = Counter()
    for i, names in enumerate(columns["roads"]):
        on = [true[float(start[i]), name] for name in names]
        devices = set().union(*on)
        assert len(devices) >= 5 or columns["devices_low"][i] == 0
        assert columns["devices_low"][i] <= len(devices) <= columns["devices_high"][i]
        n = sum(map(len, on))
        assert columns["passages_low"][i] <= n <= columns["passages_high"][i]
        roads_of_hour[float(start[i])] += len(names)
        assert columns["n_roads"][i] == len(found.geometry[i]["coordinates"]) == len(names)
    # Every road is in one row of each hour.
    assert set(roads_of_hour.values()) == {NETWORK.n_roads}
    assert len(roads_of_hour) == 3
    assert (columns["devices_low"] == 0).sum() <= 3
    assert len(columns["roads"]) > 20
    speed = columns["speed_mps"]
    known = ~np.isnan(speed)
    assert known.sum() > 20
    assert (columns["speed_low"][known] >= 0).all()
    assert (columns["speed_low"][known] <= speed[known]).all()
    assert (speed[known] <= columns["speed_high"][known]).all()


def test_what_holds_fewer_devices_is_written_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_fine(_: object, n_roads: int, *__: object) -> IntArray:
        return np.arange(n_roads + 1)

    monkeypatch.setattr("anonymizer.algorithms.positions.street_hours._starts", too_fine)
    with pytest.raises(GuaranteeError, match="nothing was written"):
        made(drives(), counts={"k": 5})


def test_of_too_few_devices_nothing_is_said_but_that_they_are_few() -> None:
    columns = made(drives(3), counts={"k": 5}).columns
    assert set(columns["n_roads"].tolist()) == {NETWORK.n_roads}
    assert set(columns["devices_high"].tolist()) == {4}
    assert np.isnan(columns["speed_mps"]).all()


def test_private_places_and_ends_of_trips_are_left_out() -> None:
    frame, lat, lon = drives(), float(NETWORK.lat[0]), float(NETWORK.lon[0])
    found = made(frame, zones=[{"circle": {"lat": lat, "lon": lon, "radius_m": 250}}])
    inside = haversine_m(lat, lon, frame["lat"].to_numpy(), frame["lon"].to_numpy()) <= 250
    assert found.n_private == inside.sum() > 0
    ends = made(frame, trips={"enabled": True})
    # The first and the last minute of each, at least.
    assert ends.n_private >= 60 * 2 * 6
    assert sum(ends.columns["passages_low"]) < sum(made(frame).columns["passages_low"])


def test_traces_without_places_or_with_ids_that_change_are_refused() -> None:
    frame = drives(5)
    unknown, first = np.full(1, np.nan), np.zeros(1, np.int64)
    named = Trace(("a",), first, np.zeros(1), unknown, unknown, first)
    changing = {"topic": "a/{device}", "ids_change_s": 300.0}
    for trace, tables, said in (
        (named, {}, "lat and lon"),
        (trace_of(frame.clear()), {}, "no positions"),
        (trace_of(frame), {"inputs": [changing]}, "ids change"),
        (trace_of(frame), {"counts": {"privacy": "dp"}}, "with k alone"),
    ):
        with pytest.raises(InputError, match=said):
            street_hours(
                trace,
                NETWORK,
                Settings.model_validate(tables),
                every_s=HOUR,
                rng=np.random.default_rng(1),
            )


def test_an_analyst_reads_days_and_patterns_of_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pl.concat([drives(), drives(seed=2).with_columns(pl.col("ts") + 86400.0)])
    frame.write_parquet("trace.parquet")
    Path("few.toml").write_text("[counts]\nk = 5\n")
    command = ("anonymizer", "traffic", "trace.parquet", "--network", "grid:8x8")
    done = in_process(main, *command, "--out", "traffic", "--config", "few.toml")
    assert done.returncode == 0, done.stderr
    assert "27 hours" in done.stdout
    assert sorted(str(each) for each in Path("traffic").rglob("*.parquet")) == [
        "traffic/day=1970-01-01/part.parquet",
        "traffic/day=1970-01-02/part.parquet",
    ]
    hours = client.read_street_hours("traffic", network="grid:8x8")
    assert len(hours.hours) == 27  # without a gap
    true = truth(frame)
    table = hours.roads(start=0.0, end=2 * HOUR)
    n_held = 0
    for u, v, low, high in zip(
        *(table[c] for c in ("u", "v", "passages_low", "passages_high")), strict=True
    ):
        n = sum(len(true[h * HOUR, f"{u}-{v}"]) for h in (0, 1))
        n_held += low <= n <= high
    assert n_held == len(table) == NETWORK.n_roads
    assert table["hours"].tolist() == [2] * len(table)

    by_day = hours.pattern(by="day")
    columns = [by_day[name] for name in ("day", "passages_low", "passages_high")]
    for day, low, high in zip(*columns, strict=True):
        first, n_hours = (0.0, 24) if day == "1970-01-01" else (86400.0, 3)
        n = sum(len(each) for (at, _), each in true.items() if first <= at < first + 86400.0)
        assert low <= n / n_hours <= high
    by_hour = hours.pattern(by="hour", tz="Europe/Paris")
    assert by_hour["hour"].tolist() == list(range(24))
    assert by_hour["hours"].tolist() == [1, 2, 2, 2] + [1] * 20
    assert by_hour["passages_low"][4:].tolist() == [0] * 20
    assert hours.pattern(by="weekday")["weekday"].tolist() == [4, 5]
    street = hours.pattern([(1, 0), (1, 2)], by="month")
    n = sum(len(each) for (_, name), each in true.items() if name in {"0-1", "1-2"})
    assert street["hours"].tolist() == [27]
    assert street["passages_low"][0] <= n / 27 <= street["passages_high"][0]
    for wrong in ({"by": "year"}, {"roads": [(0, 63)]}):
        with pytest.raises(InputError, match="pattern"):
            hours.pattern(**wrong)
    with pytest.raises(InputError, match="lacks a road"):
        client.read_street_hours("traffic", network="grid:3x3")
    with pytest.raises(InputError, match="is no traffic"):
        client.read_street_hours("trace.csv", network="grid:3x3")
    with pytest.raises(InputError, match=r"lacks .*every_s"):
        client.read_street_hours("trace.parquet", network="grid:3x3")
    for out in ("traffic.csv", "traffic.geojson", "traffic.parquet"):
        assert in_process(main, *command, "--out", out).returncode == 0
    assert len(pl.read_csv("traffic.csv")) == len(pl.read_parquet("traffic.parquet"))
    assert in_process(main, *command, "--out", "traffic.shp").returncode == 2
    assert in_process(main, *command, "--out", "trace.parquet").returncode == 2


@pytest.mark.parametrize("out", ["traffic", "traffic.csv", "traffic.parquet", "traffic.geojson"])
def test_a_second_export_of_a_day_with_another_k_or_length_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    drives().write_parquet("trace.parquet")
    for k in (5, 6):
        Path(f"k{k}.toml").write_text(f"[counts]\nk = {k}\n")
    command = ("anonymizer", "traffic", "trace.parquet", "--network", "grid:8x8", "--out", out)
    assert in_process(main, *command, "--config", "k5.toml").returncode == 0
    first = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert in_process(main, *command, "--config", "k5.toml").returncode == 0, "the same again"
    for other in (("k6.toml",), ("k5.toml", "--every", "1800")):
        done = in_process(main, *command, "--config", *other)
        assert done.returncode == 2
        assert "can be played against each other" in done.stderr
    assert {path: path.read_bytes() for path in first} == first
    drives().with_columns(pl.col("ts") + 86400.0).write_parquet("trace.parquet")
    done = in_process(main, *command, "--config", "k6.toml")
    assert done.returncode == (0 if out == "traffic" else 2), "another day is another file"


def test_a_folder_of_days_keeps_the_days_that_are_not_written_again(tmp_path: Path) -> None:
    def table(*days: str) -> Table:
        return Table({"time": np.array(days, "datetime64[ms]"), "n": np.arange(len(days))})

    table("2026-11-25T23:59", "2026-11-26T00:00").write(tmp_path / "days")
    table("2026-11-26T12:00").write(tmp_path / "days")
    found = pl.read_parquet(tmp_path / "days" / "**" / "*.parquet")
    assert sorted(found["n"].to_list()) == [0, 0]

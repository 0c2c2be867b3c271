"""Traces as people have them: one command each, or one sentence that says what to do."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import anonymizer as package
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.trace_columns import named_columns
from anonymizer.files.traces import read_trace
from anonymizer.networks import load_network
from tests.cli.support import anonymizer

GRID = load_network("grid:5x5")
N, STEPS = 12, 4
BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)
"""A fleet: each device stands at a node of its own, and reports every two seconds."""
ROWS = [
    (f"{20 + i}", BEGIN + timedelta(seconds=2 * step), GRID.lat[i], GRID.lon[i])
    for step in range(STEPS)
    for i in range(N)
]


def table(header: str, line: str, end: str = "\n") -> str:
    """Return a csv, with a line for each row of the fleet."""
    lines = [
        line.format(
            id=name, t=at, lat=lat, lon=lon, lat_c=f"{lat:.7f}".replace(".", ","),
            lon_c=f"{lon:.7f}".replace(".", ","), s=at.timestamp(), ms=int(at.timestamp() * 1000),
            us=int(at.timestamp() * 1_000_000), n=number,
        )
        for number, (name, at, lat, lon) in enumerate(ROWS)
    ]  # fmt: skip
    return end.join([*([header] if header else []), *lines]) + end


# fmt: off
FORMS: Mapping[str, tuple[str, str, str]] = {
    "AIS of MarineCadastre": (
        "MMSI,BaseDateTime,LAT,LON,SOG,COG",
        "{id},{t:%Y-%m-%dT%H:%M:%S},{lat},{lon},0.1,51.3",
        "id=MMSI,time=BaseDateTime,lat=LAT,lon=LON",
    ),
    "Movebank": (
        "event-id,visible,timestamp,location-long,location-lat,individual-local-identifier",
        "{n},true,{t:%Y-%m-%d %H:%M:%S}.000,{lon},{lat},{id}",
        "id=individual-local-identifier,time=timestamp,lat=location-lat,lon=location-long",
    ),
    "T-Drive": ("", "{id},{t:%Y-%m-%d %H:%M:%S},{lon},{lat}", "id=1,time=2,lon=3,lat=4"),
    "taxis of Rome": (
        "",
        "{id};{t:%Y-%m-%d %H:%M:%S}.739166+00;POINT({lat} {lon})",
        "id=1,time=2,latlon=3",
    ),
    "well-known text": (
        "who\twhen\twkt", "{id}\t{s}\tPOINT ({lon} {lat})", "id=who,time=when,lonlat=wkt",
    ),
    "floating cars of SUMO": (
        "timestep_time;vehicle_angle;vehicle_id;vehicle_speed;vehicle_x;vehicle_y",
        "{s:.2f};90;{id};0;{lon};{lat}",
        "id=vehicle_id,time=timestep_time,lat=vehicle_y,lon=vehicle_x",
    ),
    "pandas with its index": (
        ",device_id,ts,lat,lon", "{n},{id},{t:%Y-%m-%d %H:%M:%S%z},{lat},{lon}",
        "",
    ),
    "a German spreadsheet": (
        "Fahrzeug;Zeit;Breite;Länge",
        "{id};{t:%Y-%m-%d %H:%M:%S};{lat_c};{lon_c}",
        "id=Fahrzeug,time=Zeit,lat=Breite,lon=Länge",
    ),
    "days first": (
        "id;time;lat;lon", "{id};{t:%d.%m.%Y %H:%M:%S};{lat};{lon}",
        "id=id,time=time,lat=lat,lon=lon",
    ),
    "months first": (
        "id,time,lat,lon", "{id},{t.month}/{t.day}/{t:%Y %H:%M:%S},{lat},{lon}",
        "id=id,time=time,lat=lat,lon=lon",
    ),
    "days first, with strokes": (
        "device_id,ts,lat,lon", "{id},{t:%d/%m/%Y %H:%M:%S},{lat},{lon}", "",
    ),
    "days first, with hyphens": (
        "device_id,ts,lat,lon", "{id},{t:%d-%m-%Y %H:%M:%S},{lat},{lon}", "",
    ),
    "twelve hours": (
        "device_id,ts,lat,lon", "{id},{t.month}/{t.day}/{t:%Y %I:%M:%S %p},{lat},{lon}", "",
    ),
    "milliseconds": ("device_id,ts,lat,lon", "{id},{ms},{lat},{lon}", ""),
    "microseconds": ("device_id,ts,lat,lon", "{id},{us},{lat},{lon}", ""),
    "nanoseconds": ("device_id,ts,lat,lon", "{id},{us}000,{lat},{lon}", ""),
    "calendar": (
        "id,utc,lat,lon", "{id},{t:%Y%m%d%H%M%S},{lat},{lon}", "id=id,time=utc,lat=lat,lon=lon",
    ),
}
# fmt: on


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_each_form_is_read_as_the_fleet_that_it_is(
    tmp_path: Path, form: str, encoding: str
) -> None:
    header, line, columns = FORMS[form]
    path = tmp_path / "trace.csv"
    path.write_bytes(table(header, line, "\r\n" if encoding == "utf-16" else "\n").encode(encoding))
    trace = read_trace(path, columns=named_columns(columns or None))
    assert (trace.n_rows, trace.n_unusable) == (N * STEPS, 0)
    assert trace.device_id == tuple(f"{20 + i}" for i in range(N))
    expected = np.array([at.timestamp() for _, at, _, _ in ROWS])
    np.testing.assert_allclose(trace.ts, expected, atol=0.74)
    np.testing.assert_allclose(trace.lat, [lat for _, _, lat, _ in ROWS], atol=1e-6)
    np.testing.assert_allclose(trace.lon, [lon for _, _, _, lon in ROWS], atol=1e-6)


@pytest.mark.parametrize(
    ("form", "found"),
    [
        ("AIS of MarineCadastre", "times without a zone are taken as UTC"),
        ("taxis of Rome", "cells are separated by semicolons"),
        ("well-known text", "cells are separated by tabs"),
        ("a German spreadsheet", "lat has decimal commas"),
        ("milliseconds", "ts is in milliseconds"),
        ("microseconds", "ts is in microseconds"),
        ("nanoseconds", "ts is in nanoseconds"),
        ("calendar", "ts is of the form YYYYMMDDhhmmss"),
    ],
)
def test_what_was_found_is_said_by_the_command(tmp_path: Path, form: str, found: str) -> None:
    header, line, columns = FORMS[form]
    (tmp_path / "trace.csv").write_text(table(header, line))
    stated = ["--columns", columns] if columns else []
    ran = anonymizer(
        "cloak", tmp_path / "trace.csv", "--network", "grid:5x5", "--region", "snapshot", *stated,
        "--out", tmp_path / "out.jsonl",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert found in " ".join(ran.stderr.split())
    assert (tmp_path / "out.jsonl").stat().st_size


@pytest.mark.parametrize("form", [each for each in FORMS if FORMS[each][0] and FORMS[each][2]])
def test_without_names_the_sentence_says_which_to_state(tmp_path: Path, form: str) -> None:
    """And following it works, where the names are those that people use."""
    header, line, _ = FORMS[form]
    path = tmp_path / "trace.csv"
    path.write_text(table(header, line))
    with pytest.raises(InputError, match=r"state .*--columns id=") as refused:
        read_trace(path)
    said = str(refused.value)
    assert f"{GRID.lat[0]}" not in said
    if "state which of" not in said:
        _, _, stated = said.partition("--columns ")
        assert read_trace(path, columns=named_columns(stated)).n_rows == N * STEPS


def test_a_file_without_a_header_is_told_by_its_kind_and_not_by_its_values(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(table("", "{id},{t:%Y-%m-%d %H:%M:%S},{lon},{lat}"))
    with pytest.raises(InputError, match="has no header: name the columns by number") as refused:
        read_trace(path)
    assert "24." not in str(refused.value).replace(str(tmp_path), "")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.plt", "Geolife has a file for each device"),
        ("a.xlsx", "save its sheet as csv"),
        ("a.ods", "save its sheet as csv"),
        ("a.jsonl", "jq -r"),
        ("a.ndjson", "jq -r"),
        ("a.gpx", "ogr2ogr -f CSV"),
        ("fcd.xml", "xml2csv.py"),
        ("a.geojson", "a row for each position"),
        ("a.kml", "the track of one device"),
        ("a.nmea", "the track of one device"),
        ("a.zip", "unpack it"),
        ("a.csv.bz2", "unpack it"),
        ("a.gpx.gz", "unpack it"),
        ("a.gpkg", "ogr2ogr -f CSV"),
        ("a.feather", "write it as parquet"),
        ("a.log", "a row for each position"),
    ],
)
def test_what_is_no_table_is_refused_with_what_makes_one(
    tmp_path: Path, name: str, told: str
) -> None:
    (tmp_path / name).write_text("x")
    with pytest.raises(InputError, match=told):
        read_trace(tmp_path / name)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("{t:01/02/%Y %H:%M:%S}", "column when: day or month first?"),
        ("{t:%Y-%m-%d}", "column when: has days without a time of day"),
        ("{t:32.13.%Y %H:%M:%S}", "column when: not a time in 48 of 48 rows"),
    ],
)
def test_a_time_that_is_not_known_is_refused_under_the_name_of_its_column(
    tmp_path: Path, said: str, why: str
) -> None:
    (tmp_path / "trace.csv").write_text(table("id,when,lat,lon", f"{{id}},{said},{{lat}},{{lon}}"))
    with pytest.raises(InputError, match=re.escape(why)):
        read_trace(tmp_path / "trace.csv", columns={"id": "id", "time": "when"})


@pytest.mark.parametrize(
    "row",
    [
        "anna;2026-01-31 12:00:00;POINT(60.17 24.94)",
        "anna;noon;60.17 24.94",
        "anna;31.1.2026 12:00;here",
        "anna;2026-01-31T12:00Z;60,17",
    ],
)
def test_no_row_of_a_file_without_a_header_is_quoted(tmp_path: Path, row: str) -> None:
    (tmp_path / "trace.txt").write_text(f"{row}\n" * 3)
    with pytest.raises(InputError, match="has no header") as refused:
        read_trace(tmp_path / "trace.txt")
    said = str(refused.value).replace(str(tmp_path), "")  # the folder has a number, too
    assert not any(part in said for part in ("anna", "60", "2026", "24.94"))


def test_a_folder_is_refused_with_what_makes_a_table_of_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="join the files of a folder to one csv, a row for each"):
        read_trace(tmp_path)


def test_nmea_under_the_name_of_a_table_is_refused_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "trace.txt").write_text(
        "$GPRMC,123519,A,4807.038,N,01131.000,E,022,084,230394\n" * 2
    )
    with pytest.raises(InputError, match=r"is NMEA, .*: write a row for each position") as refused:
        read_trace(tmp_path / "trace.txt")
    assert "4807" not in str(refused.value).replace(str(tmp_path), "")


def test_days_of_a_spreadsheet_are_not_taken_for_seconds(tmp_path: Path) -> None:
    """They would all be within a second of 1970."""
    path = tmp_path / "trace.csv"
    for said in ("{days:.9f}", "{days:.5f}"):
        lines = [f"{name},{said.format(days=at.timestamp() / 86_400 + 25_569)},{lat},{lon}"
                 for name, at, lat, lon in ROWS[1:]]  # fmt: skip
        path.write_text("\n".join(["device_id,ts,lat,lon", *lines]))
        with pytest.raises(InputError, match="column ts: are days of a spreadsheet: give its"):
            read_trace(path)
    simulated = [f"{name},{40_000 + n * 0.05:.2f},60,24" for n, (name, *_) in enumerate(ROWS)]
    path.write_text("\n".join(["device_id,ts,lat,lon", *simulated]))
    assert read_trace(path).ts.max() > 40_000


@pytest.mark.parametrize(
    ("at", "seconds"),
    [
        ("2026-01-31 9:05", 9 * 3600 + 300),
        ("1/31/2026 9:05", 9 * 3600 + 300),
        ("1/31/2026 12:00:30 AM", 30),
        ("31/01/2026 12:00:30 p.m.", 12 * 3600 + 30),
        ("1/31/2026 1:00:00PM", 13 * 3600),
    ],
)
def test_hours_as_people_write_them_are_those_of_the_day(
    at: str, seconds: int, tmp_path: Path
) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"device_id,ts,lat,lon\na,{at},60,24\n")
    assert read_trace(path).ts.tolist() == [BEGIN.timestamp() - 12 * 3600 + seconds]


def test_no_hour_is_beyond_twelve_of_twelve(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("device_id,ts,lat,lon\na,1/31/2026 13:00 PM,60,24\n")
    with pytest.raises(InputError, match="not a time in 1 of 1 rows"):
        read_trace(path)


def test_times_of_day_alone_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("device_id,date,time,lat,lon\na,2026-01-31,12:00:00,60,24\n")
    with pytest.raises(InputError, match="times of day without a day: write both into one column"):
        read_trace(path, columns={"time": "time"})


def test_a_second_column_that_may_name_devices_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("vehicle_id,driver_id,time,latitude,longitude\na,b,1,60,24\n")
    with pytest.raises(InputError, match=r"id=vehicle_id,.* \(or id=driver_id\)"):
        read_trace(path, usual_names=True)


def test_degrees_and_minutes_are_refused_with_what_to_write(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("device_id,ts,lat,lon\na,1,60°10.2'N,24°56.4'E\n")
    with pytest.raises(InputError, match=r"column lat: .*: write degrees as 60.1699"):
        read_trace(path)


def test_a_trace_may_end_in_tsv(tmp_path: Path) -> None:
    (tmp_path / "trace.tsv").write_text(table("device_id\tts\tlat\tlon", "{id}\t{s}\t{lat}\t{lon}"))
    assert read_trace(tmp_path / "trace.tsv").n_rows == N * STEPS


def test_names_that_nobody_knows_are_named(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("Fahrzeug,Breite\n1,2\n")
    with pytest.raises(InputError, match="state which of Fahrzeug, Breite are id, time, lat"):
        read_trace(tmp_path / "trace.csv")


def test_whole_trips_in_a_cell_are_refused_with_what_to_write(tmp_path: Path) -> None:
    path = tmp_path / "porto.csv"
    path.write_text(
        '"TRIP_ID","TAXI_ID","TIMESTAMP","POLYLINE"\n"1","2","1372636858","[[-8.6,41.1]]"\n'
    )
    with pytest.raises(InputError, match="POLYLINE holds whole trips"):
        read_trace(path)


def test_points_of_brinkhoffs_generator_are_no_degrees(tmp_path: Path) -> None:
    path = tmp_path / "brinkhoff.txt"
    path.write_text(
        "".join(f"point\t{i}\t1\t0\t{t}\t{9000 + i}.5\t{12000 + t}.5\t3\t1\t1\n"
                for t in range(3) for i in range(3))
    )  # fmt: skip
    trace = read_trace(path, columns=named_columns("id=2,time=5,lat=7,lon=6"))
    assert trace.n_rows == 9
    ran = anonymizer(
        "cloak", path, "--network", "grid:5x5", "--columns", "id=2,time=5,lat=7,lon=6",
        "--out", tmp_path / "out.jsonl",
    )  # fmt: skip
    assert ran.returncode == 2
    assert "not in degrees" in " ".join(ran.stderr.split())
    assert "nothing was published: 9 invalid out of range" in " ".join(ran.stderr.split())


@pytest.mark.parametrize("text", ["ship=1", "id=", "id", "zone=Mars", ""])
def test_columns_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^columns: "):
        named_columns(text)


def test_times_without_a_zone_are_in_the_zone_that_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("device_id,ts,lat,lon\na,2026-07-01 14:00:00,60,24\n")
    at = datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp()
    assert read_trace(path).ts.tolist() == [at + 7200]
    for zone in ("Europe/Rome", "+02:00"):
        assert read_trace(path, columns={"zone": zone}).ts.tolist() == [at]
    frame = pl.DataFrame(
        {
            "device_id": ["a"],
            "ts": [datetime(2026, 7, 1, 14, tzinfo=UTC).replace(tzinfo=None)],
            "lat": 60.0,
            "lon": 24.0,
        }
    )
    frame.write_parquet(tmp_path / "trace.parquet")
    for zone in ("Europe/Rome", "+02:00"):
        trace = read_trace(tmp_path / "trace.parquet", columns={"zone": zone})
        assert trace.ts.tolist() == [at]


def test_what_is_no_time_is_counted_with_the_forms_that_are(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("device_id,ts,lat,lon\na,2/3/2008 15:36,60,24\nb,2026-07-01 14:00,60,24\n")
    with pytest.raises(InputError, match=r"not a time in 1 of 2 rows: .* ISO 8601") as refused:
        read_trace(path)
    assert "2008" not in str(refused.value).replace(str(tmp_path), "")


def aware(fleet: dict[str, list[Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(fleet)
    return frame.assign(when=frame["when"].dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata"))


ROME = pl.col("when").dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Rome")
FRAMES: Mapping[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas with a zone": aware,
    "pandas in ms": lambda fleet: pd.DataFrame(fleet).astype({"when": "datetime64[ms]"}),
    "pandas text": lambda fleet: aware(fleet).astype({"when": str}),
    "polars": pl.DataFrame,
    "polars with a zone": lambda fleet: pl.DataFrame(fleet).with_columns(ROME),
    "polars in ns": lambda fleet: pl.DataFrame(fleet).cast({"when": pl.Datetime("ns")}),
}
"""Datetimes of every kind. What polars computes starts threads: not where tests are collected."""
COLUMNS = {"id": "mmsi", "time": "when", "lat": "y", "lon": "x"}


@pytest.mark.parametrize("kind", FRAMES)
def test_data_frames_with_datetimes_are_cloaked_alike(kind: str) -> None:
    frame = FRAMES[kind]({
        "mmsi": [name for name, *_ in ROWS],
        "when": [at.replace(tzinfo=None) for _, at, *_ in ROWS],
        "y": [float(lat) for _, _, lat, _ in ROWS],
        "x": [float(lon) for *_, lon in ROWS],
    })  # fmt: skip
    expected = pl.DataFrame(
        [(name, at.timestamp(), lat, lon) for name, at, lat, lon in ROWS],
        schema=["device_id", "ts", "lat", "lon"],
        orient="row",
    )
    first = package.cloak(expected, "grid:5x5", region="snapshot", seed=1)
    found = package.cloak(frame, "grid:5x5", region="snapshot", seed=1, columns=COLUMNS)
    assert dict(found.report.outcomes) == dict(first.report.outcomes)
    assert [str(each) for each in found.frame["pseudonym"]] == first.frame["pseudonym"].to_list()
    audit = package.audit_stream(
        found, frame, "grid:5x5", mode="snapshot", every_attack=False, columns=COLUMNS
    )
    assert audit.holds
    with pytest.raises(InputError, match=r"state --columns id=mmsi,.*lat=y,lon=x"):
        package.cloak(frame.rename({"when": "time"}) if "polars" in kind
                      else frame.rename(columns={"when": "time"}), "grid:5x5")  # fmt: skip


def test_a_trace_of_which_nothing_is_published_says_why_and_fails(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"device_id,ts,lat,lon\na,1,{GRID.lat[0]},{GRID.lon[0]}\nb,2,10,10\n")
    ran = anonymizer("cloak", path, "--network", "grid:5x5", "--out", tmp_path / "out.jsonl")
    assert ran.returncode == 2
    said = " ".join(ran.stderr.split())
    assert "nothing was published: 1 suppressed never grouped, 1 suppressed off graph" in said
    (tmp_path / "empty.csv").write_text("device_id,ts,lat,lon\n")
    ran = anonymizer(
        "cloak", tmp_path / "empty.csv", "--network", "grid:5x5", "--out", tmp_path / "out.jsonl"
    )
    assert ran.returncode == 2
    assert "nothing was published: it has no rows" in " ".join(ran.stderr.split())
    with pytest.warns(UserWarning, match="nothing "):
        package.cloak(pl.read_csv(path), "grid:5x5")


def of_names(folder: Path, *names: str) -> Path:
    """Write a parquet of two buses with datetimes, under these names for id, time, lat and lon."""
    at = datetime(2027, 1, 15, 8, tzinfo=UTC)
    rows = [("bus-1", at, 60.1, 24.9), ("bus-2", at, 60.2, 24.8), ("bus-1", at, 60.3, 24.7)]
    table = pl.DataFrame(rows, schema=list(names[:4]), orient="row")
    path = folder / "trace.parquet"
    table.with_columns(pl.lit(0).alias(each) for each in names[4:]).write_parquet(path)
    return path


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (("id", "timestamp", "lat", "lon"), "id=id, time=timestamp"),
        (
            ("vehicle_id", "time", "latitude", "longitude"),
            "id=vehicle_id, time=time, lat=latitude, lon=longitude",
        ),
        (("MMSI", "BaseDateTime", "LAT", "LON"), "id=MMSI, time=BaseDateTime, lat=LAT, lon=LON"),
        (("device_id", "ts", "Latitude", "Lng", "speed"), "lat=Latitude, lon=Lng"),
        (("imei", "ts", "lat", "lon", "id2x"), "id=imei"),
    ],
)
def test_usual_names_of_columns_are_taken_and_told(
    names: tuple[str, ...], taken: str, tmp_path: Path
) -> None:
    path = of_names(tmp_path, *names)
    trace = read_trace(path, usual_names=True)
    assert f"columns {taken}" in trace.read_as
    assert trace.device_id == ("bus-1", "bus-2")
    assert trace.ts.tolist() == [datetime(2027, 1, 15, 8, tzinfo=UTC).timestamp()] * 3
    assert sorted(trace.lat.tolist()) == [60.1, 60.2, 60.3]
    with pytest.raises(InputError, match="state --columns"):
        read_trace(path)


@pytest.mark.parametrize(
    "names",
    [
        ("id", "timestamp", "lat", "lon", "vehicle_id"),
        ("id", "timestamp", "lat", "lon", "trip_id"),
        ("trip_id", "timestamp", "lat", "lon"),
        ("OBJECTID", "timestamp", "lat", "lon"),
        ("id", "timestamp", "lat", "lon", "date"),
        ("id", "timestamp", "latitude", "lng", "longitude"),
        ("id", "timestamp", "y", "x"),
        ("id", "date", "lat", "lon"),
        ("name", "time", "lat", "lon"),
        ("Id", "time", "lat", "lon", "ID"),
    ],
)
def test_a_name_that_is_not_clear_is_asked_about(names: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"state (--columns|which of)"):
        read_trace(of_names(tmp_path, *names), usual_names=True)


def test_a_stated_column_needs_no_usual_name_and_hides_no_other(tmp_path: Path) -> None:
    path = of_names(tmp_path, "name", "time", "lat", "lon", "trip_id")
    trace = read_trace(path, columns={"id": "name"}, usual_names=True)
    assert (trace.n_devices, trace.read_as[0]) == (2, "columns time=time")


def test_numbers_of_rows_are_not_taken_for_devices(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("id,timestamp,lat,lon\n1,100,60.1,24.9\n2,101,60.1,24.9\n")
    with pytest.raises(InputError, match=r"column id names each row: .* state --columns id=id"):
        read_trace(path, usual_names=True)
    assert read_trace(path, columns={"id": "id"}, usual_names=True).n_devices == 2

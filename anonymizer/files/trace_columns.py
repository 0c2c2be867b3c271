"""Columns of a trace as people have them: other names, forms of time, and marks in numbers.

What is found is said, and what cannot be is refused with what to state.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from anonymizer.codecs.times import PER_SECOND, NumberUnit, calendar_number, instant, zone_of
from anonymizer.domain.arrays import FloatArray
from anonymizer.errors import InputError, SettingsError

NAME_OF = {"id": "device_id", "time": "ts", "lat": "lat", "lon": "lon", "node": "node"}
"""By what `--columns` calls a column: its name in a trace."""
_PAIRS = {"latlon": ("lat", "lon"), "lonlat": ("lon", "lat")}
"""A column of both coordinates, by their order."""
_ZONE = "zone"
_EXAMPLE = "id=MMSI,time=BaseDateTime,lat=LAT,lon=LON"
_LIKELY = {
    "id": "deviceid id vehicleid taxiid mmsi userid uid individuallocalidentifier imei trackid "
    "objectid driverid tripid vehicle device user taxi bus pseudonym person",
    "time": "ts time timestamp datetime basedatetime timesteptime date datetimeutc fixtime t utc "
    "gpstime recordedat",
    "lat": "lat latitude locationlat vehicley gpslat y",
    "lon": "lon lng long longitude locationlong locationlon vehiclex gpslon x",
}
"""Names of columns that are probably meant, in small letters alone, the likeliest first."""
_UNCLEAR = {
    "trackid",
    "objectid",
    "tripid",
    "pseudonym",
    "t",
    "date",
    "x",
    "y",
    "vehiclex",
    "vehicley",
}
"""Of these, names that must be stated: of rows or trips, of days, or of metres."""
_MOST_NAMED = 12
"""Columns of a file that a message names."""
_UNIT = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_LEAST = 1e8
"""Seconds since 1970 below which a number is no date, as in simulations: it stays as it is."""
_CALENDAR = (1.9e13, 2.1e13)
"""Numbers of the form YYYYMMDDhhmmss."""
_YEAR_LAST = r"^(\d{1,2})([./-])(\d{1,2})[./-](\d{4})((?:[ T].*)?)$"
_CLOCK = r"^(.*[ T])(\d{1,2})(:\d\d(?::\d\d(?:[.,]\d+)?)?)(?:\s?([AaPp])\.?[Mm]\.?)?$"
_SHORT_CLOCK = r"[ T]\d:|[AaPp]\.?[Mm]\.?$"
"""An hour of one digit, or of twelve hours."""
_TIME_OF_DAY = r"\d{1,2}:\d\d.*"
_DAYS = (36_526.0, 73_050.0)
"""Of this century since 1900, as spreadsheets count."""
_MONTHS = 12
_DAY = r"\d{4}-\d\d-\d\d"
_COMMA = r"^[+-]?\d+,\d+$"
_NUMBER = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_VALUE = rf"^{_NUMBER}$|\d[.,:]\d|\d{{4}}-\d\d-\d\d"
"""Is no name of a column: a number, coordinates or a time, so that no row is quoted as names."""
_TWO = rf"({_NUMBER})[^\d.+-]+({_NUMBER})"
_NMEA = r"[$!][A-Z]{2}"
_ROWS = "a row for each position: device_id, ts, lat, lon"
_ONE_DEVICE = f"it is the track of one device: join those of all devices to one csv, {_ROWS}"
_AS_UTC = "times without a zone are taken as UTC (--columns zone=...)"
_UNREAD = {
    ".plt": "Geolife has a file for each device: join them to one csv of device_id, ts, lat, lon",
    ".gpx": "make a csv of it: ogr2ogr -f CSV OUT FILE track_points -lco GEOMETRY=AS_XY; then "
    "--columns id=track_fid,time=time,lat=Y,lon=X",
    ".xml": "SUMO's xml2csv.py makes a csv of it: --columns "
    "id=vehicle_id,time=timestep_time,lat=vehicle_y,lon=vehicle_x (with --fcd-output.geo)",
    **dict.fromkeys((".json", ".geojson", ".log"), f"write {_ROWS}"),
    **dict.fromkeys((".kml", ".nmea", ".fit", ".tcx"), _ONE_DEVICE),
    **dict.fromkeys(
        (".gz", ".zip", ".kmz", ".7z", ".bz2", ".xz", ".zst"),
        "unpack it; a csv may be packed with gzip, and then ends in .csv.gz",
    ),
    **dict.fromkeys(
        (".shp", ".gpkg"),
        "make a csv of its points: ogr2ogr -f CSV OUT FILE -lco GEOMETRY=AS_XY;"
        " then --columns id=...,time=...,lat=Y,lon=X",
    ),
    **dict.fromkeys((".feather", ".arrow", ".orc"), "write it as parquet"),
    **dict.fromkeys((".db", ".sqlite"), f"export it as csv, {_ROWS}"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save its sheet as csv, in UTF-8"),
    **dict.fromkeys(
        (".jsonl", ".ndjson"), "jq -r '[.id, .time, .lat, .lon] | @csv' makes rows of it"
    ),
}


def named_columns(text: str | None) -> dict[str, str]:
    """Return the columns that a text such as `id=MMSI,time=BaseDateTime,lat=LAT,lon=LON` names.

    None: none.

    Raises `SettingsError` as `checked_columns`.
    """
    if text is None:
        return {}
    pairs = [each.partition("=") for each in re.split(r",(?=\w+=)", text)]
    return checked_columns({key.strip(): name.strip() for key, _, name in pairs})


def checked_columns(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the names of columns by what they are: id, time, lat, lon, node, latlon, lonlat; zone.

    Raises `SettingsError` if one is not known or empty, or the zone is none.
    """
    known = (*NAME_OF, *_PAIRS, _ZONE)
    for key, name in columns.items():
        if key not in known or not isinstance(name, str) or not name:
            raise SettingsError(f"columns: {', '.join(known)}, each with a name, as {_EXAMPLE}")
    try:
        zone_of(columns.get(_ZONE, "UTC"))
    except ValueError as error:
        raise SettingsError(f"columns: zone: {error}") from None
    return dict(columns)


def are_numbers(columns: Mapping[str, str]) -> bool:
    """Return whether columns are named by their number, from 1: the file has no header."""
    names = [name for key, name in columns.items() if key != _ZONE]
    return bool(names) and all(name.isdecimal() for name in names)


def with_our_names(
    path: Path, frame: pl.DataFrame, columns: Mapping[str, str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return a frame with the columns of a trace under their own names, and what was found.

    Times become unix seconds; coordinates with decimal commas, or two in a cell, become numbers.

    Raises `InputError` if a column is missing or holds another thing. No value is quoted.
    """
    notes: list[str] = []
    made = {NAME_OF[key]: frame[name] for key, name in columns.items() if key in NAME_OF}
    for key, order in _PAIRS.items():
        if key in columns:
            made |= _pair(path, frame[columns[key]], order)
    frame = frame.with_columns(column.alias(name) for name, column in made.items())
    if "ts" in frame.columns:
        zone = zone_of(columns[_ZONE]) if _ZONE in columns else None
        called = columns.get("time", "ts")
        ts = _times(f"{path}: column {called}", frame["ts"], zone, notes)
        frame = frame.with_columns(pl.Series("ts", ts))
    for name in ("lat", "lon"):
        if name in frame.columns and frame[name].dtype == pl.String:
            frame = frame.with_columns(_without_comma(frame[name], notes))
    return frame, tuple(notes)


def wanted_of(columns: Mapping[str, str]) -> list[str]:
    """Return the columns of a file that are named."""
    return [name for key, name in columns.items() if key != _ZONE]


def no_such_column(path: Path, missing: str, there: Sequence[str]) -> InputError:
    """Return the error of a trace that lacks a column, with what to state."""
    found = likely_columns(there)
    if re.match(_NMEA, there[0].strip() if there else ""):
        return InputError(f"{path}: is NMEA, what a receiver says: write {_ROWS}")
    plain = {_plain(name) for name in there}
    if _are_cells(there):
        both = [i for i, name in enumerate(there, start=1) if "POINT" in name.upper()]
        place = f"lonlat={both[0]} (or latlon)" if both else "lat=4,lon=3"
        hint = f"has no header: name the columns by number, as --columns id=1,time=2,{place}"
        return InputError(f"{path}: {hint}")
    if "polyline" in plain and not (found["lat"] and found["lon"]):
        hint = "POLYLINE holds whole trips (Porto): write a row for each of its points, 15 s apart"
        return InputError(f"{path}: {hint}")
    if all(found.values()):
        stated = ",".join(f"{key}={name}" for key, name in found.items())
        others = [name for name in _that_may_be("id", there) if name != found["id"]]
        more = f" (or id={' or id='.join(others)})" if others else ""
        return InputError(f"{path}: no column {missing}: state --columns {stated}{more}")
    return InputError(
        f"{path}: no column {missing}: state which of {names_told(there)} are id, time, lat and "
        f"lon, as --columns {_EXAMPLE} (a trace has device_id, ts, and lat and lon, or node)"
    )


def names_told(there: Sequence[str]) -> str:
    """Return the first names of columns for a message, none where they are a row of cells."""
    if _are_cells(there):
        return "the columns, whose first row is no header,"
    return ", ".join(there[:_MOST_NAMED]) + ", ..." * (len(there) > _MOST_NAMED)


def _are_cells(names: Sequence[str]) -> bool:
    return any(re.search(_VALUE, name.strip()) for name in names)


def likely_columns(there: Sequence[str]) -> dict[str, str]:
    """Return which columns are probably id, time, lat and lon, by these; empty where none is."""
    plain = {_plain(name): name for name in reversed(there)}
    return {
        key: next((plain[name] for name in likely.split() if name in plain), "")
        for key, likely in _LIKELY.items()
    }


def usual_columns(there: Sequence[str], stated: Mapping[str, str]) -> dict[str, str]:
    """Return the columns to take, besides those that are stated, by the usual names of these.

    One is taken for each of id, time, lat and lon that no column has as its own name. None is, if
    another could be meant, or none, for one of them.
    """
    by_place = bool({*_PAIRS, "node"} & stated.keys())
    by_node = "node" in there and not {"lat", "lon"} <= {*there}
    found = {}
    for key in ("id", "time", *(() if by_place or by_node else ("lat", "lon"))):
        if key in stated or NAME_OF[key] in there:
            continue
        fits = _that_may_be(key, there)
        if len(fits) != 1 or _plain(fits[0]) in _UNCLEAR:
            return {}
        found[key] = fits[0]
    return found


def _that_may_be(key: str, there: Sequence[str]) -> list[str]:
    return [name for name in there if _plain(name) in _LIKELY[key].split()]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def unread_form(path: Path) -> str:
    """Return what to do with a file of a known form that is no table; empty for others."""
    if path.is_dir():
        return f"join the files of a folder to one csv, {_ROWS}"
    return _UNREAD.get(path.suffix.lower(), "")


def _times(what: str, column: pl.Series, zone: tzinfo | None, notes: list[str]) -> FloatArray:
    """Return a column of times as unix seconds, NaN where there is none."""
    if isinstance(column.dtype, pl.Datetime):
        has_zone = column.dtype.time_zone is not None
        if not has_zone and zone is None:
            notes.append(_AS_UTC)
        elif not has_zone and isinstance(zone, ZoneInfo):
            column = column.dt.replace_time_zone(
                zone.key, ambiguous="earliest", non_existent="null"
            )
        elif not has_zone and zone is not None:
            column -= zone.utcoffset(None) or timedelta()
        return column.dt.timestamp("us").cast(pl.Float64).fill_null(np.nan).to_numpy() / 1e6
    if column.dtype == pl.String:
        text = column.str.strip_chars().replace("", None)
        number = text.cast(pl.Float64, strict=False)
        if number.null_count() > text.null_count() and number.null_count() == len(number):
            return _stated(what, _of_24_hours(_year_first(what, text, notes)), zone, notes)
        if n_bad := number.null_count() - text.null_count():
            raise InputError(f"{what}: not a number in {n_bad} of {len(text)} rows")
        column = number
    if not column.dtype.is_numeric():
        raise InputError(f"{what}: must hold times, not {column.dtype}")
    value = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    if _are_days(value):
        raise InputError(
            f"{what}: are days of a spreadsheet: give its cells the form yyyy-mm-dd hh:mm:ss and "
            "write the csv again (seconds of a simulation: in whole milliseconds)"
        )
    return _in_seconds(value, zone, notes)


def _are_days(value: FloatArray) -> bool:
    """Return whether numbers are days since 1900: most have parts of a millisecond."""
    there = value[np.isfinite(value)]
    within = len(there) > 0 and bool(((there >= _DAYS[0]) & (there < _DAYS[1])).all())
    return within and bool(np.median(np.abs(there * 1e3 - np.round(there * 1e3))) > 1e-3)


def _of_24_hours(text: pl.Series) -> pl.Series:
    """Return times such as 9:05, or 9:05 PM, with two digits of 24 hours; others as they are."""
    if not text.str.contains(_SHORT_CLOCK).any():
        return text
    parts = pl.DataFrame({"text": text, "parts": text.str.extract_groups(_CLOCK)}).unnest("parts")
    hour, half = pl.col("2").cast(pl.Int64), pl.col("4").str.to_lowercase()
    of_24 = pl.when(half.is_null()).then(hour).otherwise(hour % 12 + 12 * (half == "p"))
    made = pl.col("1") + of_24.cast(pl.String).str.zfill(2) + pl.col("3")
    is_none = hour.is_null() | (half.is_not_null() & ~hour.is_between(1, 12))
    return parts.select(pl.when(is_none).then("text").otherwise(made).alias("text"))["text"]


def _year_first(what: str, text: pl.Series, notes: list[str]) -> pl.Series:
    """Return dates such as 31.1.2026 or 1/31/2026, with or without a time, with the year first."""
    parts = text.str.extract_groups(_YEAR_LAST).struct.unnest()
    if parts["3"].null_count() > text.null_count():
        return text
    first, second = (parts[name].cast(pl.Int64) for name in "13")
    day_first = bool((first > _MONTHS).any()) or bool((parts["2"] == ".").all())
    if not day_first and not (second > _MONTHS).any():
        raise InputError(f"{what}: day or month first? Write ISO 8601 as 2026-01-31 15:04:05")
    notes.append(f"dates have the {'day' if day_first else 'month'} first")
    month, day = ("3", "1") if day_first else ("1", "3")
    date = parts["4"] + "-" + parts[month].str.zfill(2) + "-" + parts[day].str.zfill(2)
    return date + parts["5"].fill_null("")


def _stated(what: str, text: pl.Series, zone: tzinfo | None, notes: list[str]) -> FloatArray:
    """Return the seconds of texts such as ISO 8601; each different one is read once."""
    different = text.drop_nulls().unique()
    found = {each: instant(each, zone) for each in different.to_list()}
    if bad := [each for each, at in found.items() if at is None]:
        if all(re.fullmatch(_TIME_OF_DAY, each) for each in bad):
            raise InputError(f"{what}: has times of day without a day: write both into one column")
        n_bad = int(text.is_in(bad).sum())
        raise InputError(
            f"{what}: not a time in {n_bad} of {len(text)} rows: write unix seconds, or ISO 8601 "
            "as 2026-01-31 15:04:05"
        )
    if found and all(re.fullmatch(_DAY, each) for each in found):
        raise InputError(f"{what}: has days without a time of day: write both into one column")
    if any(at is not None and at.zoneless for at in found.values()):
        notes.append(_AS_UTC)
    at = {each: np.nan if at is None else at.unix_s for each, at in found.items()}
    return np.array([at.get(each, np.nan) for each in text.to_list()], np.float64)


def _in_seconds(value: FloatArray, zone: tzinfo | None, notes: list[str]) -> FloatArray:
    """Return numbers in seconds, whose unit follows from the size of most of them."""
    there = value[np.isfinite(value) & (value > 0)]
    if not len(there):
        return value
    if ((there >= _CALENDAR[0]) & (there < _CALENDAR[1])).all():
        found = {each: calendar_number(each, zone) for each in np.unique(there).tolist()}
        if all(found.values()):
            notes.append("ts is of the form YYYYMMDDhhmmss")
            at = {each: stated.unix_s for each, stated in found.items() if stated is not None}
            return np.array([at.get(each, np.nan) for each in value.tolist()])
    middle = float(np.median(there))
    units: tuple[NumberUnit, ...] = ("ns", "us", "ms")
    unit = next((unit for unit in units if middle >= _LEAST * PER_SECOND[unit]), None)
    if unit is None:
        return value
    notes.append(f"ts is in {_UNIT[unit]}")
    seconds: FloatArray = value / PER_SECOND[unit]
    return seconds


def _pair(path: Path, column: pl.Series, order: tuple[str, str]) -> dict[str, pl.Series]:
    """Return the two numbers in the cells of a column."""
    if column.dtype != pl.String:
        raise InputError(f"{path}: column {column.name}: must hold text with two numbers")
    parts = [column.str.extract(_TWO, group).cast(pl.Float64) for group in (1, 2)]
    if n_bad := int((parts[0].is_null() & column.is_not_null() & (column != "")).sum()):
        raise InputError(
            f"{path}: column {column.name}: not two numbers in {n_bad} of {len(column)} rows"
        )
    return dict(zip(order, parts, strict=True))


def _without_comma(column: pl.Series, notes: list[str]) -> pl.Series:
    """Return a column of texts with points where all its fractions have decimal commas."""
    text = column.str.strip_chars()
    with_comma = text.str.contains(_COMMA).fill_null(value=False)
    if not with_comma.any() or text.str.contains(".", literal=True).any():
        return column
    notes.append(f"{column.name} has decimal commas")
    return text.str.replace(",", ".", literal=True)

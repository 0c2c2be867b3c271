"""A form of a release: how it is recognized, what it asks where it must, how it is read."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from anonymizer.audit.foreign.release import AnyRelease, BareRelease, PointRelease
from anonymizer.audit.foreign.runs import is_of_one, joined
from anonymizer.domain.fixes import on_earth
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.errors import InputError
from anonymizer.files.trace_columns import checked_columns, likely_columns, names_told
from anonymizer.files.traces import trace_of

OWN_COLUMNS = "_file", "_track"
"""Which file and track a row was in."""
_MOST_CHOICES = 8
_CLOCK = r"^\d{1,2}:\d\d(:\d\d(\.\d+)?)?$"
_WHEN = re.compile(r"time|date", re.IGNORECASE)
_POINT = r"(?i)^(SRID=\d+;)?\s*POINT\s*Z?\s*\("
_TWO_NUMBERS = r"^[\[(]?([+-]?\d{1,3}\.\d+)[,; ]+[+-]?\d{1,3}\.\d+[\])]?$"
_OF_FORMS = ("cell", "area", "count")
"""Keys of `--columns` that a trace has not."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """What a file does not tell."""

    words: str
    """The question."""
    choices: Mapping[str, str]
    """Possible answers, by what they mean."""
    key: str = "id"
    """Key of `--columns` that states the answer."""


@dataclass(frozen=True, slots=True)
class ReleaseForm:
    """A form of a release."""

    name: str
    """In words."""
    recognizes: Callable[[pl.DataFrame, Mapping[str, str]], bool]
    """Whether a table has it, if its columns are called as stated."""
    asks: Callable[[pl.DataFrame, Mapping[str, str]], OpenQuestion | None]
    """What must be answered first."""
    read: Callable[[Path, pl.DataFrame, Mapping[str, str], RoadNetwork | None], AnyRelease]
    """Return the release in a table."""


def check_stated(path: Path, frame: pl.DataFrame, stated: Mapping[str, str]) -> None:
    """Raise an InputError if a table lacks a column that is stated."""
    if lacks := [name for key, name in stated.items() if key != "zone" and name not in frame]:
        there = names_told(frame.columns)
        raise InputError(f"{path}: --columns: no column {lacks[0]}; there are {there}")


def columns_stated(frame: pl.DataFrame, stated: Mapping[str, str]) -> dict[str, str]:
    """Return which columns are id, time, lat and lon: as stated, else by their names.

    Without both coordinates, a column of texts such as `POINT (24.9 60.1)` or `60.1, 24.9` is both;
    without a time, the only column whose name speaks of one.
    """
    likely = {key: name for key, name in likely_columns(frame.columns).items() if name}
    if {"latlon", "lonlat"} & stated.keys():
        likely = {key: name for key, name in likely.items() if key not in {"lat", "lon"}}
    found = {**likely, **stated}
    if not {"lat", "lon", "latlon", "lonlat"} & found.keys():
        found |= _of_both(frame, set(found.values()))
    when = [name for name in frame.columns if _WHEN.search(name) and name not in found.values()]
    if "time" not in found and len(when) == 1:
        found["time"] = when[0]
    return found


def _of_both(frame: pl.DataFrame, told: set[str]) -> dict[str, str]:
    """Return the column of texts that holds both coordinates, by their order."""
    for name in frame.columns:
        if name in told or frame[name].dtype != pl.String:
            continue
        texts = frame[name].drop_nulls()
        if not len(texts):
            continue
        if texts.str.contains(_POINT).all():
            return {"lonlat": name}
        if texts.str.contains(_TWO_NUMBERS).all():
            first = texts.str.extract(_TWO_NUMBERS, 1).cast(pl.Float64, strict=False).abs().max()
            return {"lonlat" if isinstance(first, float) and first > 90 else "latlon": name}
    return {}


def who_is_who(
    frame: pl.DataFrame, stated: Mapping[str, str], *, other: Sequence[str] = ()
) -> OpenQuestion | str | None:
    """Return the column that says who each row is about, a question, or None: all are about one.

    `other`: columns that say something else.
    """
    columns = columns_stated(frame, stated)
    if "id" in columns:
        return columns["id"]
    told = {*columns.values(), *other}
    perhaps = [
        name
        for name in frame.columns
        if name not in told and frame[name].dtype == pl.String and frame[name].n_unique() > 1
    ]
    if "_track" in perhaps and "_file" in frame.columns and "_file" not in perhaps:
        perhaps.append("_file")
    if len(perhaps) < 2:
        return perhaps[0] if perhaps else None
    meaning = {"_file": "each file is one person's", "_track": "each track is somebody else's"}
    choices = {name: meaning.get(name, f"column {name}") for name in perhaps[:_MOST_CHOICES]}
    return OpenQuestion("Which column says whose a row is?", choices)


def asks_who(frame: pl.DataFrame, stated: Mapping[str, str]) -> OpenQuestion | None:
    """Return the question whose the rows are, if no column says it by its name."""
    found = who_is_who(frame, stated)
    return found if isinstance(found, OpenQuestion) else None


def points(
    path: Path, frame: pl.DataFrame, stated: Mapping[str, str], form: str
) -> PointRelease | BareRelease:
    """Return the positions in a table, which are what `form` says.

    Where no column says whose they are, they are one person's, or bare if that is impossible.

    Raises `InputError` if it lacks a time or a place, or none can be used.
    """
    trace = trace_in(path, frame, stated)
    if who_is_who(frame, stated) is not None:
        return PointRelease(trace, f"{form} with ids")
    if is_of_one(trace):
        return PointRelease(trace, f"{form} of one person")
    return BareRelease(joined(trace), f"{form} without ids, joined to runs")


def trace_in(path: Path, frame: pl.DataFrame, stated: Mapping[str, str]) -> Trace:
    """Return the positions in a table; without a column that says whose they are, of one id.

    Raises `InputError` as `points`.
    """
    frame, columns = _with_day(frame, columns_stated(frame, stated))
    who = who_is_who(frame, stated)
    if isinstance(who, OpenQuestion):
        raise InputError(f"{path}: {who.words} State --columns id=... ({', '.join(who.choices)})")
    if who is None:
        who, frame = "_who", frame.with_columns(pl.lit("all").alias("_who"))
    if not frame[who].dtype.is_integer():
        frame = frame.with_columns(frame[who].cast(pl.String, strict=False))
    named = {key: name for key, name in {**columns, "id": who}.items() if key not in _OF_FORMS}
    trace = _on_earth(trace_of(frame, path=path, columns=checked_columns(named)))
    if not trace.n_rows:
        raise InputError(
            f"{path}: no row has an id, a time, and a latitude and longitude in degrees: "
            "metres, as of UTM, must be converted"
        )
    return trace


def _with_day(frame: pl.DataFrame, columns: dict[str, str]) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return a table whose time has its day, if that is in a column of its own."""
    day = next((name for name in frame.columns if name.lower() in {"date", "day"}), None)
    clock = next((name for name in frame.columns if name.lower() in {"time", "time_of_day"}), None)
    if day is None or clock is None or columns.get("time") not in {day, clock}:
        return frame, columns
    texts = frame.select(pl.col(clock, day).cast(pl.String).str.strip_chars())
    if not texts[clock].drop_nulls().str.contains(_CLOCK).all():
        return frame, columns
    both = (texts[day] + " " + texts[clock]).alias("_when")
    return frame.with_columns(both), {**columns, "time": "_when"}


def _on_earth(trace: Trace) -> Trace:
    """Return the rows whose coordinates are in range."""
    kept = on_earth(trace.lat, trace.lon)
    there, device_of = np.unique(trace.device_of[kept], return_inverse=True)
    return replace(
        trace,
        device_id=tuple(trace.device_id[each] for each in there.tolist()),
        device_of=device_of,
        ts=trace.ts[kept],
        lat=trace.lat[kept],
        lon=trace.lon[kept],
        n_unusable=trace.n_unusable + int((~kept).sum()),
        readings={name: values[kept] for name, values in trace.readings.items()},
        network=None,
    )

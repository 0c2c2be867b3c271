"""Counts by area and time; some may be struck out, and rows may hold totals."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from anonymizer.audit.foreign.forms.form import OpenQuestion, ReleaseForm, columns_stated
from anonymizer.audit.foreign.release import CountRelease
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError

_COUNT = re.compile(
    r"^(n|num|number|count|counts|total|volume|population|anzahl|"
    r"(n_?|num_?|number_of_?)?(devices|users|people|persons|visits|visitors|trips|riders))(_count)?$",
    re.IGNORECASE,
)
_TIME = re.compile(r"time|hour|date|day|period|start|^ts$|stunde", re.IGNORECASE)
_STRUCK = (
    r"^(?:\*+|x|\.{1,3}|-|n/?a|null|suppressed|masked|(?:<|<=|less than|fewer than|under)\s*(\d+))$"
)
_TOTAL = r"(?i)^(total|all|sum|overall|gesamt|insgesamt)$"
_NUMBER = r"^\d+(\.0*)?$"


def _count(frame: pl.DataFrame, stated: Mapping[str, str]) -> str | None:
    named = stated.get("count") or next(
        (each for each in frame.columns if _COUNT.match(each)), None
    )
    if named is None:
        return None
    texts = frame[named].cast(pl.String).drop_nulls().str.strip_chars().str.to_lowercase()
    known = texts.str.contains(_NUMBER) | texts.str.contains(_STRUCK)
    return named if len(texts) and known.all() else None


def _time(frame: pl.DataFrame) -> str | None:
    return next((name for name in frame.columns if _TIME.search(name)), None)


def _areas(frame: pl.DataFrame, stated: Mapping[str, str]) -> list[str]:
    """Return the columns that may name the area; two of coordinates are one."""
    columns = columns_stated(frame, {})
    not_one = {_count(frame, stated), _time(frame), "_file", "_track"}
    if {"lat", "lon"} <= columns.keys():
        return ["lat,lon"]
    return [name for name in frame.columns if name not in not_one and frame[name].n_unique() > 1]


def _recognizes(frame: pl.DataFrame, stated: Mapping[str, str]) -> bool:
    columns = columns_stated(frame, {})
    if _count(frame, stated) is None:
        return False
    return not {"id", "lat", "lon"} <= columns.keys()


def _asks(frame: pl.DataFrame, stated: Mapping[str, str]) -> OpenQuestion | None:
    areas = _areas(frame, stated)
    if "area" in stated or len(areas) < 2:
        return None
    choices = {name: f"column {name}" for name in areas}
    return OpenQuestion("Which column says which area a count is of?", choices, "area")


def _read(
    path: Path, frame: pl.DataFrame, stated: Mapping[str, str], _network: RoadNetwork | None
) -> CountRelease:
    if question := _asks(frame, stated):
        raise InputError(f"{path}: {question.words} State --columns area=...")
    areas = [stated["area"]] if "area" in stated else _areas(frame, stated)
    if not areas:
        raise InputError(f"{path}: no column says which area a count is of")
    text = frame[_count(frame, stated) or ""].cast(pl.String).str.strip_chars().str.to_lowercase()
    count = text.cast(pl.Float64, strict=False).to_numpy()
    below = text.str.extract(_STRUCK, 1).cast(pl.Int64, strict=False).max()
    least = float(np.nanmin(np.where(count > 0, count, np.inf), initial=np.inf))
    most = int(below) - 1 if isinstance(below, int) else int(least) - 1 if np.isfinite(least) else 1
    names = frame.select(pl.concat_str(pl.col(areas[0].split(",")).cast(pl.String), separator=" "))
    time = _time(frame)
    area_of, n_areas = _numbered(names.to_series())
    times = pl.Series(["all"] * len(frame)) if time is None else frame[time].cast(pl.String)
    time_of, n_times = _numbered(times)
    return CountRelease(area_of, time_of, count, n_areas, n_times, (1, max(most, 1)))


def _numbered(names: pl.Series) -> tuple[IntArray, int]:
    """Return the number of each name, -1 for a total, and how many there are."""
    names = names.fill_null("").str.strip_chars()
    is_total = names.str.contains(_TOTAL).to_numpy()
    distinct, of = np.unique(names.to_numpy().astype(str)[~is_total], return_inverse=True)
    number = np.full(len(names), -1)
    number[~is_total] = of
    return number, len(distinct)


FORM = ReleaseForm("counts by area and time", _recognizes, _asks, _read)

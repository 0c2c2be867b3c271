"""Counts by area and time; some may be struck out, and rows may hold totals."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from anonymizer.audit.foreign.forms.areas_and_times import places_of, starts_of
from anonymizer.audit.foreign.forms.form import OpenQuestion, ReleaseForm, columns_stated
from anonymizer.audit.foreign.release import CountRelease
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError

_COUNT = re.compile(
    r"^(n|num|number|count|counts|total|volume|population|anzahl|"
    r"(n_?|num_?|number_of_?)?(devices|users|people|persons|visits|visitors|trips|riders))(_count)?$",
    re.IGNORECASE,
)
_TIME = re.compile(r"time|hour|date|day|period|start|^ts$|stunde|datum", re.IGNORECASE)
_STRUCK = (
    r"^(?:\*+|x|\.{1,3}|-|n/?a|null|suppressed|masked|(?:<|<=|less than|fewer than|under)\s*(\d+))$"
)
_UP_TO = r"^<=\s*\d+$"
_TOTAL = r"(?i)^(total|all|sum|overall|gesamt|insgesamt)$"
_NUMBER = r"^-?\d+(\.\d*)?$"
_GROUPED = r"^[1-9]\d{0,2}([,. ]\d{3})+$"
_MOST_CELLS = 20_000_000
_WHOLE = r"^\d+$"


def texts_of(column: pl.Series) -> pl.Series:
    """Return counts as texts in small letters, without marks between thousands."""
    texts = column.cast(pl.String).str.strip_chars().str.to_lowercase().replace("", None)
    marked = texts.str.contains("[,. ]") & texts.str.contains(r"^[\d,. ]+$")
    if marked.any() and texts.filter(marked).str.contains(_GROUPED).all():
        return texts.str.replace_all(r"(\d)[,. ](\d{3})", "${1}${2}")
    return texts


def are_counts(texts: pl.Series, *, whole: bool) -> bool:
    """Return whether texts are counts or marks for one that is struck out; `whole`: none is less.

    Otherwise they may have noise, as with differential privacy.
    """
    there = texts.drop_nulls()
    known = there.str.contains(_WHOLE + r"|^\d+\.0*$" if whole else _NUMBER)
    return bool(len(there) and (known | there.str.contains(_STRUCK)).all())


def _count(frame: pl.DataFrame, stated: Mapping[str, str]) -> str | None:
    named = stated.get("count") or next(
        (each for each in frame.columns if _COUNT.match(each)), None
    )
    if named is None:
        return None
    whole = named.lower() in {"total", "volume"}  # of money or water, perhaps
    return named if are_counts(texts_of(frame[named]), whole=whole) else None


def times_in(names: Sequence[str]) -> list[str]:
    """Return the names that say when."""
    return [name for name in names if _TIME.search(name) and not _COUNT.match(name)]


def _areas(frame: pl.DataFrame, stated: Mapping[str, str]) -> list[str]:
    """Return the columns that may name the area; two of coordinates are one."""
    columns = columns_stated(frame, {})
    not_one = {_count(frame, stated), *times_in(frame.columns), "_file", "_track"}
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
    times = times_in(frame.columns)
    when = (
        pl.Series(["all"] * len(frame))
        if not times
        else frame.select(pl.concat_str(pl.col(times).cast(pl.String), separator=" ")).to_series()
    )
    text = texts_of(frame[_count(frame, stated) or ""])
    names = frame.select(pl.concat_str(pl.col(areas[0].split(",")).cast(pl.String), separator=" "))
    return release_of(names.to_series(), when, text)


def release_of(areas: pl.Series, times: pl.Series, text: pl.Series) -> CountRelease:
    """Return a release by the names of areas and times and the texts of counts, a row for each.

    Notes
    -----
    Where counts are 3 or more, none is marked as struck out and some are not listed, those that are
    not listed are taken for struck out.
    """
    area_of, area_names = _numbered(areas)
    time_of, time_names = _numbered(times)
    start_s = starts_of(time_names)
    if start_s is not None:
        order = np.argsort(start_s, kind="stable")
        time_of = np.where(time_of < 0, -1, np.argsort(order)[time_of])
        start_s = start_s[order]
    count = text.cast(pl.Float64, strict=False).to_numpy()
    struck = _struck(text, count)
    n_cells = len(area_names) * len(time_names)
    if not np.isnan(count).any() and struck[1] > 1 and count.min() > 0 and n_cells <= _MOST_CELLS:
        parts = (area_of >= 0) & (time_of >= 0)
        listed = np.zeros((len(area_names), len(time_names)), bool)
        listed[area_of[parts], time_of[parts]] = True
        more_areas, more_times = np.nonzero(~listed)
        area_of = np.concatenate([area_of, more_areas])
        time_of = np.concatenate([time_of, more_times])
        count = np.concatenate([count, np.full(len(more_areas), np.nan)])
        struck = (0 if len(more_areas) else 1), struck[1]
    return CountRelease(
        area_of,
        time_of,
        count,
        len(area_names),
        len(time_names),
        struck,
        places_of(area_names),
        start_s,
    )


def _struck(text: pl.Series, count: FloatArray) -> tuple[int, int]:
    """Return the least and the greatest count that is struck out."""
    below = text.str.extract(_STRUCK, 1).cast(pl.Int64, strict=False).max()
    least = float(np.nanmin(np.where(count > 0, count, np.inf), initial=np.inf))
    if isinstance(below, int):
        most = below if text.str.contains(_UP_TO).any() else below - 1
    else:
        most = int(np.ceil(least)) - 1 if np.isfinite(least) else 1
    return 1, max(most, 1)


def _numbered(names: pl.Series) -> tuple[IntArray, list[str]]:
    """Return the number of each name, -1 for a total, and the names, numbers in them by size."""
    names = names.fill_null("").str.strip_chars()
    is_total = names.str.contains(_TOTAL).to_numpy()
    distinct, of = np.unique(names.to_numpy().astype(str)[~is_total], return_inverse=True)
    by_size = [re.sub(r"\d+", lambda found: found[0].zfill(20), each) for each in distinct]
    order = sorted(range(len(distinct)), key=by_size.__getitem__)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    number = np.full(len(names), -1)
    number[~is_total] = rank[of]
    return number, [str(distinct[i]) for i in order]


FORM = ReleaseForm("counts by area and time", _recognizes, _asks, _read)

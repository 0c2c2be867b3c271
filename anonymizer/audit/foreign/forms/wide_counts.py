"""Counts in wide form: a column for each time and a row for each area, or the other way round."""

import re
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from anonymizer.audit.foreign.forms.area_counts import (
    are_counts,
    release_of,
    texts_of,
    times_in,
)
from anonymizer.audit.foreign.forms.form import OWN_COLUMNS, ReleaseForm, columns_stated
from anonymizer.audit.foreign.release import CountRelease
from anonymizer.domain.network import RoadNetwork

_MOMENT = re.compile(
    r"^(h|hour_?|t_?)?\d[\d:./T hZ-]*$|^(mon|tue|wed|thu|fri|sat|sun)[a-z]*$", re.IGNORECASE
)
_FEWEST = 3


def _key_of(frame: pl.DataFrame, stated: Mapping[str, str]) -> str | None:
    """Return the column that names rows, if all others hold counts."""
    columns = [name for name in frame.columns if name not in OWN_COLUMNS]
    likely = columns_stated(frame, stated)
    if len(columns) <= _FEWEST or {"lat", "lon"} & likely.keys():
        return None
    key, *others = columns
    if not all(are_counts(texts_of(frame[name]), whole=True) for name in others):
        return None
    says_when = bool(times_in([key]))
    of_moments = all(_MOMENT.match(name) for name in others if not _is_total(name))
    return key if says_when != of_moments and not ("id" in likely and says_when) else None


def _is_total(name: str) -> bool:
    return name.strip().lower() in {"total", "sum", "all"}


def _recognizes(frame: pl.DataFrame, stated: Mapping[str, str]) -> bool:
    return _key_of(frame, stated) is not None


def _read(
    _path: Path, frame: pl.DataFrame, stated: Mapping[str, str], _network: RoadNetwork | None
) -> CountRelease:
    key = _key_of(frame, stated) or ""
    values = [name for name in frame.columns if name not in {key, *OWN_COLUMNS}]
    texts = frame.select(pl.col(key).cast(pl.String), *(texts_of(frame[each]) for each in values))
    long = texts.unpivot(index=key, variable_name="_name", value_name="_count")
    areas, times = long[key], long["_name"]
    if times_in([key]):
        areas, times = times, areas
    return release_of(areas, times, long["_count"])


FORM = ReleaseForm("counts in wide form", _recognizes, lambda _frame, _stated: None, _read)

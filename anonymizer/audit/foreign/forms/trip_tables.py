"""Tables of trips, as of bicycles and taxis: a row has where and when one began and ended."""

import re
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from anonymizer.audit.foreign.forms.form import (
    OpenQuestion,
    ReleaseForm,
    asks_who,
    columns_stated,
    points,
)
from anonymizer.audit.foreign.release import AnyRelease
from anonymizer.domain.network import RoadNetwork

_SIDES = (
    re.compile(r"(^|_)(start|origin|begin|pick_?up|from)", re.IGNORECASE),
    re.compile(r"(^|_)(end|dest|stop|drop_?off|to(_|$))", re.IGNORECASE),
)
_WHAT = {
    "lat": re.compile(r"lat", re.IGNORECASE),
    "lon": re.compile(r"lon|lng", re.IGNORECASE),
    "time": re.compile(r"time|date|(^|_|ed)at$", re.IGNORECASE),
}


def _ends(frame: pl.DataFrame) -> list[dict[str, str]] | None:
    """Return the columns of the beginning and of the end; None if one is missing."""
    found = []
    for side in _SIDES:
        mine = [name for name in frame.columns if side.search(name)]
        columns = {
            key: next((name for name in mine if pattern.search(side.sub("", name))), "")
            for key, pattern in _WHAT.items()
        }
        if not all(columns.values()):
            return None
        found.append(columns)
    return found


def _rows(frame: pl.DataFrame, ends: list[dict[str, str]]) -> pl.DataFrame:
    """Return a row for each end, with the columns that are of the whole trip."""
    own = {name for each in ends for name in each.values()}
    other = [name for name in frame.columns if not any(side.search(name) for side in _SIDES)]
    other = [name for name in other if name not in own]
    return pl.concat(
        [
            frame.select(
                *other, **{key: pl.col(name).cast(pl.String) for key, name in each.items()}
            )
            for each in ends
        ]
    )


def _recognizes(frame: pl.DataFrame, stated: Mapping[str, str]) -> bool:
    return not {"lat", "lon"} & columns_stated(frame, stated).keys() and _ends(frame) is not None


def _asks(frame: pl.DataFrame, stated: Mapping[str, str]) -> OpenQuestion | None:
    return asks_who(_rows(frame, _ends(frame) or []), stated)


def _read(
    path: Path, frame: pl.DataFrame, stated: Mapping[str, str], _network: RoadNetwork | None
) -> AnyRelease:
    stated = {**stated, "time": "time", "lat": "lat", "lon": "lon"}
    return points(path, _rows(frame, _ends(frame) or []), stated, "ends of trips")


FORM = ReleaseForm("tables of trips", _recognizes, _asks, _read)

"""Geohashes: each is read as the middle of its cell."""

import re
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from anonymizer.audit.foreign.forms.form import OpenQuestion, ReleaseForm, points, who_is_who
from anonymizer.audit.foreign.release import AnyRelease
from anonymizer.domain.network import RoadNetwork

_LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"
_VALUE = rf"(?i)^[{_LETTERS}]{{3,12}}$"
_NAME = re.compile(r"geo_?hash|^gh\d*$|^hash$|^cell$", re.IGNORECASE)


def middle_of(geohash: str) -> tuple[float, float]:
    """Return latitude and longitude of the middle of a cell, in degrees."""
    sides = [[-180.0, 180.0], [-90.0, 90.0]]
    bits = "".join(f"{_LETTERS.index(letter):05b}" for letter in geohash.lower())
    for i, bit in enumerate(bits):
        side = sides[i % 2]
        side[bit == "0"] = sum(side) / 2
    return sum(sides[1]) / 2, sum(sides[0]) / 2


def is_geohash(text: str) -> bool:
    """Return whether a text can be the name of a cell."""
    return re.match(_VALUE, text) is not None


def column_of(frame: pl.DataFrame, name: re.Pattern[str], value: str) -> str | None:
    """Return the column of texts that is called like this, and holds nothing else."""
    for column in frame.columns:
        if name.search(column) and frame[column].dtype == pl.String:
            texts = frame[column].drop_nulls()
            if len(texts) and texts.str.contains(value).all():
                return column
    return None


def with_middles(
    frame: pl.DataFrame, cell: str, middle: Mapping[str, tuple[float, float]]
) -> pl.DataFrame:
    """Return a frame with the middle of each row's cell instead of its name."""
    lat = [middle[each][0] if each in middle else None for each in frame[cell].to_list()]
    lon = [middle[each][1] if each in middle else None for each in frame[cell].to_list()]
    return frame.drop(cell).with_columns(pl.Series("lat", lat), pl.Series("lon", lon))


def _cell(frame: pl.DataFrame, stated: Mapping[str, str]) -> str | None:
    return stated.get("cell") or column_of(frame, _NAME, _VALUE)


def _recognizes(frame: pl.DataFrame, stated: Mapping[str, str]) -> bool:
    return _cell(frame, stated) is not None


def _asks(frame: pl.DataFrame, stated: Mapping[str, str]) -> OpenQuestion | None:
    found = who_is_who(frame, stated, other=[_cell(frame, stated) or ""])
    return found if isinstance(found, OpenQuestion) else None


def _read(
    path: Path, frame: pl.DataFrame, stated: Mapping[str, str], _network: RoadNetwork | None
) -> AnyRelease:
    cell = _cell(frame, stated) or ""
    different = frame[cell].drop_nulls().unique().to_list()
    placed = with_middles(frame, cell, {each: middle_of(each) for each in different})
    lengths = sorted(set(map(len, different)))
    length = " to ".join(str(each) for each in dict.fromkeys((lengths[0], lengths[-1])))
    return points(path, placed, stated, f"geohashes of {length} letters")


FORM = ReleaseForm("geohashes", _recognizes, _asks, _read)

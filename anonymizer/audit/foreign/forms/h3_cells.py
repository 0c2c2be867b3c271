"""H3 cells: each is read as the middle of its cell."""

import re
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from anonymizer.audit.foreign.forms.form import OpenQuestion, ReleaseForm, points, who_is_who
from anonymizer.audit.foreign.forms.geohashes import column_of, with_middles
from anonymizer.audit.foreign.release import AnyRelease
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.extras import require

_VALUE = "(?i)^(0x)?8[0-9a-f]{14}$"
_NUMBERS = 0x8 << 56, 0x9 << 56
_NAME = re.compile(r"h3|hex|cell", re.IGNORECASE)


def _cells(frame: pl.DataFrame) -> tuple[str, pl.Series] | None:
    """Return the column of cells and their usual names, which are numbers in small letters."""
    if column := column_of(frame, _NAME, _VALUE):
        return column, frame[column].str.to_lowercase().str.strip_prefix("0x")
    for column in filter(_NAME.search, frame.columns):
        number = frame[column].cast(pl.UInt64, strict=False)
        there = number.drop_nulls()
        if len(there) == len(frame[column].drop_nulls()) > 0 and there.is_between(*_NUMBERS).all():
            names = [None if each is None else f"{each:x}" for each in number.to_list()]
            return column, pl.Series(column, names)
    return None


def _recognizes(frame: pl.DataFrame, _stated: Mapping[str, str]) -> bool:
    return _cells(frame) is not None


def _asks(frame: pl.DataFrame, stated: Mapping[str, str]) -> OpenQuestion | None:
    cells = _cells(frame)
    found = who_is_who(frame, stated, other=[cells[0]] if cells else [])
    return found if isinstance(found, OpenQuestion) else None


def _read(
    path: Path, frame: pl.DataFrame, stated: Mapping[str, str], _network: RoadNetwork | None
) -> AnyRelease:
    require("h3")
    import h3  # noqa: PLC0415  an extra

    if not (cells := _cells(frame)):
        raise InputError(f"{path}: has no cells of H3")
    column, names = cells
    different = names.drop_nulls().unique().to_list()
    if not all(map(h3.is_valid_cell, different)):
        raise InputError(f"{path}: column {column}: holds what is no cell of H3")
    middle = {each: h3.cell_to_latlng(each) for each in different}
    placed = with_middles(frame.with_columns(names.alias(column)), column, middle)
    sizes = sorted({h3.get_resolution(each) for each in different})
    size = " to ".join(str(each) for each in dict.fromkeys((sizes[0], sizes[-1])))
    return points(path, placed, stated, f"H3 cells of resolution {size}")


FORM = ReleaseForm("H3 cells", _recognizes, _asks, _read)

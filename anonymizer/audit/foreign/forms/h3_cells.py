"""H3 cells with ids: each is read as the middle of its cell."""

import re
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from anonymizer.audit.foreign.forms.form import OpenQuestion, ReleaseForm, points, who_is_who
from anonymizer.audit.foreign.forms.geohashes import column_of, with_middles
from anonymizer.audit.foreign.release import PointRelease
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.extras import require

_VALUE = "^8[0-9a-f]{14}$"
_NAME = re.compile(r"h3|hex|cell", re.IGNORECASE)


def _recognizes(frame: pl.DataFrame, _stated: Mapping[str, str]) -> bool:
    return column_of(frame, _NAME, _VALUE) is not None


def _asks(frame: pl.DataFrame, stated: Mapping[str, str]) -> OpenQuestion | None:
    found = who_is_who(frame, stated, other=[column_of(frame, _NAME, _VALUE) or ""])
    return found if isinstance(found, OpenQuestion) else None


def _read(
    path: Path, frame: pl.DataFrame, stated: Mapping[str, str], _network: RoadNetwork | None
) -> PointRelease:
    require("h3")
    import h3  # noqa: PLC0415  an extra

    cell = column_of(frame, _NAME, _VALUE) or ""
    different = frame[cell].drop_nulls().unique().to_list()
    if not all(map(h3.is_valid_cell, different)):
        raise InputError(f"{path}: column {cell}: holds what is no cell of H3")
    placed = with_middles(frame, cell, {each: h3.cell_to_latlng(each) for each in different})
    sizes = sorted({h3.get_resolution(each) for each in different})
    return points(path, placed, stated, f"H3 cells of resolution {sizes[-1]} with ids")


FORM = ReleaseForm("H3 cells with ids", _recognizes, _asks, _read)

"""Points; where all lie on a grid, they are taken for rounded."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.audit.foreign.forms.form import ReleaseForm, asks_who, columns_stated, points
from anonymizer.audit.foreign.release import AnyRelease
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.network import RoadNetwork

_FINEST = 2e-5
"""Degrees of latitude, 2 m: a finer grid is how numbers are written."""
_TOLERANCE = 1e-3
_FEWEST_ROWS = 20


def step_of(value: FloatArray) -> float:
    """Return the step of the grid on which all numbers lie; 0 if they lie on none."""
    found = np.unique(value)
    if len(value) < _FEWEST_ROWS or len(found) < 2:
        return 0.0
    gaps = np.diff(found)
    step = float(gaps.min())
    if step < _FINEST:
        return 0.0
    times = gaps / step
    return step if bool((np.abs(times - np.round(times)) < _TOLERANCE * times).all()) else 0.0


def _recognizes(frame: pl.DataFrame, stated: Mapping[str, str]) -> bool:
    columns = columns_stated(frame, stated)
    return {"lat", "lon"} <= columns.keys() or bool({"latlon", "lonlat"} & columns.keys())


def _read(
    path: Path, frame: pl.DataFrame, stated: Mapping[str, str], _network: RoadNetwork | None
) -> AnyRelease:
    columns = columns_stated(frame, stated)
    step = 0.0
    if "lat" in columns and "latlon" not in columns and "lonlat" not in columns:
        text = frame[columns["lat"]].cast(pl.String).str.replace(",", ".", literal=True)
        lat = text.cast(pl.Float64, strict=False).drop_nulls().to_numpy()
        step = step_of(lat[np.isfinite(lat)])
    metres = EARTH_RADIUS_M * np.radians(step)
    form = f"rounded points, {metres:,.0f} m apart," if step else "points"
    return points(path, frame, stated, form)


FORM = ReleaseForm("points", _recognizes, asks_who, _read)

"""Hidden cells: where trips of somebody begin or end, nothing is shown, whichever trip it is of.

A hole around a home has the home in its middle, and one of a random middle is found by averaging
over many trips. Here the earth is cut into cells once, for everybody; a cell in which a trip begins
or ends is hidden with a margin, from all trips. What is shown depends on which cells these are, and
on the roads beyond the margin, however many trips there are.

Not promised: that the cells themselves stay secret, and where in a cell the ways from it lead.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.algorithms.positions.recorded_trips import trips_of
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.protection import TripRule
from anonymizer.domain.trace import Trace

CELL_M, MARGIN_M = 1000.0, 400.0
_DEGREE_M = EARTH_RADIUS_M * np.pi / 180
_RULE = TripRule(gap_s=300.0, dwell_m=100.0, dwell_s=300.0)
_ROUNDING_M = 0.01
"""Of the margin, so that a border belongs to both of its cells however it is rounded."""
_POLE = 89.0
"""Degrees of latitude up to which a cell has a width."""


class HiddenCell(NamedTuple):
    """A cell: its row from the equator to the north, and its column from Greenwich to the east."""

    row: int
    column: int


def cells_of(lat: FloatArray, lon: FloatArray, cell_m: float = CELL_M) -> IntArray:
    """Return row and column of the cell of each position, in degrees, shape (n, 2)."""
    row = np.floor(lat * _DEGREE_M / cell_m)
    column = np.floor(lon / _width(row, cell_m))
    return np.stack([row, column], axis=-1).astype(np.int64)


def _width(row: FloatArray, cell_m: float) -> FloatArray:
    """Return the degrees of longitude of the cells of a row."""
    lat = np.clip((row + 0.5) * cell_m / _DEGREE_M, -_POLE, _POLE)
    width: FloatArray = cell_m / _DEGREE_M / np.cos(np.radians(lat))
    return width


def inside(
    lat: FloatArray,
    lon: FloatArray,
    cell: HiddenCell,
    *,
    cell_m: float = CELL_M,
    margin_m: float = MARGIN_M,
) -> BoolArray:
    """Return whether positions are in a cell or in the margin around it, shape (n,)."""
    height, width = cell_m / _DEGREE_M, float(_width(np.array(float(cell.row)), cell_m))
    margin_m += _ROUNDING_M
    up, aside = margin_m / _DEGREE_M, margin_m / cell_m * width
    east = lon - cell.column * width + aside
    east = east % 360.0  # the date line is no border
    north = lat - cell.row * height
    found: BoolArray = (north >= -up) & (north < height + up) & (east < width + 2 * aside)
    return found


def end_rows(trace: Trace) -> IntArray:
    """Return the rows beside a silence of five minutes, and those where a stay begins or ends.

    Unlike `trips_of`, which leaves out what the recording cuts: it begins where somebody lives.
    """
    rows = np.lexsort((trace.ts, trace.device_of))
    silent = (np.diff(trace.device_of[rows]) != 0) | (np.diff(trace.ts[rows]) > _RULE.gap_s)
    begins, ends = np.append(True, silent), np.append(silent, True)
    trips = trips_of(trace, _RULE)
    found: IntArray = np.unique(
        np.concatenate([rows[(begins | ends)[: len(rows)]], trips.first, trips.last])
    )
    return found


def shown_rows(
    trace: Trace,
    places: tuple[FloatArray, FloatArray] = (np.zeros(0), np.zeros(0)),
    *,
    cell_m: float = CELL_M,
    margin_m: float = MARGIN_M,
) -> BoolArray:
    """Return which rows of a trace may be shown, shape (n,).

    Parameters
    ----------
    places
        Latitude and longitude of further places that are hidden from everybody's trips.

    Notes
    -----
    O(rows of a device x its hidden cells).
    """
    shown, ends = np.ones(trace.n_rows, bool), end_rows(trace)
    everywhere = np.unique(cells_of(*places, cell_m), axis=0)
    cell = cells_of(trace.lat[ends], trace.lon[ends], cell_m)
    for device in range(trace.n_devices):
        rows = np.flatnonzero(trace.device_of == device)
        own = np.unique(cell[trace.device_of[ends] == device], axis=0)
        for each in np.concatenate([own, everywhere]).tolist():
            hidden = inside(
                trace.lat[rows],
                trace.lon[rows],
                HiddenCell(*each),
                cell_m=cell_m,
                margin_m=margin_m,
            )
            shown[rows[hidden]] = False
    return shown

"""Ways in which people publish positions that they take for blurred, each as a sample of our own.

What products and cities do is taken by its description; nothing is anybody's code.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from anonymizer.audit.foreign.persons import homes_of, rows_by_id
from anonymizer.audit.foreign.release import (
    AnyRelease,
    BareRelease,
    CountRelease,
    Plane,
    PointRelease,
    plane_of,
)
from anonymizer.audit.foreign.runs import joined
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.trace import Trace

FEWEST = 10
"""Counts below it are struck out."""
_FEWEST_TRIPS = 5
_ROUNDED, _OFFSET_M, _GAUSS_M, _LAPLACE_M, _HOLE_M = 0.005, 400.0, 300.0, 200.0, 500.0
_CELL_M, _COUNT_CELL_M = 500.0, 1000.0
_TRIP_GAP_S = 600.0
_HOUR_S = 3600.0
_EPSILON = 1.0
_DEGREE_M = float(Plane(0.0, 0.0).of(np.array([1.0]), np.array([0.0]))[0, 1])
Sample: TypeAlias = tuple[AnyRelease, IntArray | None]
"""A release, and the person of each id; None: ids are persons."""


@dataclass(frozen=True, slots=True)
class BlurScheme:
    """A way to publish."""

    name: str
    """In few words."""
    words: str
    """What it does."""
    publish: Callable[[Trace, np.random.Generator], Sample]
    """Return what is published of a trace."""


def _moved(trace: Trace, metres: FloatArray) -> Trace:
    """Move each row by metres to the east and north, shape (n, 2)."""
    east = metres[:, 0] / _DEGREE_M / np.cos(np.radians(trace.lat))
    return replace(trace, lat=trace.lat + metres[:, 1] / _DEGREE_M, lon=trace.lon + east, node=None)


def _points(trace: Trace) -> Sample:
    return PointRelease(replace(trace, node=None), "points with ids"), None


def _kept(trace: Trace, kept: BoolArray) -> Trace:
    return replace(
        trace,
        device_of=trace.device_of[kept],
        ts=trace.ts[kept],
        lat=trace.lat[kept],
        lon=trace.lon[kept],
        node=None,
    )


def _directions(rng: np.random.Generator, n: int) -> FloatArray:
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _trip_of(trace: Trace) -> IntArray:
    """Return the number of the trip of each row: what lies between two silences of a person."""
    rows = rows_by_id(trace)[1]
    new = np.diff(trace.device_of[rows], prepend=-1) != 0
    new |= np.diff(trace.ts[rows], prepend=-np.inf) > _TRIP_GAP_S
    trip = np.empty(trace.n_rows, np.int64)
    trip[rows] = np.cumsum(new) - 1
    return trip


def _precision(trace: Trace, _rng: np.random.Generator) -> Sample:
    lat, lon = (np.round(each / _ROUNDED) * _ROUNDED for each in (trace.lat, trace.lon))
    return _points(replace(trace, lat=lat, lon=lon))


def _gaussian(trace: Trace, rng: np.random.Generator) -> Sample:
    return _points(_moved(trace, rng.normal(0.0, _GAUSS_M, (trace.n_rows, 2))))


def _laplace(trace: Trace, rng: np.random.Generator) -> Sample:
    """Planar Laplace noise: the radius has a gamma distribution of shape 2."""
    far_m = rng.gamma(2.0, _LAPLACE_M / 2.0, trace.n_rows)
    return _points(_moved(trace, far_m[:, None] * _directions(rng, trace.n_rows)))


def _rays(trace: Trace, rng: np.random.Generator) -> Sample:
    """Each trip is moved along a random ray."""
    trip = _trip_of(trace)
    n = int(trip.max(initial=0)) + 1
    shift = rng.uniform(0.3, 1.0, n)[:, None] * _OFFSET_M * _directions(rng, n)
    return _points(_moved(trace, shift[trip]))


def _offset(trace: Trace, rng: np.random.Generator) -> Sample:
    shift = _OFFSET_M * _directions(rng, trace.n_devices)
    return _points(_moved(trace, shift[trace.device_of]))


def _hole(trace: Trace, _rng: np.random.Generator) -> Sample:
    plane = plane_of(trace)
    away = plane.of(trace.lat, trace.lon) - homes_of(trace, plane)[trace.device_of]
    return _points(_kept(trace, ~(np.hypot(*away.T) <= _HOLE_M)))


def _rotated(trace: Trace, rng: np.random.Generator) -> Sample:
    """Each trip has an id of its own."""
    return _of_trips(trace, _trip_of(trace), rng)


def _of_trips(trace: Trace, trip: IntArray, rng: np.random.Generator) -> Sample:
    number = rng.permutation(int(trip.max(initial=0)) + 1)[trip]
    first = np.unique(number, return_index=True)
    owner = trace.device_of[first[1]]
    of = np.searchsorted(first[0], number)
    ids = tuple(f"trip-{i}" for i in range(len(owner)))
    return (
        PointRelease(replace(trace, device_of=of, device_id=ids, node=None), "points with ids"),
        owner,
    )


def halved(xy_m: FloatArray, homes: FloatArray, fewest: int) -> tuple[IntArray, FloatArray]:
    """Return the cells of points: squares that are halved while each half is so many's home.

    Parameters
    ----------
    xy_m, homes
        Metres, shapes (n, 2) and (homes, 2). The first square is around all points.

    Returns
    -------
    cell_of, middle
        Cell of each point, 0 to n - 1, and the middle of its square, shapes (n,) and (n, 2).
    """
    middle, cell_of, n_cells = np.empty_like(xy_m), np.empty(len(xy_m), np.int64), 0
    pending = [(np.arange(len(xy_m)), homes, xy_m.min(axis=0), xy_m.max(axis=0))]
    while pending:
        rows, living, low, high = pending.pop()
        axis = int((high - low).argmax())
        at = (low[axis] + high[axis]) / 2
        below = living[:, axis] < at
        if min(below.sum(), (~below).sum()) < fewest:
            middle[rows], cell_of[rows] = (low + high) / 2, n_cells
            n_cells += 1 if len(rows) else 0
            continue
        side = xy_m[rows, axis] < at
        for each, half in ((side, below), (~side, ~below)):
            ends = low.copy(), high.copy()
            ends[1 if half is below else 0][axis] = at
            pending.append((rows[each], living[half], *ends))
    return cell_of, middle


def _cells(trace: Trace, _rng: np.random.Generator) -> Sample:
    """Publish cells in each of which `FEWEST` live: as census areas."""
    plane = plane_of(trace)
    homes = homes_of(trace, plane)
    homes = homes[np.isfinite(homes[:, 0])]
    xy_m = plane.of(trace.lat, trace.lon)
    return _points(_moved(trace, halved(xy_m, homes, FEWEST)[1] - xy_m))


def _k_trips(trace: Trace, rng: np.random.Generator) -> Sample:
    """Publish only trips whose cells of origin and goal those of five trips are; ids by trip."""
    trip = _trip_of(trace)
    cell = np.floor(plane_of(trace).of(trace.lat, trace.lon) / _CELL_M)
    rows = np.lexsort((trace.ts, trip))
    begin = np.flatnonzero(np.diff(trip[rows], prepend=-1) != 0)
    end = np.append(begin[1:], len(rows)) - 1
    pair = np.concatenate([cell[rows[begin]], cell[rows[end]]], axis=1)
    same, n = np.unique(pair, axis=0, return_inverse=True, return_counts=True)[1:]
    kept = (n[same.ravel()] >= _FEWEST_TRIPS)[trip]
    return _of_trips(_kept(trace, kept), np.unique(trip[kept], return_inverse=True)[1].ravel(), rng)


class _Counted(NamedTuple):
    """People by square kilometre and hour, shape (areas, hours), where and when these are."""

    table: FloatArray
    place: FloatArray
    start_s: FloatArray
    most_of_one: int


def _counted(trace: Trace) -> _Counted:
    plane = plane_of(trace)
    cell = np.floor(plane.of(trace.lat, trace.lon) / _COUNT_CELL_M)
    cells, area = np.unique(cell, axis=0, return_inverse=True)
    hours, hour = np.unique(np.floor(trace.ts / _HOUR_S), return_inverse=True)
    seen = np.unique(np.stack([area.ravel(), hour, trace.device_of]), axis=1)
    table = np.zeros((len(cells), len(hours)))
    np.add.at(table, (seen[0], seen[1]), 1)
    middle = (cells + 0.5) * _COUNT_CELL_M / _DEGREE_M
    lon = plane.lon + middle[:, 0] / np.cos(np.radians(plane.lat))
    place = np.stack([plane.lat + middle[:, 1], lon], axis=1)
    return _Counted(table, place, hours * _HOUR_S, int(np.bincount(seen[2]).max()))


def _counts(trace: Trace, _rng: np.random.Generator) -> Sample:
    """Count people by square kilometre and hour, with totals of both."""
    table, place, start_s, _ = _counted(trace)
    areas, times = table.shape
    area_of, time_of = (each.ravel() for each in np.indices(table.shape))
    area_of = np.concatenate([area_of, np.arange(areas), np.full(times, -1)])
    time_of = np.concatenate([time_of, np.full(areas, -1), np.arange(times)])
    count = np.concatenate([table.ravel(), table.sum(axis=1), table.sum(axis=0)])
    there = count > 0
    count = np.where(count < FEWEST, np.nan, count)[there]
    struck = (1, FEWEST - 1)
    counts = CountRelease(
        area_of[there], time_of[there], count, areas, times, struck, place, start_s
    )
    return counts, None


def _noisy(trace: Trace, rng: np.random.Generator) -> Sample:
    """Add noise for all that the most counted person adds to all counts together."""
    table, place, start_s, most = _counted(trace)
    area_of, time_of = (each.ravel() for each in np.indices(table.shape))
    count = (table + rng.laplace(0.0, most / _EPSILON, table.shape)).ravel()
    areas, times = table.shape
    return CountRelease(area_of, time_of, count, areas, times, (1, 1), place, start_s), None


def _bare(trace: Trace, _rng: np.random.Generator) -> Sample:
    """Publish cells and times, and no ids."""
    plane = plane_of(trace)
    xy_m = plane.of(trace.lat, trace.lon)
    middle = (np.floor(xy_m / _CELL_M) + 0.5) * _CELL_M
    return BareRelease(joined(_moved(trace, middle - xy_m)), "cells without ids"), None


SCHEMES = (
    BlurScheme("precision bits", "coordinates are cut to 0.005 degrees, 550 m", _precision),
    BlurScheme("Gaussian offsets", "each position has noise of 300 m", _gaussian),
    BlurScheme("planar Laplace", "each position has planar Laplace noise, 200 m far", _laplace),
    BlurScheme("random rays", "each trip is moved 120 to 400 m along a random ray", _rays),
    BlurScheme("an offset each", "each person is moved 400 m, always the same way", _offset),
    BlurScheme("zone hole", "nothing is published within 500 m of home", _hole),
    BlurScheme("ids rotated", "each trip has an id of its own", _rotated),
    BlurScheme("cells by density", "cells in each of which ten people live", _cells),
    BlurScheme("k rule of trips", "trips between two cells of 500 m with five trips", _k_trips),
    BlurScheme("counts below 10 out", "people by km² and hour, with totals", _counts),
    BlurScheme("cells without ids", "cells of 500 m and times, with no ids at all", _bare),
)  # fmt: skip
NOISY = BlurScheme("counts with noise", "people by km² and hour, ε = 1 for all of a person", _noisy)
"""What attacks on counts should not break: with differential privacy for persons."""

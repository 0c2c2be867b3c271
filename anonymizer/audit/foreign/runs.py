"""Runs: positions without ids, each joined to the nearest of the next moment, as anybody can."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.spatial import KDTree

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.audit.foreign.release import plane_of
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.trace import Trace

_FASTEST_M_S = 50.0
_SLACK_M = 100.0
_PER_MOMENT = 3
"""Rows for each time from which all are taken to report at the same times."""
_WINDOWS_S = (60.0, 300.0, 1800.0)
"""Within which somebody reports again, where times are not shared; the least that mostly holds."""
_SILENT = 5.0
"""Windows without a position after which a run is over."""
_N_NEAREST, _N_TRIED = 8, 500
_MOST_IMPOSSIBLE = 0.02
"""Share of impossible steps up to which all rows can be one person's."""


def window_s(trace: Trace) -> float:
    """Return within how many seconds anybody usually reports again, of rows that rise in time."""
    steps = np.diff(np.unique(trace.ts))
    if not len(steps):
        return 0.0
    if _PER_MOMENT * len(steps) <= trace.n_rows:
        return 1.5 * float(np.median(steps))
    reach_m = step_m(trace) + _FASTEST_M_S * _WINDOWS_S[0]
    tree = KDTree(np.column_stack([plane_of(trace).of(trace.lat, trace.lon) / reach_m]))
    some = np.linspace(0, trace.n_rows - 1, min(trace.n_rows, _N_TRIED)).astype(np.int64)
    near = tree.query_ball_point(tree.data[some], 1.0)
    for window in _WINDOWS_S[:-1]:
        later = [
            bool(((after := trace.ts[rows] - trace.ts[row]) > 0)[after <= window].any())
            for row, rows in zip(some.tolist(), near, strict=True)
        ]
        if np.mean(later) >= 0.5:
            return window
    return _WINDOWS_S[-1]


def step_m(trace: Trace) -> float:
    """Return about how far apart the places of a release are, in metres: of cells, their size."""
    places = np.unique(plane_of(trace).of(trace.lat, trace.lon), axis=0)
    if len(places) < 2 or 2 * len(places) > trace.n_rows:
        return _SLACK_M
    far_m = np.asarray(KDTree(places).query(places, k=2)[0])
    return max(float(np.median(far_m[:, 1])), _SLACK_M)


def is_of_one(trace: Trace) -> bool:
    """Return whether one person can have been in all places, one after the other."""
    far_m = haversine_m(trace.lat[:-1], trace.lon[:-1], trace.lat[1:], trace.lon[1:])
    beyond = far_m > 2 * step_m(trace) + _FASTEST_M_S * np.diff(trace.ts)
    return float(beyond.mean()) <= _MOST_IMPOSSIBLE if len(beyond) else True


def joined(trace: Trace) -> Trace:
    """Return positions, which rise in time, with runs as ids.

    Notes
    -----
    Of each time, pairs of an open run and a position are taken by rising distance. A run ends where
    nothing is within reach for five windows. O(times x runs).
    """
    xy_m = plane_of(trace).of(trace.lat, trace.lon)
    window = window_s(trace)
    reach_m = 2 * step_m(trace) + _FASTEST_M_S * window
    at_s, first = np.unique(trace.ts, return_index=True)
    run_of = np.full(trace.n_rows, -1)
    last: dict[int, int] = {}
    n_runs = 0
    for now, begin, end in zip(at_s, first, np.append(first[1:], trace.n_rows), strict=True):
        last = {
            run: row for run, row in last.items() if now - trace.ts[row] <= _SILENT * window + 1
        }
        rows = np.arange(begin, end)
        for run, row in _pairs(last, rows, xy_m, reach_m):
            run_of[row] = run
        new = rows[run_of[rows] < 0]
        run_of[new] = n_runs + np.arange(len(new))
        n_runs += len(new)
        last |= dict(zip(run_of[rows].tolist(), rows.tolist(), strict=True))
    names = tuple(f"run-{number}" for number in range(n_runs))
    return replace(trace, device_of=run_of, device_id=names)


def _pairs(
    last: dict[int, int], rows: IntArray, xy_m: FloatArray, reach_m: float
) -> Iterator[tuple[int, int]]:
    """Yield which open run goes on in which row, the nearest first."""
    if not last:
        return
    runs = list(last)
    tree = KDTree(xy_m[list(last.values())])
    most = range(1, min(_N_NEAREST, len(runs)) + 1)
    found = tree.query(xy_m[rows], k=most, distance_upper_bound=reach_m)
    far_m, nearest = np.asarray(found[0]), np.asarray(found[1])
    taken_runs, taken_rows = set(), set()
    for each in np.argsort(far_m, axis=None, kind="stable").tolist():
        i, j = divmod(each, far_m.shape[1])
        if not np.isfinite(far_m[i, j]):
            return
        run, row = runs[int(nearest[i, j])], int(rows[i])
        if run not in taken_runs and row not in taken_rows:
            taken_runs.add(run)
            taken_rows.add(row)
            yield run, row

"""What attacks on points share: ends of trips, whose an id is, and where ids are at a time."""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.recorded_trips import trips_of
from anonymizer.audit.foreign.release import ForeignCase, Plane, plane_of
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.protection import TripRule
from anonymizer.domain.trace import Trace

DAY_S = 86_400.0
SLACK_S = 30.0
"""A position this much earlier or later than a moment is of that moment, if ids report often."""
_LEAST_GAP_S, _GAP_INTERVALS = 600.0, 5.0
_STAY_M, _STAY_S = 100.0, 300.0
_RADII_M = (50.0, 100.0, 200.0, 400.0, 800.0, 1600.0)
_HOME_SHARE = 0.4
"""Least share of the ends of trips that lie where somebody lives: each trip has two."""
_MOST_ENDS = 400
_N_OWNED_BY = 24
"""Positions by which the person of an id is found."""


class Ends(NamedTuple):
    """Where trips begin or end, by id: `id_of` shape (n,), `xy_m` (n, 2), `day` (n,) of UTC."""

    id_of: IntArray
    xy_m: FloatArray
    day: IntArray

    def of(self, number: int) -> "Ends":
        """Return those of an id."""
        mine = slice(*np.searchsorted(self.id_of, [number, number + 1]))
        return Ends(self.id_of[mine], self.xy_m[mine], self.day[mine])

    def kept(self, which: BoolArray | IntArray) -> "Ends":
        """Return some of them."""
        return Ends(self.id_of[which], self.xy_m[which], self.day[which])


def interval_s(trace: Trace) -> float:
    """Return the usual time between two reports of an id, in seconds; infinite if there are no two.

    The median over all.
    """
    order = np.lexsort((trace.ts, trace.device_of))
    step, same = np.diff(trace.ts[order]), np.diff(trace.device_of[order]) == 0
    return float(np.median(step[same])) if same.any() else np.inf


def ends_of(trace: Trace, plane: Plane) -> Ends:
    """Return the ends of trips by id; of ids without trips, all positions.

    A trip ends with a silence of five usual intervals, at least ten minutes, or a stay of five
    minutes.
    """
    usual = interval_s(trace)
    gap_s = max(_LEAST_GAP_S, _GAP_INTERVALS * usual) if np.isfinite(usual) else _LEAST_GAP_S
    trips = trips_of(trace, TripRule(gap_s=gap_s, dwell_m=_STAY_M, dwell_s=_STAY_S))
    rows = np.concatenate([trips.first, trips.last])
    without = np.ones(trace.n_devices, bool)
    without[trace.device_of[rows]] = False
    rows = np.concatenate([rows, np.flatnonzero(without[trace.device_of])])
    rows = rows[np.argsort(trace.device_of[rows], kind="stable")]
    day = np.floor(trace.ts[rows] / DAY_S).astype(np.int64)
    return Ends(trace.device_of[rows], plane.of(trace.lat[rows], trace.lon[rows]), day)


def most_visited(xy_m: FloatArray, *, near_m: float = 0.0) -> FloatArray:
    """Return the middle of the smallest disc in which two fifths of some positions lie.

    Parameters
    ----------
    xy_m
        Metres, shape (n, 2), n >= 1.
    near_m
        Radius of the disc; 0: the least of some that hold so many.

    Notes
    -----
    A mode by counting in discs, moved to the mean of those in it until it stays. As the disc grows
    with the noise, and the mean loses it, noise per position is averaged away. O(n^2).
    """
    some = xy_m[:: max(1, len(xy_m) // _MOST_ENDS)]
    apart = np.hypot(*(some[:, None] - some[None]).transpose(2, 0, 1))
    radii = (near_m,) if near_m else _RADII_M
    for radius in radii:
        n_within = (apart <= radius).sum(axis=1)
        if n_within.max() >= _HOME_SHARE * len(some) or radius == radii[-1]:
            break
    middle = some[apart[n_within.argmax()] <= radius].mean(axis=0)
    for _ in range(8):
        inside = np.hypot(*(xy_m - middle).T) <= radius
        if not inside.any():
            break
        middle = xy_m[inside].mean(axis=0)
    found: FloatArray = middle
    return found


def homes_of(truth: Trace, plane: Plane) -> FloatArray:
    """Return where most trips of each person begin or end, shape (persons, 2); NaN: no trips."""
    ends = ends_of(truth, plane)
    homes = np.full((truth.n_devices, 2), np.nan)
    for person in np.unique(ends.id_of).tolist():
        homes[person] = most_visited(ends.of(person).xy_m, near_m=100.0)
    return homes


def owners(case: ForeignCase) -> IntArray:
    """Return the person of each id of a case with a truth, shape (ids,); -1 where nobody is near.

    What the publisher knows is taken. Else who is called alike is the same. If nobody is, it is who
    was nearest at the same times: this is what the auditor knows, and no attacker.
    """
    if case.owner is not None:
        return case.owner
    release, truth = case.points, case.people
    plane = plane_of(release)
    number = {name: i for i, name in enumerate(truth.device_id)}
    named = np.array([number.get(name, -1) for name in release.device_id], np.int64)
    if (named >= 0).any():
        return named
    starts, rows = rows_by_id(release)
    size = np.diff(starts)
    spread = np.linspace(0, 1, _N_OWNED_BY)
    chosen = rows[(starts[:-1, None] + np.round(spread * (size[:, None] - 1))).astype(np.int64)]
    at_s = release.ts[chosen]
    xy_m = plane.of(release.lat[chosen], release.lon[chosen])
    slack_s = max(SLACK_S, interval_s(truth)) * 2
    best, owner = np.full(len(size), np.inf), np.full(len(size), -1)
    first, true_rows = rows_by_id(truth)
    true_xy = plane.of(truth.lat, truth.lon)
    for person in range(truth.n_devices):
        mine = true_rows[first[person] : first[person + 1]]
        near = mine[nearest_in_time(truth.ts[mine], at_s)]
        far_m = np.hypot(*(true_xy[near] - xy_m).transpose(2, 0, 1))
        far_m[np.abs(truth.ts[near] - at_s) > slack_s] = np.inf
        middle = np.sort(far_m, axis=1)[:, _N_OWNED_BY // 2]
        better = middle < best
        best[better], owner[better] = middle[better], person
    return owner


def rows_by_id(trace: Trace) -> tuple[IntArray, IntArray]:
    """Return the first of each id among the rows that are returned, which are by id and time."""
    rows = np.lexsort((trace.ts, trace.device_of))
    return np.searchsorted(trace.device_of[rows], np.arange(trace.n_devices + 1)), rows


def nearest_in_time(ts: FloatArray, at_s: FloatArray) -> IntArray:
    """Return the index of the time nearest to each of some moments; `ts` rises."""
    after = np.searchsorted(ts, at_s).clip(1, max(len(ts) - 1, 1))
    after = np.minimum(after, len(ts) - 1)
    before = np.maximum(after - 1, 0)
    earlier = np.abs(ts[before] - at_s) <= np.abs(ts[after] - at_s)
    found: IntArray = np.where(earlier, before, after)
    return found


class Moments:
    """Where the ids of a release are at some moment: the nearest report of each, within a slack."""

    def __init__(self, trace: Trace, plane: Plane, slack_s: float) -> None:
        self._trace, self._slack_s = trace, slack_s
        self._xy_m = plane.of(trace.lat, trace.lon)

    def at(self, moment: float) -> tuple[IntArray, FloatArray]:
        """Return the ids that are there, rising, and their places in metres, shape (ids, 2)."""
        ts = self._trace.ts
        rows = np.arange(
            np.searchsorted(ts, moment - self._slack_s),
            np.searchsorted(ts, moment + self._slack_s, side="right"),
        )
        of = self._trace.device_of[rows]
        order = np.lexsort((np.abs(ts[rows] - moment), of))
        first = np.diff(of[order], prepend=-1) != 0
        kept = order[first]
        return of[kept], self._xy_m[rows[kept]]


def slack_of(trace: Trace) -> float:
    """Return the slack for `Moments`: half of the usual interval, within 30 s to half an hour."""
    usual = interval_s(trace)
    return float(np.clip(usual / 2 if np.isfinite(usual) else SLACK_S, SLACK_S, 1800.0))


def by_person(value: FloatArray, person: IntArray) -> FloatArray:
    """Return the mean of rows of each person, shape (persons, trials)."""
    distinct, of = np.unique(person, return_inverse=True)
    total = np.zeros((len(distinct), value.shape[1]))
    np.add.at(total, of, value)
    return total / np.bincount(of)[:, None]

"""Naive twin of the trip ends: trips as plain lists, decided by looking back."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.protection import TripEnds, TripRule, TripTick
from anonymizer.domain.arrays import RecordArray
from tests import naive

LAT, LON = 60.0, 24.0
_METRES_NORTH = 100 * naive.haversine_m(LAT, LON, LAT + 0.01, LON)
_METRES_EAST = 100 * naive.haversine_m(LAT, LON, LAT, LON + 0.01)


class Report(NamedTuple):
    """Metres from a fixed place at a time: north of it for even slots, east of it for odd ones."""

    slot: int
    ts: float
    metres: float
    tag: float = 0.0


class Trip(NamedTuple):
    """Where and when a trip began, and its stays: runs of reports near their first."""

    start_ts: float
    start_m: float
    stays: list[list[Report]]


def trips_of(reports: Sequence[Report], rule: TripRule) -> list[Trip]:
    """Divide the reports of one device, in order of time, into trips."""
    trips: list[Trip] = []
    for report in reports:
        stays = trips[-1].stays if trips else [[]]
        if not trips or report.ts - stays[-1][-1].ts > rule.gap_s:
            trips.append(Trip(report.ts, report.metres, [[report]]))
        elif abs(report.metres - stays[-1][0].metres) <= rule.dwell_m:
            stays[-1].append(report)
        elif stays[-1][-1].ts - stays[-1][0].ts >= rule.dwell_s:
            trips.append(Trip(report.ts, stays[-1][0].metres, [[report]]))
        else:
            stays.append([report])
    return trips


def may_pass(reports: Sequence[Report], rule: TripRule) -> list[bool]:
    """Return for each report of a device, in order of time, whether it passes after its delay."""
    verdicts = []
    for trip in trips_of(reports, rule):
        for report in (one for stay in trip.stays for one in stay):
            until = report.ts + rule.delay_s
            seen = [stay for stay in trip.stays if stay[0].ts <= until]
            last = [one for one in seen[-1] if one.ts <= until][-1]
            verdicts.append(
                report.ts - trip.start_ts >= rule.start_s
                and abs(report.metres - trip.start_m) >= rule.start_m
                and max(seen[-1][0].ts - report.ts, 0) >= rule.end_s
                and abs(last.metres - report.metres) >= rule.end_m
            )
    return verdicts


def tick(trips: TripEnds, reports: Sequence[Report], *, now: float) -> TripTick:
    slot, ts, metres, tag = np.array(reports, np.float64).reshape(-1, 4).T
    north, east = metres / _METRES_NORTH, metres / _METRES_EAST
    lat, lon = LAT + np.where(slot % 2, 0, north), LON + np.where(slot % 2, east, 0)
    return trips.tick(slot.astype(np.int32), ts, lat, lon, tag=tag, now=now)


def reports_of(records: RecordArray) -> list[Report]:
    north, east = records["lat"] - LAT, records["lon"] - LON
    metres = np.round(north * _METRES_NORTH + east * _METRES_EAST, 3)
    columns = (records["slot"], records["ts"], metres, records["tag"])
    return [Report(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]


def drive(rule: TripRule, reports: Sequence[Report], *, until: float) -> tuple[list[float], float]:
    """Report second by second; return the times passed on, and the longest delay of any."""
    trips, passed, longest_s = TripEnds(rule), [], 0.0
    for now in np.arange(0.0, until + 1.0).tolist():
        out = tick(trips, [report for report in reports if report.ts == now], now=now)
        for report in reports_of(out.passed):
            passed.append(report.ts)
            longest_s = max(longest_s, now - report.ts)
    assert trips.n_held == 0
    return passed, longest_s

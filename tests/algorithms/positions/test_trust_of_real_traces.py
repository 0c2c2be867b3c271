"""What trust refuses of real taxis and buses: hardly more than any rule must refuse."""

import math
import os
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import polars as pl
import pytest

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M, haversine_m
from anonymizer.algorithms.positions.recorded_trips import trips_of
from anonymizer.algorithms.positions.trust import SLACK_M, Claims, Trust
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array
from anonymizer.domain.trace import Trace
from anonymizer.settings import InputSettings, TripSettings

pytestmark = [pytest.mark.data, pytest.mark.compiled]
MAX_MPS, KEPT_S, TICK_S = InputSettings().max_speed_mps, 600.0, 10.0
TAXIS, BUSES = "cabspotting_sf_2008-05-19_20.parquet", "austin_bus_2015_2016.parquet"


class Reports(NamedTuple):
    """Of a recorded trace, by time: device, unix seconds and place, shape (n,)."""

    slot: Int32Array
    ts: FloatArray
    lat: FloatArray
    lon: FloatArray

    def only(self, rows: BoolArray | slice) -> "Reports":
        return Reports(self.slot[rows], self.ts[rows], self.lat[rows], self.lon[rows])


@cache
def reports_of(name: str) -> tuple[Reports, pl.DataFrame]:
    table = pl.read_parquet(Path(os.environ["ANONYMIZER_DATA"]) / "traces" / name).sort(
        "ts", maintain_order=True
    )
    slot = np.unique(table["device_id"].to_numpy(), return_inverse=True)[1].astype(np.int32)
    ts, lat, lon = (table[each].cast(pl.Float64).to_numpy() for each in ("ts", "lat", "lon"))
    return Reports(slot, ts, lat, lon), table


@cache
def refused_of(name: str) -> BoolArray:
    """Return which reports of a trace trust refuses, tick by tick."""
    reports, _ = reports_of(name)
    trust, n = Trust(kept_s=KEPT_S), len(reports.slot)
    of_tick = np.floor(reports.ts / TICK_S)
    cuts = [0, *(np.flatnonzero(np.diff(of_tick)) + 1).tolist(), n]
    found = np.zeros(n, np.bool_)
    for a, b in pairwise(cuts):
        some = reports.only(slice(a, b))
        claims = Claims(*some, np.zeros(b - a, np.bool_), None, np.arange(b - a))
        now = (of_tick[a] + 1) * TICK_S
        found[a:b] = trust.judge(claims, max_mps=np.full(b - a, MAX_MPS), now=now) > 0
    return found


@numba.njit(cache=True)
def _longest(ts: FloatArray, lat: FloatArray, lon: FloatArray, limits: FloatArray) -> int:
    """Return how many reports the longest chain has of which each can be reached from the last."""
    slack_m, max_mps, kept_s, m_per_radian = limits
    best = np.ones(len(ts), np.int64)
    for i in range(len(ts)):
        for j in range(i - 1, -1, -1):
            if best[j] < best[i]:
                continue
            seconds = ts[i] - ts[j]
            north = math.radians(lat[i] - lat[j]) * m_per_radian
            east = math.radians(lon[i] - lon[j]) * m_per_radian
            east *= math.cos(math.radians((lat[i] + lat[j]) / 2))
            allowed = slack_m + max_mps * seconds
            if seconds > kept_s or north * north + east * east <= allowed * allowed:
                best[i] = best[j] + 1
    return int(best.max())


def least_lost(reports: Reports, slots: Int32Array) -> int:
    """Return how many reports of these devices no rule that knows the future could keep."""
    limits = np.array([SLACK_M, MAX_MPS, KEPT_S, EARTH_RADIUS_M])
    lost = 0
    for slot in slots:
        own = reports.only(reports.slot == slot)
        lost += len(own.ts) - _longest(own.ts, own.lat, own.lon, limits)
    return lost


class Trip(NamedTuple):
    """A trip of a recorded trace; `is_possible`: whether it can be driven, and goes anywhere."""

    slot: int
    first_s: float
    last_s: float
    is_possible: bool


def trips_in(reports: Reports) -> list[Trip]:
    names = tuple(map(str, range(int(reports.slot.max()) + 1)))
    slot, ts, lat, lon = reports
    rule = TripSettings().rule
    found = trips_of(Trace(names, slot.astype(np.int64), ts, lat, lon), rule)
    trips = []
    for first, last, length_m in zip(found.first, found.last, found.length_m, strict=True):
        rows = first + np.flatnonzero(slot[first : last + 1] == slot[first])
        step_m = haversine_m(lat[rows[:-1]], lon[rows[:-1]], lat[rows[1:]], lon[rows[1:]])
        can = (step_m <= SLACK_M + MAX_MPS * np.diff(ts[rows])).all()
        possible = bool(can) and length_m > rule.dwell_m
        trips.append(Trip(int(slot[first]), ts[first], ts[last], possible))
    return trips


@pytest.mark.parametrize(("name", "least"), [(TAXIS, 23_000), (BUSES, 35_000)])
def test_every_trip_that_can_be_driven_is_still_told(name: str, least: int) -> None:
    reports, _ = reports_of(name)
    kept: dict[int, list[Trip]] = {}
    for trip in trips_in(reports.only(~refused_of(name))):
        kept.setdefault(trip.slot, []).append(trip)
    trips = trips_in(reports)
    lost = [
        trip
        for trip in trips
        if not any(
            each.first_s <= trip.last_s and each.last_s >= trip.first_s
            for each in kept.get(trip.slot, ())
        )
    ]
    assert len(trips) > least
    assert [trip for trip in lost if trip.is_possible] == []
    assert len(lost) < 0.001 * len(trips)


def test_taxis_lose_hardly_more_than_any_rule_with_one_place_an_id_loses() -> None:
    """A tenth of a percent cannot be had: five ids are two vehicles each."""
    reports, _ = reports_of(TAXIS)
    found = refused_of(TAXIS)
    slots, n_of = np.unique(reports.slot[found], return_counts=True)
    shared = slots[np.argsort(-n_of)[:5]]
    least, n = least_lost(reports, slots), len(found)
    assert 0.002 < least / n <= found.mean() < 1.15 * least / n
    others = ~np.isin(reports.slot, shared)
    assert found[others].mean() < 0.001, "without the five"


def test_buses_lose_less_than_a_tenth_of_a_percent_and_no_trip() -> None:
    _, table = reports_of(BUSES)
    found = refused_of(BUSES)
    assert 0 < found.mean() < 0.001
    trips = table.with_columns(refused=pl.Series(found)).drop_nulls("trip_id")
    of_trip = trips.group_by("device_id", "trip_id").agg(pl.col("refused").mean(), n=pl.len())
    told = of_trip.filter(pl.col("n") > 2)
    assert len(told) > 1_000
    assert (told["refused"] < 0.5).all()

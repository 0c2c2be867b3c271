"""Rides without their ends: what is shown tells which cells are hidden, and no more."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.protection.hidden_cells import (
    HiddenCell,
    cells_of,
    end_rows,
    inside,
    shown_rows,
)
from anonymizer.domain.trace import Trace


def _rides(lat: np.ndarray, lon: np.ndarray, ts: np.ndarray) -> Trace:
    return Trace(("me",), np.zeros(len(ts), np.int64), ts, lat, lon)


def _ride(
    begin: tuple[float, float], end: tuple[float, float], at: float
) -> tuple[np.ndarray, ...]:
    share = np.linspace(0, 1, 40)
    lat, lon = (a + (b - a) * share for a, b in zip(begin, end, strict=True))
    return lat, lon, at + 20.0 * np.arange(40)


PLACE = st.tuples(st.floats(-80, 80), st.floats(-180, 180))


@given(PLACE, st.floats(200, 3000), st.floats(0, 1000))
def test_a_place_lies_in_its_cell_and_nothing_near_it_is_shown(
    place: tuple[float, float], cell_m: float, margin_m: float
) -> None:
    lat, lon = (np.array([each]) for each in place)
    (cell,) = cells_of(lat, lon, cell_m)
    angle = np.linspace(0, 2 * np.pi, 16)
    near = 0.98 * margin_m / 111_195.1
    around_lat = lat + near * np.sin(angle)
    around_lon = lon + 0.98 * near * np.cos(angle) / np.cos(np.radians(np.abs(lat) + 0.02))
    around = inside(
        around_lat, around_lon, HiddenCell(*cell.tolist()), cell_m=cell_m, margin_m=margin_m
    )
    assert inside(lat, lon, HiddenCell(*cell.tolist()), cell_m=cell_m, margin_m=margin_m).all()
    assert around.all()
    far_lat = lat + (cell_m + margin_m) * 1.5 / 111_195.1
    assert not inside(
        far_lat, lon, HiddenCell(*cell.tolist()), cell_m=cell_m, margin_m=margin_m
    ).any()


@given(st.integers(0, 10**6), st.integers(1, 6))
def test_no_end_of_a_ride_is_within_the_margin_of_what_is_shown(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    home, at = rng.uniform(48, 48.1, 2), 1.8e9
    ends, parts = [home], []
    for i in range(n):
        goal = home + rng.uniform(-0.2, 0.2, 2)
        ends.append(goal)
        parts.append(_ride(tuple(home), tuple(goal), at + 7200 * i))
    trace = _rides(*(np.concatenate(each) for each in zip(*parts, strict=True)))
    shown = shown_rows(trace)
    for lat, lon in ends:
        assert haversine_m(lat, lon, trace.lat[shown], trace.lon[shown]).min(initial=1e9) >= 390


@given(st.integers(0, 10**6))
def test_where_in_its_cell_a_home_is_changes_nothing_else(seed: int) -> None:
    """Two homes in a cell, one road from its middle: what is shown is the same."""
    rng = np.random.default_rng(seed)
    height = 1000 / 111_195.0797
    middle = ((np.floor(48.05 / height) + 0.5) * height, 11.0)
    (cell,) = cells_of(np.array([middle[0]]), np.array([middle[1]]))
    goal = (48.25, 11.3)
    road = _ride(middle, goal, 1.8e9)
    shown = []
    for _ in range(2):
        home = np.array(middle) + rng.uniform(-0.4, 0.4, 2) * height
        assert (cells_of(home[:1], home[1:])[0] == cell).all()
        lat, lon, ts = (np.concatenate([[first], rest]) for first, rest in zip(
            (*home, road[2][0] - 60.0), road, strict=True
        ))  # fmt: skip
        trace = _rides(lat, lon, ts)
        kept = shown_rows(trace)
        shown.append(np.stack([trace.ts[kept], trace.lat[kept], trace.lon[kept]]))
    assert np.array_equal(shown[0], shown[1])


def test_ends_that_the_recording_cuts_are_ends() -> None:
    lat, lon, ts = _ride((48.0, 11.0), (48.2, 11.2), 1.8e9)
    assert end_rows(_rides(lat, lon, ts)).tolist() == [0, 39]
    one = replace(
        _rides(lat, lon, ts), ts=ts[:1], lat=lat[:1], lon=lon[:1], device_of=np.zeros(1, np.int64)
    )
    assert not shown_rows(one).any()
    none = _rides(lat[:0], lon[:0], ts[:0])
    assert len(end_rows(none)) == 0


def test_a_named_place_is_hidden_from_rides_that_pass_it() -> None:
    trace = _rides(*_ride((48.0, 11.0), (48.4, 11.4), 1.8e9))
    passed = shown_rows(trace, (np.array([48.2]), np.array([11.2])))
    far_m = haversine_m(48.2, 11.2, trace.lat, trace.lon)
    assert not passed[far_m < 400].any()
    assert passed.sum() < shown_rows(trace).sum()

"""How long trips take: a device adds one to one number of the interval in which it made them."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.outputs import counts
from anonymizer.outputs.counts.private_counts import (
    BoundedCounts,
    HeldBudget,
    PrivateCounts,
    noise_of,
    plan_of,
)
from anonymizer.outputs.counts.trip_durations import (
    N_DURATIONS,
    NO_TRIP,
    UP_TO_S,
    NoisyDurations,
    TripDurations,
    durations_of,
)
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.settings import Settings
from tests.outputs.private import NoNoise
from tests.pipeline.positions.support import NOW, Rig, delivery

QUARTER_S = 21_600.0
"""Of a day: an interval."""
MINUTES = 360
"""Of a quarter."""
MINUTE_S = 60.0
STEP_DEG = 0.002
"""More than 200 m: whoever goes one step has left a place."""


def settings_of(**keys: Any) -> Settings:  # noqa: ANN401  settings of any kind
    tables = {"privacy": "w-event", "every_s": QUARTER_S, "period_s": QUARTER_S, "cells": 4}
    return Settings.model_validate({"counts": tables | {"trip_durations": True} | keys})


class Report(NamedTuple):
    """At a minute, a device is so many steps from its home; `node` is negative in a zone."""

    minute: int
    device: int
    steps: int
    node: int = 0


class Followed:
    """Durations by device in each interval that has ended."""

    def __init__(self) -> None:
        self.durations = TripDurations(settings_of(), keys=lambda slot: slot.astype(np.uint64))
        self.found: list[dict[int, int]] = []

    def minute(self, minute: int, reports: list[Report], refused: tuple[int, ...] = ()) -> None:
        n = len(reports)
        positions = Positions(
            np.array([each.device for each in reports], np.int32),
            np.full(n, minute * MINUTE_S),
            np.full(n, 60.0),
            np.array([20.0 + STEP_DEG * each.steps for each in reports]),
            np.zeros(n),
        )
        node = np.array([each.node for each in reports], np.int32)
        seconds = self.durations.tick(positions, node, now=minute * MINUTE_S)
        if seconds is not None:
            keys = np.arange(4).astype(np.uint64)
            told = durations_of(seconds, keys, refused=refused).tolist()
            self.found.append({d: each for d, each in enumerate(told) if each != NO_TRIP})


def followed(reports: list[Report], n_quarters: int, **keys: Any) -> list[dict[int, int]]:  # noqa: ANN401
    of_minute: dict[int, list[Report]] = {}
    for each in reports:
        of_minute.setdefault(each.minute, []).append(each)
    flow = Followed()
    for minute in sorted({*of_minute, *range(0, n_quarters * MINUTES + 1, MINUTES)}):
        flow.minute(minute, of_minute.get(minute, []), **keys)
    return flow.found


def drive(begins: int, minutes: int, device: int = 0, *, node: int = 0) -> list[Report]:
    """Return a trip of which nothing is heard before and after, as of a phone."""
    return [Report(begins + i, device, i, node) for i in range(minutes + 1)]


def parked(begins: int, minutes: int, device: int = 0) -> list[Report]:
    return [Report(begins + i, device, 0) for i in range(minutes)]


@pytest.mark.parametrize(
    ("minutes", "duration"), [(2, 0), (4, 0), (5, 1), (8, 1), (15, 2), (16, 3), (30, 3), (31, 4)]
)
def test_a_trip_has_the_shortest_duration_that_it_does_not_exceed(
    minutes: int, duration: int
) -> None:
    assert followed(drive(370, minutes), 3) == [{}, {0: duration}, {}]


def test_a_device_that_reports_while_it_stands_makes_the_same_trip() -> None:
    away = [Report(385 + i, 0, 10) for i in range(60)]
    assert followed([*parked(361, 14), *drive(375, 10), *away], 3) == [{}, {0: 2}, {}]


def test_trips_across_an_end_of_an_interval_are_told_in_neither() -> None:
    """Nor are those that may be: who is silent for less than a gap may go on."""
    assert followed(drive(715, 10), 4) == [{}] * 4
    assert followed(drive(705, 11), 4) == [{}] * 4
    assert followed(drive(362, 20), 4) == [{}] * 4


def test_trips_of_a_device_count_as_one_of_their_median() -> None:
    trips = [*drive(366, 12), *drive(386, 2)]
    assert followed(trips, 2) == [{}, {0: 1}]  # 7 minutes
    assert followed([*trips, *drive(396, 3)], 2) == [{}, {0: 0}]


def test_no_trip_is_told_from_or_to_a_zone_or_of_who_asked_for_none() -> None:
    there = drive(370, 6)
    assert followed([there[0]._replace(node=-1), *there[1:]], 2) == [{}, {}]
    assert followed([*there[:-1], there[-1]._replace(node=-1)], 2) == [{}, {}]
    assert followed([*there, *drive(370, 6, 1)], 2, refused=(0,)) == [{}, {1: 1}]


def test_a_device_that_withdraws_has_made_no_trips() -> None:
    """Neither the one that is under way nor the one that has ended."""
    flow = Followed()
    trips = [each for d in (0, 1) for begins in (370, 396) for each in drive(begins, 6, d)]
    for minute in range(721):
        rows = [each for each in trips if each.minute == minute]
        if minute == 403:
            flow.durations.withdraw(np.array([0], np.uint64))
        flow.minute(minute, rows)
    assert flow.found == [{}, {1: 1}]


reports = st.lists(
    st.builds(
        Report,
        st.builds(
            lambda end, minute: end * MINUTES + minute, st.integers(1, 3), st.integers(-20, 20)
        ),
        st.just(0),
        st.integers(-3, 3),
        st.sampled_from([0, 0, 0, -1]),
    ),
    max_size=80,
)
"""What one device says around the ends of three intervals: anything."""
OTHERS = [*drive(10, 6, 1), *parked(360, 40, 2), *drive(400, 9, 2), *drive(1090, 3, 3)]


@hypothesis_settings(max_examples=60, deadline=None)
@given(reports)
def test_whatever_a_device_says_others_are_told_alike_and_it_adds_one_to_one_number(
    said: list[Report],
) -> None:
    bounded = BoundedCounts(settings_of().counts, most_devices=9)
    without, everybody = followed(OTHERS, 4), followed([*OTHERS, *said], 4)
    assert [{d: n for d, n in each.items() if d} for each in everybody] == without
    for hour, (one, other) in enumerate(zip(without, everybody, strict=True)):
        numbers = []
        for told, keys in ((one, range(1, 4)), (other, range(4))):
            duration = np.array([told.get(key, NO_TRIP) for key in keys])
            cell = np.zeros(len(keys), np.int64)
            key = np.array(keys, np.uint64)
            found = bounded.of(cell, cell, key, end_s=(hour + 1) * QUARTER_S, duration=duration)
            assert found is not None
            numbers.append(found)
        assert np.abs(numbers[1] - numbers[0]).sum() <= 2  # a cell and a duration
        assert len(numbers[0]) == 4 + N_DURATIONS


@hypothesis_settings(max_examples=60, deadline=None)
@given(reports, reports, st.integers(0, 3))
def test_what_a_device_does_in_an_interval_bears_on_the_message_about_it_alone(
    usual: list[Report], instead: list[Report], hour: int
) -> None:
    others = [each for each in usual if each.minute // MINUTES != hour]
    changed = [*others, *(each for each in instead if each.minute // MINUTES == hour)]
    for i, (one, other) in enumerate(zip(followed(usual, 4), followed(changed, 4), strict=True)):
        assert i == hour or one == other


@hypothesis_settings(max_examples=30, deadline=None)
@given(reports, st.integers(1, 4 * MINUTES))
def test_a_source_that_is_stopped_goes_on_from_its_state(said: list[Report], stop: int) -> None:
    said, flow = [*OTHERS, *said], Followed()
    for minute in sorted(
        {*(each.minute for each in said), stop, *range(0, 4 * MINUTES + 1, MINUTES)}
    ):
        if minute == stop:
            after = Followed()
            after.durations.restore(unpack(pack(flow.durations.state())))
            after.found, flow = flow.found, after
        flow.minute(minute, [each for each in said if each.minute == minute])
    assert flow.found == followed(said, 4)


def test_the_gateway_tells_how_long_trips_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "noise_of", lambda _: NoNoise())
    begins_s = math.ceil(NOW / QUARTER_S) * QUARTER_S
    rig, told = Rig(counts=settings_of().counts.model_dump()), []
    for minute in (q * MINUTES + m for q in range(5) for m in (0, *range(20, 31))):
        now = begins_s + minute * MINUTE_S
        # Five phones drive along ten nodes from the 20th minute of each quarter of a day on.
        step = minute % MINUTES - 20
        some = [delivery(f"d{i}", step, now) for i in range(5) if 0 <= step < 10]
        told += [each for each in rig.publish(*some, now=now) if "durations" in each]
    assert [each["durations"]["devices"] for each in told][:2] == [[0, 0, 5, 0, 0, 0]] * 2
    assert told[0]["durations"]["up_to_s"] == list(UP_TO_S)
    assert "trips" not in told[0]
    assert [sum(each["devices"]) for each in told][:2] == [5, 5]


def test_areas_and_durations_stand_beside_each_other() -> None:
    settings = settings_of(trip_areas=2).counts
    budget = HeldBudget(plan_of(settings))
    made = PrivateCounts(settings, budget, NoNoise(), version="abc")
    cell, before = np.array([0, 3, 3]), np.array([0, 0, -1])
    numbers = BoundedCounts(settings, most_devices=9).of(
        cell, before, np.arange(3).astype(np.uint64), end_s=0.0, duration=np.array([5, -1, 2])
    )
    made.of_numbers(numbers, end_s=QUARTER_S, ahead_s=0.0)  # refused: a period begins
    told = made.of_numbers(numbers, end_s=2 * QUARTER_S, ahead_s=0.0)
    assert told.devices == [1, 0, 0, 2]
    assert told.trips == [[1, 1], [0, 0]]
    assert told.durations == NoisyDurations(UP_TO_S, [0, 0, 1, 0, 0, 1])


def test_durations_double_the_noise_of_few_intervals_and_nobody_pays_who_does_not_ask() -> None:
    asked, not_asked, areas, both = (
        settings_of(trip_durations=durations, trip_areas=n).counts
        for durations, n in ((True, 0), (False, 0), (False, 2), (True, 2))
    )
    assert noise_of(both).scale == pytest.approx(3 * noise_of(not_asked).scale)
    assert noise_of(asked).scale == noise_of(areas).scale
    assert noise_of(asked).scale == pytest.approx(2 * noise_of(not_asked).scale)
    assert noise_of(asked).epsilon_of(1) <= 1.0


def test_who_asks_for_what_cannot_be_told_is_told_what_to_do() -> None:
    with pytest.raises(ValueError, match="must be at least 21600"):
        settings_of(every_s=900.0, period_s=900.0)
    changing = [{"topic": "a/{device}", "ids_change_s": 300.0}]
    with pytest.raises(ValueError, match="leave it out where vehicles change their ids"):
        Settings.model_validate({"inputs": changing, "counts": settings_of().counts.model_dump()})

"""Counts with differential privacy: what a device adds is bounded, and what it costs is charged."""

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from anonymizer.domain.arrays import IntArray
from anonymizer.errors import SettingsError, StoreError
from anonymizer.outputs.counts.gaussian_noise import GaussianNoise
from anonymizer.outputs.counts.private_counts import (
    Noise,
    PrivateCountsMessage,
    Spent,
    held_s_of,
    noise_of,
    plan_of,
    spent_period,
)
from anonymizer.settings import CountSettings
from anonymizer.store.budget_file import BudgetFile
from tests.outputs.private import Counts, NoNoise, numbers

EVERY_S, PERIOD_S = 10.0, 80.0


def dp_settings(**keys: Any) -> CountSettings:  # noqa: ANN401  settings of any kind
    tables = {
        "privacy": "dp",
        "every_s": EVERY_S,
        "period_s": PERIOD_S,
        "cells": 16,
        "trip_areas": 4,
    }
    return CountSettings.model_validate(tables | keys)


class Purse:
    """A budget in memory, which can also fail."""

    def __init__(self) -> None:
        self.n = 0
        self.broken = False
        self.period = (-1.0, -1.0)

    def tell(self, starts_s: float, ends_s: float) -> bool:
        del starts_s, ends_s
        return True

    def charge(self, starts_s: float, ends_s: float, *, most: int) -> int | None:
        if self.broken:
            raise StoreError("full")
        if self.period != (starts_s, ends_s):
            self.period, self.n = (starts_s, ends_s), 0
        if self.n >= most:
            return None
        self.n += 1
        return self.n

    def close(self) -> None:
        pass


@pytest.fixture
def purse() -> Purse:
    return Purse()


def counts(
    purse: Purse,
    noise: Noise | None = None,
    *,
    most_devices: int = 99,
    **keys: Any,  # noqa: ANN401  likewise
) -> Counts:
    settings = dp_settings(**keys)
    return Counts(settings, purse, noise or NoNoise(), most_devices=most_devices)


def interval(
    made: Counts, number: int, cell: list[int], before: list[int] | None = None
) -> PrivateCountsMessage:
    """Return the message of an interval in which devices 0, 1, ... are in these cells."""
    at = np.array(cell, np.int64)
    was = at if before is None else np.array(before, np.int64)
    keys = np.arange(len(at)).astype(np.uint64)
    return made.message(at, was, keys, end_s=(number + 1) * EVERY_S)


there = st.integers(-1, 15)
ways = st.lists(st.lists(there, min_size=12, max_size=12), min_size=1, max_size=5)
"""Cell of each device in each of twelve intervals, negative where it is not seen."""


@hypothesis_settings(max_examples=25, deadline=None)
@given(ways, st.integers(1, 9))
def test_all_that_one_device_changes_in_a_period_is_no_more_than_the_noise_is_made_for(
    way: list[list[int]], most: int
) -> None:
    """The squared Euclidean length of what one device adds to all numbers of a period."""
    with_it, without = Purse(), Purse()

    def published(purse: Purse, devices: list[list[int]], first: int) -> list[IntArray]:
        found = []
        made = counts(purse, device_intervals=most)
        for t in range(12):
            if t == 3:  # a restart
                made = counts(purse, device_intervals=most)
            seen = [
                (d + first, each[t], each[t - 1] if t else -1) for d, each in enumerate(devices)
            ]
            seen = [each for each in seen if each[1] >= 0]
            key, cell, before = (np.array([s[i] for s in seen], np.int64) for i in range(3))
            message = made.message(cell, before, key.astype(np.uint64), end_s=(t + 1) * EVERY_S)
            found.append(numbers(message))
        return found

    everybody, others = published(with_it, way, 0), published(without, way[1:], 1)
    budget = dp_settings(device_intervals=most).intervals_of_budget
    for period in (range(8), range(8, 12)):
        changed = [(everybody[t] - others[t]).astype(float) for t in period]
        assert [len(a) for a in everybody] == [len(b) for b in others]
        assert sum(float(each @ each) for each in changed) <= 2 * budget


def test_a_device_is_counted_in_the_first_intervals_of_each_period(purse: Purse) -> None:
    made = counts(purse, device_intervals=2)
    found = [interval(made, t, [5, 5]).devices for t in range(11)]
    totals = [sum(each) for each in found if not isinstance(each, msgspec.UnsetType)]
    assert totals == [2, 2, 0, 0, 0, 0, 0, 0, 2, 2, 0]


def test_trips_lead_from_area_to_area_and_none_begins_in_the_period_before(purse: Purse) -> None:
    made = counts(purse)
    first = interval(made, 0, [0, 15], [0, 15])
    assert numbers(first)[16:].sum() == 0
    second = interval(made, 1, [15, 15, 4], [0, 15, -1])
    assert not isinstance(second.trips, msgspec.UnsetType)
    assert second.trips[0][3] == second.trips[3][3] == 1
    assert np.sum(second.trips) == 2
    assert (
        counts(purse, trip_areas=0)
        .message(*(np.zeros(0, np.int64),) * 2, np.zeros(0, np.uint64), end_s=10.0)
        .trips
        is msgspec.UNSET
    )


def test_an_interval_is_suppressed_when_the_budget_is_spent(purse: Purse) -> None:
    """After a restart everybody may be counted anew, so it is charged anew."""
    budget = dp_settings(device_intervals=3).intervals_of_budget
    assert budget == 6
    runs = [run for _ in range(3) for run in [counts(purse, device_intervals=3)] * 2]
    said = [interval(run, t, [1]).suppressed for t, run in enumerate(runs)]
    assert said == [msgspec.UNSET] * 6
    last = interval(counts(purse, device_intervals=3), 6, [1])
    assert (last.suppressed, last.devices, last.trips) == ("budget", msgspec.UNSET, msgspec.UNSET)
    assert last.privacy.epsilon_spent == budget / 100
    assert interval(counts(purse, device_intervals=3), 8, [1]).suppressed is msgspec.UNSET


def test_nothing_is_published_when_the_budget_cannot_be_written(purse: Purse) -> None:
    made = counts(purse)
    purse.broken = True
    message = interval(made, 0, [1])
    assert (message.suppressed, message.devices) == ("store", msgspec.UNSET)
    purse.broken = False
    assert interval(made, 1, [1]).suppressed is msgspec.UNSET


def test_more_devices_than_can_be_remembered_end_the_counts_of_the_period(purse: Purse) -> None:
    made = counts(purse, most_devices=2)
    assert interval(made, 0, [1, 1, 1]).suppressed is msgspec.UNSET
    assert interval(made, 1, [1]).suppressed == "overload"
    assert interval(made, 8, [1]).suppressed is msgspec.UNSET


def test_what_is_spent_is_published_and_never_more_than_the_budget(purse: Purse) -> None:
    noise = noise_of(dp_settings(device_intervals=3, epsilon=0.5))
    made = counts(purse, noise, device_intervals=3, epsilon=0.5)
    spent = [interval(made, t, [1]).privacy for t in range(5)]
    epsilon = [each.epsilon_spent for each in spent if isinstance(each.epsilon_spent, float)]
    assert epsilon == sorted(epsilon)
    assert spent[2] == spent[4]
    assert 0 < epsilon[0] < epsilon[2] < 0.5
    assert spent[0] == Spent(
        period_s=PERIOD_S,
        period_ends=PERIOD_S,
        epsilon=0.5,
        delta=1e-6,
        epsilon_spent=spent[0].epsilon_spent,
        device_intervals=3,
        noise_sd=spent[0].noise_sd,
    )


def test_the_noise_has_the_stated_size_and_keeps_the_budget() -> None:
    noise = GaussianNoise(epsilon=1.0, delta=1e-6, n_releases=8, n_changed=2)
    assert noise.epsilon_of(8) <= 1.0
    assert noise.epsilon_of(9) > 1.0
    # zCDP: rho = length^2 / 2 scale^2; epsilon <= rho + 2 sqrt(rho ln 1/delta), here nearly tight.
    rho = 16 / (2 * noise.scale**2)
    assert 1.0 <= rho + 2 * math.sqrt(rho * math.log(1e6)) < 1.25
    drawn = np.array(noise.added_to([100] * 4000))
    assert abs(drawn.mean() - 100) < 6.5 * noise.scale / math.sqrt(4000)  # six sigmas and more
    assert drawn.std() == pytest.approx(noise.scale, rel=0.08)


def test_the_budget_survives_a_restart(tmp_path: Path) -> None:
    path, plan = tmp_path / "budget.sqlite", plan_of(dp_settings())
    budget = BudgetFile(path, plan)
    assert [budget.charge(0, 80, most=3) for _ in range(2)] == [1, 2]
    with pytest.raises(SettingsError, match="in use by another gateway"):
        BudgetFile(path, plan)
    budget.close()
    again = BudgetFile(path, plan)
    assert [again.charge(0, 80, most=3) for _ in range(2)] == [3, None]
    assert again.charge(80, 160, most=3) == 1
    assert again.charge(0, 80, most=3) is None  # the clock went back
    again.close()
    other = BudgetFile(path, plan_of(dp_settings(epsilon=2.0)))
    assert other.charge(80, 160, most=3) is None
    assert other.charge(100, 200, most=3) is None
    assert other.charge(160, 240, most=3) == 1
    other.close()
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("table", [{}, {"privacy": "w-event"}], ids=["dp", "w-event"])
def test_after_a_clock_that_was_ahead_a_budget_counts_as_spent(
    tmp_path: Path, table: dict[str, Any]
) -> None:
    """What was charged at a wrong time is charged to the time of the command."""
    settings = dp_settings(**table)
    every_s, lasts_s = settings.every_s, settings.period_s
    most = 1 if settings.slides else settings.intervals_of_budget
    length_s = every_s if settings.slides else lasts_s
    path, here, ahead = tmp_path / "budget.sqlite", 10 * lasts_s, 1e6 * lasts_s

    def charge(budget: BudgetFile, at: float) -> int | None:
        starts = at // length_s * length_s
        return budget.charge(starts, starts + length_s, most=most)

    budget = BudgetFile(path, plan_of(settings), held_s=held_s_of(settings))
    assert charge(budget, here) == 1
    assert budget.ahead_until(here) is None
    assert charge(budget, ahead) == 1
    for _ in range(2):
        assert budget.ahead_until(here) == ahead + length_s
        assert charge(budget, here) is None
        budget.close()
        budget = BudgetFile(path, plan_of(settings), held_s=held_s_of(settings))
    now = here + lasts_s / 2
    budget.go_on(*spent_period(settings, now))
    assert budget.ahead_until(now) is None
    spent_until = now + lasts_s if settings.slides else here + lasts_s
    steps = np.arange(here, spent_until + 3 * lasts_s, every_s)
    first = next(at for at in steps.tolist() if charge(budget, at) is not None)
    assert spent_until <= first <= spent_until + length_s
    budget.close()


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("something else " * 100)
    with pytest.raises(SettingsError, match=r"store\.path"):
        BudgetFile(path, "")
    with pytest.raises(SettingsError, match=r"store\.path"):
        BudgetFile(tmp_path / "no" / "folder", "")


def test_a_period_has_whole_intervals() -> None:
    with pytest.raises(ValueError, match="multiple of every_s"):
        dp_settings(period_s=75.0)
    assert dp_settings().intervals_of_budget == dp_settings().intervals_of_device == 8
    assert dp_settings(device_intervals=5).intervals_of_budget == 8

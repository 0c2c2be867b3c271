"""Counts of w-event privacy: any w messages in a row hide a device, for however long they go on."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.stats import beta

from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.errors import StoreError
from anonymizer.outputs.counts.gaussian_noise import GaussianNoise, LaplaceNoise
from anonymizer.outputs.counts.private_counts import (
    Budget,
    HeldBudget,
    Noise,
    PrivateCountsMessage,
    held_s_of,
    noise_of,
    plan_of,
)
from anonymizer.settings import CountSettings
from anonymizer.store.budget_file import BudgetFile
from tests.outputs.private import Counts

EVERY_S, W, CELLS, AREAS = 10.0, 4, 16, 4


def settings_of(**keys: Any) -> CountSettings:  # noqa: ANN401  settings of any kind
    tables = {
        "privacy": "w-event",
        "every_s": EVERY_S,
        "period_s": W * EVERY_S,
        "cells": CELLS,
        "trip_areas": AREAS,
    }
    return CountSettings.model_validate(tables | keys)


class NoNoise:
    """Stands in for the noise, so that a test sees what it hides."""

    scale = 0.0

    def epsilon_of(self, n_releases: int) -> float:
        return float(n_releases)

    def added_to(self, numbers: Sequence[int]) -> list[int]:
        return list(numbers)


class Always:
    """A budget that is never refused."""

    def charge(self, starts_s: float, ends_s: float, *, most: int) -> int | None:
        del starts_s, ends_s, most
        return 1

    def tell(self, starts_s: float, ends_s: float) -> bool:
        del starts_s, ends_s
        return True

    def close(self) -> None:
        pass


def made(budget: Budget | None = None, noise: Noise | None = None, **keys: Any) -> Counts:  # noqa: ANN401
    return Counts(settings_of(**keys), budget or Always(), noise or NoNoise(), most_devices=0)


def message(counts: Counts, t: int, cell: list[int]) -> PrivateCountsMessage:
    """Return the message of an interval in which devices 0, 1, ... are in these cells."""
    at = np.array(cell, np.int64)
    keys = np.arange(len(at)).astype(np.uint64)
    return counts.message(at, at, keys, end_s=(t + 1) * EVERY_S)


def published(way: list[list[int]], *, stop: int) -> list[IntArray]:
    """Return all numbers of each message about devices' cells; one restart forgets everything."""
    found, counts = [], made()
    for t in range(len(way[0]) if way else 0):
        if t == stop:
            counts = made()
        rows = [(d, each[t], each[t - 1] if t else -1) for d, each in enumerate(way)]
        key, cell, before = (
            np.array([row[i] for row in rows if row[1] >= 0], np.int64) for i in range(3)
        )
        said = counts.message(cell, before, key.astype(np.uint64), end_s=(t + 1) * EVERY_S)
        assert not isinstance(said.devices, msgspec.UnsetType)
        assert not isinstance(said.trips, msgspec.UnsetType)
        found.append(np.concatenate([said.devices, np.ravel(said.trips)]))
    return found


def naive(way: list[list[int]]) -> list[list[int]]:
    """Return the same, one device after the other."""
    found = []
    for t in range(len(way[0]) if way else 0):
        numbers = [0] * (CELLS + AREAS * AREAS)
        for each in way:
            if each[t] >= 0:
                numbers[each[t]] += 1
                if t and each[t - 1] >= 0:
                    area, before = each[t] * AREAS // CELLS, each[t - 1] * AREAS // CELLS
                    numbers[CELLS + before * AREAS + area] += 1
        found.append(numbers)
    return found


ways = st.lists(
    st.lists(st.integers(-1, CELLS - 1), min_size=11, max_size=11), min_size=1, max_size=5
)
"""Cell of each device in each of eleven intervals, negative where it is not seen."""


@hypothesis_settings(max_examples=40, deadline=None)
@given(ways, st.integers(1, 10))
def test_numbers_are_those_of_the_naive_twin_whatever_is_forgotten(
    way: list[list[int]], stop: int
) -> None:
    assert [each.tolist() for each in published(way, stop=stop)] == naive(way)


@hypothesis_settings(max_examples=40, deadline=None)
@given(ways, st.integers(1, 10))
def test_a_device_adds_no_more_to_any_w_messages_in_a_row_than_the_noise_is_made_for(
    way: list[list[int]], stop: int
) -> None:
    """Both of its lengths: the sum, for Laplace noise, and that of the squares, for Gaussian."""
    settings = settings_of()
    most = 2 * settings.intervals_of_budget
    everybody, others = published(way, stop=stop), published([[-1] * 11, *way[1:]], stop=stop)
    added = [np.abs(a - b) for a, b in zip(everybody, others, strict=True)]
    for first in range(len(added) - W + 1):
        window = np.concatenate(added[first : first + W])
        assert window.sum() <= most
        assert (window**2).sum() <= most


@hypothesis_settings(max_examples=40, deadline=None)
@given(ways, st.integers(0, 7), st.lists(st.integers(-1, CELLS - 1), min_size=3, max_size=3))
def test_what_a_device_does_in_w_less_one_intervals_bears_on_w_messages_and_no_more(
    way: list[list[int]], first: int, instead: list[int]
) -> None:
    """The first interval after them shows where it came from."""
    other = [way[0][:first] + instead + way[0][first + 3 :], *way[1:]]
    for t, (a, b) in enumerate(zip(published(way, stop=3), published(other, stop=3), strict=True)):
        assert first <= t <= first + 3 or a.tolist() == b.tolist()


def test_counts_go_on_for_ever_and_say_that_no_period_ends(tmp_path: Path) -> None:
    settings = settings_of()
    budget = BudgetFile(tmp_path / "budget.sqlite", plan_of(settings), held_s=held_s_of(settings))
    counts = made(budget)
    found = [message(counts, t, [1, 1, 5]) for t in range(60)]
    assert {each.suppressed for each in found} == {msgspec.UNSET}
    body = msgspec.json.decode(msgspec.json.encode(found[-1].privacy))
    assert body == {
        "period_s": W * EVERY_S, "epsilon": 1.0, "delta": 1e-6, "device_intervals": W,
        "noise_sd": 0.0,
    }  # fmt: skip
    budget.close()


def test_no_interval_is_published_twice_whatever_restarts(tmp_path: Path) -> None:
    path, settings = tmp_path / "budget.sqlite", settings_of()
    said = []
    for t in (5, 5, 6, 5, 6, 7):  # the clock goes back, too
        budget = BudgetFile(path, plan_of(settings), held_s=held_s_of(settings))
        said.append(message(made(budget), t, [1]).suppressed)
        budget.close()
    assert said == [msgspec.UNSET, "budget", msgspec.UNSET, "budget", "budget", msgspec.UNSET]


def test_other_settings_wait_until_no_window_holds_messages_of_both(tmp_path: Path) -> None:
    """On disk and in the state of a cluster alike."""
    path, held = tmp_path / "budget.sqlite", HeldBudget(plan_of(settings_of()))
    budget = BudgetFile(path, plan_of(settings_of()))
    assert message(made(budget), 5, [1]).suppressed is msgspec.UNSET
    budget.close()
    message(made(held), 4, [1])  # it begins with an interval of which nothing is known
    assert message(made(held), 5, [1]).suppressed is msgspec.UNSET
    other = settings_of(epsilon=9.0)
    budget = BudgetFile(path, plan_of(other), held_s=held_s_of(other))
    restored = HeldBudget(plan_of(other), held_s=held_s_of(other))
    restored.restore(held.state())
    for each, first in ((budget, 6 + W), (restored, 5 + W)):
        said = [message(made(each), t, [1]).suppressed for t in range(6, 14)]
        assert said == ["budget"] * (first - 6) + [msgspec.UNSET] * (14 - first)
    budget.close()


def test_nothing_is_published_when_the_budget_cannot_be_written() -> None:
    class Broken(Always):
        def charge(self, starts_s: float, ends_s: float, *, most: int) -> int | None:
            del starts_s, ends_s, most
            raise StoreError("full")

    said = message(made(Broken()), 0, [1])
    assert (said.suppressed, said.devices, said.trips) == ("store", msgspec.UNSET, msgspec.UNSET)


def test_the_noise_is_the_smaller_one_of_two_and_keeps_the_budget() -> None:
    few, many = (settings_of(period_s=n * EVERY_S, trip_areas=0) for n in (4, 60))
    assert isinstance(noise_of(few), LaplaceNoise)
    assert isinstance(noise_of(many), GaussianNoise)
    for settings, n in ((few, 4), (many, 60)):
        noise = noise_of(settings)
        assert noise.epsilon_of(n) <= 1.0 + 1e-9
        assert noise.epsilon_of(n + 1) > 1.0
    assert noise_of(few).scale == pytest.approx(4 * math.sqrt(2))
    drawn = np.array(noise_of(few).added_to([50] * 4000))
    assert abs(drawn.mean() - 50) < 6.5 * noise_of(few).scale / math.sqrt(4000)
    assert drawn.std() == pytest.approx(noise_of(few).scale, rel=0.1)


N_WINDOWS = 20_000


def windows(noise: Noise, there: int, *, w: int) -> FloatArray:
    """Return so many windows of the number that a device is in throughout, or is not."""
    return np.array(noise.added_to([30 + there] * (N_WINDOWS * w)), np.float64).reshape(-1, w)


def least_epsilon(noise: Noise, *, w: int, delta: float) -> float:
    """Return the least epsilon that is not refuted by what is seen with and without a device.

    The windows are told apart by their sum, the best that can be read in Gaussian noise. Half of
    them choose where to part them, the others count; both bounds are of 99.9 % (Clopper-Pearson).
    """
    without, with_it = (windows(noise, there, w=w).sum(axis=1) for there in (0, 1))
    half = N_WINDOWS // 2

    def share(of: BoolArray, side: int) -> float:
        n, hits = len(of), int(of.sum())
        low = beta.ppf(1e-3, hits, n - hits + 1) if hits else 0.0
        high = beta.ppf(1 - 1e-3, hits + 1, n - hits) if hits < n else 1.0
        return float(low if side < 0 else high)

    def epsilon(part: slice, at: float) -> float:
        seen, unseen = share(with_it[part] > at, -1), share(without[part] > at, 1)
        return math.log(max(seen - delta, 1e-12) / unseen)

    tried = np.quantile(with_it[:half], np.linspace(0.3, 0.999, 40)).tolist()
    best = max(tried, key=lambda at: epsilon(slice(half), at))
    return epsilon(slice(half, None), best)


def laplace() -> LaplaceNoise:
    return LaplaceNoise(epsilon=1.0, n_releases=1, n_changed=1)


def gaussian() -> GaussianNoise:
    return GaussianNoise(epsilon=1.0, delta=1e-3, n_releases=1, n_changed=1)


@pytest.mark.parametrize(
    ("w", "of_one"), [(3, laplace), pytest.param(25, gaussian, marks=pytest.mark.soak)]
)
def test_no_more_is_learned_from_a_window_than_the_promise_allows(
    w: int, of_one: Callable[[], Noise]
) -> None:
    """Laplace noise for 3 intervals, Gaussian noise for 25. The same for one interval is refuted.

    Three Gaussian releases would not be: what their noise spends is computed with a margin, so the
    least epsilon of ten draws was 0.73 to 1.20. That of Laplace noise was 1.64 to 1.93.
    """
    settings = settings_of(period_s=w * EVERY_S, trip_areas=0, epsilon=1.0, delta=1e-3)
    noise, too_little = noise_of(settings), of_one()
    assert type(noise) is type(too_little)
    assert least_epsilon(noise, w=w, delta=1e-3) <= 1.0
    assert least_epsilon(too_little, w=w, delta=1e-3) > 1.0


def test_a_bound_of_intervals_has_no_place_where_everybody_is_counted() -> None:
    with pytest.raises(ValueError, match="leave out device_intervals"):
        settings_of(device_intervals=2)
    with pytest.raises(ValueError, match="multiple of every_s"):
        settings_of(period_s=25.0)

"""The median of trips: found in exact numbers, with an interval that holds it in noisy ones."""

import json
from pathlib import Path

import numpy as np
import pytest

from anonymizer import client
from anonymizer.client.counts import Counts
from anonymizer.client.median_duration import fitted_median
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.network_version import network_version
from anonymizer.errors import InputError
from anonymizer.outputs.counts.trip_durations import UP_TO_S
from tests.client.paper import street

STREET = client.read_network(street())


def trips(median_s: float, spread: float, n: int = 2_000) -> FloatArray:
    """Return trips by duration, of a log-normal distribution."""
    seconds = np.random.default_rng(1).lognormal(np.log(median_s), spread, n)
    return np.bincount(np.searchsorted(UP_TO_S, seconds), minlength=6).astype(float)


@pytest.mark.parametrize("median_s", [150.0, 420.0, 1100.0, 2700.0])
@pytest.mark.parametrize("spread", [0.4, 0.8])
def test_the_median_of_exact_numbers_is_found(median_s: float, spread: float) -> None:
    found = fitted_median(trips(median_s, spread), UP_TO_S, noise_sd=0.0)
    assert found.median_s == pytest.approx(median_s, rel=0.1)
    assert found.low_s < median_s < found.high_s


@pytest.mark.parametrize("noise_sd", [20.0, 100.0, 500.0])
def test_intervals_hold_the_median_however_large_the_noise(noise_sd: float) -> None:
    rng, exact = np.random.default_rng(2), trips(420.0, 0.5, 400)
    found = [
        fitted_median(exact + rng.laplace(0, noise_sd / 2**0.5, 6), UP_TO_S, noise_sd=noise_sd)
        for _ in range(200)
    ]
    assert np.mean([each.low_s <= 420.0 <= each.high_s for each in found]) >= 0.95
    assert all(each.low_s <= each.median_s <= each.high_s for each in found)


def test_numbers_that_say_nothing_have_an_interval_that_says_so() -> None:
    low, high = fitted_median(np.zeros(6), UP_TO_S, noise_sd=1.0)[1:]
    assert low < 60.0
    assert high > 3 * 3600.0


def test_too_few_durations_are_refused() -> None:
    with pytest.raises(InputError, match="too few"):
        fitted_median(np.ones(3), [60.0, 120.0], noise_sd=1.0)
    with pytest.raises(InputError, match="too few"):
        fitted_median(np.ones(6), [60.0, 120.0], noise_sd=1.0)


def line(n: int, durations: list[int] | None, *, noise_sd: float = 3.0) -> str:
    body = {"v": 1, "time": n * 21_600.0, "interval_s": 21_600.0, "n_cells": 4}
    told = {"durations": {"up_to_s": UP_TO_S, "devices": durations}} if durations else {}
    rest = {"network": network_version(street()), "privacy": {"noise_sd": noise_sd}}
    return json.dumps(body | rest | {"devices": [0, 0, 0, 0]} | told)


def test_durations_add_up_over_intervals_with_their_noise(tmp_path: Path) -> None:
    path = tmp_path / "counts.jsonl"
    path.write_text("\n".join(line(n, [n, 20, 6, 1, -2, 0]) for n in range(1, 10)))
    counts = client.read_counts(path, network=STREET)
    table = counts.durations(start=21_600.0, end=5 * 21_600.0)
    assert table["up_to_s"].tolist() == [*UP_TO_S, np.inf]
    assert table["devices"].tolist() == [14, 80, 24, 4, -8, 0]
    reach = 2.118310 * 3 * 4**0.5 + 0.5
    assert table["low"] == pytest.approx(table["devices"] - reach)
    assert table["high"] == pytest.approx(table["devices"] + reach)
    median = counts.median_duration(start=0, end=9 * 21_600.0)
    assert 240 < median.low_s < median.median_s < median.high_s < 900


def counts_of(path: Path, *lines: str) -> Counts:
    path.write_text("\n".join(lines))
    return client.read_counts(path, network=STREET)


def test_each_interval_has_the_noise_that_its_own_message_states(tmp_path: Path) -> None:
    """A recording goes on over a change of settings."""
    lines = [line(n, [9, 20, 6, 1, -2, 0], noise_sd=sd) for n, sd in ((1, 3.0), (2, 4.0))]
    both = counts_of(tmp_path / "counts.jsonl", *lines)
    reach = 2.118310 * 5 + 0.5
    table = both.durations(start=0, end=2 * 21_600.0)
    assert table["high"] - table["devices"] == pytest.approx(reach)
    month = both.pattern(by="month")
    assert month["high"].tolist() == [pytest.approx((2.118310 * 5 * 4**0.5 + 0.5) / 2)]
    town = both.devices(STREET.grid(1e6), start=0, end=2 * 21_600.0)
    assert town["high"].tolist() == month["high"].tolist()


@pytest.mark.parametrize("width", [0.2, 0.5, 1.0, 2.0, 7.3, 40.0])
@pytest.mark.parametrize("n", [1, 2, 10])
def test_an_interval_of_95_percent_holds_as_many_of_the_draws_of_whole_laplace_noise(
    tmp_path: Path, width: float, n: int
) -> None:
    numbers, p = np.arange(-2_000, 2_001), np.exp(-1 / width)
    one = (1 - p) / (1 + p) * p ** np.abs(numbers)  # exactly, not drawn
    chance = np.fft.irfft(np.fft.rfft(np.fft.ifftshift(one)) ** n, len(one))
    lines = [line(i, [0] * 6, noise_sd=width * 2**0.5) for i in range(1, n + 1)]
    table = counts_of(tmp_path / "c.jsonl", *lines).durations(start=0, end=n * 21_600.0)
    inside = np.abs(numbers) <= table["high"][0]
    assert np.fft.fftshift(chance)[inside].sum() >= 0.95


def test_counts_that_say_durations_only_at_times_say_so(tmp_path: Path) -> None:
    lines = [line(1, None), line(2, [9, 20, 6, 1, -2, 0])]
    counts = counts_of(tmp_path / "counts.jsonl", *lines)
    with pytest.raises(InputError, match="a start and end between which"):
        counts.durations(start=0, end=2 * 21_600.0)
    assert counts.durations(start=21_600.0, end=2 * 21_600.0)["devices"][0] == 9


def test_counts_without_durations_say_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "counts.jsonl"
    path.write_text(line(1, None))
    counts = client.read_counts(path, network=STREET)
    with pytest.raises(InputError, match="the gateway needs"):
        counts.durations(start=0, end=21_600.0)

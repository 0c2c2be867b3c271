"""How long trips of small fleets take: near for ten, and nobody is guessed beyond the promise."""

from math import exp

import numpy as np
import pytest

from anonymizer.networks import load_network
from anonymizer.outputs.counts.private_counts import noise_of
from anonymizer.outputs.counts.trip_durations import N_DURATIONS
from experiments.commuter_weeks import DAY_S, commuter_weeks
from experiments.small_fleets import REPORT_S, Fleet, Published, count, publish
from experiments.trip_times import drawn_medians, guesses, main, median_of_trips, told

TEN = Fleet("ten people", 10, 28, 21_600.0, 2, trip_durations=True)
N_DRAWS = 12


@pytest.fixture(scope="module")
def town() -> tuple[float, list[Published]]:
    network = load_network("city:1000")
    trace = commuter_weeks(network, 10, n_days=TEN.n_days, every_s=REPORT_S, seed=10).trace
    counted = count(trace, network, TEN.settings)
    draws = [publish(counted, network, TEN.settings) for _ in range(N_DRAWS)]
    return median_of_trips(trace), draws


def test_intervals_hold_the_median_of_all_trips_and_waiting_makes_them_shorter(
    town: tuple[float, list[Published]],
) -> None:
    true_s, draws = town
    early, late = (told(draws, true_s, days=days) for days in (7, 28))
    assert early.n < late.n
    assert width(draws, days=28) < width(draws, days=7)
    assert early.held >= 0.9
    assert late.held >= 0.9


def test_who_knows_all_else_guesses_no_better_than_the_promise_and_always_without_noise(
    town: tuple[float, list[Published]],
) -> None:
    _, draws = town
    noise_sd, rng = noise_of(TEN.settings.counts).scale, np.random.default_rng(0)
    found = [guesses(each, noise_sd=noise_sd, rng=rng) for each in draws]
    out, which, nobody, usual, _ = np.mean(found, axis=0).tolist()
    most = exp(1) / (1 + exp(1))
    assert nobody == pytest.approx(0.5, abs=0.03)
    assert 0.55 < out <= most + 0.03
    assert 0.55 < which <= most + 0.03
    exact = draws[0]._replace(
        noisy=exact_numbers(draws[0].cell, 2), timed=exact_numbers(draws[0].duration, N_DURATIONS)
    )
    sure = guesses(exact, noise_sd=noise_sd, rng=rng)
    assert (sure.out, sure.which, sure.usual) == (1.0, 1.0, 1.0)
    assert usual < 1.0


def width(draws: list[Published], *, days: int) -> float:
    """Return how many times its lower end the upper end of an interval is, in the mean."""
    end = draws[0].counts.ends[0] + days * DAY_S
    found = [each.counts.median_duration(start=0, end=end) for each in draws]
    return float(np.mean([each.high_s / each.low_s for each in found]))


def exact_numbers(place: np.ndarray, n: int) -> np.ndarray:
    return np.stack([np.bincount(now[now >= 0], minlength=n) for now in place])


@pytest.mark.soak
def test_a_duration_that_is_added_changes_no_drawn_median_beyond_its_budget() -> None:
    """The shares of many draws, without and with one more long trip."""
    rng, epsilon, n = np.random.default_rng(1), 1.0, 40_000
    batch = np.array([300.0, 400.0, 500.0])
    shares = [
        np.histogram(drawn_medians([each] * n, epsilon=epsilon, rng=rng), bins=bins)[0] / n
        for each in (batch, np.append(batch, 9_000.0))
        for bins in ([30, 300, 400, 500, 9_000, 14_401],)
    ]
    ratio = shares[1] / shares[0]
    assert np.abs(np.log(ratio)).max() <= epsilon * 1.05


def test_the_command_prints_both_tables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.trip_times.FLEETS", [TEN._replace(n_days=14)])
    monkeypatch.setattr("experiments.trip_times.N_DRAWS", 2)
    main()
    printed = capsys.readouterr().out
    assert printed.count("| ten people | 14 |") == 2
    assert "73%" in printed

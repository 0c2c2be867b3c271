"""Answers about small fleets: right on the whole, with a promise that the attack meets."""

from math import exp

import numpy as np
import pytest

from anonymizer.networks import load_network
from experiments.commuter_weeks import commuter_weeks
from experiments.small_fleets import (
    FLEETS,
    REPORT_S,
    Fleet,
    Published,
    answers,
    count,
    main,
    mean_of,
    publish,
    secrets,
)

FIVE = Fleet("five people", 5, 14, 21_600.0, 2)
N_DRAWS = 12


@pytest.fixture(scope="module")
def draws() -> list[Published]:
    network = load_network("city:300")
    weeks = commuter_weeks(network, 5, n_days=FIVE.n_days, every_s=REPORT_S, seed=5)
    counted = count(weeks.trace, network, FIVE.settings)
    return [publish(counted, network, FIVE.settings) for _ in range(N_DRAWS)]


def test_intervals_hold_the_truth_and_four_times_the_noise_is_twice_the_error(
    draws: list[Published],
) -> None:
    found = [list(answers(FIVE, each)) for each in draws]
    assert [each.question for each in found[0]] == [
        "when they are out",
        "on which weekdays",
        "in which parts of town",
    ]
    assert np.mean([each.held for rows in found for each in rows]) >= 0.9
    [hours, *_] = zip(*found, strict=True)
    out = draws[0].cell >= 0
    # Of each quarter of the day, the mean of 14 days has the noise of 28 cells.
    expected = 4 * 1.1 * (28**0.5) / out.sum()
    assert mean_of(hours)[1] == pytest.approx(expected, rel=0.5)


def test_who_knows_all_else_is_right_as_often_as_the_promise_allows_and_always_without_noise(
    draws: list[Published],
) -> None:
    hour, chance, habit, _ = mean_of([secrets(FIVE, each) for each in draws])
    most = exp(1) / (1 + exp(1))
    assert chance == 0.5 < hour <= most + 0.03
    exact = draws[0]._replace(
        noisy=np.stack([np.bincount(now[now >= 0], minlength=2) for now in draws[0].cell])
    )
    sure = secrets(FIVE, exact)
    assert (sure.hour, sure.habit) == (1.0, 1.0)
    assert habit < 1.0


def test_the_command_prints_both_tables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.small_fleets.FLEETS", [FIVE._replace(n_days=7)])
    main()
    printed = capsys.readouterr().out
    assert printed.count("| five people |") == 4
    assert [fleet.n_devices for fleet in FLEETS] == [3, 5, 40]

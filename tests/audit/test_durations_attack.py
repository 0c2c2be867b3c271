"""How long trips take, attacked by who knows all other trips: noise that hides nobody is found."""

import numpy as np
import pytest

from anonymizer.audit import read_counts
from anonymizer.audit.attacks.durations import durations
from anonymizer.audit.counts_audit import CountsCase, audit_counts, timed_trips
from anonymizer.audit.findings import Finding
from anonymizer.audit.stream_case import reports_of
from anonymizer.domain.trace import Trace
from anonymizer.networks import load_network
from anonymizer.outputs.counts.private_counts import noise_of
from anonymizer.settings import Settings
from experiments.commuter_weeks import commuter_weeks
from experiments.small_fleets import count

NETWORK = load_network("grid:12x12")
EVERY_S, N_PEOPLE, N_DAYS = 21_600.0, 5, 21


def settings(epsilon: float = 1.0, *, timed: bool = True) -> Settings:
    counts = {"privacy": "w-event", "every_s": EVERY_S, "period_s": EVERY_S, "cells": 2}
    return Settings.model_validate(
        {"counts": {**counts, "epsilon": epsilon, "trip_durations": timed}}
    )


@pytest.fixture(scope="module")
def trace() -> Trace:
    return commuter_weeks(NETWORK, N_PEOPLE, n_days=N_DAYS, every_s=60.0, seed=1).trace


def found(trace: Trace, epsilon: float, seed: int = 0) -> Finding:
    tried = settings(epsilon)
    reports, timed = reports_of(trace, NETWORK, tried), timed_trips(trace, tried)
    (finding,) = durations(CountsCase(reports, NETWORK, tried.counts, None, timed, seed))
    return finding


def test_the_trips_are_those_that_the_gateway_counts(trace: Trace) -> None:
    counted, timed = count(trace, NETWORK, settings()), timed_trips(trace, settings())
    number = np.round(timed.end_s / EVERY_S).astype(int) - 1
    told = np.isin(number, counted.number)
    assert told.sum() == len(counted.number) >= len(number) - 2
    assert (timed.duration[:, told] == counted.duration.T).all()
    assert (timed.duration >= 0).any()


def test_noise_that_is_too_small_tells_who_went_and_for_how_long(trace: Trace) -> None:
    figures = found(trace, epsilon=40.0).figures
    assert figures["made"] == figures["which"] == figures["usual"] == 1.0
    assert figures["nobody"] == 0.5


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_no_more_is_told_than_the_budget_allows(trace: Trace, epsilon: float) -> None:
    draws = [found(trace, epsilon, seed) for seed in range(10)]
    assert all(each.holds for each in draws)
    made, nobody = (
        np.mean([float(each.figures[name] or 0.0) for each in draws]) for name in ("made", "nobody")
    )
    assert made > nobody, "something is told"
    assert nobody == pytest.approx(0.5, abs=0.05)


def test_noise_of_another_budget_than_is_promised_breaks_the_bar(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak = noise_of(settings(epsilon=40.0).counts)
    monkeypatch.setattr(read_counts, "noise_of", lambda _: weak)
    assert found(trace, epsilon=1.0).holds is False


def test_what_is_not_published_is_not_attacked(trace: Trace) -> None:
    for timed in (False, True):
        names = {each.attack for each in audit_counts(trace, NETWORK, settings(timed=timed))}
        assert ("trip durations" in names) is timed

"""Ten weeks of rides through `protect`: a home is found no better than by guessing in its cell."""

from dataclasses import replace
from math import cos, radians

import numpy as np
import pytest

from anonymizer.algorithms.positions.protection.hidden_cells import CELL_M, cells_of, shown_rows
from anonymizer.audit.foreign.attack import ForeignAttack, Trials, judged
from anonymizer.audit.foreign.attacks.trip_ends import HOLES, HOMES
from anonymizer.audit.foreign.persons import homes_of
from anonymizer.audit.foreign.release import ForeignCase, PointRelease, plane_of
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.trace import Trace
from anonymizer.networks import load_network
from experiments.commuter_weeks import commuter_weeks

ROADS = load_network("city:2000")
RIDES = replace(commuter_weeks(ROADS, 40, n_days=70, every_s=20.0, seed=4).trace, node=None)
N_GUESSES = 400


def _kept(shown: np.ndarray) -> Trace:
    return replace(
        RIDES, device_of=RIDES.device_of[shown], ts=RIDES.ts[shown], lat=RIDES.lat[shown],
        lon=RIDES.lon[shown],
    )  # fmt: skip


def _by_chance(near_m: float) -> FloatArray:
    """Return how often a guess anywhere in the cell of each home is near it, shape (persons,)."""
    plane = plane_of(RIDES)
    homes = homes_of(RIDES, plane)
    rng = np.random.default_rng(0)
    lat = plane.lat + homes[:, 1] / 111_195.08
    lon = plane.lon + homes[:, 0] / 111_195.08 / cos(radians(plane.lat))
    row = cells_of(lat, lon)[:, 0]
    height = CELL_M / 111_195.08
    width = height / np.cos(np.radians((row + 0.5) * height))
    south, west = row * height, np.floor(lon / width) * width
    along, aside = rng.random((2, N_GUESSES, len(lat)))
    guess = plane.of(south + along * height, west + aside * width)
    near: FloatArray = (np.hypot(*(guess - homes).transpose(2, 0, 1)) <= near_m).mean(axis=0)
    return near


@pytest.fixture(scope="module")
def protected() -> Trace:
    return _kept(shown_rows(RIDES))


@pytest.mark.parametrize("attack", [HOMES, HOLES], ids=lambda each: each.name)
def test_a_home_is_found_no_better_than_by_guessing_in_its_cell(
    attack: ForeignAttack, protected: Trace
) -> None:
    case = ForeignCase(PointRelease(protected, "rides"), RIDES, None)
    trials = attack.mount(case)
    assert isinstance(trials, Trials)
    chance = _by_chance(case.near_m)
    assert 0.05 < chance.mean() < 0.2
    control = np.full_like(trials.success, chance.mean())
    verdict = judged(attack, replace(trials, control=control), seed=0)
    assert verdict.n >= 35
    assert not verdict.broken, verdict


def test_the_same_attack_finds_most_homes_without_it() -> None:
    trials = HOMES.mount(ForeignCase(PointRelease(RIDES, "rides"), RIDES, None))
    assert isinstance(trials, Trials)
    assert trials.success.mean() > 0.9


def test_something_of_the_rides_is_left(protected: Trace) -> None:
    """In a town of 9 km whose rides are short; .19 when this was written."""
    assert protected.n_rows > 0.15 * RIDES.n_rows

"""Days on which it is known when somebody leaves for home: what they add up to stays bounded."""

from typing import Any

import numpy as np
import pytest

from anonymizer.audit.attacks.tracking import most_exposed_tenth
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from experiments.known_departures import Known, known_departures

CITY = load_network("city:1000")
SMALLEST = {"region": {"place_devices": 1}, "session": {"beat_s": 0}}


def found(settings: dict[str, Any]) -> Known:
    made = Settings.model_validate(settings)
    return known_departures(CITY, made, n_devices=80, n_victims=12, n_days=3, seed=3)


@pytest.mark.compiled
@pytest.mark.soak
def test_days_add_up_in_the_smallest_places_and_little_in_shared_ones() -> None:
    smallest, shared = found(SMALLEST), found({})
    assert np.array_equal(smallest.without, shared.without), "the same days"
    assert (np.diff(shared.without.mean(axis=1)) > 0).all(), "each departure tells something"
    last = shared.without[-1]
    assert smallest.with_release[-1].mean() > 3 * last.mean(), "so the attack is known to work"
    assert shared.with_release[-1].mean() <= 2 * last.mean()
    assert most_exposed_tenth(shared.with_release[-1]) <= 2 * most_exposed_tenth(last)

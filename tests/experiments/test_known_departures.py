"""Days on which it is known when somebody leaves for home: what they add up to stays bounded."""

import numpy as np

from anonymizer.app.audit.tracking_attack import most_exposed_tenth
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from experiments.known_departures import Known, known_departures

CITY = load_network("city:1000")
N_DAYS = 4


def found(**region: object) -> Known:
    settings = Settings.model_validate(
        {"region": region, "session": {"beat_s": 6 if not region else 0}}
    )
    return known_departures(CITY, settings, n_devices=100, n_victims=20, n_days=N_DAYS, seed=3)


def test_days_add_up_in_the_smallest_places_and_little_in_shared_ones() -> None:
    smallest, shared = found(place_devices=1), found()
    assert np.array_equal(smallest.without, shared.without), "the same days"
    without = shared.without[-1].mean()
    assert smallest.with_release[-1].mean() > 3 * without, "so the attack is known to work"
    assert without > shared.without[0].mean(), "and so is the control"
    assert shared.with_release[-1].mean() <= 2 * without
    assert most_exposed_tenth(shared.with_release[-1]) <= 2 * most_exposed_tenth(shared.without[-1])

"""Whoever knows the members of a group, and where they were, does not find who withdraws."""

from typing import Any

import numpy as np

from anonymizer.networks import load_network
from anonymizer.settings import Settings
from experiments.withdrawals import places_of, withdrawals

CITY = load_network("city:1000")
N, STEPS = 200, 100
SMALLEST = {"region": {"place_devices": 1, "min_nodes": 1}, "session": {"beat_s": 2}}


def beliefs(settings: dict[str, Any]) -> list[float]:
    """Return the mean beliefs in who withdraws: blind, by the attack, by the control."""
    places = places_of(CITY, N, np.arange(0.0, 2.0 * STEPS, 2.0).tolist(), seed=4)
    found = withdrawals(
        CITY,
        Settings.model_validate(settings),
        places,
        step_s=2.0,
        rng=np.random.default_rng(4),
    )
    rows = np.array(list(found))
    assert len(rows) > 40
    assert (rows[:, 1] > 0).all(), "who withdrew stays covered where it was"
    return [float(mean) for mean in rows.mean(axis=0)]


def test_who_withdraws_is_found_in_the_smallest_places_and_not_in_shared_ones() -> None:
    blind, belief, control = beliefs(SMALLEST)
    assert belief > 1.2 * blind, "so the attack is known to work"
    assert control > 2.5 * blind
    blind, belief, shared = beliefs({})
    assert belief <= 1.1 * blind
    assert shared <= 0.75 * control

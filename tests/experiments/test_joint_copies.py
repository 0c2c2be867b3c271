"""All copies of a stream read together: on one small fleet, in one run."""

import numpy as np
import pytest

from anonymizer.networks import load_network
from anonymizer.outputs.late_density import EVERY_S
from anonymizer.settings import Settings
from experiments.joint_copies import AT_S, COPIES, READERS, TRUSTS, Joint, attack, shifted, weights
from experiments.tracking_experiment import drive
from experiments.where_experiment import Scene

CITY = load_network("city:400")
N = 80


@pytest.fixture(scope="module")
def found() -> dict[str, Joint]:
    trace, other, trained = (drive(CITY, N, seconds=600, seed=seed) for seed in (1, 2, 3))
    scene = Scene(trace, other, np.ones(N, bool), trained)
    settings = Settings.model_validate({"counts": {"cells": 64}})
    return attack(scene, CITY, settings, n_targets=40, seed=0)


def test_a_trace_is_moved_to_where_its_copy_is_made_while_it_is_followed() -> None:
    trace = shifted(drive(CITY, 2, seconds=3, seed=1))
    assert (trace.ts[0] + AT_S) % EVERY_S == 0
    assert np.ptp(trace.ts) == 2.0


def test_a_cell_counts_by_how_much_more_it_holds_than_usual() -> None:
    weight = weights(np.array([3.0, 1.0]), np.array([0.25, 0.25, 0.5]), np.array([0, 0, 1]))
    assert weight == pytest.approx([1.5, 1.5, 0.5])


@pytest.mark.soak
def test_all_copies_together_tell_at_most_a_tenth_more_than_the_finest(
    found: dict[str, Joint],
) -> None:
    for reader in ("followed", "hindsight"):
        assert max(found[reader].added("copy")) <= 1.1, reader


@pytest.mark.soak
def test_the_copy_is_what_its_partners_can_reckon_by_themselves(found: dict[str, Joint]) -> None:
    for joint in found.values():
        for trust in TRUSTS:
            by_itself, by_copy = (joint.with_copy[each, trust] for each in COPIES[:2])
            assert by_copy == pytest.approx(by_itself, rel=0.1)


@pytest.mark.soak
def test_a_copy_of_more_than_was_published_would_be_noticed(found: dict[str, Joint]) -> None:
    assert set(found) == set(READERS)
    for reader in READERS:
        assert set(found[reader].with_copy) == {(copy, t) for copy in COPIES for t in TRUSTS}
        assert found[reader].added("control")[0] > 1.1

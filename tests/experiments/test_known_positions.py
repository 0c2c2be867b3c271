"""Linking by known positions, on cases counted by hand."""

import numpy as np
import pytest

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.mathematics.evidence import SLIP
from experiments.known_positions import likelihood_of_regions, linked

NEVER = -np.inf


def test_the_likeliest_name_is_guessed_and_equals_share_the_guess() -> None:
    likelihood = np.array([[0.0, -1.0, -2.0], [0.0, 0.0, -2.0], [0.0, -1.0, -1.0]])
    target = np.array([[True, False, False], [False, True, False], [False, True, False]])
    assert linked(likelihood, target) == pytest.approx((1 + 1 / 2 + 0) / 3)


def test_a_device_without_a_name_is_not_found() -> None:
    assert linked(np.array([[NEVER, NEVER]]), np.array([[False, True]])) == 0
    assert linked(np.array([[NEVER, -3.0]]), np.array([[True, False]])) == 0


def test_regions_are_likely_if_they_cover_the_known_positions_and_are_small() -> None:
    # Regions: nodes 0 and 1; nodes 2 and 3; all four. Three pseudonyms with a record of each.
    observed = Observed(
        time=np.zeros(1),
        first_record_of=np.arange(4),
        tick_of=np.zeros(3, np.int64),
        region_of=np.arange(3),
        k=np.ones(3, np.int64),
        first_node_of=np.array([0, 2, 4, 8]),
        node=np.array([0, 1, 2, 3, 0, 1, 2, 3], np.int32),
    )
    known = np.array([[0, 1]])
    always = np.array([[[0, 1, 2], [0, 1, 2]]])
    found = likelihood_of_regions(observed, always, known, n_nodes=4)
    assert found[0] == pytest.approx(2 * np.log([1 / 2, SLIP / 4, 1 / 4]))
    # The second is not in use at first; the first one has ended at the second known time.
    changing = np.array([[[0, -1, 2], [-1, 1, 2]]])
    found = likelihood_of_regions(observed, changing, known, n_nodes=4)
    assert found[0].tolist() == pytest.approx([np.log(1 / 8), NEVER, np.log(1 / 16)])

"""Posterior probabilities: exact shares against brute force, balanced shares against exact ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.posterior import balanced_shares, exact_shares, log_states
from anonymizer.domain.arrays import BoolArray, IntArray
from tests.audit.mathematics import naive


def possible(seed: int) -> tuple[BoolArray, IntArray]:
    """Return random allowed pairs and capacities for which an assignment exists."""
    rng = np.random.default_rng(seed)
    capacity = rng.integers(1, 3, size=int(rng.integers(1, 4)))
    home = rng.permutation(np.repeat(np.arange(len(capacity)), capacity))
    allowed = rng.random((len(home), len(capacity))) < 0.4
    allowed[np.arange(len(home)), home] = True
    return allowed, capacity


@given(st.integers(0, 10_000))
def test_exact_shares_count_every_assignment(seed: int) -> None:
    allowed, capacity = possible(seed)
    np.testing.assert_allclose(exact_shares(allowed, capacity), naive.shares(allowed, capacity))


@given(st.integers(0, 10_000))
def test_balanced_shares_fill_every_row_and_assign_every_device_once(seed: int) -> None:
    allowed, capacity = possible(seed)
    exact = naive.shares(allowed, capacity)
    device, row = np.nonzero(exact)
    share = balanced_shares(row, device, capacity)
    np.testing.assert_allclose(np.bincount(device, share), 1.0, atol=1e-6)
    np.testing.assert_allclose(np.bincount(row, share), capacity, atol=1e-6)
    # Balancing flattens the exact shares; it never turns a half into a certainty.
    assert np.abs(share - exact[device, row]).max() < 0.2


def test_if_every_pair_is_possible_all_shares_are_equal() -> None:
    allowed, capacity = np.ones((6, 3), bool), np.array([3, 2, 1])
    device, row = np.nonzero(allowed)
    expected = np.tile(capacity / 6, (6, 1))
    np.testing.assert_allclose(exact_shares(allowed, capacity), expected)
    np.testing.assert_allclose(
        balanced_shares(row, device, capacity), expected[device, row], atol=1e-6
    )


@pytest.mark.parametrize("capacity", [[1], [2, 3], [4, 1, 1]])
def test_the_number_of_states_is_that_of_all_fill_levels(capacity: list[int]) -> None:
    assert np.exp(log_states(np.array(capacity))) == pytest.approx(np.prod(np.add(capacity, 1)))

"""Attacks on counts: trajectories far apart are recovered; counts that say nothing tell nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.audit.mathematics.aggregates import (
    _off_habit,
    membership_auc,
    recover_trajectories,
    recovered_share,
)
from anonymizer.domain.arrays import IntArray

N_CELLS = 12
X_M, Y_M = np.linspace(0.0, 1100.0, N_CELLS), np.zeros(N_CELLS)


def counted(cell: IntArray) -> IntArray:
    return np.stack([np.bincount(now[now >= 0], minlength=N_CELLS) for now in cell.T])


def test_devices_that_go_their_ways_are_recovered_from_their_counts() -> None:
    there_and_back = np.array([[0, 1, 2, 3], [11, 10, 9, 8], [5, 5, 5, 5]])
    found = recover_trajectories(counted(there_and_back), X_M, Y_M)
    assert sorted(found.tolist()) == sorted(there_and_back.tolist())
    assert recovered_share(found, there_and_back) == 1
    guessed = recover_trajectories(counted(there_and_back), X_M, Y_M, rng=np.random.default_rng(0))
    assert recovered_share(guessed, there_and_back) < 1


def test_a_device_that_is_no_longer_counted_stays_on_its_trajectory() -> None:
    cell = np.array([[0, 0, 0], [9, -1, 9]])
    found = recover_trajectories(counted(cell), X_M, Y_M)
    assert found.tolist() == [[0, 0, 0], [9, 9, 9]]
    assert recovered_share(found, cell) == 1


def test_the_same_counts_everywhere_recover_what_chance_recovers() -> None:
    rng = np.random.default_rng(3)
    cell = rng.integers(0, N_CELLS, (24, 30))
    flat = np.full((30, N_CELLS), 2)
    found = recovered_share(recover_trajectories(flat, X_M, Y_M), cell)
    chance = recovered_share(recover_trajectories(flat, X_M, Y_M, rng=rng), cell)
    assert found == pytest.approx(chance, abs=0.05)


def test_a_turn_that_was_made_before_is_expected_again() -> None:
    """From cell 0 the first has gone to 1. The next comes from 2, and seems to go on to 3."""
    x_m = np.array([0.0, 1000, -100, 100, 100])
    y_m = np.array([0.0, 1000, 0, 0, 500])
    cell = np.array([[0, 1, 1, 1, 1], [2, 2, 2, 0, 1], [4, 4, 4, 4, 3]])
    counts = np.stack([np.bincount(now, minlength=5) for now in cell.T])
    by_velocity, by_habit = (
        recovered_share(recover_trajectories(counts, x_m, y_m, habits=habits), cell)
        for habits in (False, True)
    )
    assert by_velocity < by_habit == 1


def test_habits_are_the_most_frequent_next_cells() -> None:
    went = np.zeros((N_CELLS, N_CELLS), np.int64)
    went[4, [3, 5, 7]] = 2, 2, 1
    off = _off_habit(went, np.abs(np.subtract.outer(X_M, X_M)))
    assert off[4].tolist() == pytest.approx(
        [300, 200, 100, 0, 100, 0, 100, 200, 300, 400, 500, 600]
    )
    assert np.isinf(off[np.arange(N_CELLS) != 4]).all()


@settings(max_examples=20)
@given(st.lists(st.lists(st.integers(-1, 3), min_size=3, max_size=3), min_size=2, max_size=4))
def test_every_count_is_on_a_trajectory_while_there_are_devices_for_it(
    said: list[list[int]],
) -> None:
    cell = np.array(said)
    found = recover_trajectories(counted(cell), X_M, Y_M)
    n = counted(cell)
    for t in range(3):
        on = np.bincount(found[:, t], minlength=N_CELLS)
        assert n[t].sum() > len(found) or (on >= n[t]).all()


def test_membership_is_certain_in_exact_counts_of_a_place_where_nobody_else_is() -> None:
    rng = np.random.default_rng(4)
    is_in = rng.random(80) < 0.5
    own = is_in[:, None] * np.ones((80, 3))
    assert membership_auc(own, is_in) == 1
    crowd = own + rng.poisson(400.0, own.shape)
    assert 0.3 < membership_auc(crowd, is_in) < 0.7
    assert membership_auc(np.full((80, 3), 7.0), is_in) == 0.5

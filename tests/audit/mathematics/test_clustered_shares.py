"""Shares of cases in groups: what they are worth, and whether intervals hold the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.clustered_shares import n_independent
from anonymizer.audit.stream_summary import wilson
from anonymizer.domain.arrays import BoolArray, IntArray


def drawn(rng: np.random.Generator, *, p: float, alike: float) -> tuple[BoolArray, IntArray]:
    """Return cases in 60 groups of 4 to 12; so many of each group do as its first one does."""
    group = np.repeat(np.arange(60), rng.integers(4, 13, 60))
    own, first = rng.random(len(group)) < p, rng.random(60) < p
    return np.where(rng.random(len(group)) < alike, first[group], own), group


@pytest.mark.parametrize("p", [0.1, 0.5])
@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0])
def test_the_interval_of_95_percent_holds_the_truth_in_so_many_draws(
    p: float, alike: float
) -> None:
    rng, held, naive, n_draws = np.random.default_rng(1), 0, 0, 1000
    for _ in range(n_draws):
        value, group = drawn(rng, p=p, alike=alike)
        low, high = wilson(float(value.mean()), n_independent(value, group))
        held += low <= p <= high
        low, high = wilson(float(value.mean()), len(value))
        naive += low <= p <= high
    assert held / n_draws >= 0.93
    if alike == 1.0:
        assert naive / n_draws < 0.65, "cases of a group are no independent ones"


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.integers(0, 1000))
def test_they_are_worth_one_to_all_and_no_more_by_two_groupings(of: list[int], seed: int) -> None:
    group = np.array(of)
    value = np.random.default_rng(seed).random(len(group)) < 0.5
    alone = np.arange(len(group))
    n = n_independent(value, group)
    assert 1 <= n <= len(group) + 1e-9
    assert n_independent(value, alone) == pytest.approx(len(group))
    assert n_independent(value, alone, group) <= n


def test_where_all_are_equal_a_group_is_one_case() -> None:
    assert n_independent(np.ones(30, bool), np.repeat(np.arange(3), 10)) == pytest.approx(3)
    assert n_independent(np.zeros(0, bool), np.zeros(0, np.int64)) == 0

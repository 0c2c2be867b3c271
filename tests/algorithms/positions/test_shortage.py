"""Whether enough devices are present for any group."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.adka import DensityRule, Shortage, shortage
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.networks import load_network

GRID = load_network("grid:6x6")
RULE = DensityRule()


def standing(nodes: list[int]) -> DensityMap:
    density = DensityMap.empty(GRID)
    n = len(nodes)
    density.advance(np.arange(n, dtype=np.int32), np.zeros(n), np.array(nodes, np.int32))
    return density


def test_three_devices_are_too_few_for_the_ten_that_a_sparse_place_needs() -> None:
    assert shortage(standing([0, 14, 35]), RULE) == Shortage(3, 10)
    assert shortage(standing([0, 14, 35]), RULE, k_extra=2) == Shortage(3, 12)
    assert shortage(standing([]), RULE) is None


def test_five_who_stand_together_are_enough_and_five_far_apart_are_not() -> None:
    assert shortage(standing([14, 14, 14, 14, 14]), RULE) is None
    assert shortage(standing([0, 5, 14, 30, 35]), RULE) == Shortage(5, 10)


@given(st.lists(st.integers(0, 35), max_size=14), st.integers(0, 2))
def test_there_is_a_shortage_where_no_choice_of_devices_makes_a_group(
    nodes: list[int], k_extra: int
) -> None:
    density = standing(nodes)
    ks = sorted(int(RULE.beyond(density.n_near[[node]], k_extra)[0]) + k_extra for node in nodes)
    enough = any(sum(k <= most for k in ks) >= most for most in ks)
    assert (shortage(density, RULE, k_extra=k_extra) is None) == (enough or not nodes)

"""Reachability against a naive twin, and the velocity attack on releases made by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.reachability import (
    new_spread,
    roads_of,
    spread_from,
    surviving_share,
)
from tests.audit.mathematics import naive
from tests.audit.mathematics.made import CITY, GRID, observed_of
from tests.graphs import two_islands

BLOCK_S = float(roads_of(GRID).seconds[0])
"""Driving time of every road of the grid."""


@given(
    st.lists(st.integers(0, CITY.n_nodes - 1), min_size=1, max_size=4, unique=True),
    st.floats(0, 60),
)
def test_reach_is_the_shortest_drive_between_the_middles_of_roads(
    sources: list[int], budget_s: float
) -> None:
    search = new_spread(CITY.n_nodes)
    roads, expected = roads_of(CITY), naive.reach_s(naive.graph_of(CITY), sources)
    spread_from(roads, search, np.arange(3, dtype=np.int32), 100.0)  # must leave no marks
    spread_from(roads, search, np.array(sources, np.int32), budget_s)
    for v in range(CITY.n_nodes):
        if expected[v] <= budget_s - 1e-9:
            assert search.reach_s[v] == pytest.approx(expected[v])
        elif expected[v] > budget_s + 1e-9:
            assert search.reach_s[v] == np.inf


def test_no_road_leads_to_another_component() -> None:
    network = two_islands()
    search = new_spread(network.n_nodes)
    spread_from(roads_of(network), search, np.array([0], np.int32), 1e9)
    same = network.component_of == network.component_of[0]
    np.testing.assert_array_equal(np.isfinite(search.reach_s), same)


def test_a_node_survives_if_it_is_reachable_from_the_previous_and_to_the_next_region() -> None:
    # The first row of the grid; within a second a device can only reach the next node.
    lines = [(0, 0, (0, 1, 2, 3, 4), 2), (0, 1, (1,), 2), (0, 2, (0, 1, 2, 3), 2)]
    share = surviving_share(observed_of(lines), GRID)
    assert BLOCK_S > 1
    assert share.tolist() == [3 / 5, 1, 3 / 4]


def test_with_enough_time_every_node_survives() -> None:
    lines = [(0, 0, (0, 19), 2), (0, 1_000, (4, 15), 2)]
    assert surviving_share(observed_of(lines), GRID).tolist() == [1, 1]


def test_after_a_device_broke_the_speed_limit_the_whole_region_survives() -> None:
    lines = [(0, 0, (0,), 2), (0, 1, (18, 19), 2), (0, 2, (18, 13), 2)]
    assert surviving_share(observed_of(lines), GRID).tolist() == [1, 1, 1]


def test_if_forward_and_backward_search_contradict_each_other_nothing_is_ruled_out() -> None:
    # Only 1 can be reached from 0, only 3 leads to 4: no node of the middle region does both.
    lines = [(0, 0, (0,), 2), (0, 1, (1, 3), 2), (0, 2, (4,), 2)]
    assert surviving_share(observed_of(lines), GRID).tolist() == [1, 1, 1]


def test_pseudonyms_are_followed_separately() -> None:
    lines = [(0, 0, (0,), 2), (1, 1, (19, 4), 2)]
    assert surviving_share(observed_of(lines), GRID).tolist() == [1, 1]

"""The centre and prefix attacks against naive twins, and the density leak."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.region_center import (
    band_accuracy,
    centres,
    guess_success,
    prefix_roots,
    success_by_traffic,
)
from anonymizer.domain.network import RoadNetwork
from tests.audit.mathematics import naive
from tests.audit.mathematics.made import CITY, GRID, observed_of, random_release


@given(st.integers(0, 10_000))
def test_the_centres_are_the_nodes_with_the_smallest_eccentricity_within_the_region(
    seed: int,
) -> None:
    observed = random_release(seed).observed
    suspect = centres(observed, GRID, regions=np.arange(observed.n_regions))
    graph = naive.graph_of(GRID)
    for r in range(observed.n_regions):
        slots = slice(*observed.first_node_of[r : r + 2])
        region = tuple(observed.node[slots].tolist())
        assert set(observed.node[slots][suspect[slots]].tolist()) == naive.centres(graph, region)


@pytest.mark.parametrize("network", [GRID, CITY], ids=["grid", "city"])
@given(seed=st.integers(0, 10_000))
def test_the_centres_of_grown_regions_are_found_despite_skipped_searches(
    network: RoadNetwork, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    root, n = rng.integers(network.n_nodes, size=2).tolist()
    region = tuple(naive.breadth_first(network, root)[: n + 1])
    observed = observed_of([(0, 0, region, 2)])
    suspect = centres(observed, network, regions=np.array([0]))
    assert set(observed.node[suspect].tolist()) == naive.centres(naive.graph_of(network), region)


@pytest.mark.parametrize("network", [GRID, CITY], ids=["grid", "city"])
@given(seed=st.integers(0, 10_000))
def test_a_root_is_suspected_if_its_breadth_first_order_begins_with_the_region(
    network: RoadNetwork, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    root, n = int(rng.integers(network.n_nodes)), int(rng.integers(1, 12))
    grown = naive.breadth_first(network, root)[:n]
    spoilt = [*grown[:-1], *rng.permutation(network.n_nodes).tolist()]
    lines = [(0, t, tuple(dict.fromkeys(r[:n])), 2) for t, r in enumerate([grown, spoilt])]
    observed = observed_of(lines)
    suspect = prefix_roots(observed, network, regions=np.arange(observed.n_regions))
    for _, t, region, _ in lines:
        r = observed.region_of[t]
        slots = slice(*observed.first_node_of[r : r + 2])
        found = set(observed.node[slots][suspect[slots]].tolist())
        assert found == naive.prefix_roots(network, region)
    assert suspect[observed.node == root].any()


def test_a_region_that_is_the_whole_network_may_have_grown_from_any_node() -> None:
    whole = observed_of([(0, 0, tuple(range(GRID.n_nodes)), 2)])
    assert prefix_roots(whole, GRID, regions=np.array([0])).all()


def test_regions_that_are_not_attacked_have_no_suspects() -> None:
    observed = observed_of([(0, 0, (1, 2), 2), (0, 1, (0, 5), 2)])
    for attack in (centres, prefix_roots):
        suspect = attack(observed, GRID, regions=np.array([1]))
        assert not suspect[:2].any()
        assert suspect[2:].any()


@pytest.mark.parametrize(
    ("suspect", "node", "chance"),
    [
        ([True, False, False, False], 3, 1.0),
        ([True, True, False, False], 4, 0.5),
        ([True, True, False, False], 5, 0.0),
        ([False, False, False, False], 5, 0.25),
        ([True, True, True, True], 9, 0.0),
        ([False, False, False, False], 9, 0.0),
    ],
)
def test_suspects_are_guessed_with_equal_probability_and_all_nodes_if_there_are_none(
    suspect: list[bool], node: int, chance: float
) -> None:
    observed = observed_of([(0, 0, (3, 4, 5, 6), 2)])
    guessed = guess_success(
        observed, np.array(suspect), region=np.array([0]), node=np.array([node], np.int32)
    )
    assert guessed.tolist() == [chance]


@pytest.mark.parametrize(
    ("device", "suspect", "chance"),
    [
        # The others are at 3 three times, at 4 once, and at 9 outside.
        (0, [True, False, False], 3 / 4),
        (0, [True, True, False], 1 / 2),
        (0, [False, False, False], 1 / 3),
        # Nobody but device 1 was ever at 4.
        (1, [False, True, False], 0.0),
    ],
)
def test_a_guess_is_right_by_traffic_as_often_as_others_were_at_the_suspects(
    device: int, suspect: list[bool], chance: float
) -> None:
    observed = observed_of([(0, 0, (3, 4, 5), 2)])
    place = np.array([[5, 3, 9], [5, 3, -1], [5, 4, 3]], np.int32)
    found = success_by_traffic(
        observed, np.array(suspect), place, region=np.zeros(2, int), device=np.array([device, 2])
    )
    assert found[0] == pytest.approx(chance)


def test_where_no_other_device_ever_was_all_nodes_are_equally_likely() -> None:
    observed = observed_of([(0, 0, (3, 4, 5, 6), 2)])
    place, suspect = np.array([[3, 9]], np.int32), np.array([True, False, False, False])
    region, device = np.zeros(1, np.int64), np.zeros(1, np.int64)
    found = success_by_traffic(observed, suspect, place, region=region, device=device)
    assert found.tolist() == [0.25]


HALF = np.tile([0, 1], 50)


def test_a_different_size_for_each_band_reveals_the_band() -> None:
    band = np.repeat([0, 1, 2, 2], 25)
    assert band_accuracy(10 + band, band, HALF) == 1.0
    assert band_accuracy(np.zeros(100, np.int64), band, HALF) == pytest.approx(0.5)


def test_the_band_of_a_record_is_not_guessed_from_the_record_itself() -> None:
    # Every record has its own size: memorized it would reveal all, across the halves nothing.
    band = np.repeat([0, 1], 50)
    assert band_accuracy(np.arange(100), band, HALF) == pytest.approx(0.5)


def test_a_size_that_was_not_learned_is_guessed_as_the_most_frequent_band() -> None:
    size, band = np.array([1, 1, 1, 2]), np.array([1, 1, 1, 1])
    assert band_accuracy(size, band, np.array([0, 1, 0, 1])) == 1.0


def test_without_records_there_is_no_accuracy() -> None:
    nothing = np.zeros(0, np.int64)
    assert band_accuracy(nothing, nothing, nothing) is None

"""The search for privacy zones against naive twins, and on releases with known zones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.zone_search import (
    GuessedPlaces,
    error_radii,
    find_drops,
    find_ends,
    find_holes,
    find_vanishing,
    n_covering,
)
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from tests.audit.mathematics import naive_zone_search as naive
from tests.audit.mathematics.made import CITY, GRID, Line, observed_of, random_release
from tests.audit.mathematics.naive import graph_of

TOWN = load_network("grid:15x15")
CENTRE = 7 * 15 + 7
SEEDS = st.integers(0, 10_000)


def ring(network: RoadNetwork, centre: int) -> tuple[set[int], set[int]]:
    """Return the nodes within one step of a node, and those that are two steps away."""
    graph = graph_of(network)
    inside = {centre, *graph[centre]}
    return inside, {w for v in inside for w in graph[v]} - inside


def metres_from(guess: GuessedPlaces, node: int, network: RoadNetwork) -> float:
    """Return the distance of the first guess from a node."""
    at = network.lat[[node]], network.lon[[node]]
    return float(error_radii(GuessedPlaces(guess.lat[:1], guess.lon[:1]), *at, np.ones(1))[0])


@given(SEEDS)
def test_coverage_counts_each_region_once_for_each_instant(seed: int) -> None:
    made = random_release(seed)
    found = n_covering(made.observed, GRID.n_nodes)
    assert found.tolist() == naive.n_covering(made.lines, GRID.n_nodes)


@pytest.mark.parametrize("network", [GRID, CITY], ids=["grid", "city"])
@given(seed=SEEDS, n=st.integers(0, 4), seldom=st.sampled_from([0.0, 0.3, 0.8]))
def test_holes_are_found_as_by_the_naive_twin(
    network: RoadNetwork, seed: int, n: int, seldom: float
) -> None:
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, 6, network.n_nodes) * (rng.random(network.n_nodes) < 0.5)
    covering = drawn.astype(np.float64)
    found = find_holes(covering, network, n=n, seldom=seldom)
    expected = naive.holes(covering.tolist(), network, n, seldom)
    assert len(found.lat) == len(expected)
    for lat, lon, hole in zip(found.lat, found.lon, map(list, expected), strict=True):
        assert lat == pytest.approx(network.lat[hole].mean(), abs=1e-12)
        assert lon == pytest.approx(network.lon[hole].mean(), abs=1e-12)


@given(SEEDS, st.integers(0, 3))
def test_somebody_appears_after_silence_and_vanishes_before_it(seed: int, silent_s: int) -> None:
    made = random_release(seed)
    identity_of = np.random.default_rng(seed).integers(0, 3, made.observed.n_pseudonyms)
    ends = find_ends(made.observed, identity_of, silent_s=silent_s)
    found = {
        (int(p), int(made.observed.time[t]))
        for p, t in zip(made.observed.pseudonym_of[ends], made.observed.tick_of[ends], strict=True)
    }
    assert found == naive.ends(made.lines, identity_of.tolist(), silent_s)


@given(SEEDS, st.floats(50.0, 400.0))
def test_the_place_where_most_vanish_is_found_as_by_the_naive_twin(
    seed: int, radius_m: float
) -> None:
    made = random_release(seed)
    rng = np.random.default_rng(seed)
    ends = rng.random(made.observed.n_records) < 0.4
    ending = {
        (int(p), int(made.observed.time[t]))
        for p, t in zip(made.observed.pseudonym_of[ends], made.observed.tick_of[ends], strict=True)
    }
    found = find_vanishing(made.observed, ends, GRID, radius_m=radius_m, n=1)
    expected = naive.first_vanishing(made.lines, ending, GRID, radius_m)
    assert bool(len(found.lat)) == bool(expected)
    if expected:
        guess = (found.lat[0], found.lon[0])
        assert any(guess == pytest.approx(each, abs=1e-12) for each in expected)


@given(SEEDS, st.floats(50.0, 400.0))
def test_the_place_that_has_lost_most_is_found_as_by_the_naive_twin(
    seed: int, radius_m: float
) -> None:
    now, before = random_release(seed), random_release(seed + 1)
    expected = naive.first_drop(now.lines, before.lines, GRID, radius_m)
    found = find_drops(now.observed, before.observed, GRID, radius_m=radius_m, n=1)
    if expected:
        assert any(metres_from(found, v, GRID) < 1e-3 for v in expected)


def test_a_zone_is_found_where_less_is_published_than_before() -> None:
    inside, _ = ring(TOWN, CENTRE)
    everywhere: list[Line] = [(v, 0, (v,), 2) for v in range(TOWN.n_nodes)]
    thinned = [line for line in everywhere if line[0] not in inside or line[0] == CENTRE]
    step_m = float(TOWN.length_m.mean())
    guess = find_drops(
        observed_of(thinned), observed_of(everywhere), TOWN, radius_m=1.05 * step_m, n=2
    )
    assert metres_from(guess, CENTRE, TOWN) == pytest.approx(0, abs=1e-3)
    assert not len(
        find_drops(observed_of(thinned), observed_of(thinned), TOWN, radius_m=step_m, n=1).lat
    )


def test_a_hole_in_busy_streets_is_found_and_the_quiet_edge_of_the_town_is_not() -> None:
    inside, _ = ring(TOWN, CENTRE)
    covering = np.full(TOWN.n_nodes, 10.0)
    covering[list(inside)] = 0
    covering[:60] = 0  # four rows at the edge, beyond a row that is seldom covered
    covering[60:75] = 1
    best = find_holes(covering, TOWN, n=1)
    assert metres_from(best, CENTRE, TOWN) == pytest.approx(0, abs=1e-3)


def test_a_zone_covered_now_and_then_is_found_as_a_place_seldom_covered() -> None:
    inside, _ = ring(TOWN, CENTRE)
    covering = np.full(TOWN.n_nodes, 100.0)
    covering[list(inside)] = 2
    assert not len(find_holes(covering, TOWN, n=1).lat)
    seldom = find_holes(covering, TOWN, n=1, seldom=0.05)
    assert metres_from(seldom, CENTRE, TOWN) == pytest.approx(0, abs=1e-3)


def test_a_release_that_covers_all_nodes_alike_has_no_hole() -> None:
    whole = observed_of([(0, 0, tuple(range(TOWN.n_nodes)), 2)])
    covering = n_covering(whole, TOWN.n_nodes)
    assert not len(find_holes(covering, TOWN, n=3, seldom=0.2).lat)


def test_a_zone_is_found_from_the_places_where_devices_vanish_around_it() -> None:
    rng = np.random.default_rng(4)
    inside, border = ring(TOWN, CENTRE)
    streets = [v for v in range(TOWN.n_nodes) if v not in inside]
    lines: list[Line] = []
    for pseudonym, last in enumerate(sorted(border) * 3):
        lines += [(pseudonym, t, (int(rng.choice(streets)),), 2) for t in range(20)]
        lines.append((pseudonym, 20, (last,), 2))
    lines.append((len(border) * 3, 60, (0,), 2))
    observed = observed_of(lines)
    ends = find_ends(observed, np.arange(observed.n_pseudonyms), silent_s=5)
    step_m = float(TOWN.length_m.mean())
    guess = find_vanishing(observed, ends, TOWN, radius_m=1.05 * step_m, n=1)
    assert metres_from(guess, CENTRE, TOWN) < step_m


def test_nobody_vanishes_at_the_beginning_and_the_end_of_the_release() -> None:
    whole = observed_of([(p, t, (p,), 2) for p in range(4) for t in range(30)])
    assert not find_ends(whole, np.arange(4), silent_s=3).any()


def test_nothing_is_guessed_where_nobody_vanishes() -> None:
    whole = observed_of([(p, t, (p,), 2) for p in range(4) for t in range(30)])
    none = np.zeros(whole.n_records, bool)
    assert not len(find_vanishing(whole, none, GRID, radius_m=100, n=3).lat)
    error = error_radii(
        GuessedPlaces(np.zeros(0), np.zeros(0)), np.zeros(2), np.zeros(2), np.ones(2)
    )
    assert np.isinf(error).all()


def test_an_error_is_the_distance_to_the_nearest_guess_in_radii() -> None:
    guess = GuessedPlaces(np.array([0.0, 0.01]), np.array([0.0, 0.0]))
    error = error_radii(guess, np.array([0.0101]), np.array([0.0]), np.array([10.0]))
    assert error == pytest.approx([0.0001 * 111_195 / 10], rel=1e-3)


def test_guesses_show_no_place() -> None:
    assert repr(GuessedPlaces(np.array([47.1]), np.array([8.2]))) == "GuessedPlaces(...)"

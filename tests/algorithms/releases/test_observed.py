"""The observed release: properties of pseudonyms and regions, and the extent of a region."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.releases.observed import extent_m, n_distinct_in
from tests.audit.mathematics.made import CITY, observed_of, random_release

pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)))
regions = st.lists(st.integers(0, CITY.n_nodes - 1), min_size=1, max_size=9, unique=True)


def test_properties_of_a_pseudonym_follow_from_its_records() -> None:
    observed = observed_of([(0, 5, (1, 2), 3), (0, 7, (4,), 2), (1, 7, (1, 2), 9)])
    assert (observed.n_records, observed.n_pseudonyms, observed.n_regions) == (3, 2, 2)
    assert observed.time.tolist() == [5, 7]
    assert observed.pseudonym_of.tolist() == [0, 0, 1]
    assert observed.first_tick_of.tolist() == [0, 1]
    assert observed.last_tick_of.tolist() == [1, 1]
    assert observed.largest_k_of.tolist() == [3, 9]
    assert observed.region_size.tolist() == [2, 1]


@given(st.integers(0, 10_000))
def test_chosen_pseudonyms_keep_their_records_in_the_chosen_order(seed: int) -> None:
    observed = random_release(seed).observed
    chosen = np.random.default_rng(seed).permutation(observed.n_pseudonyms)[:2]
    some = observed.of_pseudonyms(chosen)
    assert some.n_pseudonyms == len(chosen)
    rows = [row for p in chosen for row in np.flatnonzero(observed.pseudonym_of == p)]
    for field in ("tick_of", "region_of", "k"):
        np.testing.assert_array_equal(getattr(some, field), getattr(observed, field)[rows])
    np.testing.assert_array_equal(chosen[some.pseudonym_of], observed.pseudonym_of[rows])


@given(pairs)
def test_an_identity_counts_once_in_a_group_however_often_it_appears(
    members: list[tuple[int, int]],
) -> None:
    group, identity = np.array(members, np.int64).reshape(-1, 2).T
    expected = [len({i for g, i in members if g == group}) for group in range(4)]
    assert n_distinct_in(group, identity, 4).tolist() == expected


def test_the_repr_of_a_release_and_of_the_truth_shows_no_place() -> None:
    made = random_release(1)
    for thing in (made.observed, made.truth):
        assert "array" not in repr(thing)


@given(regions)
def test_the_extent_is_the_largest_distance_between_two_nodes(region: list[int]) -> None:
    lat, lon = CITY.lat[region], CITY.lon[region]
    largest_m = haversine_m(lat[:, None], lon[:, None], lat, lon).max()
    extent = extent_m(observed_of([(0, 0, tuple(region), 2)]), CITY)[0]
    assert 0.994 * largest_m <= extent <= 1.001 * largest_m


def test_the_extent_is_the_same_across_the_date_line() -> None:
    observed = observed_of([(0, 0, tuple(range(CITY.n_nodes)), 2)])
    moved = replace(CITY, lon=(CITY.lon - CITY.lon.mean() + 180 + 180) % 360 - 180)
    np.testing.assert_allclose(extent_m(observed, moved), extent_m(observed, CITY), rtol=5e-3)


def test_without_coordinates_there_is_no_extent() -> None:
    nowhere = np.full(CITY.n_nodes, np.nan)
    network = replace(CITY, lat=nowhere, lon=nowhere)
    assert np.isnan(extent_m(observed_of([(0, 0, (1, 2), 2)]), network)).all()

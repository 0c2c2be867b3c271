import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.attacks.observed import n_distinct_in
from tests.algorithms.attacks.made import observed_of, random_release

pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)))


def test_what_is_known_of_a_pseudonym_is_read_off_its_records() -> None:
    observed = observed_of([(0, 5, (1, 2), 3), (0, 7, (4,), 2), (1, 7, (1, 2), 9)])
    assert (observed.n_records, observed.n_pseudonyms, observed.n_regions) == (3, 2, 2)
    assert observed.time.tolist() == [5, 7]
    assert observed.pseudonym_of.tolist() == [0, 0, 1]
    assert observed.first_tick_of.tolist() == [0, 1]
    assert observed.last_tick_of.tolist() == [1, 1]
    assert observed.largest_k_of.tolist() == [3, 9]
    assert observed.region_size.tolist() == [2, 1]


@given(st.integers(0, 10_000))
def test_the_records_of_some_pseudonyms_are_theirs_in_the_order_asked_for(seed: int) -> None:
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


def test_neither_observation_nor_truth_tells_a_place_when_it_is_printed() -> None:
    made = random_release(1)
    for thing in (made.observed, made.truth):
        assert "array" not in repr(thing)

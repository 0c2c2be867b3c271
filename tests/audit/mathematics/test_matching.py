"""The matching attack: marginals against brute force, and beliefs on releases made by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.mathematics.intersection import Bits
from anonymizer.audit.mathematics.matching import (
    NOBODY,
    Matching,
    match,
    meeting_ticks,
    shares_of,
)
from tests.audit.mathematics import naive
from tests.audit.mathematics.made import observed_of

lives = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=8)


@given(lives)
def test_every_life_contains_a_meeting_tick_and_no_fewer_ticks_would_do(
    drawn: list[tuple[int, int]],
) -> None:
    first = np.array([start for start, _ in drawn])
    last = first + np.array([length for _, length in drawn])
    ticks = np.array(meeting_ticks(first, last))
    assert ((first[:, None] <= ticks) & (ticks <= last[:, None])).any(axis=1).all()
    # Lives that do not overlap need a meeting tick each.
    apart, free_from = 0, -1
    for start, end in sorted(zip(first.tolist(), last.tolist(), strict=True), key=lambda x: x[1]):
        if start > free_from:
            apart, free_from = apart + 1, end
    assert len(ticks) == apart


@given(st.integers(0, 10_000))
def test_shares_are_the_marginals_over_all_assignments(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_rows, n_devices = int(rng.integers(1, 4)), int(rng.integers(3, 7))
    home = rng.integers(-1, n_rows, n_devices)
    home[rng.permutation(n_devices)[:n_rows]] = np.arange(n_rows)  # every row has a device
    allowed = rng.random((n_devices, n_rows + 1)) < 0.4
    allowed[np.arange(n_devices), home] = True
    allowed[:, -1] = True  # a last row for the devices left over
    capacity = np.bincount(home % (n_rows + 1), minlength=n_rows + 1)
    named = allowed[:, :-1].any(axis=1)
    expected = naive.shares(allowed, capacity)[:, :-1]

    device, row = np.nonzero(allowed[:, :-1])
    found = shares_of(row, device, np.where(named, home, NOBODY))
    table = np.zeros((n_devices, int(found.row.max()) + 1))
    table[found.device, found.row] = found.share
    np.testing.assert_allclose(table[:, :n_rows], expected, atol=1e-9)


def test_a_block_too_large_to_count_is_balanced() -> None:
    n = 60  # every pair is possible: 60! assignments, each share 1 / 60
    device, row = np.nonzero(np.ones((n, n), bool))
    found = shares_of(row, device, np.arange(n))
    np.testing.assert_allclose(found.share, 1 / n, atol=1e-6)


def test_blocks_are_separated_even_if_possible_pairs_connect_them() -> None:
    # Row 0 may be device 0 or 1, row 1 only device 1: so row 0 is certainly device 0.
    found = shares_of(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([0, 1]))
    assert sorted(zip(found.row.tolist(), found.device.tolist(), strict=True)) == [(0, 0), (1, 1)]
    assert found.share.tolist() == [1.0, 1.0]


def believed(
    observed: Observed, candidates: list[set[int]], device_of: list[int], *, seed: int = 0
) -> Matching:
    return match(
        observed,
        class_of=np.arange(observed.n_pseudonyms)
        if len(candidates) > 1
        else np.zeros(observed.n_pseudonyms, np.int64),
        candidates=bits(candidates),
        device_of=np.array(device_of),
        rng=np.random.default_rng(seed),
    )


def bits(candidates: list[set[int]]) -> Bits:
    return np.array([[sum(1 << d for d in left)] for left in candidates], np.uint64)


def alive(*spans: tuple[int, int]) -> Observed:
    return observed_of([(p, second, (0,), 2) for p, span in enumerate(spans) for second in span])


def test_pseudonyms_that_are_alive_together_compete_for_devices() -> None:
    found = believed(alive((0, 5), (0, 5)), [{0, 1}, {1}], [0, 1])
    assert found.largest.tolist() == [1.0, 1.0]
    assert found.of_truth.tolist() == [1.0, 1.0]
    assert found.guess.tolist() == [0, 1]


def test_pseudonyms_that_are_never_alive_together_do_not_compete() -> None:
    found = believed(alive((0, 2), (3, 5)), [{0, 1}, {0, 1}], [0, 0])
    assert found.largest.tolist() == [0.5, 0.5]


def test_pseudonyms_of_a_class_have_equal_posteriors() -> None:
    found = believed(alive(*[(0, 5)] * 4), [{0, 1, 2, 3, 4}], [3, 0, 2, 1])
    assert found.largest == pytest.approx(0.2)
    assert found.of_truth == pytest.approx(0.2)


def test_the_meeting_that_reveals_most_about_a_pseudonym_counts() -> None:
    # Pseudonym 0 is alive throughout. It meets one that may be 0 or 3, later one that must be 2.
    observed = alive((0, 9), (0, 1), (8, 9))
    found = believed(observed, [{0, 1, 2}, {0, 3}, {2}], [1, 0, 2])
    assert found.largest[0] == 0.5
    assert found.largest[2] == 1.0


def test_ties_are_broken_at_random_among_all_most_likely_devices() -> None:
    guesses = {
        int(believed(alive((0, 1)), [{0, 5, 63}], [5], seed=seed).guess[0]) for seed in range(40)
    }
    assert guesses == {0, 5, 63}


@pytest.mark.parametrize(
    ("candidates", "device_of", "misled"),
    [
        ([{1}, {1, 2}], [0, 2], [True, False]),
        ([set(), set()], [0, 1], [True, True]),
        ([{0, 1}, {0, 1}], [0, 0], [False, True]),
    ],
    ids=["the true device is not a candidate", "no candidates", "one device has both pseudonyms"],
)
def test_a_misled_adversary_has_no_belief(
    candidates: list[set[int]], device_of: list[int], misled: list[bool]
) -> None:
    found = believed(alive((0, 1), (0, 1)), candidates, device_of)
    assert np.isnan(found.largest).tolist() == misled
    assert (found.guess == NOBODY).tolist() == misled

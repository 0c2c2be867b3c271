"""The linking attack: true successors, and the adversary's guesses."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.pseudonym_linking import (
    NO_SUCCESSOR,
    Links,
    chain_lengths,
    link,
    successors,
)
from tests.audit.mathematics.made import GRID, Line, observed_of

lives = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=8
)


def linked(lines: list[Line], device_of: list[int], *, within_s: float, seed: int = 0) -> Links:
    return link(
        observed_of(lines),
        GRID,
        device_of=np.array(device_of),
        within_s=within_s,
        rng=np.random.default_rng(seed),
    )


@given(lives, st.integers(1, 4))
def test_the_successor_is_the_next_pseudonym_of_the_same_device_if_it_starts_soon(
    drawn: list[tuple[int, int, int]], within_s: int
) -> None:
    spans: list[tuple[int, int, int]] = []
    for device, start, length in sorted(drawn):  # a device has one pseudonym at a time
        if all(d != device or end < start for d, _, end in spans):
            spans.append((device, start, start + length))
    lines = [(p, s, (0,), 2) for p, (_, a, b) in enumerate(spans) for s in range(a, b + 1)]
    found = successors(
        observed_of(lines), np.array([d for d, _, _ in spans]), within_s=float(within_s)
    )
    for p, (device, _, end) in enumerate(spans):
        later = [
            (start, q)
            for q, (d, start, _) in enumerate(spans)
            if d == device and end < start <= end + within_s
        ]
        assert found[p] == (min(later)[1] if later else NO_SUCCESSOR)


def test_the_pseudonym_whose_first_region_is_most_similar_to_the_last_one_is_guessed() -> None:
    lines: list[Line] = [
        (0, 0, (0, 1, 2), 2),
        (1, 1, (1, 2, 3), 2),
        (2, 1, (0, 1, 2, 3, 4, 5, 6, 7), 2),
    ]
    links = linked(lines, [7, 7, 8], within_s=1)
    assert (links.ended.tolist(), links.successor.tolist(), links.guess.tolist()) == ([0], [1], [1])


def test_among_equally_similar_pseudonyms_the_reachable_one_is_guessed() -> None:
    lines: list[Line] = [(0, 0, (0,), 2), (1, 1, (19,), 2), (2, 1, (1,), 2)]
    for seed in range(20):
        assert linked(lines, [7, 7, 8], within_s=1, seed=seed).guess.tolist() == [2]


def test_a_pseudonym_that_starts_too_late_is_not_a_candidate() -> None:
    lines: list[Line] = [(0, 0, (0,), 2), (1, 2, (19,), 2), (2, 3, (0,), 2), (3, 0, (0,), 2)]
    assert linked(lines, [7, 7, 8, 9], within_s=2).guess.tolist() == [1]


def test_all_members_of_a_group_are_guessed_equally_often() -> None:
    lines: list[Line] = [(0, 0, (0,), 2), *((p, 1, (0, 1), 2) for p in (1, 2, 3))]
    guesses = {
        int(linked(lines, [7, 8, 7, 9], within_s=1, seed=seed).guess[0]) for seed in range(40)
    }
    assert guesses == {1, 2, 3}


def test_if_no_device_continues_there_is_nothing_to_link() -> None:
    links = linked([(0, 0, (0,), 2), (1, 1, (0,), 2)], [7, 8], within_s=5)
    assert len(links.ended) == len(links.successor) == len(links.guess) == 0


def test_a_chain_ends_with_the_first_wrong_guess() -> None:
    links = Links(
        ended=np.array([0, 1, 2, 5]),
        successor=np.array([1, 2, 3, 6]),
        guess=np.array([1, 2, 9, 9]),
    )
    # 0, 1 and 2 in a row, where the guess is wrong; 5 alone.
    assert chain_lengths(links).tolist() == [3, 1]

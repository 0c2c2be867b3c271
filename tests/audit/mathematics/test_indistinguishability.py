"""Identical regions at an instant, and identical whole lives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.indistinguishability import (
    indistinguishable_classes,
    instants_of,
)
from tests.audit.mathematics.made import observed_of

few_regions = st.sampled_from([(1, 2), (2, 1), (3,)])
lines = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), few_regions, st.integers(2, 3)),
    min_size=1,
    unique_by=lambda line: line[:2],
)


@given(lines)
def test_sharing_counts_those_who_publish_the_same_region_at_the_same_time(
    drawn: list[tuple[int, int, tuple[int, ...], int]],
) -> None:
    drawn = renumbered(drawn)
    observed = observed_of(drawn)
    n = instants_of(observed).n_sharing(observed.pseudonym_of)
    expected = [sum(line[1:3] == other[1:3] for other in drawn) for line in sorted(drawn)]
    assert n.tolist() == expected


@given(lines)
def test_pseudonyms_of_a_class_share_every_time_region_and_k(
    drawn: list[tuple[int, int, tuple[int, ...], int]],
) -> None:
    drawn = renumbered(drawn)
    class_of = indistinguishable_classes(observed_of(drawn)).tolist()
    life = [
        [line[1:] for line in sorted(drawn) if line[0] == pseudonym]
        for pseudonym in range(len(class_of))
    ]
    for p, mine in enumerate(life):
        for q, other in enumerate(life):
            assert (class_of[p] == class_of[q]) == (mine == other)
    assert list(dict.fromkeys(class_of)) == list(range(len(set(class_of))))


def test_the_order_of_nodes_distinguishes_regions_because_an_adversary_sees_it() -> None:
    observed = observed_of([(0, 0, (1, 2), 2), (1, 0, (2, 1), 2)])
    assert instants_of(observed).n_sharing(observed.pseudonym_of).tolist() == [1, 1]


def test_a_device_with_two_pseudonyms_counts_once() -> None:
    observed = observed_of([(0, 0, (1,), 2), (1, 0, (1,), 2), (2, 0, (1,), 2)])
    assert instants_of(observed).n_sharing(np.array([7, 7, 4])).tolist() == [2, 2, 2]


def test_the_k_of_an_instant_is_the_largest_that_any_of_its_records_states() -> None:
    observed = observed_of([(0, 0, (1,), 2), (1, 0, (1,), 9), (0, 1, (1,), 3)])
    assert instants_of(observed).k.tolist() == [9, 3]


def renumbered(
    drawn: list[tuple[int, int, tuple[int, ...], int]],
) -> list[tuple[int, int, tuple[int, ...], int]]:
    """Renumber the pseudonyms from 0 to n - 1."""
    names = sorted({line[0] for line in drawn})
    return [(names.index(p), second, region, k) for p, second, region, k in drawn]

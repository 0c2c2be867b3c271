"""Intervals over groups that share regions: their members have one luck."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from experiments.adka_attacks import (
    LEAST_GROUPS,
    Guesses,
    attack_points,
    interval_over_groups,
    sharing,
)


def test_intervals_hold_the_truth_where_every_member_of_a_group_has_its_luck() -> None:
    """95 % of them, about; those over records, as if each had a luck of its own, hardly ever."""
    rng = np.random.default_rng(1)
    held = naive = 0
    for seed in range(200):
        luck = rng.random(40) < 0.3
        group = np.repeat(np.arange(40), 50)
        value = luck[group].astype(float)
        low, high = interval_over_groups(value, group, seed=seed)
        held += low <= 0.3 <= high
        half = 1.96 * value.std() / np.sqrt(len(value))
        naive += abs(value.mean() - 0.3) <= half
    assert held > 180
    assert naive < 100


def guesses(n_groups: int, success: float) -> Guesses:
    """A fleet of groups of seven records in regions of six nodes."""
    group = [g for g in range(n_groups) for _ in range(7)]
    return Guesses("session", "centre", group, [6] * len(group), [success] * len(group))


def test_of_few_groups_nothing_is_told() -> None:
    few = [guesses(LEAST_GROUPS - 1, 1.0)]
    assert attack_points(few, seed=1) == []
    (point,) = attack_points([*few, guesses(1, 1.0)], seed=1)  # groups of another fleet are others
    assert point.n_groups == LEAST_GROUPS


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_who_shares_anything_even_over_others_is_in_one_group(pairs: list[tuple[int, int]]) -> None:
    who, what = np.array(pairs, np.int64).T
    found = sharing(who, what)
    group = {w: {w} for w in who.tolist()}
    for a, x in pairs:
        for b, y in pairs:
            if x == y and group[a] is not group[b]:
                group[a] |= group[b]
                for each in group[a]:
                    group[each] = group[a]
    for a, members in group.items():
        assert {b for b in group if found[a] == found[b]} == members

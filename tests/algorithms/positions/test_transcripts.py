"""Verification over time: transcripts catch every group whose members do not share their lives."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.verification import Transcripts
from tests.algorithms.positions.releases import release_of
from tests.examples import many
from tests.naive import Group

N_SLOTS = 8


class Published(NamedTuple):
    """A group of a release, and the version of each member's pseudonym."""

    k: int
    region: Sequence[int]
    members: Sequence[int]
    versions: Sequence[int]


def a_group(
    *members: int, version: int = 1, region: Sequence[int] = (1, 2), k: int = 2
) -> Published:
    return Published(k, region, members, [version] * len(members))


class Watch:
    """Transcripts that check one release a second."""

    def __init__(self) -> None:
        self._transcripts = Transcripts()
        self._now = 0.0

    def check(self, *groups: Published, n_slots: int = N_SLOTS) -> list[bool]:
        self._now += 1
        release = replace(
            release_of([Group(group.k, group.region, group.members) for group in groups]),
            version=np.array([v for group in groups for v in group.versions], np.int64),
        )
        held: list[bool] = self._transcripts.unbroken(
            release, now=self._now, n_slots=n_slots
        ).tolist()
        return held


def test_a_faithful_session_passes() -> None:
    watch = Watch()
    for region in ([1, 2], [2, 3], [2, 3], [9]):
        assert watch.check(a_group(0, 1, 2, region=region), a_group(3, 4, version=2)) == [
            True,
            True,
        ]
    assert watch.check(a_group(3, 4, version=2)) == [True], "a group may be silent for a tick"
    assert watch.check(a_group(0, 1, 2), a_group(3, 4, version=2)) == [True, True]
    assert watch.check() == []
    assert watch.check(a_group(0, 1, 3, version=3), a_group(2, 4, version=4)) == [True, True]


BORN = (a_group(0, 1, 2), a_group(3, 4, 5, version=2))


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param([a_group(0, 1)], id="a member is missing"),
        pytest.param([a_group(0, 1, 2, 6)], id="there is an extra member"),
        pytest.param([a_group(0, 1, 6)], id="a member was not there at birth"),
        pytest.param([a_group(0, 1, 3)], id="a member comes from another group"),
        pytest.param([a_group(0, 1, 2, k=4)], id="it is below k"),
        pytest.param(
            [Published(2, [1], [0, 1, 2], [1, 1, 7])], id="only the last has a new pseudonym"
        ),
        pytest.param(
            [Published(2, [1], [0, 1, 2], [7, 1, 1])], id="only the first has a new pseudonym"
        ),
        pytest.param([a_group(0, 1), a_group(2, 6, region=[5])], id="it is split"),
        pytest.param([a_group(0, 1), a_group(2, 6)], id="it is split under one region"),
    ],
)
def test_a_broken_group_is_refused_at_once_and_for_ever(broken: list[Published]) -> None:
    watch = Watch()
    assert watch.check(*BORN) == [True, True]
    assert watch.check(*broken) == [False] * len(broken)
    assert watch.check(BORN[0]) == [False]
    assert watch.check(BORN[0]) == [False]
    assert watch.check(a_group(0, 1, 2, version=9)) == [True], "a new life is a new beginning"


def test_two_groups_that_swap_a_member_are_refused_and_the_third_passes() -> None:
    watch = Watch()
    third = a_group(6, 7, version=3)
    # Both groups have the same version, so it cannot be the version that gives them away.
    ones = [a_group(0, 1, 2, region=[1]), a_group(3, 4, 5, region=[2])]
    assert watch.check(*ones, third) == [True, True, True]
    swapped = [a_group(0, 1, 5, region=[1]), a_group(3, 4, 2, region=[2])]
    assert watch.check(*swapped, third) == [False, False, True]
    assert watch.check(*ones, third) == [False, False, True]


def test_a_member_of_a_smaller_group_with_the_same_version_and_region_is_refused() -> None:
    watch = Watch()
    assert watch.check(a_group(0, 1, 2), a_group(3, 4)) == [True, True]
    assert watch.check(a_group(0, 1, 3)) == [False]


def test_members_born_at_different_ticks_cannot_form_a_group() -> None:
    watch = Watch()
    assert watch.check(a_group(0, 1)) == [True]
    assert watch.check(a_group(2, 3)) == [True]
    assert watch.check(a_group(0, 1, 2, 3)) == [False]


def test_members_born_at_the_same_tick_in_different_regions_cannot_form_a_group() -> None:
    watch = Watch()
    assert watch.check(a_group(0, 1), a_group(2, 3, region=[5])) == [True, True]
    assert watch.check(a_group(0, 2), a_group(1, 3)) == [False, False]


def test_an_empty_group_is_refused() -> None:
    assert Watch().check(Published(0, [1], [], [])) == [False]


def test_transcripts_grow_with_the_devices_without_forgetting_any() -> None:
    watch = Watch()
    assert watch.check(a_group(0, 1), n_slots=2) == [True]
    assert watch.check(a_group(0, 1), a_group(5, 6), n_slots=7) == [True, True]
    assert watch.check(a_group(0, 5), n_slots=7) == [False]


regions = st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True)
deals = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=6, max_size=6)
ticks = st.tuples(deals, st.lists(regions, min_size=3, max_size=3))


@given(st.lists(ticks, max_size=6))
@many(3)
def test_a_group_passes_exactly_if_the_naive_twin_finds_its_lives_shared(
    sequence: list[tuple[list[tuple[int, int]], list[list[int]]]],
) -> None:
    watch = Watch()
    # All releases of each pseudonym, refused or not, with the number of members.
    life_of: defaultdict[tuple[int, int], list[object]] = defaultdict(list)
    worn: dict[int, int] = {}
    broken: set[tuple[int, int]] = set()
    for now, (deal, regions) in enumerate(sequence):
        groups = []
        for g in range(3):
            members = [m for m, (group, _) in enumerate(deal) if group == g]
            if members:
                groups.append(Published(2, regions[g], members, [deal[m][1] for m in members]))
        passed = watch.check(*groups)
        expected = []
        for group in groups:
            names = list(zip(group.members, group.versions, strict=True))
            for member, version in names:
                if worn.get(member) != version:  # a pseudonym that comes back counts as new
                    life_of.pop((member, version), None)
                    broken.discard((member, version))
                worn[member] = version
            before = Counter(str(life_of[name]) for name in names)
            good = (
                len(names) >= group.k
                and len(before) == 1
                and len(set(group.versions)) == 1
                and not broken & set(names)
                and all(not life_of[name] or life_of[name][-1][2] == len(names) for name in names)  # type: ignore[index]
            )
            expected.append(good)
            for name in names:
                life_of[name].append((now, group.region, len(names)))
                if not good:
                    broken.add(name)
        assert passed == expected

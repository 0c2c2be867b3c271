from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.positions.verification import Transcripts
from tests.algorithms.positions.releases import release_of
from tests.naive import Group

N_SLOTS = 8


class Told(NamedTuple):
    """A group of a release, and the number of the pseudonym that each member bears."""

    k: int
    region: Sequence[int]
    members: Sequence[int]
    versions: Sequence[int]


def a_group(*members: int, version: int = 1, region: Sequence[int] = (1, 2), k: int = 2) -> Told:
    return Told(k, region, members, [version] * len(members))


class Watch:
    """Transcripts that are told one release a second."""

    def __init__(self) -> None:
        self._transcripts = Transcripts()
        self._now = 0.0

    def tell(self, *groups: Told, n_slots: int = N_SLOTS) -> list[bool]:
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
        assert watch.tell(a_group(0, 1, 2, region=region), a_group(3, 4, version=2)) == [True, True]
    assert watch.tell(a_group(3, 4, version=2)) == [True], "a group may be silent for a tick"
    assert watch.tell(a_group(0, 1, 2), a_group(3, 4, version=2)) == [True, True]
    assert watch.tell() == []
    assert watch.tell(a_group(0, 1, 3, version=3), a_group(2, 4, version=4)) == [True, True]


BORN = (a_group(0, 1, 2), a_group(3, 4, 5, version=2))


@pytest.mark.parametrize(
    "betrayal",
    [
        pytest.param([a_group(0, 1)], id="a member is missing"),
        pytest.param([a_group(0, 1, 2, 6)], id="there is an extra member"),
        pytest.param([a_group(0, 1, 6)], id="a member is another than at birth"),
        pytest.param([a_group(0, 1, 3)], id="a member comes from another group"),
        pytest.param([a_group(0, 1, 2, k=4)], id="it is below k"),
        pytest.param([Told(2, [1], [0, 1, 2], [1, 1, 7])], id="one alone has a new pseudonym"),
        pytest.param([Told(2, [1], [0, 1, 2], [7, 1, 1])], id="the first has a new pseudonym"),
        pytest.param([a_group(0, 1), a_group(2, 6, region=[5])], id="it falls apart"),
        pytest.param([a_group(0, 1), a_group(2, 6)], id="it falls apart under one region"),
    ],
)
def test_a_betrayal_is_caught_at_once_and_never_forgotten(betrayal: list[Told]) -> None:
    watch = Watch()
    assert watch.tell(*BORN) == [True, True]
    assert watch.tell(*betrayal) == [False] * len(betrayal)
    assert watch.tell(BORN[0]) == [False]
    assert watch.tell(BORN[0]) == [False]
    assert watch.tell(a_group(0, 1, 2, version=9)) == [True], "a new life is a new beginning"


def test_two_groups_that_swap_a_member_are_caught_and_the_third_goes_on() -> None:
    watch = Watch()
    third = a_group(6, 7, version=3)
    # Numbers of pseudonyms that say nothing of the group must not help.
    ones = [a_group(0, 1, 2, region=[1]), a_group(3, 4, 5, region=[2])]
    assert watch.tell(*ones, third) == [True, True, True]
    swapped = [a_group(0, 1, 5, region=[1]), a_group(3, 4, 2, region=[2])]
    assert watch.tell(*swapped, third) == [False, False, True]
    assert watch.tell(*ones, third) == [False, False, True]


def test_members_born_at_different_ticks_are_no_group() -> None:
    watch = Watch()
    assert watch.tell(a_group(0, 1)) == [True]
    assert watch.tell(a_group(2, 3)) == [True]
    assert watch.tell(a_group(0, 1, 2, 3)) == [False]


def test_members_born_together_into_other_regions_are_no_group() -> None:
    watch = Watch()
    assert watch.tell(a_group(0, 1), a_group(2, 3, region=[5])) == [True, True]
    assert watch.tell(a_group(0, 2), a_group(1, 3)) == [False, False]


def test_a_group_of_nobody_keeps_no_promise() -> None:
    assert Watch().tell(Told(0, [1], [], [])) == [False]


def test_room_is_made_for_more_devices_and_nothing_is_forgotten() -> None:
    watch = Watch()
    assert watch.tell(a_group(0, 1), n_slots=2) == [True]
    assert watch.tell(a_group(0, 1), a_group(5, 6), n_slots=7) == [True, True]
    assert watch.tell(a_group(0, 5), n_slots=7) == [False]


regions = st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True)
deals = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=6, max_size=6)
ticks = st.tuples(deals, st.lists(regions, min_size=3, max_size=3))


@given(st.lists(ticks, max_size=6))
@settings(max_examples=300)
def test_what_passes_is_shared_for_life_by_the_account_of_the_naive_twin(
    sequence: list[tuple[list[tuple[int, int]], list[list[int]]]],
) -> None:
    watch = Watch()
    # All that each pseudonym was about to publish, refused or not, with how many others.
    life_of: defaultdict[tuple[int, int], list[object]] = defaultdict(list)
    worn: dict[int, int] = {}
    broken: set[tuple[int, int]] = set()
    for now, (deal, regions) in enumerate(sequence):
        groups = []
        for g in range(3):
            members = [m for m, (group, _) in enumerate(deal) if group == g]
            if members:
                groups.append(Told(2, regions[g], members, [deal[m][1] for m in members]))
        passed = watch.tell(*groups)
        expected = []
        for group in groups:
            names = list(zip(group.members, group.versions, strict=True))
            for member, version in names:
                if worn.get(member) != version:  # pseudonyms that come back are new to the twin
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

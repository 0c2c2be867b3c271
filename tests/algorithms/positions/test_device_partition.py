"""The partition of devices: sizes of groups, and independence from the order of devices."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.device_partition import partition

Devices = list[tuple[int, int, int, int]]
"""x, y, need and part of each."""

coordinate = st.integers(0, 6)
devices = st.lists(
    st.tuples(coordinate, coordinate, st.integers(1, 6), st.integers(0, 2)), max_size=40
)


def groups_of(devices: Devices) -> list[list[int]]:
    x, y, need, part = np.array(devices, np.int32).reshape(-1, 4).T
    point = np.stack([x, y], axis=1).astype(np.float64)
    member, first = partition(point, np.ascontiguousarray(need), np.ascontiguousarray(part))
    return [one.tolist() for one in np.split(member, first[1:-1])] if len(member) else []


@given(devices)
def test_every_device_is_in_exactly_one_group(devices: Devices) -> None:
    members = [m for group in groups_of(devices) for m in group]
    assert sorted(members) == list(range(len(devices)))


@given(devices)
def test_no_group_spans_two_parts(devices: Devices) -> None:
    for group in groups_of(devices):
        assert len({devices[m][3] for m in group}) == 1


@given(devices)
def test_a_group_is_as_large_as_any_member_demands_and_less_than_twice_that(
    devices: Devices,
) -> None:
    for group in groups_of(devices):
        most = max(devices[m][2] for m in group)
        part = [m for m in range(len(devices)) if devices[m][3] == devices[group[0]][3]]
        assert len(group) >= most or len(group) == len(part)
        assert len(group) < 2 * most


@given(st.integers(1, 12), st.integers(1, 120), st.randoms(use_true_random=False))
def test_equal_demands_give_groups_as_equal_in_size_as_possible(
    k: int, n: int, random: Random
) -> None:
    points = [(random.randrange(50), random.randrange(50), k, 0) for _ in range(n)]
    sizes = [len(group) for group in groups_of(points)]
    assert max(sizes) <= (-(-n // (n // k)) if n >= k else n)


@given(st.sets(st.tuples(coordinate, coordinate), max_size=30), st.data())
def test_the_order_of_devices_changes_no_group_if_all_coordinates_differ(
    places: set[tuple[int, int]], data: st.DataObject
) -> None:
    # No two are equal along either axis, so that no tie depends on the order.
    n = len(places)
    across, along = (data.draw(st.permutations(range(n))) for _ in range(2))
    needs = data.draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    rows = [(a, b, need, 0) for a, b, need in zip(across, along, needs, strict=True)]
    shuffled = data.draw(st.permutations(rows))

    def as_sets(rows: Devices) -> set[frozenset[tuple[int, int, int, int]]]:
        return {frozenset(rows[m] for m in group) for group in groups_of(rows)}

    assert as_sets(rows) == as_sets(shuffled)


@pytest.mark.parametrize(("n", "sizes"), [(0, []), (1, [1]), (2, [2]), (6, [3, 3]), (7, [3, 4])])
def test_devices_at_the_same_point_are_partitioned_too(n: int, sizes: list[int]) -> None:
    assert [len(group) for group in groups_of([(1, 1, 3, 0)] * n)] == sizes


def test_the_widest_side_is_cut_first_and_the_next_one_if_that_fails() -> None:
    wide = [(0, 0, 2, 0), (9, 1, 2, 0), (0, 1, 2, 0), (9, 0, 2, 0)]
    assert {frozenset(group) for group in groups_of(wide)} == {frozenset({0, 2}), frozenset({1, 3})}
    # A cut across the first axis would leave a device that demands three in a group of two.
    torn = [(0, 5, 3, 0), (1, 0, 1, 0), (2, 6, 3, 0), (8, 1, 1, 0), (9, 7, 3, 0)]
    assert sorted(sorted(group) for group in groups_of(torn)) == [[0, 2, 4], [1], [3]]


def test_a_group_that_no_cut_can_split_stays_whole() -> None:
    torn = [(0, 0, 3, 0), (1, 5, 2, 0), (2, 0, 3, 0), (8, 5, 2, 0), (9, 0, 3, 0)]
    assert [sorted(group) for group in groups_of(torn)] == [[0, 1, 2, 3, 4]]

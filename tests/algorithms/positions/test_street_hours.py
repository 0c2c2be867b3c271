"""Traffic of streets over hours: cases on paper, and k in every figure whatever the traffic."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.street_hours import (
    FINE,
    MOST_SPEED_MPS,
    SPEED_STEP_MPS,
    Passages,
    at_most,
    noisy_sums,
    passages_of,
    stretches_of,
)
from anonymizer.domain.arrays import FloatArray, IntArray

DEGREE_M = 111_194.93  # of latitude, on the sphere of `geodesy`


def passages(*rows: tuple[int, int, int, float]) -> Passages:
    """Return passages of rows of interval, road, device and speed."""
    interval, road, device, speed = np.array(sorted(rows), np.float64).reshape(-1, 4).T
    return Passages(
        interval.astype(np.int64), road.astype(np.int64), device.astype(np.int64), speed
    )


def along(device: list[int], ts: list[float], metres: list[float], road: list[int]) -> Passages:
    lat: FloatArray = np.array(metres) / DEGREE_M
    return passages_of(
        np.array(device),
        np.array(ts),
        lat,
        np.zeros(len(lat)),
        np.array(road),
        every_s=3600.0,
        gap_s=60.0,
    )


def test_a_device_passes_a_road_once_in_an_hour_with_the_speed_of_its_steps() -> None:
    found = along([0, 0, 0, 0, 1], [0, 10, 20, 3610, 5], [0, 100, 160, 160, 0], [5, 5, 6, 5, 5])
    assert list(zip(found.interval, found.road, found.device, strict=True)) == [
        (0, 5, 0), (0, 5, 1), (0, 6, 0), (1, 5, 0),
    ]  # fmt: skip
    # On road 5: 100 m in 10 s, and half of 60 m in half of 10 s. An hour later, and of a device
    # that is seen once, nothing is known.
    assert found.speed_mps == pytest.approx([130 / 15, np.nan, 6, np.nan], nan_ok=True, rel=1e-5)
    assert repr(found) == "Passages(4)"


def test_positions_off_the_roads_are_no_passages_and_no_step_is_faster_than_the_bound() -> None:
    found = along([0, 0, 0], [0, 1, 2], [0, 500, 1000], [3, -1, 3])
    assert (found.road.tolist(), found.speed_mps.tolist()) == ([3], [MOST_SPEED_MPS])


def test_what_is_left_of_a_neighbourhood_is_counted_together() -> None:
    rows = [(0, 0, d, 10.0) for d in range(3)] + [(0, 1, d, 4.0) for d in range(2, 4)]
    rows += [(0, 2, 9, 7.0)]
    found = stretches_of(passages(*rows), 4, 3)
    # Road 0 has enough. Road 1 has two devices, so it waits for the other half.
    assert found.stretch_of.tolist() == [0, 1, 1, 1]
    assert found.n_devices.tolist() == [3, 3]
    assert found.n_passages.tolist() == [3, 3]
    # Means of 10, and of 4, 4 and 7; roads 1 and 2 are 1 and 2 away from that of both.
    assert found.speed_mps.tolist() == [10, 5]
    spread = np.sqrt((1**2 + 2**2) / 2)
    assert found.spread_mps.tolist() == [0, np.ceil(spread / SPEED_STEP_MPS) * SPEED_STEP_MPS]


def test_one_device_on_many_roads_is_one_device() -> None:
    rows = [(0, road, 7, 1.0) for road in range(8)] + [(0, 3, 8, 1.0)]
    assert stretches_of(passages(*rows), 8, 3).stretch_of.tolist() == [-1] * 8
    found = stretches_of(passages(*rows), 8, 2)
    # Road 3 has both devices; on all others together there is one.
    assert found.stretch_of.tolist() == [-1, -1, -1, 0, -1, -1, -1, -1]
    assert (found.n_devices.tolist(), found.n_passages.tolist()) == ([2], [2])


def test_a_mean_of_fewer_than_k_devices_is_not_published() -> None:
    rows = [(0, 0, d, 5.0 if d < 2 else np.nan) for d in range(3)]
    assert np.isnan(stretches_of(passages(*rows), 2, 3).speed_mps).all()


def naive_stretches(devices: dict[int, set[int]], n_roads: int, k: int) -> set[frozenset[int]]:
    """Return the stretches, as sets of roads, by the words of the docstring."""
    found = set()

    def left_of(first: int, end: int) -> frozenset[int]:
        middle = (first + end) // 2
        alone = end - first == 1
        left = frozenset([first]) if alone else left_of(first, middle) | left_of(middle, end)
        if len(set[int]().union(*(devices[road] for road in left))) >= k:
            found.add(left)
            return frozenset()
        return left

    left_of(0, n_roads)
    return found


@given(
    st.sets(st.tuples(st.integers(0, 15), st.integers(0, 6)), max_size=60),
    st.integers(2, 5),
)
def test_stretches_are_those_of_the_naive_twin_and_hold_k_devices(
    found: set[tuple[int, int]], k: int
) -> None:
    shown = stretches_of(passages(*((0, road, device, 1.0) for road, device in found)), 16, k)
    devices: defaultdict[int, set[int]] = defaultdict(set)
    for road, device in found:
        devices[road].add(device)
    roads_of = [np.flatnonzero(shown.stretch_of == i) for i in range(len(shown.n_devices))]
    assert {frozenset(roads.tolist()) for roads in roads_of} == naive_stretches(devices, 16, k)
    for roads, n in zip(roads_of, shown.n_devices.tolist(), strict=True):
        held = set[int]().union(*(devices[road] for road in roads.tolist()))
        assert n == len(held) - len(held) % k >= k
    nowhere = np.flatnonzero(shown.stretch_of < 0).tolist()
    assert len(set[int]().union(*(devices[road] for road in nowhere))) < k


def test_whether_a_road_is_empty_or_has_too_few_makes_no_difference() -> None:
    rows = [(0, 0, d, 5.0) for d in range(4)]
    few = [*rows, (0, 3, 9, 5.0), (0, 1, 8, 5.0)]
    assert (stretches_of(passages(*rows), 4, 3).stretch_of == [0, -1, -1, -1]).all()
    assert (stretches_of(passages(*few), 4, 3).stretch_of == [0, -1, -1, -1]).all()


def test_of_each_device_and_period_so_many_passages_are_counted() -> None:
    rows = [(i, road, d, 1.0) for i in range(4) for road in range(5) for d in range(3)]
    found = passages(*rows)
    period = found.interval // 2
    counted = at_most(found, period, 7, np.random.default_rng(3))
    n: defaultdict[tuple[int, int], int] = defaultdict(int)
    for owner in zip(period[counted].tolist(), found.device[counted].tolist(), strict=True):
        n[owner] += 1
    assert set(n.values()) == {7}
    assert len(n) == 6
    again = at_most(found, period, 7, np.random.default_rng(4))
    assert (counted != again).any()
    assert at_most(found, period, 10, np.random.default_rng(3)).all()
    assert len(at_most(passages(), np.zeros(0, np.int64), 1, np.random.default_rng(0))) == 0


def exact(found: Passages) -> IntArray:
    """Return what noise is added to."""
    told: list[int] = []

    def none(numbers: Sequence[int]) -> list[int]:
        told.extend(numbers)
        return list(told)

    noisy_sums(found, np.arange(2), 4, none)
    return np.array(told)


@given(
    st.sets(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 3)), max_size=20),
    st.floats(0, MOST_SPEED_MPS),
)
def test_a_device_changes_no_more_than_the_noise_hides(
    found: set[tuple[int, int, int]], speed: float
) -> None:
    everybody = passages(*((*row, speed) for row in found))
    without = everybody.at(everybody.device != 0)
    n = len(everybody.road) - len(without.road)
    change = exact(everybody) - exact(without)
    assert change @ change <= n * 3 * FINE**2


def test_sums_without_noise_are_devices_and_metres_a_second() -> None:
    found = passages((0, 1, 0, 10.0), (0, 1, 1, np.nan), (1, 3, 1, 40.0))
    n, moving, speed = noisy_sums(found, np.arange(2), 4, list)
    assert (n[0].tolist(), n[1].tolist()) == ([0, 2, 0, 0], [0, 0, 0, 1])
    assert (moving[0, 1], moving[1, 3]) == (1, 1)
    assert (speed[0, 1], speed[1, 3]) == (10, 40)

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


def test_roads_with_too_few_devices_are_counted_with_their_neighbours() -> None:
    rows = [(0, 0, d, 10.0) for d in range(3)] + [(0, 1, d, 4.0) for d in range(2, 5)]
    rows += [(0, 2, 9, 7.0)]
    found = stretches_of(passages(*rows), 4, 3)
    # Roads 2 and 3 have one device, so their neighbour takes them in.
    assert found.first_road_of.tolist() == [0, 1, 4]
    assert found.n_devices.tolist() == [3, 3]
    assert found.n_passages.tolist() == [3, 3]
    # Means of 10, and of 4, 4, 4 and 7; road 1 is .75 and road 2 2.25 away from that of both.
    assert found.speed_mps.tolist() == [10, 5]
    spread = np.sqrt((3 * 0.75**2 + 2.25**2) / 4)
    assert found.spread_mps.tolist() == [0, np.ceil(spread / SPEED_STEP_MPS) * SPEED_STEP_MPS]


def test_one_device_on_many_roads_is_one_device() -> None:
    rows = [(0, road, 7, 1.0) for road in range(8)] + [(0, 3, 8, 1.0)]
    assert len(stretches_of(passages(*rows), 8, 3).n_devices) == 0
    found = stretches_of(passages(*rows), 8, 2)
    assert found.first_road_of.tolist() == [0, 8]
    assert (found.n_devices.tolist(), found.n_passages.tolist()) == ([2], [8])


def test_a_mean_of_fewer_than_k_devices_is_not_published() -> None:
    rows = [(0, 0, d, 5.0 if d < 2 else np.nan) for d in range(3)]
    assert np.isnan(stretches_of(passages(*rows), 2, 3).speed_mps).all()


@given(
    st.sets(st.tuples(st.integers(0, 15), st.integers(0, 6)), max_size=60),
    st.integers(2, 5),
)
def test_every_stretch_holds_k_devices_and_every_road_is_in_one(
    found: set[tuple[int, int]], k: int
) -> None:
    shown = stretches_of(passages(*((0, road, device, 1.0) for road, device in found)), 16, k)
    bounds = shown.first_road_of.tolist()
    devices = defaultdict(set)
    for road, device in found:
        devices[road].add(device)
    everybody = set().union(*devices.values()) if devices else set()
    if len(everybody) < k:
        assert bounds == [0]
        return
    assert (bounds[0], bounds[-1]) == (0, 16)
    assert sorted(set(bounds)) == bounds
    for i, n in enumerate(shown.n_devices.tolist()):
        held = set().union(*(devices[road] for road in range(bounds[i], bounds[i + 1])))
        assert n == len(held) - len(held) % k >= k


def test_whether_a_half_is_empty_or_has_too_few_makes_no_difference() -> None:
    rows = [(0, 0, d, 5.0) for d in range(4)]
    few = [*rows, (0, 3, 9, 5.0)]
    assert stretches_of(passages(*rows), 4, 3).first_road_of.tolist() == [0, 4]
    assert stretches_of(passages(*few), 4, 3).first_road_of.tolist() == [0, 4]


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

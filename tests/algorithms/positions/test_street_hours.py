"""Traffic of streets over hours: cases on paper, and k in every figure whatever the traffic."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.street_hours import (
    MOST_SPEED_MPS,
    SPEED_STEP_MPS,
    Passages,
    passages_of,
    stretches_of,
)
from anonymizer.domain.arrays import FloatArray
from tests.lanes import some

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
    assert repr(found) == "Passages(...)"


def test_positions_off_the_roads_are_no_passages_and_no_step_is_faster_than_the_bound() -> None:
    found = along([0, 0, 0], [0, 1, 2], [0, 500, 1000], [3, -1, 3])
    assert (found.road.tolist(), found.speed_mps.tolist()) == ([3], [MOST_SPEED_MPS])


def test_a_half_with_few_devices_joins_the_stretch_beside_it() -> None:
    busy = [(0, 0, d, 10.0) for d in range(3)]
    # Road 1 has two devices, and the half of roads 2 and 3 has three.
    rows = [*busy, (0, 1, 2, 4.0), (0, 1, 3, 4.0), *((0, 2, d, 7.0) for d in range(7, 10))]
    found = stretches_of(passages(*rows), 4, 3)
    assert found.stretch_of.tolist() == [0, 0, 1, 1]
    assert found.n_devices.tolist() == [3, 3]
    # Device 2 passed both roads: 10, 10, (10 + 4) / 2 and 4.
    assert found.speed_mps.tolist() == [8, 7]
    spread = np.sqrt((2.5 * 2.25**2 + 1.5 * 3.75**2) / 4)
    assert found.spread_mps.tolist() == [np.ceil(spread / SPEED_STEP_MPS) * SPEED_STEP_MPS, 0]


def test_a_road_between_busy_ones_has_its_own_figure_without_a_spread() -> None:
    rows = [(0, road, d, 5.0 + 2 * d) for road in range(2) for d in range(3)]
    found = stretches_of(passages(*rows), 2, 3)
    assert found.stretch_of.tolist() == [0, 1]
    assert (found.speed_mps.tolist(), found.spread_mps.tolist()) == ([7, 7], [0, 0])


def test_one_device_on_many_roads_is_one_device() -> None:
    rows = [(0, road, 7, 1.0) for road in range(8)] + [(0, 3, 8, 1.0)]
    assert stretches_of(passages(*rows), 8, 3).stretch_of.tolist() == [-1] * 8
    found = stretches_of(passages(*rows), 8, 2)
    assert (found.stretch_of.tolist(), found.n_devices.tolist()) == ([0] * 8, [2])


def test_a_mean_of_fewer_than_k_devices_is_not_published() -> None:
    rows = [(0, 0, d, 5.0 if d < 2 else np.nan) for d in range(3)]
    assert np.isnan(stretches_of(passages(*rows), 2, 3).speed_mps).all()
    # Nor one of two devices that passed both roads of a stretch, and a third that stood.
    both = [(0, road, d, 5.0) for road in range(2) for d in range(2)] + [(0, 0, 2, np.nan)]
    assert stretches_of(passages(*both), 2, 3).stretch_of.tolist() == [0, 0]
    assert np.isnan(stretches_of(passages(*both), 2, 3).speed_mps).all()


def naive_starts(devices: dict[int, set[int]], n_roads: int, k: int) -> list[int]:
    """Return where stretches begin, by the words of the docstring."""

    def has_enough(first: int, end: int) -> bool:
        return len(set[int]().union(*(devices[road] for road in range(first, end)))) >= k

    def cuts(first: int, end: int) -> list[int]:
        middle = (first + end) // 2
        if end - first == 1:
            return []
        left, right = has_enough(first, middle), has_enough(middle, end)
        found = cuts(first, middle) if left else []
        found += [middle] if left and right else []
        return found + (cuts(middle, end) if right else [])

    return [0, *cuts(0, n_roads)] if has_enough(0, n_roads) else []


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
    starts = np.flatnonzero(np.diff(shown.stretch_of, prepend=-1))
    assert starts.tolist() == naive_starts(devices, 16, k)
    for stretch, n in enumerate(shown.n_devices.tolist()):
        roads = np.flatnonzero(shown.stretch_of == stretch).tolist()
        held = set[int]().union(*(devices[road] for road in roads))
        assert n == len(held) - len(held) % k >= k


def figures_of(roads_of_device: Sequence[tuple[int, ...]], k: int) -> tuple[object, ...]:
    rows = [(0, r, d, np.nan) for d, roads in enumerate(roads_of_device) for r in roads]
    shown = stretches_of(passages(*rows), 4, k)
    return tuple(tuple(each.tolist()) for each in shown[:2])


@pytest.mark.parametrize("k", some([2, 3], [2]))
def test_no_reader_can_prove_that_fewer_than_k_devices_passed_somewhere(k: int) -> None:
    """Make all that up to five devices can do on four roads; ask what is true of all alike."""
    some = [roads for n in range(7 - k) for roads in combinations(range(4), n)]
    sets = [set(roads) for roads in some if roads]
    fewest: dict[tuple[object, ...], list[int]] = {}
    for world in combinations_with_replacement(some, 2 * k - 1):
        n_on = [sum(not on.isdisjoint(each) for each in world) for on in sets]
        told = fewest.setdefault(figures_of(world, k), n_on)
        told[:] = map(min, told, n_on)
    assert len(fewest) > 5
    assert all(n == 0 or n >= k for told in fewest.values() for n in told)

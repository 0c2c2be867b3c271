"""Classes of trips: each of k devices, none in two, and nothing about fewer."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.trip_classes import (
    N_STARTS,
    CellSpan,
    TripClass,
    WindowTrips,
    n_cells_of,
    trip_classes,
    unkept,
)
from anonymizer.networks import load_network

N_CELLS = 8


def window(rows: Sequence[tuple[int, int, int, int, tuple[int, ...]]]) -> WindowTrips:
    """Return trips of a device, from a cell, to a cell, begun at a step, on some roads."""
    device, origin, destination, start = (
        np.array([row[i] for row in rows], np.int64) for i in range(4)
    )
    roads = [np.unique(np.array(row[4], np.int64)) for row in rows]
    return WindowTrips(device, origin, destination, start, roads)


trips = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.integers(0, N_CELLS - 1),
        st.integers(0, N_CELLS - 1),
        st.integers(0, N_STARTS - 1),
        st.lists(st.integers(0, 5), max_size=4).map(tuple),
    ),
    max_size=40,
).map(window)


@given(trips, st.integers(1, 4))
def test_every_trip_is_in_one_class_of_k_devices_or_there_are_too_few(
    found: WindowTrips, k: int
) -> None:
    classes = trip_classes(found, k, n_cells=N_CELLS)
    assert unkept(found, classes, k) == []
    told = np.zeros(len(found.device), np.int64)
    for each in classes:
        told[each.holds(found)] += 1
    assert set(told.tolist()) <= ({1} if len(set(found.device.tolist())) >= k else {0})


@given(trips, trips, st.integers(1, 4))
def test_places_of_two_windows_are_nested_or_apart(
    one: WindowTrips, other: WindowTrips, k: int
) -> None:
    """What two classes have in common is one of their places: an intersection is no news."""
    for a in trip_classes(one, k, n_cells=N_CELLS):
        for b in trip_classes(other, k, n_cells=N_CELLS):
            for mine, its in zip(a[:3], b[:3], strict=True):
                common = CellSpan(max(mine.first, its.first), min(mine.last, its.last))
                assert common.first > common.last or common in {mine, its}
            assert (a.n_devices - b.n_devices) % k == 0


@given(trips, st.integers(2, 4))
def test_whoever_was_left_out_is_in_none(found: WindowTrips, k: int) -> None:
    for device in set(found.device.tolist()):
        rest = found.without(device)
        assert sorted([*rest.device.tolist(), *[device] * (found.device == device).sum()]) == (
            sorted(found.device.tolist())
        )
        assert unkept(rest, trip_classes(rest, k, n_cells=N_CELLS), k) == []


def test_a_device_is_company_once_however_often_it_travels() -> None:
    often = window([(1, 0, 7, 0, ())] * 9 + [(2, 0, 7, 0, ())])
    assert trip_classes(often, 3, n_cells=N_CELLS) == []
    [only] = trip_classes(often, 2, n_cells=N_CELLS)
    assert only.n_devices == 2


def test_places_are_halved_while_both_halves_have_company() -> None:
    rows = [(d, 0, 7, 0, (1, 2)) for d in range(3)] + [(d, 7, 7, 0, (2,)) for d in range(3, 7)]
    near, far = trip_classes(window(rows), 3, n_cells=N_CELLS)
    assert (near.origin, near.n_devices, near.roads.tolist()) == (CellSpan(0, 3), 3, [1, 2])
    assert (far.origin, far.n_devices, far.roads.tolist()) == (CellSpan(4, 7), 3, [2])
    assert near.destination == CellSpan(0, 7)


@pytest.mark.parametrize(
    "broken",
    [
        TripClass(CellSpan(0, 0), CellSpan(0, 7), CellSpan(0, 7), 3, np.zeros(0, np.int64)),
        TripClass(CellSpan(0, 7), CellSpan(0, 7), CellSpan(0, 7), 4, np.zeros(0, np.int64)),
        TripClass(CellSpan(0, 7), CellSpan(0, 7), CellSpan(0, 7), 6, np.zeros(0, np.int64)),
        TripClass(CellSpan(0, 7), CellSpan(0, 7), CellSpan(0, 7), 3, np.array([1])),
        TripClass(CellSpan(4, 7), CellSpan(0, 7), CellSpan(0, 7), 0, np.zeros(0, np.int64)),
    ],
    ids=["fewer than k", "not in steps of k", "more than there are", "a road of one", "nobody"],
)
def test_the_check_finds_what_breaks_the_promise(broken: TripClass) -> None:
    found = window([(0, 0, 1, 0, (1,)), (1, 1, 1, 0, ()), (2, 2, 1, 0, ()), (3, 3, 1, 0, ())])
    assert unkept(found, [broken], 3) == [0]
    whole = broken._replace(origin=CellSpan(0, 7), n_devices=3, roads=np.zeros(0, np.int64))
    assert unkept(found, [whole], 3) == []
    assert unkept(found, [whole, whole], 3) == [0, 1]


def test_a_cell_has_two_k_nodes() -> None:
    network = load_network("grid:20x20")
    assert n_cells_of(network, 10) == 16  # of 25 nodes
    assert n_cells_of(network, 12) == 16
    assert n_cells_of(network, 13) == 8
    assert n_cells_of(load_network("grid:2x2"), 10) == 1

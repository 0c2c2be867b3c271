"""Habits: what days say about later ones, on cases that can be counted by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.releases.pieces import PieceRegions
from anonymizer.audit.mathematics.habits import (
    DAY_S,
    Days,
    Said,
    day_number,
    expected_in,
    is_weekend,
    learn_habits,
    slot_of,
    where,
)

MONDAY = 4 * DAY_S
"""1970 began with a Thursday."""
EIGHT_S, TEN_S = 8 * 3600.0, 10 * 3600.0
N_NODES = 6
USUAL = ((0, EIGHT_S, 0), (1, EIGHT_S, 3), (0, TEN_S, 3), (1, TEN_S, 0))


def of(*reports: tuple[int, float, int]) -> Days:
    device, ts, node = zip(*reports, strict=True)
    return Days(np.array(device), np.array(ts, np.float64), np.array(node, np.int32))


def regular(n_days: int) -> Days:
    """Return days on which 0 is at node 0 at 8:00, and 1 at node 3; at 10:00 they change places."""
    return of(
        *(
            (device, MONDAY + day * DAY_S + at_s, node)
            for day in range(n_days)
            for device, at_s, node in (
                (0, EIGHT_S, 0),
                (1, EIGHT_S, 3),
                (0, TEN_S, 3),
                (1, TEN_S, 0),
            )
        )
    )


def said(*records: tuple[float, float, tuple[tuple[int, ...], ...]]) -> Said:
    """Return records of time, number of devices, and nodes of each piece."""
    pieces = [piece for *_, region in records for piece in region]
    return Said(
        np.array([ts for ts, *_ in records]),
        np.arange(len(records)),
        np.array([n for _, n, _ in records], np.float64),
        PieceRegions(
            np.cumsum([0, *(len(region) for *_, region in records)]),
            np.cumsum([0, *map(len, pieces)]),
            np.concatenate(pieces).astype(np.int32),
        ),
    )


def test_times_of_working_days_and_of_the_weekend_are_apart() -> None:
    day = day_number(MONDAY + DAY_S * np.arange(7.0))
    assert is_weekend(day).tolist() == [0, 0, 0, 0, 0, 1, 1]
    ts = np.array([MONDAY, MONDAY + DAY_S + 299.0, MONDAY + 300.0, MONDAY + 5 * DAY_S])
    assert slot_of(ts).tolist() == [0, 0, 1, 288]
    assert slot_of(ts, 1800.0).tolist() == [0, 0, 0, 48]


def test_whoever_is_always_there_at_that_time_is_expected_in_the_group() -> None:
    habits = learn_habits(regular(4), np.arange(2), n_devices=2, n_nodes=N_NODES)
    eight, ten = MONDAY + 4 * DAY_S + EIGHT_S, MONDAY + 4 * DAY_S + TEN_S
    found = expected_in(habits, said((eight, 1.0, ((0, 1),)), (ten, 1.0, ((0, 1),))))
    assert found[0, 0] > 5 * found[1, 0], "at eight it is the first"
    assert found[1, 1] > 5 * found[0, 1], "at ten the second"


@given(st.integers(0, 2**32 - 1))
def test_all_devices_together_are_expected_as_often_as_there_are_devices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 30
    days = Days(
        rng.integers(5, size=n),
        MONDAY + rng.uniform(0, 9 * DAY_S, n),
        rng.integers(N_NODES, size=n).astype(np.int32),
    )
    habits = learn_habits(days, np.arange(5), n_devices=5, n_nodes=N_NODES)
    ts = MONDAY + rng.uniform(10 * DAY_S, 17 * DAY_S, 2)
    records = said((ts[0], 3.0, ((0, 1), (4,))), (ts[1], 2.0, ((2,),)))
    assert expected_in(habits, records).sum(axis=0) == pytest.approx([3.0, 2.0])


def test_habits_of_one_target_are_those_that_it_has_among_all() -> None:
    days = regular(6)
    every = learn_habits(days, np.arange(2), n_devices=2, n_nodes=N_NODES)
    one = learn_habits(days, np.array([1]), n_devices=2, n_nodes=N_NODES)
    records = said((MONDAY + 7 * DAY_S + EIGHT_S, 2.0, ((0, 1), (3, 4))))
    same_weights = one._replace(weight=every.weight)
    assert expected_in(same_weights, records)[0] == pytest.approx(expected_in(every, records)[1])


def test_the_days_that_are_held_out_say_how_regular_people_are() -> None:
    targets = np.arange(2)
    on_time = learn_habits(regular(9), targets, n_devices=2, n_nodes=N_NODES).weight
    rng = np.random.default_rng(1)
    n = 400
    anywhere = Days(
        rng.integers(2, size=n),
        MONDAY + np.floor(rng.uniform(0, 9, n)) * DAY_S + rng.uniform(0, DAY_S, n),
        rng.integers(N_NODES, size=n).astype(np.int32),
    )
    at_random = learn_habits(anywhere, targets, n_devices=2, n_nodes=N_NODES).weight
    assert on_time[:2].sum() > 0.7
    assert at_random[:2].sum() < 0.4


def test_a_release_says_where_somebody_is_whose_habits_are_known() -> None:
    habits = learn_habits(regular(4), np.arange(2), n_devices=2, n_nodes=N_NODES)
    now = MONDAY + 4 * DAY_S + EIGHT_S
    none = said((now, 2.0, ((0, 1), (5,))))
    alone = where(habits, none, np.zeros(0, np.int64), np.array([0]), now)
    told = where(habits, none, np.zeros(1, np.int64), np.array([0]), now)
    assert alone.sum() == pytest.approx(1)
    assert told.sum() == pytest.approx(1)
    assert alone[0].argmax() == 0
    assert told[0, 5] > alone[0, 5], "a piece that nobody is usually in holds one"
    assert told[0, 3] < alone[0, 3], "where nothing is published there are few"

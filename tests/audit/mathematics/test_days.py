"""Homes: places where devices vanish day after day."""

import numpy as np

from anonymizer.algorithms.releases.pieces import read_regions
from anonymizer.audit.mathematics.days import (
    DAY_S,
    day_of,
    n_days_with,
    pieces_held_at,
    pieces_within,
    vanishings,
)
from anonymizer.networks import load_network
from tests.audit.mathematics.made import Line, observed_of

PATH = load_network("grid:1x6")
PAIRS = np.array([0, 0, 1, 1, 2, 2])


def test_days_are_counted_from_the_first_one() -> None:
    assert day_of(np.array([3.0, DAY_S - 1, DAY_S, 3 * DAY_S]) + 7 * DAY_S).tolist() == [0, 0, 1, 3]


def test_pieces_that_regions_contain_whole_are_held() -> None:
    lines: list[Line] = [(0, 0, (0, 1, 2), 1), (0, 1, (2, 3), 1), (1, 1, (4, 5), 1)]
    observed = observed_of(lines)
    held = pieces_held_at(observed, read_regions(observed, PAIRS), PAIRS)
    assert held.tolist() == [[True, False, False], [False, True, True]]


def test_a_device_vanishes_where_neither_a_piece_nor_its_neighbours_are_held_later() -> None:
    held = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0]], bool)
    touching = pieces_within(PATH, PAIRS, reach_s=0.0)
    assert touching.toarray().tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    time = np.arange(5.0)
    assert np.argwhere(vanishings(held, touching, time, within_s=1.0)).tolist() == [[2, 1], [4, 0]]
    # The next device beside it appears two seconds later.
    assert np.argwhere(vanishings(held, touching, time, within_s=2.0)).tolist() == [[4, 0]]


def test_a_device_has_not_vanished_that_may_have_driven_on_since() -> None:
    # From the end of the first pair, the middle of the road to the third one is 24 seconds away.
    for reach_s, there in ((23.0, 0), (24.0, 1)):
        reached = pieces_within(PATH, PAIRS, reach_s=reach_s)
        assert reached.toarray()[0].tolist() == [1, 1, there]
    held = np.array([[1, 0, 0], [0, 0, 1]], bool)
    time = np.array([0.0, 30.0])
    assert np.argwhere(vanishings(held, reached, time, within_s=30.0)).tolist() == [[1, 2]]


def test_several_events_of_a_day_count_once() -> None:
    events = np.array([[1, 0], [1, 0], [0, 0], [1, 1]], bool)
    assert n_days_with(events, np.array([0, 0, 1, 1])).tolist() == [2, 1]

"""Passages as devices report: the same as of all reports at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions import live_passages
from anonymizer.algorithms.positions.live_passages import LivePassages
from anonymizer.algorithms.positions.street_hours import (
    Passages,
    PassageSums,
    passages_of,
    together,
)
from anonymizer.cluster.packed_state import pack, unpack

EVERY_S, GAP_S = 10.0, 4.0
reports = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 39), st.integers(0, 3), st.integers(0, 3)),
    max_size=40,
)
"""Device, second, place and road."""


def columns(rows: list[tuple[int, int, int, int]]) -> tuple[np.ndarray, ...]:
    device, ts, place, road = np.array(rows, np.int64).reshape(-1, 4).T
    return device, ts.astype(np.float64), 60 + place * 1e-4, np.full(len(ts), 24.0), road


def of_all(rows: list[tuple[int, int, int, int]]) -> Passages:
    """Return the passages of all reports but the late ones."""
    kept, newest = [], dict[int, int]()
    for row in rows:
        if row[1] > newest.get(row[0], -1):
            newest[row[0]] = row[1]
            kept.append(row)
    return passages_of(*columns(kept), every_s=EVERY_S, gap_s=GAP_S)


def assert_same(found: PassageSums | None, expected: Passages) -> None:
    """Check that passages are the same to the last bit, however they were added up."""
    assert found is not None
    for a, b in zip(found.passages(), expected, strict=True):
        np.testing.assert_array_equal(a, b)


@given(reports, st.integers(1, 8))
def test_reports_that_come_one_after_the_other_make_the_same_passages(
    rows: list[tuple[int, int, int, int]], per_tick: int
) -> None:
    live = LivePassages(every_s=EVERY_S, gap_s=GAP_S)
    rows = sorted(rows, key=lambda row: row[1])
    for first in range(0, len(rows), per_tick):
        live.add(*columns(rows[first : first + per_tick]))
        live._fold()  # as if many waited
    expected = of_all(rows)
    for interval in range(4):
        assert_same(live.take(interval), expected.at(expected.interval == interval))


@given(reports, st.integers(1, 8), st.sets(st.integers(0, 40)), st.integers(0, 40))
def test_it_does_not_matter_how_many_add_up_and_when_and_whether_one_begins_again(
    rows: list[tuple[int, int, int, int]], per_tick: int, folds: set[int], restart: int
) -> None:
    """Late reports, too: what is late depends on the turns in which they came."""
    ticks = [rows[first : first + per_tick] for first in range(0, len(rows), per_tick)]
    one = LivePassages(every_s=EVERY_S, gap_s=GAP_S)
    several = [LivePassages(every_s=EVERY_S, gap_s=GAP_S) for _ in range(2)]
    for turn, said in enumerate(ticks):
        one.add(*columns(said))
        for number, live in enumerate(several):
            live.add(*columns([row for row in said if row[0] % 2 == number]))
            if turn in folds:
                live._fold()
            if turn == restart:
                state = unpack(pack(live.state()))
                several[number] = LivePassages(every_s=EVERY_S, gap_s=GAP_S)
                several[number].restore(state)
    for interval in range(4):
        whole = one.take(interval)
        parts = [part for live in several if (part := live.take(interval)) is not None]
        assert whole is not None
        joined = together(parts)
        np.testing.assert_array_equal(joined.key, whole.key)
        np.testing.assert_array_equal(joined.sums, whole.sums)


@given(reports)
def test_a_report_that_is_no_newer_than_the_last_is_left_out(
    rows: list[tuple[int, int, int, int]],
) -> None:
    live = LivePassages(every_s=EVERY_S, gap_s=GAP_S)
    for row in rows:
        live.add(*columns([row]))
        live._fold()
    expected = of_all(rows)
    assert_same(live.take(0), expected.at(expected.interval == 0))


def test_who_takes_no_part_any_more_is_in_no_passage() -> None:
    live = LivePassages(every_s=EVERY_S, gap_s=GAP_S)
    live.add(*columns([(1, 1, 0, 0), (2, 1, 0, 0), (2, 2, 1, 0)]))
    live.forget(np.array([2]))
    live.add(*columns([(1, 3, 1, 0)]))
    assert_same(live.take(0), of_all([(1, 1, 0, 0), (1, 3, 1, 0)]))


def test_an_interval_with_more_passages_than_there_is_room_for_is_not_told() -> None:
    live = LivePassages(every_s=EVERY_S, gap_s=GAP_S, most=3)
    live.add(*columns([(d, 1, 0, 0) for d in range(4)]))
    assert live.take(0) is None
    live.add(*columns([(d, 11, 0, 0) for d in range(3)]))
    found = live.take(1)
    assert found is not None
    assert found.passages().device.tolist() == [0, 1, 2]


def test_reports_are_added_up_before_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_passages, "_MOST_WAITING", 10)
    live, rows = LivePassages(every_s=EVERY_S, gap_s=GAP_S), [(0, s, 0, 0) for s in range(9)]
    for row in rows * 3:
        live.add(*columns([row]))
        assert live._n_waiting <= 10
    assert_same(live.take(0), of_all(rows))

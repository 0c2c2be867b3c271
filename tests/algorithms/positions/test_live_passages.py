"""Passages as devices report: the same as of all reports at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions import live_passages
from anonymizer.algorithms.positions.live_passages import LivePassages
from anonymizer.algorithms.positions.street_hours import Passages, passages_of

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


def assert_same(found: Passages | None, expected: Passages) -> None:
    assert found is not None
    for a, b in zip(found[:3], expected[:3], strict=True):
        assert a.tolist() == b.tolist()
    assert found.speed_mps.tolist() == pytest.approx(expected.speed_mps.tolist(), nan_ok=True)


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
    assert found.device.tolist() == [0, 1, 2]


def test_reports_are_added_up_before_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_passages, "_MOST_WAITING", 10)
    live, rows = LivePassages(every_s=EVERY_S, gap_s=GAP_S), [(0, s, 0, 0) for s in range(9)]
    for row in rows * 3:
        live.add(*columns([row]))
        assert live._n_waiting <= 10
    assert_same(live.take(0), of_all(rows))

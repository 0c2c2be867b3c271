"""Leaving home: departures are found in the reports, and told from what a release covers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.departures import auc, departures, n_held_after
from anonymizer.domain.arrays import FloatArray


def test_a_device_leaves_when_it_reports_after_a_long_silence() -> None:
    device = np.array([0, 1, 0, 1, 0, 1])
    ts = np.array([0.0, 5.0, 60.0, 500.0, 65.0, 1000.0])
    piece = np.array([3, 4, 3, -1, 5, 6])
    left = departures(device, ts, piece, parked_s=50.0)
    assert left.device.tolist() == [0, 0, 1, 1]
    assert left.piece.tolist() == [3, 3, 4, 6], "what is in no piece is no place"
    assert left.ts.tolist() == [0.0, 60.0, 5.0, 1000.0]
    assert repr(left) == "Departures(...)"


def test_without_reports_nobody_leaves() -> None:
    none = np.zeros(0, np.int64)
    assert len(departures(none, np.zeros(0), none, parked_s=9.0).ts) == 0


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=12))
def test_publications_after_a_moment_equal_those_of_a_plain_count(held: list[list[bool]]) -> None:
    time: FloatArray = np.arange(len(held)) * np.float64(10.0)
    for piece in range(3):
        for ts in (-5.0, 0.0, 7.0, 40.0, 200.0):
            found = n_held_after(
                np.array(held), time, np.array([piece]), np.array([ts]), within_s=25.0
            )
            assert found.tolist() == [
                sum(row[piece] for row, at in zip(held, time, strict=True) if ts <= at <= ts + 25)
            ]


def test_the_area_counts_ties_by_half() -> None:
    others = np.array([[1, 1, 0, 2], [0, 0, 0, 0]])
    assert auc(np.array([1, 5]), others).tolist() == [0.5, 1.0]

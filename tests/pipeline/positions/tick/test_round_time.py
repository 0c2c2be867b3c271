"""Rounding of published times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.positions.out.encoding import round_time


@given(st.floats(0, 4e9), st.integers(1, 86_400))
def test_a_time_is_rounded_down_to_the_last_multiple_of_the_step(ts: float, step_s: int) -> None:
    rounded = round_time(ts, step_s)
    assert rounded % step_s == 0
    assert rounded <= ts < rounded + step_s
    assert round_time(rounded, step_s) == rounded


def test_all_ticks_within_a_step_have_the_same_time() -> None:
    ticks = [1_700_000_000 + i / 10 for i in range(100)]
    assert {round_time(ts, 10) for ts in ticks} == {1_700_000_000}


def test_a_step_of_zero_leaves_times_as_they_are() -> None:
    assert round_time(1.25, 0) == 1.25


def test_a_negative_step_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        round_time(1.0, -1)

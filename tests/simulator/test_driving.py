"""Speed profiles of driving: distances, speeds and accelerations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.driving import ACCELERATION_MPS2, profile


@given(
    length_m=st.floats(0.1, 3000),
    cruise=st.floats(0.35, 40),
    entry=st.floats(0, 1),
    leave=st.floats(0, 1),
)
def test_a_profile_covers_its_arc_without_exceeding_the_cruising_speed(
    length_m: float, cruise: float, entry: float, leave: float
) -> None:
    entry, leave = entry * cruise, leave * cruise
    peak, acceleration, up_s, flat_s = profile(length_m, cruise, entry, leave)
    down_s = (peak - leave) / acceleration
    slack = 1e-9 * cruise
    assert acceleration >= ACCELERATION_MPS2
    assert max(entry, leave) - slack <= peak <= cruise
    assert up_s >= -1e-9
    assert flat_s >= 0
    assert down_s >= -1e-9
    metres = (entry + peak) / 2 * up_s + peak * flat_s + (peak + leave) / 2 * down_s
    assert metres == pytest.approx(length_m, rel=1e-6)


def test_a_long_arc_from_stop_to_stop_is_driven_at_the_cruising_speed() -> None:
    peak, acceleration, up_s, flat_s = profile(1000.0, 15.0, 0.0, 0.0)
    assert (peak, acceleration, up_s) == (15.0, ACCELERATION_MPS2, 10.0)
    assert flat_s == pytest.approx((1000 - 150) / 15)


def test_a_short_arc_is_left_before_the_cruising_speed_is_reached() -> None:
    peak, _, _, flat_s = profile(6.0, 15.0, 0.0, 0.0)
    assert peak == pytest.approx(np.sqrt(ACCELERATION_MPS2 * 6.0))
    assert flat_s == pytest.approx(0.0)

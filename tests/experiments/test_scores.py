"""Scores: success beside its control, with an interval over victims."""

import numpy as np
import pytest

from experiments.scores import Score


def test_a_score_has_an_interval_and_its_worst_tenth() -> None:
    success = np.repeat([1.0, 0.0], [10, 90])
    row = Score("attack", "release", success, np.repeat([1.0, 0.0], [5, 95]), 1.0, 0.2).row()
    assert row["success"] == pytest.approx(0.1)
    # The exact interval of 10 of 100 is .05 to .18.
    assert 0.03 < row["low"] < 0.06
    assert 0.14 < row["high"] < 0.19
    assert row["times"] == pytest.approx(2)
    assert row["times_low"] < 1.3
    assert (row["tenth"], row["tenth_control"]) == (1.0, 0.5)
    assert (row["victims"], row["promised"]) == (100, 0.2)


def test_victims_without_a_trial_are_left_out() -> None:
    row = Score("attack", "release", np.array([1.0, np.nan]), np.array([0.5, 0.5]), 1.0).row()
    assert (row["victims"], row["success"], row["control"]) == (1, 1.0, 0.5)
    none = Score("attack", "release", np.full(2, np.nan), np.ones(2), 1.0).row()
    assert none == {"attack": "attack", "release": "release", "victims": 0}

"""When followers of devices begin: not where part of what they are said to read is missing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.attacks.tracking import EARLIER_S, HINDSIGHT_S, HORIZONS_MIN
from anonymizer.audit.mathematics.truth import TIME_SLACK_S, Truth
from anonymizer.audit.stretches import Stretch, stretches

STEP_S = 10.0
N_STARTS = 4
WHOLE_S = EARLIER_S + 60.0 * HORIZONS_MIN[-1] + HINDSIGHT_S


def begun(seconds: int, seed: int) -> tuple[Observed, list[Stretch]]:
    """Return a release of one pseudonym at each second, and stretches of it."""
    n, zero = seconds + 1, np.zeros(1, np.int64)
    time, record = 1e9 + np.arange(n, dtype=float), np.arange(n)
    observed = Observed(
        time, np.array([0, n]), record, 0 * record, 5 + 0 * record, np.array([0, 1]),
        zero.astype(np.int32),
    )  # fmt: skip
    truth = Truth(np.zeros((n, 8), np.int32), np.ones((n, 8), bool), zero)
    found = stretches(
        observed, truth, HORIZONS_MIN, step_s=STEP_S, n_starts=N_STARTS, n_targets=2,
        rng=np.random.default_rng(seed), before_s=EARLIER_S, ahead_s=HINDSIGHT_S,
    )  # fmt: skip
    return observed, found


@given(seconds=st.integers(int(WHOLE_S) + N_STARTS - 1, 900), seed=st.integers(0, 99))
def test_all_that_is_read_before_and_after_a_stretch_has_been_released(
    seconds: int, seed: int
) -> None:
    observed, found = begun(seconds, seed)
    assert len(found) == N_STARTS
    for each in found:
        assert each.steps_s[0] - EARLIER_S >= observed.time[0] - TIME_SLACK_S
        assert each.steps_s[-1] <= observed.time[-1] + TIME_SLACK_S
        assert each.steps_s[-1] - each.steps_s[0] >= 60 * HORIZONS_MIN[-1] + HINDSIGHT_S - STEP_S


@given(
    seconds=st.integers(60 * HORIZONS_MIN[-1], int(WHOLE_S) + N_STARTS - 2), seed=st.integers(0, 99)
)
def test_a_release_that_is_too_short_for_both_is_attacked_with_what_there_is(
    seconds: int, seed: int
) -> None:
    observed, found = begun(seconds, seed)
    assert found
    assert all(each.steps_s[each.at[-1]] <= observed.time[-1] + TIME_SLACK_S for each in found)

"""The pace: how long devices count as present, by how often they report."""

import numpy as np
import pytest

from anonymizer.algorithms.positions.pace import STEPS_S, Pace


def drive(pace: Pace, every_s: float, *, n: int = 20, seconds: int = 1200, start: int = 0) -> None:
    """Let devices report at their own phases, and the pace take that in."""
    for now in range(start, start + seconds):
        slot = np.flatnonzero((now - np.arange(n) * every_s / n) % every_s < 1).astype(np.int32)
        pace.advance(slot, np.full(len(slot), float(now)), now=now)


@pytest.mark.parametrize(
    ("every_s", "interval_s", "epoch_s", "ttl_s"),
    [
        (1, 30, 60, 120),
        (30, 30, 60, 120),
        (45, 60, 60, 150),
        (100, 120, 120, 300),
        (300, 300, 300, 750),
        (900, 300, 300, 750),
    ],
)
def test_epoch_and_time_to_live_follow_the_interval_of_the_devices(
    every_s: float, interval_s: float, epoch_s: float, ttl_s: float
) -> None:
    pace = Pace(ttl_s=120, epoch_s=60, follows=True)
    drive(pace, every_s, seconds=2000)
    assert (pace.interval_s, pace.epoch_s, pace.ttl_s) == (interval_s, epoch_s, ttl_s)
    assert pace.epoch_s <= pace.longest_epoch_s == 300


def test_without_following_nothing_changes() -> None:
    pace = Pace(ttl_s=120, epoch_s=60)
    drive(pace, 300)
    assert (pace.epoch_s, pace.ttl_s, pace.longest_epoch_s) == (60, 120, 60)


def test_the_longest_interval_is_assumed_while_most_devices_have_reported_once() -> None:
    # Else devices that expire before their second report would never show how slow they are.
    pace = Pace(ttl_s=120, epoch_s=60, follows=True)
    assert pace.interval_s == STEPS_S[-1]
    pace.advance(np.arange(10, dtype=np.int32), np.zeros(10), now=0)
    assert pace.interval_s == STEPS_S[-1]
    # That makes nobody wait for a longer epoch, and none shorter when it becomes known.
    assert (pace.epoch_s, pace.ttl_s) == (60, 60 + 1.5 * STEPS_S[-1])
    pace.advance(np.arange(6, dtype=np.int32), np.full(6, 10.0), now=10)
    assert pace.interval_s == STEPS_S[0]
    assert (pace.epoch_s, pace.ttl_s) == (60, 120)


@pytest.mark.parametrize(("every_s", "epoch_s"), [(10.0, 60), (300.0, 300)])
def test_many_new_devices_change_no_epoch_before_they_show_how_slow_they_are(
    every_s: float, epoch_s: float
) -> None:
    pace = Pace(ttl_s=120, epoch_s=60, follows=True)
    drive(pace, every_s, n=20, seconds=700)
    pace.advance(np.arange(20, 60, dtype=np.int32), np.full(40, 700.0), now=705)
    assert (pace.interval_s, pace.epoch_s) == (STEPS_S[-1], epoch_s)
    again = Pace(ttl_s=120, epoch_s=60, follows=True)
    again.restore(pace.state())
    assert again.epoch_s == epoch_s


def test_a_few_slow_devices_do_not_slow_down_the_others() -> None:
    pace = Pace(ttl_s=120, epoch_s=60, follows=True)
    for now in range(0, 600, 10):
        slot = np.arange(20 if now % 200 == 0 else 19, dtype=np.int32)
        pace.advance(slot, np.full(len(slot), float(now)), now=now)
    assert pace.interval_s == STEPS_S[0]


def test_a_device_that_was_absent_begins_anew() -> None:
    pace = Pace(ttl_s=120, epoch_s=60, follows=True)
    slot = np.zeros(1, np.int32)
    pace.advance(slot, np.array([0.0]), now=0)
    pace.forget(np.arange(5000, dtype=np.int32))
    pace.advance(slot, np.array([200.0]), now=200)
    pace.advance(slot, np.array([210.0]), now=210)
    assert pace.interval_s == STEPS_S[0], "the 200 seconds before are not an interval"


def test_a_clock_that_is_put_back_does_not_stop_the_looks() -> None:
    pace = Pace(ttl_s=120, epoch_s=60, follows=True)
    drive(pace, 100, start=100_000)
    drive(pace, 1, start=0, seconds=30)
    assert pace.interval_s == STEPS_S[0]

"""Trust: a wrong or repeated position is nobody's company, and costs its own device alone."""

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.trust import SLACK_M, Claims, Trust
from anonymizer.domain.arrays import UInt8Array
from anonymizer.domain.outcomes import Outcome
from tests.naive import haversine_m

HELD, JUMP, AGELESS = (
    Outcome.HELD,
    Outcome.SUPPRESSED__IMPLAUSIBLE_JUMP,
    Outcome.SUPPRESSED__AGE_UNKNOWN,
)
NOW = 1_800_000_000.0
KM = 1 / 111.2
"""Degrees of latitude."""


def claims(*rows: tuple[int, float, float, float], undated: bool = False) -> Claims:
    """Return claims of (slot, seconds after NOW, lat, lon), each in a message of its own."""
    slot, ts, lat, lon = zip(*rows, strict=True)
    n = len(rows)
    return Claims(
        np.array(slot, np.int32),
        NOW + np.array(ts, np.float64),
        np.array(lat, np.float64),
        np.array(lon, np.float64),
        np.full(n, undated),
        np.ones(n, np.bool_),
        np.arange(n),
    )


def judged(trust: Trust, made: Claims, *, max_mps: float = 70.0, now: float = NOW) -> list[Outcome]:
    """Return the outcomes."""
    limit = np.full(len(made.slot), max_mps)
    return [Outcome(each) for each in trust.judge(made, max_mps=limit, now=now).tolist()]


def test_a_place_that_cannot_be_reached_is_refused_and_the_next_one_near_the_last_is_not() -> None:
    trust = Trust()
    rows = [(0, 0.0, 60.0, 25.0), (0, 10.0, 60.3, 25.0), (0, 20.0, 60.001, 25.0)]
    assert judged(trust, claims(*rows)) == [HELD, JUMP, HELD]


def test_alternating_between_two_towns_is_never_believed_in_the_other_one() -> None:
    trust = Trust()
    rows = [(0, 10.0 * i, 60.0 + 0.3 * (i % 2), 25.0) for i in range(40)]
    assert judged(trust, claims(*rows)) == [HELD, JUMP] * 20


def test_who_was_silent_for_long_enough_may_be_anywhere_that_can_be_reached() -> None:
    trust = Trust()
    rows = [(0, 0.0, 60.0, 25.0), (0, 3600.0, 60.0 + 200 * KM, 25.0)]
    assert judged(trust, claims(*rows)) == [HELD, HELD]


def test_a_train_a_ferry_and_bursts_of_what_was_queued_are_no_jumps() -> None:
    rows = [(0, i, 60.0 + i * 0.065 * KM, 25.0) for i in range(60)]  # 65 m/s
    queued = [(1, 60.0 + i / 10, 60.0 + i * 0.3 * KM, 25.0) for i in range(4)]
    assert set(judged(Trust(), claims(*rows, *queued))) == {HELD}


def test_the_date_line_and_the_poles_are_crossed_without_a_jump() -> None:
    rows = [(0, 0.0, 10.0, 179.999), (0, 10.0, 10.0, -179.999)]
    rows += [(1, 0.0, 89.999, 10.0), (1, 10.0, 89.999, 120.0)]
    assert set(judged(Trust(), claims(*rows))) == {HELD}


def test_what_repeats_a_place_without_a_time_counts_for_nobody() -> None:
    trust = Trust()
    here = claims((0, 0.0, 60.0, 25.0), undated=True)
    assert [judged(trust, here)[0] for _ in range(3)] == [AGELESS] * 3
    moved = claims((0, 0.0, 60.001, 25.0), undated=True)
    assert judged(trust, moved) == [HELD]
    assert judged(trust, moved) == [AGELESS]
    assert judged(trust, claims((0, 1.0, 60.001, 25.0))) == [HELD]


def test_a_time_of_its_own_is_believed_at_once() -> None:
    trust = Trust()
    judged(trust, claims((0, 0.0, 60.0, 25.0), undated=True))
    assert judged(trust, claims((0, 1.0, 60.0, 25.0))) == [HELD]


def _polled(second: float, *, message: Sequence[int]) -> Claims:
    rows = [(slot, second, 60.0 + slot * KM, 25.0) for slot in range(len(message))]
    return claims(*rows)._replace(message=np.array(message))


def test_a_time_that_devices_share_to_the_digit_is_that_of_a_poll() -> None:
    for second, message in ((30.0, [0, 0, 0]), (30.25, [0, 1, 2])):
        trust = Trust()
        assert judged(trust, _polled(second - 30, message=message)) == [AGELESS] * 3
        assert judged(trust, _polled(second, message=message)) == [AGELESS] * 3
        recorded = _polled(second + 30, message=message)._replace(hearsay=None)
        assert judged(trust, recorded) == [HELD] * 3


def test_who_reports_at_the_moment_of_the_poll_is_believed_at_the_next_one() -> None:
    trust = Trust()
    made = _polled(0.0, message=[0] * 4)
    made.ts[:] = NOW + np.array([-9.0, -5.0, 0.0, 0.0])  # two reported in the newest second
    assert judged(trust, made) == [HELD, HELD, AGELESS, AGELESS]
    later = made._replace(ts=made.ts + np.array([0.0, 20.0, 0.0, 0.0]))
    assert judged(trust, later) == [HELD] * 4


def test_a_device_that_speaks_for_itself_may_repeat_its_place_without_a_time() -> None:
    trust = Trust()
    here = claims((0, 0.0, 60.0, 25.0), (1, 0.0, 60.1, 25.0), undated=True)
    for each in (None, np.array([False, True])):
        found = judged(trust, here._replace(hearsay=each))
    assert found == [HELD, AGELESS]


def test_whole_seconds_that_messages_share_by_chance_are_their_own() -> None:
    trust = Trust()
    judged(trust, _polled(0.0, message=[0, 1, 2]))
    assert judged(trust, _polled(30.0, message=[3, 4, 5])) == [HELD] * 3
    alone = _polled(60.0, message=[6])
    assert judged(trust, alone) == [HELD]


def test_a_poll_of_what_moves_is_believed() -> None:
    trust = Trust()
    for i in range(4):
        made = _polled(30.0 * i, message=[i] * 3)
        found = judged(trust, made._replace(lat=made.lat + i * 0.1 * KM))
        assert found == [HELD if i else AGELESS] * 3


def test_a_slot_that_passes_to_another_device_remembers_nothing() -> None:
    trust = Trust()
    judged(trust, claims((0, 0.0, 60.0, 25.0)))
    trust.free(np.array([0, 9], np.int32))
    assert judged(trust, claims((0, 1.0, 10.0, 25.0))) == [HELD]
    assert len(trust.unheard(before=NOW)) == 0
    assert trust.unheard(before=NOW + 1).tolist() == [0]


def test_a_restored_trust_goes_on_alike() -> None:
    trust, again = Trust(), Trust()
    judged(trust, claims((0, 0.0, 60.0, 25.0)))
    again.restore(trust.state())
    later = claims((0, 1.0, 61.0, 25.0))
    assert judged(again, later) == judged(trust, later) == [JUMP]


def test_nothing_is_judged_of_nobody() -> None:
    nobody = claims((0, 0.0, 60.0, 25.0)).only(np.zeros(0, np.int64))
    assert len(Trust().judge(nobody, max_mps=np.zeros(0), now=NOW)) == 0


class _Naive:
    """The same with a dictionary, one claim after the other."""

    def __init__(self) -> None:
        self.place: dict[int, tuple[float, float]] = {}
        self.ts: dict[int, float] = {}

    def judge(self, made: Claims, max_mps: float) -> list[Outcome]:
        assert made.message is not None
        columns = (made.slot, made.ts, made.lat, made.lon, made.undated, made.message)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        before = dict(self.place)
        found = []
        for slot, ts, lat, lon, undated, message in rows:
            peers = [r for r in rows if r[1] % 1 or r[5] == message]
            peers = [r for r in peers if bool(r[1] % 1) == bool(ts % 1)]
            sharing = {r[0] for r in peers if r[1] == ts}
            polled = len(sharing) > 1 and ts == max(r[1] for r in peers)
            polled &= before.get(slot, (lat, lon)) == (lat, lon)
            found.append(
                self._one(slot, ts, (lat, lon), ageless=undated or polled, max_mps=max_mps)
            )
        return found

    def _one(
        self, slot: int, ts: float, place: tuple[float, float], *, ageless: bool, max_mps: float
    ) -> Outcome:
        was = self.place.get(slot)
        if ageless and (was is None or was == place):
            self.place[slot] = place
            return AGELESS
        if slot in self.ts and was is not None:
            allowed_m = SLACK_M + max_mps * abs(ts - self.ts[slot])
            if haversine_m(*was, *place) > allowed_m:
                return JUMP
        if ts >= self.ts.get(slot, -math.inf):
            self.place[slot], self.ts[slot] = place, ts
        return HELD


_CLAIM = st.tuples(
    st.integers(0, 3),
    st.sampled_from([0.0, 1.0, 1.5, 2.0, 30.0]),
    st.sampled_from([60.0, 60.001, 60.02, 60.3]),
    st.sampled_from([25.0, 25.02, -155.0]),
    st.booleans(),
    st.integers(0, 2),
)


@given(ticks=st.lists(st.lists(_CLAIM, min_size=1, max_size=8), min_size=1, max_size=4))
def test_the_kernel_judges_as_a_dictionary_would(
    ticks: list[list[tuple[int, float, float, float, bool, int]]],
) -> None:
    trust, naive = Trust(), _Naive()
    for number, tick in enumerate(ticks):
        ordered = sorted(tick, key=lambda claim: claim[5])
        made = claims(*((c[0], c[1] + 40 * number, c[2], c[3]) for c in ordered))
        made = made._replace(
            undated=np.array([c[4] for c in ordered]), message=np.array([c[5] for c in ordered])
        )
        found: UInt8Array = trust.judge(made, max_mps=np.full(len(ordered), 50.0), now=NOW)
        assert [Outcome(each) for each in found.tolist()] == naive.judge(made, 50.0)

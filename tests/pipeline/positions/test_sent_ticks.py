import numpy as np

from anonymizer.algorithms.positions.district_routing import Sent, no_rows
from anonymizer.algorithms.positions.operator import newest_of
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.packed_state import pack, unpack
from anonymizer.pipeline.positions.sent_ticks import SentTick, SentTicks
from anonymizer.pipeline.positions.stage_messages import Report
from anonymizer.pipeline.positions.trip_guard import Positions

HELD, PUBLISHED = int(Outcome.HELD), int(Outcome.PUBLISHED)
NONE = np.zeros(0, np.int32)


def slots(*numbers: int) -> Int32Array:
    return np.array(numbers, np.int32)


def sent(tick: int, slot: int) -> SentTick:
    """Return a tick with one position, which is in the territory of district 0."""
    at, ts = slots(slot), np.array([1.0])
    positions = Positions(at, ts, ts, ts, ts)
    newest = newest_of(np.array([HELD], np.uint8), at, ts, slots(5))
    routed = Sent([0, 1], [no_rows()] * 2, [np.array([0]), np.array([0])], np.array([0]))
    return SentTick.of(tick, positions, np.zeros(1, bool), newest, routed, n_lanes=2)


def report(lane: int, tick: int, *, batches: dict[int, int], released: Int32Array = NONE) -> Report:
    outcome = [np.array([each], np.uint8) for each in batches.values()]
    return Report(lane, tick, np.zeros(2, np.int64), list(batches), outcome, released, NONE, NONE)


def test_a_tick_is_booked_when_both_districts_have_reported_it() -> None:
    ticks = SentTicks(2)
    ticks.add(sent(7, 3))
    assert ticks.read(report(0, 7, batches={7: HELD}))
    assert ticks.pop() is None
    assert (ticks.oldest, ticks.n_positions) == (7, 1)
    assert ticks.read(report(1, 7, batches={7: PUBLISHED}, released=slots(3)))
    booked = ticks.pop()
    assert booked is not None
    assert booked.outcome.tolist() == [PUBLISHED], "a guest, where its group lives on"
    assert (ticks.oldest, ticks.n_positions) == (None, 0)


def test_a_device_released_at_two_ticks_is_booked_once_and_shared_by_nobody() -> None:
    ticks = SentTicks(2)
    ticks.add(sent(7, 3))
    ticks.read(report(0, 6, batches={}, released=slots(3)))
    ticks.read(report(0, 8, batches={7: PUBLISHED}, released=slots(3)))
    ticks.read(report(1, 7, batches={7: HELD}))
    booked = ticks.pop()
    assert booked is not None
    assert booked.released.tolist() == [3]
    assert booked.n_shared == 0


def test_a_device_that_two_districts_release_at_one_tick_is_counted() -> None:
    ticks = SentTicks(2)
    ticks.add(sent(7, 3))
    ticks.add(sent(8, 4))
    ticks.read(report(0, 7, batches={7: HELD}))
    ticks.read(report(0, 8, batches={8: HELD}, released=slots(3, 4)))
    ticks.read(report(1, 7, batches={7: HELD}))
    booked = ticks.pop()
    assert booked is not None
    assert booked.n_shared == 0
    again = SentTicks(2)
    again.restore(unpack(pack(ticks.state())))
    for each in (ticks, again):
        assert not each.read(report(1, 7, batches={7: HELD})), "it came before"
        each.read(report(1, 8, batches={8: HELD}, released=slots(4)))
        booked = each.pop()
        assert booked is not None
        assert booked.n_shared == 1

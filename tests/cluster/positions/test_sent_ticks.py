import numpy as np

from anonymizer.algorithms.positions.district_routing import Rows, Sent
from anonymizer.algorithms.positions.operator import newest_of
from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.cluster.positions.sent_ticks import SentTick, SentTicks
from anonymizer.cluster.positions.stage_messages import Report
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.positions.tick.trip_guard import Positions

HELD, PUBLISHED = int(Outcome.HELD), int(Outcome.PUBLISHED)
NONE = np.zeros(0, np.int32)


def slots(*numbers: int) -> Int32Array:
    return np.array(numbers, np.int32)


def sent(tick: int, slot: int) -> SentTick:
    """Return a tick with one position, by which its device left district 1 for district 0."""
    at, ts = slots(slot), np.array([1.0])
    positions = Positions(at, ts, ts, ts, ts)
    newest = newest_of(np.array([HELD], np.uint8), at, ts, slots(5))
    rows = [
        Rows(at.astype(np.uint64), at.astype(np.int64), ts, slots(node), slots(-1), ts)
        for node in (5, -1)
    ]
    routed = Sent([0, 1], rows, [np.array([0])] * 2, np.array([0]), np.array([1]))
    return SentTick.of(
        tick, positions, np.zeros(1, bool), newest, routed, withdrawn=slots(), n_lanes=2
    )


def report(lane: int, tick: int, *, batches: dict[int, int], released: Int32Array = NONE) -> Report:
    outcome = [np.array([each], np.uint8) for each in batches.values()]
    return Report(lane, tick, list(batches), outcome, released, NONE)


def test_a_tick_is_booked_when_both_districts_have_reported_it() -> None:
    ticks = SentTicks(2)
    ticks.add(sent(7, 3))
    assert ticks.read(report(0, 7, batches={7: HELD}))
    assert ticks.pop() is None
    assert (ticks.oldest, ticks.n_positions) == (7, 1)
    assert ticks.read(report(1, 7, batches={7: PUBLISHED}, released=slots(3)))
    booked = ticks.pop()
    assert booked is not None
    assert booked.sent.final().tolist() == [HELD], "as the district says in which it is"
    assert (ticks.oldest, ticks.n_positions) == (None, 0)


def test_reports_of_later_ticks_wait_for_theirs_also_after_a_restart() -> None:
    ticks = SentTicks(2)
    ticks.add(sent(7, 3))
    ticks.add(sent(8, 4))
    ticks.read(report(0, 6, batches={}, released=slots(9)))
    ticks.read(report(0, 7, batches={7: HELD}))
    ticks.read(report(0, 8, batches={8: PUBLISHED}, released=slots(3, 4)))
    ticks.read(report(1, 7, batches={7: HELD}))
    booked = ticks.pop()
    assert booked is not None
    assert [(each.lane, each.tick) for each in booked.reports] == [(0, 6), (0, 7), (1, 7)]
    again = SentTicks(2)
    again.restore(unpack(pack(ticks.state())))
    for each in (ticks, again):
        assert not each.read(report(1, 7, batches={7: HELD})), "it came before"
        each.read(report(1, 8, batches={8: HELD}, released=slots(4)))
        booked = each.pop()
        assert booked is not None
        assert booked.sent.final().tolist() == [PUBLISHED]
        said = [(of.lane, of.released.tolist()) for of in booked.reports]
        assert said == [(0, [3, 4]), (1, [4])]

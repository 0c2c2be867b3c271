"""A lane alone: which inputs a tick waits for, and what it makes of those that come late."""

import pytest

from anonymizer.algorithms.positions.district_routing import no_rows
from anonymizer.cluster.positions.district_lane import DistrictLane
from anonymizer.cluster.positions.stage_messages import Batch, no_readings
from anonymizer.pipeline.positions.tick.factory import district_maker, districts_of
from tests.cluster.positions.cluster import N_SOURCES, NETWORK, settings

FIRST = 1_002
WAIT_S = 1.0


@pytest.fixture
def lane() -> DistrictLane:
    options = settings("session")
    district = district_maker(options, NETWORK, districts_of(options, NETWORK))(0)
    return DistrictLane(district, n_sources=N_SOURCES, interval_s=1.0, wait_s=WAIT_S)


def batch(source: int, tick: int) -> Batch:
    return Batch(source, tick, no_rows(), no_readings())


def closed(lane: DistrictLane) -> list[tuple[int, int]]:
    """Return source and tick of each batch in the tick that closes."""
    found = lane.close()
    assert found is not None
    return [(each.source, each.tick) for each in found.batches]


def test_a_lane_begins_when_all_sources_were_heard(lane: DistrictLane) -> None:
    lane.take(batch(0, FIRST), at_s=0.0)
    lane.take(batch(0, FIRST), at_s=0.0)  # again
    lane.take(batch(0, FIRST + 1), at_s=0.0)
    assert lane.close() is None
    lane.take(batch(1, FIRST + 1), at_s=0.5)
    assert closed(lane) == [(0, FIRST), (0, FIRST + 1), (1, FIRST + 1)]
    assert (lane.n_closed, lane.n_incomplete) == (1, 0)


def test_a_tick_waits_for_a_silent_source_and_takes_what_comes_late_into_the_next(
    lane: DistrictLane,
) -> None:
    lane.take(batch(0, FIRST), at_s=0.0)
    lane.take(batch(0, FIRST + 1), at_s=WAIT_S)
    assert lane.close() is None
    lane.take(batch(0, FIRST + 2), at_s=WAIT_S + 0.1)
    assert closed(lane) == [(0, FIRST)]
    assert lane.n_incomplete == 1
    lane.take(batch(1, FIRST), at_s=WAIT_S + 0.1)
    lane.take(batch(1, FIRST + 1), at_s=WAIT_S + 0.1)
    assert sorted(closed(lane)) == [(0, FIRST + 1), (1, FIRST), (1, FIRST + 1)]
    assert (lane.n_late, lane.n_incomplete) == (1, 1)
    lane.take(batch(1, FIRST + 2), at_s=WAIT_S + 0.2)
    assert closed(lane) == [(0, FIRST + 2), (1, FIRST + 2)]

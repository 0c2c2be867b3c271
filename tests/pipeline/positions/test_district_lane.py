"""A lane alone: which inputs a tick waits for, and what it says of those that were missing."""

import numpy as np
import pytest

from anonymizer.algorithms.positions.district import DistrictTick, Received
from anonymizer.algorithms.positions.district_routing import Rows, no_rows
from anonymizer.domain.arrays import IntArray
from anonymizer.pipeline.positions.district_lane import DistrictLane
from anonymizer.pipeline.positions.factory import district_maker, districts_of
from anonymizer.pipeline.positions.stage_messages import Batch, Broadcast, no_readings
from tests.pipeline.positions.cluster import N_DISTRICTS, N_SOURCES, NETWORK, settings

FIRST = 1_002
WAIT_S = 1.0
OWN = np.arange(N_DISTRICTS)


@pytest.fixture
def lane() -> DistrictLane:
    options = settings("session")
    district = district_maker(options, NETWORK, districts_of(options, NETWORK))(0)
    return DistrictLane(
        district, n_districts=N_DISTRICTS, n_sources=N_SOURCES, interval_s=1.0, wait_s=WAIT_S
    )


@pytest.fixture
def complete(lane: DistrictLane, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return whether the district was told at each tick that all others were heard."""
    seen: list[bool] = []
    tick = lane.district.tick

    def spy(rows: Rows, received: Received, leader_of: IntArray, *, now: float) -> DistrictTick:
        seen.append(received.complete)
        return tick(rows, received, leader_of, now=now)

    monkeypatch.setattr(lane.district, "tick", spy)
    return seen


def batch(source: int, tick: int, leader_of: IntArray = OWN) -> Batch:
    return Batch(source, tick, leader_of, no_rows(), no_readings())


def take(lane: DistrictLane, tick: int, *, at_s: float) -> None:
    """Take what all sources send about a tick."""
    for source in range(N_SOURCES):
        lane.take(batch(source, tick), at_s=at_s)


def read(lane: DistrictLane, tick: int, *, at_s: float, complete: tuple[bool, ...]) -> None:
    """Read what districts say about a tick, from the first on."""
    for sender, each in enumerate(complete):
        lane.read(Broadcast(sender, tick, each, None), at_s=at_s)


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
    read(lane, FIRST - 1, at_s=WAIT_S, complete=())
    lane.take(batch(0, FIRST + 1), at_s=WAIT_S)
    assert lane.close() is None
    lane.take(batch(0, FIRST + 2), at_s=WAIT_S + 0.1)
    assert closed(lane) == [(0, FIRST)]
    assert lane.n_incomplete == 1
    lane.take(batch(1, FIRST), at_s=WAIT_S + 0.1)
    lane.take(batch(1, FIRST + 1), at_s=WAIT_S + 0.1)
    assert lane.close() is None, "the other districts have said nothing yet"
    read(lane, FIRST, at_s=WAIT_S + 0.2, complete=(True,) * N_DISTRICTS)
    assert sorted(closed(lane)) == [(0, FIRST + 1), (1, FIRST), (1, FIRST + 1)]
    assert (lane.n_late, lane.n_incomplete) == (1, 1)
    lane.take(batch(1, FIRST + 2), at_s=WAIT_S + 0.2)
    read(lane, FIRST + 1, at_s=WAIT_S + 0.2, complete=(True,) * N_DISTRICTS)
    assert closed(lane) == [(0, FIRST + 2), (1, FIRST + 2)]


def test_a_lane_waits_as_long_for_the_districts_as_for_the_sources(lane: DistrictLane) -> None:
    take(lane, FIRST, at_s=0.0)
    assert lane.close() is not None
    take(lane, FIRST + 1, at_s=0.0)
    read(lane, FIRST, at_s=WAIT_S, complete=(True,) * (N_DISTRICTS - 1))
    assert lane.close() is None
    take(lane, FIRST + 2, at_s=WAIT_S + 0.1)
    assert len(closed(lane)) == N_SOURCES


def test_a_district_is_told_whether_all_were_heard_and_had_heard_all(
    lane: DistrictLane, complete: list[bool]
) -> None:
    heard = (True,) * N_DISTRICTS
    others = np.zeros(N_DISTRICTS, np.int64)
    for i, said in enumerate([(), heard, heard[:-1], (*heard[:-1], False), heard]):
        at_s = 3.0 * WAIT_S * i
        if i:
            read(lane, FIRST + i - 1, at_s=at_s, complete=said)
        take(lane, FIRST + i, at_s=at_s)
        if i == 2:
            assert lane.close() is None
            take(lane, FIRST + i + 1, at_s=at_s + 2 * WAIT_S)
        assert lane.close() is not None
    read(lane, FIRST + 4, at_s=99.0, complete=heard)
    lane.take(batch(0, FIRST + 5), at_s=99.0)
    lane.take(batch(1, FIRST + 5, others), at_s=99.0)
    assert lane.close() is not None
    assert complete == [True, True, False, False, True, False]

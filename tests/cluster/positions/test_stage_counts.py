"""Safe counts over several sources: what the lane publishes of their tallies, and when."""

import json
from collections.abc import Sequence

import numpy as np

from anonymizer.algorithms.positions.safe_counts import NO_CELL, Tally, tally
from anonymizer.cluster.positions.stage_counts import LaneCounts
from anonymizer.cluster.positions.stage_messages import SourceTally
from anonymizer.pipeline.packed_state import pack_state, unpack_state
from anonymizer.settings import CountSettings
from tests.cluster.positions.cluster import NETWORK

SETTINGS = CountSettings(enabled=True, every_s=10, k=3, cells=16)


def lane() -> LaneCounts:
    return LaneCounts(SETTINGS, NETWORK, n_sources=2)


def seen(*cells: int) -> Tally:
    n = len(cells)
    return tally(
        np.array(cells, np.int64),
        np.full(n, NO_CELL, np.int64),
        n_cells=SETTINGS.cells,
        speed_mps=np.full(n, np.nan),
        dwell_s=np.ones(n),
    )


def published(counts: LaneCounts) -> Sequence[list[int]]:
    """Return the numbers of devices of each message about an interval."""
    said = [json.loads(each.payload) for each in counts.messages() if not each.retain]
    return [[run["devices"] for run in each["counts"]] for each in said]


def test_nothing_is_published_before_all_sources_have_said_how_many() -> None:
    counts = lane()
    counts.take(0, SourceTally(5, seen(0, 0, 0, 9, 9, 9)))
    assert published(counts) == []
    counts.take(1, SourceTally(5, seen(0, 9)))
    assert [sum(each) for each in published(counts)] == [6]
    assert published(counts) == []


def test_the_devices_of_all_sources_count_together() -> None:
    counts = lane()
    counts.take(0, SourceTally(5, seen(0)))
    counts.take(1, SourceTally(5, seen(0)))
    counts.take(0, SourceTally(6, seen(0)))
    counts.take(1, SourceTally(6, seen(0, 9)))
    assert published(counts) == [[], [3]]


def test_an_interval_that_a_source_has_not_watched_whole_is_left_out() -> None:
    counts = lane()
    counts.take(0, SourceTally(5, seen(0, 0, 0)))
    counts.take(0, SourceTally(6, seen(0, 0, 0)))
    counts.take(1, SourceTally(6, None))  # and nothing about the one before
    assert published(counts) == []
    assert (counts.n_published, counts.n_suppressed) == (0, 2)


def test_a_source_that_stands_still_holds_up_the_counts_for_an_hour_of_minutes() -> None:
    counts = lane()
    for interval in range(100, 160):
        counts.take(0, SourceTally(interval, seen(0, 0, 0)))
        assert published(counts) == []
    counts.take(0, SourceTally(160, seen(0, 0, 0)))
    assert published(counts) == []
    assert (counts.n_published, counts.n_suppressed) == (0, 1)
    after = lane()
    after.restore(unpack_state("a lane", pack_state("a lane", counts.state())))
    after.take(1, SourceTally(100, seen(0)))  # left out for good
    after.take(1, SourceTally(101, seen(0)))
    assert published(after) == [[3]]
    assert (after.n_published, after.n_suppressed) == (1, 1)


def test_tallies_that_wait_are_in_the_state() -> None:
    before, after = lane(), lane()
    before.take(0, SourceTally(4, seen(0, 0, 0)))
    before.take(0, SourceTally(5, seen(0, 9)))
    before.take(1, SourceTally(4, None))
    assert published(before) == []
    after.restore(unpack_state("a lane", pack_state("a lane", before.state())))
    after.take(1, SourceTally(5, seen(9)))
    assert published(after) == [[3]]
    assert (after.n_published, after.n_suppressed) == (1, 1)

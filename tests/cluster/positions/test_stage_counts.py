"""Safe counts over several sources: what the lane publishes of their tallies, and when."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.safe_counts import NO_CELL, CellTally, tally
from anonymizer.cluster.packed_state import pack_state, unpack_state
from anonymizer.cluster.positions.stage_counts import LaneCounts
from anonymizer.cluster.positions.stage_messages import SourceTally
from anonymizer.domain.arrays import IntArray
from anonymizer.pipeline.positions.counts.private_counts import BoundedCounts
from anonymizer.settings import CountSettings
from tests.cluster.positions.cluster import NETWORK
from tests.examples import many
from tests.pipeline.positions.counts.test_private_counts import NoNoise

SETTINGS = CountSettings(privacy="k", every_s=10, k=3, cells=16)


def lane() -> LaneCounts:
    return LaneCounts(SETTINGS, NETWORK, n_sources=2)


def seen(*cells: int) -> CellTally:
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


PRIVATE = CountSettings.model_validate(
    {
        "privacy": "dp",
        "every_s": 10,
        "period_s": 40,
        "cells": 16,
        "trip_areas": 2,
        "device_intervals": 2,
    }
)


def private_lane(settings: CountSettings = PRIVATE) -> LaneCounts:
    return LaneCounts(settings, NETWORK, n_sources=2, noise=NoNoise())


def say(counts: LaneCounts, interval: int, *numbers: list[int]) -> list[dict[str, Any]]:
    """Let sources say how many devices are in the first cells; return what is published."""
    for source, each in enumerate(numbers):
        whole = np.zeros(16 + 4, np.int64)
        whole[: len(each)] = each
        said = whole if each else np.zeros(0, np.int64)
        counts.take(source, SourceTally(interval, said))
    return [json.loads(each.payload) for each in counts.messages() if not each.retain]


def test_private_counts_begin_with_the_period_after_the_start() -> None:
    counts = private_lane()
    for interval in (5, 6, 7):  # nobody knows what was published before in this period
        [body] = say(counts, interval, [1], [2])
        assert (body["suppressed"], "devices" in body) == ("budget", False)
    [body] = say(counts, 8, [1, 5], [2])
    assert body["devices"][:3] == [3, 5, 0]
    assert (counts.n_published, counts.n_suppressed) == (1, 3)


def test_private_counts_are_charged_once_whatever_dies() -> None:
    counts, spent = private_lane(), []
    for interval in range(5, 16):
        [body] = say(counts, interval, [1], [2])
        spent.append((body["privacy"]["epsilon_spent"], body.get("suppressed")))
        after = private_lane()
        after.restore(unpack_state("a lane", pack_state("a lane", counts.state())))
        counts = after
    assert [each for each, _ in spent[3:7]] == [0.01, 0.02, 0.02, 0.02]
    assert {why for _, why in spent[3:]} == {None}
    other = private_lane(PRIVATE.model_copy(update={"epsilon": 2.0}))
    say(counts, 16, [1], [2])
    other.restore(unpack_state("a lane", pack_state("a lane", counts.state())))
    assert say(other, 17, [1], [2])[0]["suppressed"] == "budget", "made for another budget"
    assert "suppressed" not in say(other, 20, [1], [2])[0]


def test_a_source_with_too_many_devices_ends_the_counts() -> None:
    counts = private_lane()
    say(counts, 7, [1], [1])
    assert say(counts, 8, [1], [])[0]["suppressed"] == "overload"
    assert "devices" in say(counts, 9, [1], [1])[0]


def test_counts_of_any_window_go_on_whatever_dies_and_remember_nobody() -> None:
    """Only the interval in which a lane without a state begins is left out."""
    tables = {"device_intervals": None, "privacy": "w-event"}
    settings = CountSettings.model_validate(PRIVATE.model_dump() | tables)
    counts, source = private_lane(settings), BoundedCounts(settings, most_devices=0)
    said = []
    for interval in range(5, 16):
        # More devices than a source could remember.
        devices = [(d, 3, 3) for d in range(9)]
        found = numbers(source, devices, interval).tolist()
        said += say(counts, interval, found, [1])
        after = private_lane(settings)
        after.restore(unpack_state("a lane", pack_state("a lane", counts.state())))
        counts = after
    assert [each.get("suppressed") for each in said] == ["budget"] + [None] * 10
    assert {each["devices"][3] for each in said[1:]} == {9}
    assert all("period_ends" not in each["privacy"] for each in said)


def numbers(counts: BoundedCounts, of: list[tuple[int, int, int]], t: int) -> IntArray:
    """Return what is counted of rows of device, cell and cell before in an interval."""
    device, cell, before = (np.array([row[i] for row in of], np.int64) for i in range(3))
    found = counts.of(cell, before, device.astype(np.uint64), end_s=10.0 * (t + 1))
    assert found is not None
    return found


@many(3)
@given(
    st.lists(st.lists(st.integers(-1, 15), min_size=6, max_size=6), max_size=8),
    st.integers(1, 3),
    st.integers(0, 6),
)
def test_sources_bound_their_devices_as_one_process_bounds_all(
    way: list[list[int]], most: int, stops: int
) -> None:
    """Cells of each device in each of six intervals; one source stops and is restored."""
    settings = PRIVATE.model_copy(update={"device_intervals": most})
    alone = BoundedCounts(settings, most_devices=99)
    sources = [BoundedCounts(settings, most_devices=99) for _ in range(2)]
    for t in range(6):
        seen = [
            (d, each[t], each[t - 1] if t else NO_CELL)
            for d, each in enumerate(way)
            if each[t] >= 0
        ]
        if t == stops:
            state = unpack_state("a source", pack_state("a source", sources[0].state()))
            sources[0] = BoundedCounts(settings, most_devices=99)
            sources[0].restore(state)

        even, odd = ([row for row in seen if row[0] % 2 == i] for i in range(2))
        together = numbers(sources[0], even, t) + numbers(sources[1], odd, t)
        assert together.tolist() == numbers(alone, seen, t).tolist()

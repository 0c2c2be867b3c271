"""Ticks of a cluster whose clocks, those of Kafka included, jump: the next one is soon told."""

import json
import time
from functools import cache
from itertools import product

import pytest

from anonymizer.pipeline.ports import Delivery
from tests.cluster.positions.cluster import START, Cluster, World
from tests.cluster.scheduled import N_BRIDGES
from tests.lanes import some_rows

DAY_S = 86_400
JUMPS = {"an hour on": 3_600, "a day on": DAY_S, "ten years on": 3_652 * DAY_S}
"""Bridges never state an earlier tick again: after a way back they go on where they were."""
FEATURES = ("readings", "trips", "trips_out", "streets", "all", "private", "current")
JUMPS_AT, N_TICKS = 12, 30
LONGEST_S = 5.0


@cache
def world_of(feature: str) -> World:
    return World("session", n_ticks=N_TICKS, seed=3, protected=feature)


def later(delivery: Delivery, by_s: int) -> Delivery:
    """Return what a device says whose clock is later."""
    try:
        said = json.loads(delivery.payload)
    except ValueError:
        return delivery
    if "ts" not in said:
        return delivery
    return delivery._replace(payload=json.dumps(said | {"ts": said["ts"] + by_s}).encode())


@pytest.mark.parametrize(
    ("feature", "jump"),
    some_rows(
        product(FEATURES, JUMPS),
        [("all", "a day on"), ("private", "ten years on"), ("current", "an hour on")],
    ),
)
def test_ticks_go_on_after_a_jump_and_over_a_restart(feature: str, jump: str) -> None:
    world = world_of(feature)
    cluster = Cluster(world)
    shift_s, longest_s = 0, 0.0
    for tick in range(N_TICKS):
        shift_s = JUMPS[jump] if tick >= JUMPS_AT else 0
        if tick == JUMPS_AT:
            for key in cluster.processes:
                cluster.keep(key)
            before = len(cluster.published)
        elif tick == JUMPS_AT + 1:
            for key in cluster.processes:
                cluster.crash(key)
        began = time.process_time()
        for bridge in range(N_BRIDGES):
            mine = [later(each, shift_s) for each in world.arrivals[tick][bridge::N_BRIDGES]]
            now = START + tick + shift_s
            cluster._state(bridge, now, mine, at_s=float(now + 1))
        cluster.read_all()
        longest_s = max(longest_s, time.process_time() - began if tick > 1 else 0.0)
        if tick == JUMPS_AT + 6:
            assert len(cluster.published) > before, "not later than an epoch of 4 ticks"
    assert longest_s < LONGEST_S


BACK_AT, AHEAD_S = 15, 10
"""The clock is ahead from `JUMPS_AT` on until then, and corrected."""


@pytest.mark.parametrize(
    ("feature", "restarts"),
    some_rows(
        product(FEATURES, [False, True]), [("all", True), ("private", False), ("current", True)]
    ),
)
def test_after_a_clock_that_was_ahead_ticks_stand_still_no_longer_than_it_was(
    feature: str,
    restarts: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    world = world_of(feature)
    cluster = Cluster(world)
    n_published = []
    for tick in range(N_TICKS):
        shift_s = AHEAD_S if JUMPS_AT <= tick < BACK_AT else 0
        if tick == BACK_AT and restarts:
            for key in cluster.processes:
                cluster.keep(key)
                cluster.crash(key)
        for bridge in range(N_BRIDGES):
            mine = [later(each, shift_s) for each in world.arrivals[tick][bridge::N_BRIDGES]]
            now = START + tick + shift_s
            cluster._state(bridge, now, mine, at_s=float(now + 1))
        cluster.read_all()
        n_published.append(len(cluster.published))
        behind_s = {source.behind_s for source in cluster.sources}
        stands = BACK_AT <= tick < BACK_AT + AHEAD_S - 1
        left_s = AHEAD_S - (tick - BACK_AT + 1)
        assert behind_s == ({left_s} if stands else {0.0}), "it is said"
    resumes = BACK_AT + AHEAD_S - 1
    assert n_published[resumes - 1] == n_published[BACK_AT], "no tick comes twice"
    assert n_published[-1] > n_published[resumes]

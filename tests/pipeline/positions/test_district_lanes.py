"""Lanes of districts: equal outputs for any number of workers and any schedule, or safe ones."""

import os
from collections import defaultdict
from functools import cache
from itertools import pairwise
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.pipeline.positions.district_lane import Batch
from tests.pipeline.positions.cluster import Cluster, Group, World

N_TICKS = 14
schedules = st.lists(st.integers(0, 1023), max_size=300)


@cache
def world(mode: str = "session", seed: int = 1) -> World:
    return World(mode, n_ticks=N_TICKS, seed=seed)


def check_equal(cluster: Cluster) -> None:
    published = cluster.published
    assert len(published) == len(set(published)), "nothing is published twice"
    assert set(published) == cluster.world.expected


def check_safe(published: list[Group]) -> None:
    """No device in two groups, and every pseudonym in the same company all its life."""
    members: defaultdict[int, list[int]] = defaultdict(list)
    lives: defaultdict[tuple[int, int], list[tuple[int, tuple[int, ...], tuple[int, ...]]]]
    lives = defaultdict(list)
    for group in published:
        assert len(group.members) >= 2, "k"
        members[group.tick] += group.members
        for life in zip(group.members, group.versions, strict=True):
            lives[life].append((group.tick, group.members, group.region))
    assert all(len(each) == len(set(each)) for each in members.values())
    of_device: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for (device, _), told in lives.items():
        assert len({company for _, company, _ in told}) == 1
        ticks = [tick for tick, _, _ in told]
        of_device[device].append((min(ticks), max(ticks)))
    for spans in of_device.values():
        spans.sort()
        assert all(a[1] < b[0] for a, b in pairwise(spans))


def test_the_world_crosses_borders_and_forms_groups_more_than_once() -> None:
    expected = world().expected
    districts = defaultdict(set)
    for group in expected:
        for member, version in zip(group.members, group.versions, strict=True):
            districts[member].add(version % 4)
    assert sum(len(each) > 1 for each in districts.values()) > 5
    check_safe(list(expected))


@pytest.mark.parametrize("n_workers", [1, 2, 4])
@pytest.mark.parametrize("mode", ["bfs", "snapshot", "session"])
def test_any_number_of_workers_publishes_what_one_process_does(mode: str, n_workers: int) -> None:
    cluster = Cluster(world(mode), n_workers)
    cluster.run([])
    check_equal(cluster)


@settings(max_examples=10, deadline=None)
@given(schedules, st.sampled_from([1, 2, 4]))
def test_no_schedule_changes_what_is_published(schedule: list[int], n_workers: int) -> None:
    cluster = Cluster(world(), n_workers)
    cluster.run(schedule)
    check_equal(cluster)


@settings(max_examples=10, deadline=None)
@given(schedules, st.sampled_from([1, 2, 4]), st.integers(0, 20))
def test_ticks_that_close_without_the_silent_break_no_promise(
    schedule: list[int], n_workers: int, wait_s: int
) -> None:
    cluster = Cluster(world(), n_workers, wait_s=wait_s)
    cluster.run(schedule)
    check_safe(cluster.published)


def test_a_lane_that_is_restored_goes_on_to_the_same_bytes() -> None:
    cluster = Cluster(world(), 2)
    cluster.run([])
    lane = cluster.lanes[1]
    again = world().lane(1, wait_s=np.inf)
    again.restore(lane.snapshot())
    assert again.snapshot() == lane.snapshot()


def test_a_lane_is_restored_from_nothing_but_a_snapshot_of_a_lane() -> None:
    lane = world().lane(0, wait_s=np.inf)
    with pytest.raises(ValueError, match="not a snapshot of a lane"):
        lane.restore(msgspec.msgpack.encode(msgspec.msgpack.Ext(9, b"")))
    lane.district._is_mine = object()  # type: ignore[assignment]
    with pytest.raises(TypeError, match="cannot be part of a snapshot"):
        lane.snapshot()


def test_a_batch_that_comes_again_changes_nothing() -> None:
    cluster = Cluster(world(), 1)
    cluster.send()
    lane, [batch] = cluster.lanes[0], cluster.from_source[0][0].messages
    assert isinstance(batch, Batch)
    lane.take(batch)
    before = lane.snapshot()
    lane.take(batch)
    assert lane.snapshot() == before
    assert lane.close(0.0) is None, "the other source was not heard"


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    ("mode", "wait_s"), [("session", np.inf), ("session", 8.0), ("snapshot", np.inf)]
)
def test_thousands_of_schedules(mode: str, wait_s: float) -> None:
    n_schedules = int(os.environ.get("ANONYMIZER_SCHEDULES", "10000"))
    n_crashes = 0
    for seed in range(n_schedules):
        random = Random(seed)  # noqa: S311  a schedule, not a secret
        schedule = [random.randrange(1024) for _ in range(random.randrange(500))]
        cluster = Cluster(world(mode, seed % 5), random.choice([1, 2, 4]), wait_s=wait_s)
        cluster.run(schedule)
        n_crashes += cluster.n_crashes
        if wait_s == np.inf:
            check_equal(cluster)
        else:
            check_safe(cluster.published)
    assert n_crashes > n_schedules

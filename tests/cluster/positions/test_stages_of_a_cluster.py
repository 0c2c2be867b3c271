"""Sources and lanes: equal outputs for any schedule, or safe ones; accounts that always add up."""

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.tick.factory import districts_of
from tests.cluster.positions.cluster import BOTH, CODED, LONG_S, PROTECTED, START, Cluster, World
from tests.cluster.positions.cluster import settings as cluster_settings
from tests.lanes import each_of_both, some

N_TICKS = 14
SUPPRESSED_BY = {
    "nothing": [],
    "echo": [],
    "current": [],
    "private": [Outcome.SUPPRESSED__TRIP_END],
    "ids": [],
    "readings": [Outcome.SUPPRESSED__PRIVACY_ZONE],
    "secret thresholds": [],
    "trips": [Outcome.SUPPRESSED__TRIP_END],
    "trips_out": [Outcome.SUPPRESSED__PRIVACY_ZONE],
    "streets": [Outcome.SUPPRESSED__PRIVACY_ZONE],
    "zones": [Outcome.SUPPRESSED__PRIVACY_ZONE],
    "device_zones": [Outcome.SUPPRESSED__PRIVACY_ZONE],
    "public": [Outcome.SUPPRESSED__PRIVACY_ZONE],
    "fixed": [Outcome.SUPPRESSED__PRIVACY_ZONE],
    "inputs": [Outcome.SUPPRESSED__PRIVACY_ZONE],
    "networks": [Outcome.SUPPRESSED__PRIVACY_ZONE, Outcome.SUPPRESSED__OFF_GRAPH],
    "all": [Outcome.SUPPRESSED__TRIP_END, Outcome.SUPPRESSED__PRIVACY_ZONE],
    "everything": [Outcome.SUPPRESSED__PRIVACY_ZONE],
}
schedules = st.lists(st.integers(0, 1023), max_size=200)


@cache
def world(mode: str = "session", seed: int = 1, protected: str = "nothing") -> World:
    # Until an hour has ended, and another.
    return longer_world(mode, seed, protected, 30 if protected == "streets" else N_TICKS)


@cache
def longer_world(mode: str, seed: int, protected: str, n_ticks: int) -> World:
    return World(mode, n_ticks=n_ticks, seed=seed, protected=protected)


@cache
def full_world(mode: str, n_districts: int) -> World:
    return World(mode, n_ticks=40, seed=5, protected="everything", n_districts=n_districts)


def check_equal(cluster: Cluster) -> None:
    """One process publishes the same messages, and comes to the same accounts."""
    assert sorted(cluster.published) == sorted(cluster.world.expected.elements())
    assert cluster.hours == cluster.world.hours
    assert dict(cluster.accounts()) == cluster.world.accounts
    assert sum(source.n_held for source in cluster.sources) == cluster.world.n_held
    assert not any(lane.counters["incomplete_ticks"] for lane in cluster.lanes)
    check_safe(cluster)
    for source in cluster.sources:  # a district may speak of who had a slot before
        gone = source._version_of == -np.inf
        assert not source._home_of[gone].any()


def check_safe(cluster: Cluster) -> None:
    """Pseudonyms keep their company, and no position is lost."""
    company: dict[str, list[str]] = {}
    for payload in cluster.published:
        group = json.loads(payload).get("pseudonyms")
        if group is None:
            continue  # a public device, or counts
        assert len(set(group)) == len(group)
        assert len(group) >= 2 or cluster.world.mode == "adka", "k"
        if cluster.world.mode == "session":
            assert all(company.setdefault(name, group) == group for name in group)
    n_settled = sum(source.ledger.n_settled for source in cluster.sources)
    assert cluster.n_received <= n_settled + sum(source.n_held for source in cluster.sources)
    assert all(source._sent.n_positions == 0 for source in cluster.sources), "all is booked"


def test_the_world_crosses_borders_and_forms_groups_more_than_once() -> None:
    cluster = Cluster(world())
    cluster.run([])
    seen: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for lane in cluster.lanes:
        district = lane.lane.district
        for handle in district.handles().tolist():
            seen[divmod(handle, 1 << 32)].add(district.number)
    assert sum(len(each) > 1 for each in seen.values()) > 5
    assert sum(lane.counters["groups"] > 10 for lane in cluster.lanes) > 2


SIZES = [(1, 1), (1, 3), (2, 2), (4, 3)]
"""Numbers of districts and of sources."""
MODES = ("session", "adka", "snapshot")
WORKERS = (1, 2, 4)


@pytest.mark.parametrize(("size", "mode"), each_of_both(SIZES, MODES))
def test_with_everything_on_any_cluster_publishes_what_one_process_does(
    size: tuple[int, int], mode: str
) -> None:
    """Fixed devices, readings, zones, counts, trips, streets and echoes at once."""
    districts, sources = size
    cluster = Cluster(full_world(mode, districts), n_sources=sources)
    cluster.run([])
    check_equal(cluster)
    said = [json.loads(payload) for payload in cluster.published]
    for kind, n in (("pseudonyms", 99), ("counts", 5), ("trips", 9), ("readings", 9)):
        assert sum(bool(message.get(kind)) for message in said) > n, kind
    assert len(cluster.hours) > 3


@pytest.mark.parametrize("workers", some(WORKERS, [2]))
@pytest.mark.parametrize("codec", CODED)
def test_any_number_of_workers_publishes_the_same_bytes_whatever_the_format(
    codec: str, workers: int
) -> None:
    """Each worker has a source of its own, and some of the districts."""
    cluster = Cluster(world(protected=codec), n_sources=workers)
    cluster.run([])
    check_equal(cluster)
    counts = cluster.accounts()
    assert counts[Outcome.PUBLISHED] > 300
    assert sum(n for outcome, n in counts.items() if outcome.name.startswith("INVALID")) < 100


@settings(max_examples=4, deadline=None)
@given(schedules)
def test_no_schedule_changes_what_is_published(schedule: list[int]) -> None:
    cluster = Cluster(world(protected="readings"))
    cluster.run(schedule)
    check_equal(cluster)
    assert all(source.counters["clamped_readings"] for source in cluster.sources)
    assert sum(lane.counters["left_out_readings"] for lane in cluster.lanes)


@pytest.mark.parametrize("protected", PROTECTED)
@settings(max_examples=2, deadline=None)
@given(schedules)
def test_whatever_is_protected_no_schedule_changes_what_is_published(
    protected: str, schedule: list[int]
) -> None:
    cluster = Cluster(world("snapshot", protected=protected))
    cluster.run(schedule)
    check_equal(cluster)
    for outcome in SUPPRESSED_BY[protected]:
        assert cluster.accounts()[outcome] > 5


@pytest.mark.parametrize("n_sources", [1, 3])
def test_sources_make_room_for_newcomers_on_the_road_as_one_process_does(n_sources: int) -> None:
    n_ticks = 8
    cluster = Cluster(longer_world("snapshot", 1, "flood", n_ticks), n_sources=n_sources)
    for tick in range(n_ticks):
        for bridge in (0, 1):
            cluster.send(bridge)
        cluster.read_all()
        for number in range(n_sources):
            (cluster.crash if tick % 3 else cluster.keep)(("source", number))
    cluster.run([])
    check_equal(cluster)
    presence = cluster.world.presence
    assert n_ticks < presence.ttl_s, "nobody is gone because of silence"
    tables = [source._devices for source in cluster.sources]
    made_room = [int(table.n_freed.sum()) > 0 for table in tables]
    assert made_room == [n_sources == 1] * n_sources
    assert all(len(table) <= presence.max_devices // 2 for table in tables)


@pytest.mark.parametrize("workers", some(WORKERS, [2]))
def test_any_number_of_workers_counts_by_the_same_secret_thresholds(workers: int) -> None:
    cluster = Cluster(longer_world("snapshot", 1, "secret thresholds", 40), n_sources=workers)
    cluster.run([])
    check_equal(cluster)
    said = [json.loads(payload) for payload in cluster.published]
    assert sum(bool(message.get("counts")) for message in said) > 2


@pytest.mark.parametrize(("mode", "workers"), each_of_both(MODES, WORKERS))
def test_any_number_of_workers_publishes_the_same_of_several_networks(
    mode: str, workers: int
) -> None:
    of_node = districts_of(cluster_settings(mode, protected="networks"), BOTH).of_node
    of_layer = [set(of_node[each.nodes.start : each.nodes.stop].tolist()) for each in BOTH.layers]
    assert min(map(len, of_layer)) > 1, "each network is in several districts"
    assert of_layer[0] & of_layer[1], "and some district has nodes of both"
    cluster = Cluster(world(mode, protected="networks"), n_sources=workers)
    cluster.run([])
    check_equal(cluster)
    regions = [json.loads(payload)["region"] for payload in cluster.published]
    networks = [{name.partition("/")[0] for name in region} for region in regions]
    assert all(len(each) == 1 for each in networks), "no group is on two networks"
    assert all(networks.count({number}) > 100 for number in "12")


@pytest.mark.parametrize("seed", some(range(6), range(3)))
def test_who_comes_back_on_another_network_is_there_from_the_same_tick_whatever_waits(
    seed: int,
) -> None:
    """When a slot is freed depends on when reports are read; where a device is must not."""
    random = Random(seed)  # noqa: S311  a schedule, not a secret
    made = world("snapshot", seed=2, protected="networks")
    cluster = Cluster(made, n_sources=(1, 2, 4)[seed % 3])
    cluster.run([random.randrange(1024) for _ in range(200)])
    check_equal(cluster)


@pytest.mark.parametrize("mode", ["adka", "session"])
@settings(max_examples=3, deadline=None)
@given(schedules)
def test_late_subscribers_are_told_what_one_process_tells_them(
    mode: str, schedule: list[int]
) -> None:
    told = groups_by_time(
        [each for some in world(mode, protected="current").current for each in some]
    )
    assert max(map(len, told.values())) > 50
    cluster = Cluster(world(mode, protected="current"))
    cluster.run(schedule)
    found = groups_by_time(cluster.retained)
    assert {time: groups for time, groups in found.items() if time > START} == told
    assert not any(groups for time, groups in found.items() if time <= START)
    assert list(found) == sorted(found), "in the order of time"


def groups_by_time(messages: Sequence[Outgoing]) -> dict[float, set[str]]:
    """Return what retained messages say of current groups; each time has one part."""
    bodies = [json.loads(message.payload) for message in messages]
    assert {message.topic for message in messages} <= {"cloaked/current/0"}
    assert {body["of"] for body in bodies} == {1}
    return {body["time"]: {json.dumps(group) for group in body["groups"]} for body in bodies}


def test_stages_publish_what_one_process_does_about_vehicles_that_change_their_ids() -> None:
    cluster = Cluster(world(protected="ids"))
    cluster.run([])
    check_equal(cluster)
    declared, undeclared = cluster.accounts(), Cluster(world())
    undeclared.run([])
    assert 20 < declared[Outcome.PUBLISHED] < undeclared.accounts()[Outcome.PUBLISHED]


@settings(max_examples=4, deadline=None)
@given(schedules, st.integers(1, 4))
def test_ticks_that_close_without_the_silent_break_no_promise(
    schedule: list[int], wait_s: int
) -> None:
    cluster = Cluster(world(), wait_s=wait_s)
    cluster.run(schedule)
    check_safe(cluster)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    ("mode", "wait_s", "protected", "share"),
    [
        ("session", LONG_S, "readings", 1),
        ("session", 3.0, "zones", 1),
        ("snapshot", LONG_S, "all", 1),
        ("snapshot", LONG_S, "streets", 5),
        ("session", LONG_S, "networks", 5),
    ],
)
def test_thousands_of_schedules(mode: str, wait_s: float, protected: str, share: int) -> None:
    n_schedules = int(os.environ.get("ANONYMIZER_SCHEDULES", "10000")) // share
    n_crashes = 0
    for seed in range(n_schedules):
        random = Random(seed)  # noqa: S311  a schedule, not a secret
        schedule = [random.randrange(1024) for _ in range(random.randrange(400))]
        cluster = Cluster(world(mode, seed % 5, protected), wait_s=wait_s)
        cluster.run(schedule)
        n_crashes += cluster.n_crashes
        if wait_s == LONG_S:
            check_equal(cluster)
        else:
            check_safe(cluster)
    assert n_crashes > n_schedules


@pytest.mark.parametrize("key", [("source", 0), ("lane", 1)])
def test_a_stage_is_restored_from_its_own_bytes_and_from_no_others(key: tuple[str, int]) -> None:
    cluster = Cluster(world())
    cluster.run([])
    stage = cluster.processes[key].stage
    cluster.keep(key)
    cluster.crash(key)
    assert cluster.processes[key].stage.snapshot() == stage.snapshot()
    for other in (b"", b"x", msgspec.msgpack.encode({}), cluster.processes["lane", 0].snapshot[:9]):
        with pytest.raises(ValueError, match="no snapshot"):
            stage.restore(other)
    with pytest.raises(ValueError, match="no input"):
        stage.take(b"?", at_s=0.0)


@pytest.mark.parametrize(
    ("key", "protected", "n_names"),
    [(("source", 0), "nothing", 100), (("lane", 0), "nothing", 100), (("source", 0), "trips", 20)],
)
def test_where_a_stage_loses_its_state_all_is_settled_in_the_end(
    key: tuple[str, int], protected: str, n_names: int
) -> None:
    cluster = Cluster(world(protected=protected), wait_s=3.0)
    for _ in range(9):
        for bridge in (0, 1):
            cluster.send(bridge)
        cluster.read_all()
    cluster.begin_anew(key)
    # Beyond the time for which a silent device is remembered, twice.
    cluster.n_ticks += 25
    cluster.run([])
    assert sum(source.n_held for source in cluster.sources) == 0
    assert all(np.isneginf(source._version_of).all() for source in cluster.sources)
    assert not any(len(source._devices) for source in cluster.sources)
    said = [json.loads(payload) for payload in cluster.published]
    assert len({name for message in said for name in message.get("pseudonyms", [])}) > n_names
    if protected == "trips":
        left_out = cluster.lanes[0].counters["suppressed_counts_windows"]
        assert left_out > 0, "a source has not watched them whole"
        assert cluster.lanes[0].counters["counts_windows"] == sum("counts" in m for m in said)

"""Workers with other settings go on from what was stored, or stand still: they misread nothing."""

import json
import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from anonymizer.algorithms.positions.changing_ids import LASTS
from anonymizer.algorithms.positions.district_routing import NOWHERE, Rows
from anonymizer.cluster.limits import check_cluster
from anonymizer.cluster.positions.lane_stage import LaneStage, lane_stages
from anonymizer.cluster.positions.raw_batches import Raw, decode_out, encode_raw
from anonymizer.cluster.positions.source_stage import source_stages
from anonymizer.cluster.positions.stage_messages import Batch, encode_batch, handles_of, no_readings
from anonymizer.cluster.stage import Send
from anonymizer.cluster.worker import written_with
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import SettingsError
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import Settings, zones_of
from anonymizer.settings.reload import change
from tests.settings.changes import by_key, changes, up_or_down

NETWORK = load_network("grid:30x30")
N_DEVICES = 150
START = 1_000_000
SECRET = bytes(range(32))
BASE = Settings.model_validate(
    {
        "network": {"source": "grid:30x30"},
        "inputs": [{"topic": "positions/{device}"}],
        "adka": {"density_steps": [4], "k_values": [10, 5], "k_floor": 5},
        "region": {"min_nodes": 10, "min_road_m": 0, "place_devices": 6, "k_extra": 2},
        "session": {"epoch_s": 60, "beat_s": 1},
        "presence": {"ttl_s": 150},
        "tick": {"interval_s": 1.0},
        "zones": [{"circle": {"lat": NETWORK.lat[44], "lon": NETWORK.lon[44], "radius_m": 120}}],
        "cluster": {"n_parts": 1},
    }
)
Regions = dict[str, frozenset[int]]


def stands_still(before: Settings, settings: Settings, network: RoadNetwork) -> bool:
    """Return whether a worker with other settings refuses what was stored, and names the key."""
    then, now = (written_with("lane", each, network, SECRET) for each in (before, settings))
    return any(then[key] != now[key] for key in then.keys() & now.keys())


def lane(settings: Settings) -> LaneStage:
    return lane_stages(settings, with_zones(NETWORK, zones_of([])), secret=SECRET)(0)


def inputs(ticks: range) -> Iterator[tuple[bytes, float]]:
    """Yield what a source says about devices that stand still and never fall silent."""
    rng = np.random.default_rng(3)
    key = rng.integers(1 << 60, size=N_DEVICES).astype(np.uint64)
    node = rng.integers(NETWORK.n_nodes, size=N_DEVICES).astype(np.int32)
    none = np.full(N_DEVICES, NOWHERE, np.int32)
    handle = handles_of(0, np.arange(N_DEVICES, dtype=np.int32))
    for tick in ticks:
        ts = np.full(N_DEVICES, tick + 0.5)
        rows = Rows(key, handle, ts, node, none, np.full(N_DEVICES, LASTS))
        yield encode_batch(Batch(0, tick, rows, no_readings())), tick + 1.0


def said_of_groups(stage: LaneStage, ticks: range) -> Iterator[dict[str, Any]]:
    """Let a stage take inputs; yield what it publishes about groups."""
    for value, at_s in inputs(ticks):
        for send in stage.take(value, at_s=at_s):
            for message in decode_out(send.value) if send.to == "out" else ():
                said = json.loads(message.payload)
                if said.get("pseudonyms"):
                    yield said


def published(stage: LaneStage, ticks: range) -> Regions:
    """Let a stage take inputs; return the last region of each pseudonym."""
    found: Regions = {}
    for said in said_of_groups(stage, ticks):
        found |= dict.fromkeys(said["pseudonyms"], frozenset(said["region"]))
    return found


SNAPSHOTS = (START + 15, START + 30)
"""Between them groups end and others are formed, which live beyond the crash."""
CRASH, END = START + 45, START + 75


@cache
def before() -> tuple[list[bytes], Regions]:
    """Return two snapshots, and the last regions of all that was published until the crash."""
    stage = lane(BASE)
    regions = published(stage, range(START, SNAPSHOTS[0]))
    snapshots = [stage.snapshot()]
    regions |= published(stage, range(*SNAPSHOTS))
    snapshots.append(stage.snapshot())
    return snapshots, regions | published(stage, range(SNAPSHOTS[1], CRASH))


def run_on(settings: Settings, *, turns: Sequence[int] = (0, 1)) -> tuple[str, int]:
    """Go on with other settings; return why not, and how many ids outlived the change.

    From each of these snapshots.
    """
    if stands_still(BASE, settings, NETWORK):
        return "stands still", 0
    snapshots, regions = before()
    make = lane_stages(settings, with_zones(NETWORK, zones_of([])), secret=SECRET)
    n_after = n_living = 0
    for turn in turns:
        stage = make(0)
        stage.restore(snapshots[turn])
        published(stage, range(SNAPSHOTS[turn], CRASH))  # what the other has taken, once more
        after = published(stage, range(CRASH, END))
        living = after.keys() & regions.keys()
        assert all(after[name] >= regions[name] for name in living), "a living id's region shrank"
        n_after, n_living = n_after + len(after), n_living + len(living)
    return "goes on" if n_after else "is silent", n_living


def test_the_same_settings_go_on_with_the_same_groups() -> None:
    went_on, n_living = run_on(BASE)
    assert went_on == "goes on"
    assert n_living > N_DEVICES / 2


CHANGED = by_key(changes(BASE))


@pytest.mark.parametrize("key", sorted(CHANGED))
def test_no_change_of_a_setting_crashes_a_lane_or_shrinks_a_region_of_a_living_id(key: str) -> None:
    """One value from one snapshot; `make soak` tries all from both."""
    turn = sorted(CHANGED).index(key)
    for settings in up_or_down(CHANGED[key], turn):
        run_on(settings, turns=[turn // 2 % 2])


@pytest.mark.soak
@pytest.mark.parametrize("key", sorted(CHANGED))
def test_no_value_of_a_setting_crashes_a_lane_or_shrinks_a_region_of_a_living_id(key: str) -> None:
    for settings in CHANGED[key]:
        run_on(settings)


def with_values(tables: Sequence[tuple[str, str, object]]) -> Settings:
    said = BASE.model_dump(exclude_unset=True)
    for table, key, value in tables:
        said[table] = said.get(table, {}) | {key: value}
    return Settings.model_validate(said)


@pytest.mark.parametrize(
    "changed",
    [
        [("adka", "k_floor", 30)],
        [("adka", "k_values", [15, 5])],
        [("region", "min_nodes", 3)],
        [("region", "k_extra", 4)],
        [("region", "min_road_m", 2000)],
        [("session", "beat_s", 3)],
    ],
)
def test_a_change_that_operators_make_goes_on_with_new_groups_and_new_ids(
    changed: list[tuple[str, str, object]],
) -> None:
    assert run_on(with_values(changed)) == ("goes on", 0)


def test_every_group_after_a_raise_of_k_has_the_new_k_also_if_formed_again_before_it() -> None:
    raised = with_values([("adka", "k_values", [15, 12]), ("adka", "k_floor", 12)])
    snapshots, _ = before()
    for snapshot, at in zip(snapshots, SNAPSHOTS, strict=True):
        stage = lane(raised)
        stage.restore(snapshot)
        published(stage, range(at, CRASH))  # it forms groups where the old k had formed others
        groups = list(said_of_groups(stage, range(CRASH, END)))
        assert groups
        assert all(len(said["pseudonyms"]) >= said["k"] >= 12 for said in groups)


def test_what_no_group_depends_on_ends_none() -> None:
    assert run_on(with_values([("log", "level", "warning")])) == run_on(BASE)


SMALL = load_network("grid:10x10")
"""With a zone, and with one input whose devices have readings."""
ALIKE: dict[str, Any] = {
    "network": {"source": "grid:10x10", "snap_limit_m": 30},
    "adka": {"density_steps": [], "k_values": [2]},
    "region": {"min_nodes": 2, "place_devices": 1},
    "session": {"epoch_s": 8, "beat_s": 1},
    "presence": {"ttl_s": 20, "max_behind_s": 5},
    "tick": {"interval_s": 1.0},
    "cluster": {"n_parts": 1},
    "device_zones": {"topic": "zones/{device}"},
    "zones": [
        {"circle": {"lat": SMALL.lat[node], "lon": SMALL.lon[node], "radius_m": 120}}
        for node in (44, 7)
    ],
    "inputs": [
        {"topic": "positions/{device}"},
        {"topic": "sensors/{device}", "kind": "fixed"},
        {"topic": "signs/{device}", "kind": "public"},
    ],
    "fixed": {"ttl_s": 30},
    "output": {"qos": 1},
    "counts": {"privacy": "k", "every_s": 3, "k": 3, "cells": 16, "streets_s": 60},
    "trips_out": {"every_s": 60},
}
READINGS = [{"name": name, "lo": 0.0, "hi": 30.0} for name in ("speed", "load")]
SOURCES = {
    "readings": ALIKE | {"readings": READINGS},
    "trips": ALIKE | {"trips": {"enabled": True, "ends_m": 50, "ends_s": 1, "delay_s": 2,
                                "gap_s": 5, "dwell_s": 3}},
    "noise": ALIKE | {"counts": {"privacy": "dp", "every_s": 1, "period_s": 4, "cells": 16,
                                 "device_intervals": 1, "epsilon": 100, "trip_areas": 4}},
}  # fmt: skip


class Pair:
    """A source and the lane of the only district, and the regions of fixed devices."""

    def __init__(self, settings: Settings) -> None:
        self._topic = settings.topics.fixed
        zoned = with_zones(SMALL, zones_of(settings.zones))
        self.source = source_stages(settings, zoned, secret=SECRET)(0)
        self.lane = lane_stages(settings, zoned, secret=SECRET)(0)
        self.regions: Regions = {}

    def run(self, ticks: range) -> None:
        for tick in ticks:
            arrivals = [Arrivals(tick + 0.5, arriving(tick))]
            raw = encode_raw(Raw("bridge", tick, False, arrivals))
            waiting = [*self.source.take(raw, at_s=tick + 1.0)]
            while waiting:
                waiting += self._passed(waiting.pop(0), at_s=tick + 1.0)

    def _passed(self, send: Send, *, at_s: float) -> list[Send]:
        if send.to in {"lane", "source"}:
            take = self.lane.take if send.to == "lane" else self.source.take
            return take(send.value, at_s=at_s)
        for message in decode_out(send.value) if send.to == "out" else ():
            if message.topic == self._topic:
                said = json.loads(message.payload)
                self.regions |= dict.fromkeys(said["pseudonyms"], frozenset(said["region"]))
        return []


def arriving(tick: int) -> list[Delivery]:
    """Return what devices of each kind send: those that move cross the zones."""
    found = []
    for kind, n, speed in (("positions", 40, 1), ("sensors", 24, 0), ("signs", 3, 0)):
        for device in range(n):
            node = (device * 4 + tick * speed) % SMALL.n_nodes
            said = {"lat": SMALL.lat[node], "lon": SMALL.lon[node], "ts": tick + 0.25}
            said["readings"] = {"speed": float(device % 7), "load": 3.0}
            payload = json.dumps(said).encode()
            found.append(Delivery(f"{kind}/{kind[0]}{device}", payload, 0, False))
    return found


@cache
def pair_before(kind: str) -> tuple[Settings, tuple[bytes, bytes], Regions]:
    base = Settings.model_validate(SOURCES[kind])
    pair = Pair(base)
    pair.run(range(START, START + 26))
    assert pair.regions, "fixed devices are published"
    return base, (pair.source.snapshot(), pair.lane.snapshot()), pair.regions


@cache
def changed_sources() -> dict[str, dict[str, list[Settings]]]:
    """By kind of source and key; not where it is imported, which every worker does."""
    return {kind: by_key(changes(Settings.model_validate(said))) for kind, said in SOURCES.items()}


@pytest.mark.parametrize("kind", SOURCES)
def test_no_change_of_a_setting_crashes_a_source_or_shrinks_a_region_of_fixed_devices(
    kind: str,
) -> None:
    """One value of each key, in one of the kinds of source that have it, in turns."""
    n_tried = 0
    for turn, key in enumerate(sorted(set[str]().union(*changed_sources().values()))):
        kinds = [each for each in SOURCES if key in changed_sources()[each]]
        if kinds[turn % len(kinds)] == kind:
            n_tried += 1
            run_on_pair(kind, key, up_or_down(changed_sources()[kind][key], turn // len(kinds)))
    assert n_tried > 20


@pytest.mark.soak
@pytest.mark.parametrize("kind", SOURCES)
def test_no_value_of_a_setting_crashes_a_source_or_shrinks_a_region_of_fixed_devices(
    kind: str,
) -> None:
    for key, every in changed_sources()[kind].items():
        run_on_pair(kind, key, every)


def run_on_pair(kind: str, key: str, wanted: Sequence[Settings]) -> None:
    """Go on with each of these settings in turn; a region of a fixed device must not shrink."""
    base, snapshots, regions = pair_before(kind)
    for settings in wanted:
        if stands_still(base, settings, SMALL):
            continue
        try:
            check_cluster(settings)
            pair = Pair(settings)
        except SettingsError:
            continue  # refused before a worker starts
        pair.source.restore(snapshots[0])
        pair.lane.restore(snapshots[1])
        pair.run(range(START + 26, START + 34))
        living = pair.regions.keys() & regions.keys()
        assert all(pair.regions[name] >= regions[name] for name in living), key


OTHER_PLACES: dict[str, tuple[RoadNetwork, dict[str, Any]]] = {
    "fewer nodes": (load_network("grid:8x8"), {}),
    "as many nodes": (load_network("grid:20x5"), {}),
    "other districts": (SMALL, {"region": ALIKE["region"] | {"districts": 2}}),
    "other cells": (SMALL, {"counts": ALIKE["counts"] | {"cells": 64}}),
}


@pytest.mark.parametrize("other", OTHER_PLACES)
@pytest.mark.parametrize("stage", ["source", "lane"])
@pytest.mark.parametrize("kind", ["readings", "trips"])
def test_no_stage_reads_numbers_of_other_places(kind: str, stage: str, other: str) -> None:
    """Routes, passages, homes and cells are numbers that mean nothing elsewhere."""
    _, snapshots, _ = pair_before(kind)
    network, changed = OTHER_PLACES[other]
    settings = Settings.model_validate(SOURCES[kind] | changed | {"zones": []})
    make = source_stages if stage == "source" else lane_stages
    made = make(settings, with_zones(network, zones_of([])), secret=SECRET)(0)
    with pytest.raises(ValueError, match=r"are no snapshot of|is of other counts"):
        made.restore(snapshots[stage == "lane"])


def said_by_those_who_stand(now: float) -> Arrivals:
    rng = np.random.default_rng(3)
    found = []
    for device, node in enumerate(rng.integers(NETWORK.n_nodes, size=N_DEVICES).tolist()):
        said = {"lat": NETWORK.lat[node], "lon": NETWORK.lon[node], "ts": now - 0.5}
        found.append(Delivery(f"positions/d{device}", json.dumps(said).encode(), 0, False))
    return Arrivals(now, found)


def flow_of_gateway(flow: PositionFlow, ticks: range) -> Regions:
    found: Regions = {}
    for tick in ticks:
        now = tick + 1.0
        output = flow.tick([said_by_those_who_stand(now)], now=now)
        flow.settle(output, [True] * len(output.messages), seconds=0.0)
        for message in output.messages:
            said = json.loads(message.payload)
            if names := said.get("pseudonyms"):
                found |= dict.fromkeys(names, frozenset(said["region"]))
    return found


def test_no_reload_shrinks_a_region_of_a_living_id() -> None:
    n_reloaded = n_living = 0
    for key, wanted in ((key, wanted) for key, made in CHANGED.items() for wanted in made):
        try:
            settings = change(BASE, wanted).settings
        except SettingsError:
            continue  # it needs a restart, or protects less
        n_reloaded += 1
        zoned = with_zones(NETWORK, zones_of([]))
        flow = PositionFlow(BASE, zoned, Ledger(), secret=SECRET, monotonic=time.monotonic)
        before = flow_of_gateway(flow, range(START, START + 30))
        flow.adopt(settings)
        after = flow_of_gateway(flow, range(START + 30, START + 50))
        living = after.keys() & before.keys()
        n_living += len(living)
        assert all(after[name] >= before[name] for name in living), key
    assert n_reloaded > 5
    assert n_living > N_DEVICES

"""A simulated cluster of positions: bridges, sources, lanes, and the topics between them."""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import count, islice
from typing import Any
from zlib import crc32

from anonymizer.cluster.held_files import HeldFiles
from anonymizer.cluster.positions.device_routing import DeviceRouting
from anonymizer.cluster.positions.lane_stage import LaneStage, lane_stages
from anonymizer.cluster.positions.raw_batches import STATEMENTS, Raw, decode_out, encode_raw
from anonymizer.cluster.positions.source_stage import SourceStage, source_stages
from anonymizer.cluster.stage import Send
from anonymizer.codecs import CODECS, CoarsePoint
from anonymizer.domain.network_version import network_version
from anonymizer.domain.outcomes import Outcome
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.outputs.counts.private_counts import HeldBudget, plan_of
from anonymizer.outputs.current.current_groups import CurrentGroups
from anonymizer.outputs.one_process import Outputs
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import Settings, zones_of
from tests import naive
from tests.algorithms.positions.cloaks.driving import Where, traffic
from tests.cluster.scheduled import N_BRIDGES, Process, Scheduled
from tests.codecs.samples import STATED
from tests.pipeline.positions.support import flow_settings

START = 1_002
"""The first tick with positions, in the middle of an epoch; a tick takes a second."""
N_DISTRICTS, N_SOURCES, N_DEVICES = 4, 2, 100
LONG_S = 50.0
"""A wait that is never over, but for the first tick of all."""
SECRET = b"of this test, and of no other...."
NETWORK = load_network("grid:10x10")
WALKS = "grid:12x14"
"""Footways over the same places: the second of two networks."""
BOTH = load_network(f"grid:10x10 + {WALKS}")
SITES = [0, 7, 44, 99, *range(3, 93, 6)]
"""Where fixed devices stand; more of them report with every tick."""
AWAY = {"lat": 10.0, "lon": 10.0}


TRIPS = {"enabled": True, "ends_m": 50, "ends_s": 1, "delay_s": 3,
         "gap_s": 5, "dwell_s": 4}  # fmt: skip
READINGS = [
    {"name": "speed", "lo": 0.0, "hi": 30.0, "step": 0.5, "statistics": ["count", "mean", "max"]},
    {"name": "load", "lo": 0.0, "hi": 9.0, "statistics": ["mean", "each"]},
]
COUNTS = {"privacy": "k", "every_s": 3, "k": 3, "cells": 16}
ZONE = {"circle": {"lat": NETWORK.lat[44], "lon": NETWORK.lon[44], "radius_m": 120}}
PRIVATE = {
    "privacy": "dp",
    "every_s": 1,
    "period_s": 4,
    "device_intervals": 1,
    "epsilon": 100,
    "cells": 16,
    "trip_areas": 4,
}
"""With so large an epsilon, one draw of noise in 10**10 is not 0."""
PROTECTED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "readings": {
        "readings": READINGS,
        "counts": COUNTS,
        "zones": [ZONE],
        "device_zones": {"topic": "zones/{device}"},
    },
    "secret thresholds": {"counts": COUNTS | {"k": 2}, "region": {"k_extra": 1}},
    "trips": {"trips": TRIPS, "counts": COUNTS},
    "trips_out": {
        "trips": {"gap_s": 2.5, "dwell_s": 2.0},
        "trips_out": {"every_s": 2},
        "counts": {"k": 2},
        "zones": [ZONE],
        "device_zones": {"topic": "zones/{device}"},
    },
    "streets": {
        "counts": {"streets_s": 60, "k": 3},
        "zones": [ZONE],
        "device_zones": {"topic": "zones/{device}"},
    },
    "zones": {"zones": [ZONE]},
    "device_zones": {"device_zones": {"topic": "zones/{device}"}},
    "all": {"trips": TRIPS, "zones": [ZONE], "device_zones": {"topic": "zones/{device}"}},
    "private": {"counts": PRIVATE, "trips": TRIPS},
    "ids": {"inputs": [{"ids_change_s": 5}], "counts": COUNTS},
    "echo": {"inputs": [{"echo": "cloaked/echo"}], "output": {"qos": 1}},
    "public": {
        "inputs": [{}, {"topic": "sensors/{device}", "kind": "public"}],
        "zones": [ZONE],
    },
    "fixed": {
        "inputs": [{}, {"topic": "sensors/{device}", "kind": "fixed", "echo": "cloaked/echo"}],
        "output": {"qos": 1},
        "fixed": {"ttl_s": 18.0},
        "readings": READINGS,
        "zones": [ZONE],
    },
    "current": {"current": {"every_s": 2.0}},
    "networks": {
        "network": {"source": f"grid:10x10 + {WALKS}"},
        "inputs": [
            {"network": "grid:10x10"},
            {"topic": "walks/{device}", "network": WALKS},
        ],
        "zones": [ZONE],
        "device_zones": {"topic": "zones/{device}"},
    },
    "inputs": {
        "inputs": [{}, {"topic": "fleet/+/{device}/#"}],
        "counts": COUNTS,
        "device_zones": {"topic": "zones/{device}"},
    },
    "everything": {
        "inputs": [
            {"echo": "cloaked/echo"},
            {"topic": "sensors/{device}", "kind": "fixed", "echo": "cloaked/sensors/echo"},
        ],
        "output": {"qos": 1},
        "fixed": {"ttl_s": 18.0},
        "readings": READINGS,
        "counts": COUNTS | {"k": 2, "streets_s": 60},
        "trips": {"gap_s": 2.5, "dwell_s": 2.0},
        "trips_out": {"every_s": 2},
        "zones": [ZONE],
        "device_zones": {"topic": "zones/{device}"},
    },
}
"""Settings of protection beyond groups, and of what is published besides, by name."""
STREETS_S = 4.0
"""Length of an hour of streets, shorter than the settings take."""
FLOOD: dict[str, dict[str, Any]] = {
    "flood": {"presence": {"max_devices": 12_000}, "counts": COUNTS}
}
"""So many ids are made up that where ticks wait for each other some messages are lost."""
CODED: dict[str, dict[str, Any]] = {name: {"inputs": [{"codec": name}]} for name in CODECS}
"""Settings of inputs in each format."""


def settings(
    mode: str,
    wait_s: float = LONG_S,
    protected: str = "nothing",
    n_sources: int = N_SOURCES,
    n_districts: int = N_DISTRICTS,
) -> Settings:
    tables = (PROTECTED | CODED | FLOOD)[protected]
    region = {"mode": mode, "districts": n_districts, "min_nodes": 1, "place_devices": 1}
    made = flow_settings(
        **{
            **tables,
            "region": region | tables.get("region", {}),
            "presence": {"ttl_s": 9, "max_behind_s": 5} | tables.get("presence", {}),
        },
        session={"epoch_s": 4, "beat_s": 0},
        adka={"density_steps": [], "k_values": [2]},
        tick={"interval_s": 1.0},
        cluster={"n_parts": n_sources, "wait_s": wait_s},
    )
    if not made.counts.streets_s:
        return made
    return made.model_copy(
        update={"counts": made.counts.model_copy(update={"streets_s": STREETS_S})}
    )


def deliveries(where: Where, now: float, tick: int) -> list[Delivery]:
    """Return what devices send in a tick: some without a time, twice, late, or in bad form."""
    found = []
    for device, node in where.items():
        place = {"lat": float(NETWORK.lat[node]), "lon": float(NETWORK.lon[node])}
        says: dict[str, Any] = dict(AWAY if node < 0 else place)
        if device % 5:
            says["ts"] = now - 0.01 * device
        if (device + tick) % 4 == 0:
            says["readings"] = {"speed": float((7 * device + tick) % 40)}
        if (device + tick) % 3 == 0:
            says["readings"] = says.get("readings", {}) | {"load": device / 10}
            if "ts" in says and (device + tick) % 7 == 0:
                says["ts"] = now - 3  # it does not move the device, but the reading may be new
        payload = json.dumps(says).encode()
        times = 2 if (device + tick) % 11 == 0 else 1
        found += [Delivery(f"positions/d{device}", payload, 0, False)] * times
        if (device + tick) % 23 == 0:
            found.append(Delivery(f"positions/d{device}", b"{", 0, False))
            old = json.dumps(says | {"ts": now - 4, "readings": {"load": 1.0}}).encode()
            found.append(Delivery(f"positions/d{device}", old, 0, False))
    return found


def in_format(codec: str, delivery: Delivery, now: float) -> Delivery:
    """Return a position in another format, as far as that states it; what is none is kept."""
    try:
        said = json.loads(delivery.payload)
    except ValueError:
        return delivery
    name, ts = delivery.topic.rpartition("/")[2], said.get("ts", now)
    point = CoarsePoint(said["lat"], said["lon"], 50, ts, name, delivery.topic)
    return delivery._replace(payload=STATED[codec](point))


def walkers(where: Where, now: float, tick: int) -> list[Delivery]:
    """Return what devices on footways send.

    A few are still on the roads, some were there in the first ticks and were silent for long.
    """
    of_kind = [(f"w{device}", device) for device in where]
    of_kind += [(f"d{device}", device) for device in where if tick > 3 and device % 12 == 0]
    of_kind += [(f"g{device}", device) for device in where if tick > 11 and device % 2 == 0]
    found = []
    for name, device in of_kind:
        node = where[device]
        place = AWAY
        if node >= 0:
            node += BOTH.layers[1].nodes.start
            place = {"lat": float(BOTH.lat[node]), "lon": float(BOTH.lon[node])}
        payload = json.dumps(place | {"ts": now - 0.5}).encode()
        found.append(Delivery(f"walks/{name}", payload, 0, False))
    for device in range(0, N_DEVICES if tick < 2 else 0, 2):
        node = (7 * device) % NETWORK.n_nodes
        says = {"lat": float(NETWORK.lat[node]), "lon": float(NETWORK.lon[node]), "ts": now - 0.5}
        found.append(Delivery(f"positions/g{device}", json.dumps(says).encode(), 0, False))
    return found


def made_up(tick: int) -> list[Delivery]:
    """Return positions off the roads of ids that are never heard again."""
    topics = [f"positions/x{tick}-{i}" for i in range(1050)]
    return [Delivery(topic, json.dumps(AWAY).encode(), 0, False) for topic in topics]


def renamed(topic: str, tick: int) -> str:
    """Return the topic of a device that takes another id every five ticks."""
    return f"{topic}-{(tick + crc32(topic.encode())) // 5 % 9}"


def moved_topic(topic: str, tick: int) -> str:
    """Return another topic of the same device, now and then."""
    device = topic.rpartition("/")[2]
    turn = (tick + crc32(topic.encode())) % 4
    return topic if turn < 2 else f"fleet/{turn}/{device}" + "/now" * (turn == 3)


def statements(tick: int) -> list[Delivery]:
    """Return what devices state about zones of their own in a tick."""
    said = {
        1: (range(0, 100, 4), json.dumps([ZONE]).encode()),
        5: (range(0, 50, 8), b""),
        6: (range(4, 50, 8), json.dumps([ZONE, ZONE]).encode()),
        7: (range(1, 9), b"?"),
        8: (range(10, 60, 3), b'[{"everywhere": true}]'),
        11: (range(10, 60, 6), b"[]"),
    }
    devices, payload = said.get(tick, (range(0), b""))
    return [Delivery(f"zones/d{device}", payload, 0, retained=True) for device in devices]


def sensors(now: float, nodes: Sequence[int] = (0, 7, 44, 99)) -> list[Delivery]:
    """Return what fixed devices send in a tick: one of them in a zone, one in bad form."""
    found = []
    for number, node in enumerate(nodes):
        place = {"lat": float(NETWORK.lat[node]), "lon": float(NETWORK.lon[node])}
        load = {"readings": {"load": float(number)}} if number % 3 else {}
        said = json.dumps(place | load | ({"ts": now - 0.5} if number % 2 else {})).encode()
        found += [Delivery(f"sensors/s{number}", said, 0, False)] * (1 + number % 2)
    return [*found, Delivery("sensors/s9", b"{", 0, False)]


def note_hour(hours: list[bytes], newest: bytes | None) -> None:
    """Note what is told of streets, if it is new."""
    if newest is not None and newest not in hours:
        hours.append(newest)


class World:
    """Devices that move, and what one process publishes about them."""

    def __init__(
        self,
        mode: str,
        *,
        n_ticks: int,
        seed: int,
        protected: str = "nothing",
        n_districts: int = N_DISTRICTS,
    ) -> None:
        self.mode, self.protected, self.n_districts = mode, protected, n_districts
        given = settings(mode, protected=protected, n_districts=n_districts)
        self.presence = given.presence
        network = BOTH if given.layer_of_input else NETWORK
        self.zoned = with_zones(network, zones_of(given.zones))
        self.has_statements = given.device_zones.enabled
        self.routing = DeviceRouting(given.inputs)
        self.statements = self.routing.of_statements(given.device_zones.filter_topic)
        self.arrivals = self._arrivals(n_ticks, seed)
        self._make: dict[tuple[float, int], Any] = {}
        ledger, seconds = Ledger(), count()
        budget = HeldBudget(plan_of(given.counts)) if given.counts.has_noise else None
        outputs = Outputs(given, self.zoned.network, secret=SECRET, budget=budget)
        flow = PositionFlow(
            given,
            self.zoned,
            ledger,
            secret=SECRET,
            monotonic=lambda: float(next(seconds)),
            outputs=outputs,
        )
        self.expected: Counter[bytes] = Counter()
        self.hours: list[bytes] = []
        """Traffic by street of each hour that has ended."""
        self.current: list[list[Outgoing]] = []
        """What is retained about the groups that live, every two ticks."""
        groups = CurrentGroups(
            topic=given.topics.current, network=network_version(NETWORK), grace_s=2.0
        )
        for tick in (START - 2, START - 1):
            flow.settle(flow.tick([], now=float(tick + 1)), [], seconds=0.0)
        for tick, batch in enumerate(self.arrivals):
            ledger.receive(len(batch))
            if flow.device_zones is not None:
                flow.device_zones.put(statements(tick))
            output = flow.tick([Arrivals(START + tick + 0.5, batch)], now=float(START + tick + 1))
            flow.settle(output, [True] * len(output.messages), seconds=0.0)
            self.expected.update(message.payload for message in output.messages)
            while outputs.publish_slow():
                note_hour(self.hours, outputs.newest("streets"))
            groups.see(each for each in output.messages if each.topic == given.output.topic)
            if (now := START + tick + 1) % 2 == 0:
                self.current.append(groups.messages(now=float(now)))
        self.accounts = ledger.counts()
        self.n_held = flow.n_held

    def _arrivals(self, n_ticks: int, seed: int) -> list[list[Delivery]]:
        """Return what arrives in each tick."""
        reports = islice(traffic(NETWORK, N_DEVICES, seed=seed, says=0.7), n_ticks)
        walks = traffic(BOTH.alone(BOTH.layers[1]), N_DEVICES, seed=seed + 1, says=0.7)
        found = []
        for tick, where in enumerate(reports):
            now = float(START + tick + 1)
            batch = deliveries(where, now, tick)
            if self.protected == "ids":
                batch = [each._replace(topic=renamed(each.topic, tick)) for each in batch]
            elif self.protected == "inputs":
                batch = [each._replace(topic=moved_topic(each.topic, tick)) for each in batch]
            elif self.protected == "flood":
                # Whoever jumps back to the roads is believed by a table alone that was full before.
                on_road = {device: node for device, node in where.items() if node >= 0}
                batch = made_up(tick) + [
                    each._replace(topic=renamed(each.topic, tick))
                    for each in deliveries(on_road, now, tick)
                ]
            elif self.protected == "networks":
                batch += walkers(next(walks), now, tick)
            elif self.protected == "public":
                batch += sensors(now)
            elif self.protected in {"fixed", "everything"}:
                batch += sensors(now, SITES[: 4 + 2 * tick])
            elif self.protected in CODED.keys() - {"native"}:
                batch = [in_format(self.protected, each, now) for each in batch]
            found.append(batch)
        return found

    def stages(self, wait_s: float, n_sources: int) -> tuple[Any, Any]:
        """Return the functions that make the sources and the lanes."""
        if (wait_s, n_sources) not in self._make:
            given = settings(self.mode, wait_s, self.protected, n_sources, self.n_districts)
            self._make[wait_s, n_sources] = (
                source_stages(given, self.zoned, secret=SECRET),
                lane_stages(given, self.zoned, secret=SECRET),
            )
        made: tuple[Any, Any] = self._make[wait_s, n_sources]
        return made


class Cluster(Scheduled[tuple[str, int], SourceStage | LaneStage]):
    """Runs a world as a schedule says.

    Parameters
    ----------
    wait_s
        Of the settings; `LONG_S`: ticks close when complete alone.
    n_sources
        Parts of the devices.
    """

    def __init__(self, world: World, *, wait_s: float = LONG_S, n_sources: int = N_SOURCES) -> None:
        super().__init__()
        self.world, self.wait_s, self._n_sources = world, wait_s, n_sources
        self.published: list[bytes] = []
        self.retained: list[Outgoing] = []
        self.hours: list[bytes] = []
        self._files = HeldFiles()
        self.now = float(START)
        self._sources, self._lanes = world.stages(wait_s, n_sources)
        self.processes = {
            ("source", number): Process(self._sources(number)) for number in range(n_sources)
        } | {("lane", number): Process(self._lanes(number)) for number in range(world.n_districts)}
        for process in self.processes.values():
            process.snapshot = process.stage.snapshot()
        # Where ticks wait for the silent, some more follow, so that all waiting is over at the end.
        extra = 0 if wait_s == LONG_S else int(2 * wait_s) + 3
        self.n_ticks = len(world.arrivals) + extra
        # Sources know all bridges, and have waited for others, when the first positions arrive.
        for tick, at_s in ((START - 2, START - 60.0), (START - 1, START - 30.0)):
            for bridge in range(N_BRIDGES):
                self._state(bridge, tick, [], at_s=at_s)

    @property
    def sources(self) -> list[SourceStage]:
        stages = [self.processes["source", number].stage for number in range(self._n_sources)]
        return [stage for stage in stages if isinstance(stage, SourceStage)]

    @property
    def lanes(self) -> list[LaneStage]:
        stages = [self.processes["lane", number].stage for number in range(self.world.n_districts)]
        return [stage for stage in stages if isinstance(stage, LaneStage)]

    def made(self, key: tuple[str, int]) -> SourceStage | LaneStage:
        made: SourceStage | LaneStage
        made = (self._sources if key[0] == "source" else self._lanes)(key[1])
        return made

    def send(self, bridge: int) -> None:
        tick = self.next_tick[bridge]
        if tick >= self.n_ticks:
            return
        self.next_tick[bridge] += 1
        batch = self.world.arrivals[tick] if tick < len(self.world.arrivals) else []
        mine = [each for each in batch if crc32(each.topic.encode()) // 2 % N_BRIDGES == bridge]
        self.now = max(self.now, float(START + tick + 1))
        self._state(bridge, START + tick, mine, at_s=self.now)

    def _state(self, bridge: int, tick: int, batch: list[Delivery], *, at_s: float) -> None:
        self.n_received += len(batch)
        for number in range(self._n_sources):
            if self.world.has_statements:
                self._pass_on(bridge, number, tick, at_s=at_s)
            part_of = self.world.routing.parts_of(PackedDeliveries.of(batch), self._n_sources)
            mine = [each for each, part in zip(batch, part_of, strict=True) if part == number]
            arrivals = [Arrivals(tick + 0.5, mine[:3]), Arrivals(tick + 0.6, mine[3:])]
            value = encode_raw(Raw(f"bridge-{bridge}", tick, False, arrivals))
            self.processes["source", number].log.append((value, at_s))

    def _pass_on(self, bridge: int, source: int, tick: int, *, at_s: float) -> None:
        """Let a bridge pass on what devices of a source state about zones of their own."""
        said = statements(tick - START)
        part_of = self.world.statements.parts_of(PackedDeliveries.of(said), self._n_sources)
        mine = [each for each, part in zip(said, part_of, strict=True) if part == source]
        value = encode_raw(
            Raw(f"bridge-{bridge}", tick, False, [Arrivals(at_s, mine)]), of=STATEMENTS
        )
        self.processes["source", source].log.append((value, at_s))

    def taken(self, key: tuple[str, int], at_s: float, sends: list[Send]) -> None:
        for send in sends:
            if send.to == "out":
                messages = decode_out(send.value)
                self.published += [each.payload for each in messages if not each.retain]
                self.retained += [each for each in messages if each.retain]
            elif send.to == "files":
                self._files.take(send.value)
                note_hour(self.hours, self._files.newest("streets"))
            else:
                self.processes[send.to, send.number].log.append((send.value, at_s))
        stage = self.processes[key].stage
        if isinstance(stage, SourceStage):
            self.check_balance(stage)

    @staticmethod
    def check_balance(source: SourceStage) -> None:
        counts, n_received = source.ledger.counts(), source.ledger.n_received
        assert naive.imbalance(counts, received=n_received, held=source.n_held) == 0

    def begin_anew(self, key: tuple[str, int]) -> None:
        """Lose a stage and its state."""
        self.processes[key].stage = self.made(key)
        self.keep(key)

    def accounts(self) -> Counter[Outcome]:
        """Return the counts of all sources."""
        total: Counter[Outcome] = Counter()
        for source in self.sources:
            total.update(source.ledger.counts())
        return total

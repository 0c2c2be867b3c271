"""Everything that a cluster consists of is struck at random, while positions and records come.

It is killed, stopped for longer than Kafka waits, or loses its folder; somebody writes poison into
every topic; and at the end Kafka comes back with an empty disk.
"""

import asyncio
import json
import shutil
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from anonymizer.cluster.kafka import ensure_topics
from anonymizer.cluster.topics import Kind, key_of, topic_by_kind
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.settings import Settings, load_settings
from anonymizer.transport import MqttLink
from anonymizer.transport.kafka_clients import client_options
from anonymizer.transport.local_brokers import LocalBroker
from tests.algorithms.positions.cloaks.driving import traffic
from tests.app.gateway.records import toml
from tests.brokers import QuickBrokerSettings
from tests.cluster.fleet import START_S, sent
from tests.cluster.journals import POISON, Journals, Replay
from tests.cluster.kafka import Kafka, free_ports, running_kafka
from tests.cluster.processes import (
    DEADLINE_S,
    Processes,
    answer,
    metrics_of,
    processes,
    wait_until,
)
from tests.cluster.recorded import NETWORK
from tests.pipeline.records.made import FLEET, LENGTH_S
from tests.pipeline.records.tolls import TOLL, exits

N_DEVICES, N_VEHICLES, N_TOLLS = 100, 150, 20
"""Devices that report once a second; parts and exits come between two blows."""
BRIDGES, WORKERS = ("one", "two"), ("a", "b", "c")
SECRET = bytes(range(32))
TOKEN = "of-this-test"  # noqa: S105  of no value
K = {"positions": 2, "fleet": 4, "toll": 5}
Said = tuple[str, bytes]
"""Topic and payload."""
STOPPED_S = 14.0
"""Longer than a session and a transaction may last."""
FIRST_BYTES = b"RZPBDTCVNWMSAPQHKFO"
"""Of all that is in the topics."""


def config_of(folder: Path, name: str, *, kafka: str, prefix: str, broker: str, port: int) -> Path:
    """Write the settings of a process, and the secret beside it."""
    secret, config = folder / "secret", folder / f"{name}.toml"
    secret.touch(mode=0o600)
    secret.write_bytes(SECRET)
    # No source of records becomes inactive: windows close by what was sent alone.
    streams = [FLEET | {"idle_s": 36_000, "lateness_s": 1}, TOLL | {"idle_s": 36_000}]
    config.write_text(f"""
        inputs = [{{topic = "positions/{{device}}", qos = 1}}]
        streams = [{", ".join(map(toml, streams))}]
        [network]
        source = "grid:10x10"
        snap_limit_m = 30
        [region]
        mode = "session"
        districts = 4
        min_nodes = 1
        place_devices = 1
        [session]
        epoch_s = 4
        beat_s = 2
        [presence]
        ttl_s = 9
        max_behind_s = 5
        [adka]
        density_steps = []
        k_values = [{K["positions"]}]
        [broker]
        url = "{broker}"
        client_id = "cluster-0123456789abcdef0123456789abcdef"
        session_expiry_s = 3600
        [store]
        path = "{folder}/{name}.sqlite"
        [tick]
        interval_s = 1
        [http]
        map = "none"
        port = {port}
        token = "{TOKEN}"
        [kafka]
        servers = "{kafka}"
        group = "{prefix}"
        [cluster]
        n_parts = 2
        wait_s = 15
        secret_file = "{secret}"
    """)
    return config


class World:
    """A cluster, its brokers, devices that send to it, and an analyst who listens.

    Attributes
    ----------
    acknowledged
        What the broker has acknowledged to the devices.
    heard
        What has come to the analyst.
    at_risk
        What the broker may have lost with its memory: the analyst had not heard it when it died.
    """

    def __init__(self, folder: Path, kafka: Kafka, broker: LocalBroker, running: Processes) -> None:
        self._folder, self._kafka, self._broker, self._running = folder, kafka, broker, running
        self._port_of = dict(zip((*BRIDGES, *WORKERS), free_ports(5), strict=True))
        self.settings: Settings = load_settings(self._config("nobody", 0))
        ensure_topics(self.settings)
        self.acknowledged: set[Said] = set()
        self.heard: set[Said] = set()
        self.at_risk: set[Said] = set()
        self.n_unasked = 0
        """Processes that ended by themselves, because Kafka was away."""
        self._ended = asyncio.Event()
        self._sending = asyncio.Lock()

    def _config(self, name: str, port: int) -> Path:
        return config_of(
            self._folder,
            name,
            kafka=self._kafka.address,
            prefix="killed",
            broker=self._broker.url,
            port=port,
        )

    def start(self, *names: str) -> None:
        for name in names or self._port_of:
            port = self._port_of[name]
            command = ["anonymizer", "worker" if name in WORKERS else "bridge"]
            state = ["--state", str(self._folder / "state")] if name in WORKERS else []
            config = str(self._config(name, port))
            self._running.start(name, *command, "-c", config, "--name", name, *state)

    def subscribed(self) -> Counter[tuple[str, str]]:
        """Return how often each bridge has subscribed to positions and to records."""
        return Counter(
            (name, role)
            for name in BRIDGES
            for line in self._running.said(name).splitlines()
            for role in ("in", "records")
            if f'"mqtt {role}"' in line and '"connected": true' in line
        )

    async def bridges_listen(self, before: Counter[tuple[str, str]]) -> None:
        """Wait until all bridges have subscribed once more than before.

        What the broker acknowledges while nobody has subscribed is for nobody, and Mosquitto saves
        sessions without their shared subscriptions.
        """
        places = [(name, role) for name in BRIDGES for role in ("in", "records")]
        await self.until(
            lambda: all(self.subscribed()[place] > before[place] for place in places), "bridges"
        )

    async def drive(self, link: MqttLink) -> None:
        """Let all devices report about once a second until `end`."""
        for where in traffic(NETWORK, N_DEVICES, seed=5, says=0.7):
            messages = []
            for device, node in where.items():
                place = {"lat": 10.0, "lon": 10.0}  # off the graph
                if node >= 0:
                    place = {"lat": float(NETWORK.lat[node]), "lon": float(NETWORK.lon[node])}
                payload = json.dumps(place | {"ts": time.time()}).encode()
                messages.append(Outgoing(f"positions/d{device}", payload))
            await self._publish(link, messages)
            if self._ended.is_set():
                return
            await asyncio.sleep(1.0)

    def end(self) -> None:
        """Let devices end."""
        self._ended.set()

    def go_on(self) -> None:
        """Let devices begin once more."""
        self._ended.clear()

    async def deliver(self, link: MqttLink, messages: Sequence[Outgoing]) -> None:
        """Publish messages until all are acknowledged."""
        left = list(messages)
        while left:
            await link.until_connected()
            results = await self._publish(link, left)
            left = [each for each, result in zip(left, results, strict=True) if not result]

    async def _publish(self, link: MqttLink, messages: Sequence[Outgoing]) -> Sequence[bool | None]:
        async with self._sending:
            results = await link.publish(messages, qos=1, timeout_s=10.0)
            self.acknowledged |= {
                (each.topic, each.payload)
                for each, result in zip(messages, results, strict=True)
                if result
            }
        return results

    async def all_in_kafka(self, journals: Journals) -> None:
        """Wait until Kafka has all that has been acknowledged."""
        wanted = set(self.acknowledged)

        def are_there() -> bool:
            for known in journals.arrived().values():
                wanted.difference_update(known)
            return not wanted

        await self.until(are_there, "acknowledged messages")

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition, and start again what has ended by itself."""

        def holds() -> bool:
            self.n_unasked += self._running.revive()
            return condition()

        await asyncio.to_thread(wait_until, holds, what, deadline_s=2 * DEADLINE_S)

    async def strike(self, victim: str, journals: Journals, analyst: MqttLink) -> None:
        """Strike something, and start it again if it was killed."""
        name, _, how = victim.partition(", ")
        if victim == "poison":
            await asyncio.to_thread(self.poison)
        elif how == "stopped":
            send = self._kafka.send_signal
            if name != "kafka":
                send = lambda number: self._running.send_signal(name, number)  # noqa: E731
            send(signal.SIGSTOP)
            await asyncio.sleep(STOPPED_S)
            send(signal.SIGCONT)
        elif how == "without its folder":
            self._running.kill(name)
            # A worker that was struck while it started has none yet.
            shutil.rmtree(self._folder / "state" / name, ignore_errors=True)
            self.start(name)
        elif victim == "kafka":
            self._kafka.kill()
            await asyncio.to_thread(self._kafka.start)
        elif victim.startswith("mosquitto"):
            async with self._sending:
                before = self.subscribed()
                if victim == "mosquitto":
                    # It acknowledges before it saves: what is in Kafka is safe from its death.
                    await self.all_in_kafka(journals)
                    await self._broker.kill()
                else:
                    assert await self._broker.stop() == 0
                await self._broker.start()
                await self.bridges_listen(before)
            if victim == "mosquitto":
                await analyst.until_connected()
                now = time.time()
                await self.until(lambda: journals.read_past(now), "what was published until now")
                self.at_risk |= said(journals.published()) - self.heard
        else:
            await asyncio.to_thread(self._running.restart, victim)

    def poison(self) -> None:
        """Write into every topic what is none of it, for its stages and for nobody."""
        producer = Producer(client_options(self.settings.kafka))
        for kind, topic in topic_by_kind(self.settings).items():
            for partition in range(topic.n_partitions):
                stage = key_of(kind, partition, topic.n_partitions)
                other = key_of(kind, partition + 1, topic.n_partitions)
                for key in (stage, other, b"nobody", None):
                    for first in FIRST_BYTES:
                        value = bytes([first]) + POISON
                        producer.produce(topic.name, value, key, partition=partition)
        producer.flush()

    def why_not_ready(self, name: str) -> str:
        """Return what a member answers where it is not ready, if it is not."""
        return answer(self._port_of[name], "/readyz", token=TOKEN, status=503) or ""

    def is_ready(self, name: str) -> bool:
        return answer(self._port_of[name], "/readyz", token=TOKEN) is not None

    def n_in(self, kind: Kind) -> int:
        """Return how many messages the topic of a kind holds, with the marks of transactions."""
        topic = topic_by_kind(self.settings)[kind]
        reader = Consumer({**client_options(self.settings.kafka), "group.id": "counting"})
        try:
            where = [TopicPartition(topic.name, n) for n in range(topic.n_partitions)]
            return sum(reader.get_watermark_offsets(each, timeout=60)[1] for each in where)
        finally:
            reader.close()

    def metrics(self) -> dict[str, float]:
        """Return the sums over all workers; nothing while one is starting."""
        return metrics_of([self._port_of[name] for name in WORKERS], token=TOKEN)

    async def stop(self, *names: str) -> list[int]:
        """End processes in order, and return their exit codes."""
        return [await asyncio.to_thread(self._running.stop, name) for name in names]


def said(messages: Iterator[Outgoing]) -> set[Said]:
    return {(each.topic, each.payload) for each in messages}


@asynccontextmanager
async def link_of(
    broker: LocalBroker, name: str, hear: Callable[[Sequence[Delivery]], None], *topics: str
) -> AsyncIterator[MqttLink]:
    settings = QuickBrokerSettings(url=broker.url, session_expiry_s=3600)
    subscriptions = [(topic, 1) for topic in topics]
    link = MqttLink(settings, client_id=name, deliver=hear, subscriptions=subscriptions)
    running = asyncio.create_task(link.run())
    await link.until_connected()
    yield link
    await link.close()
    await running


def records(n_blows: int) -> list[list[Outgoing]]:
    """Return the parts and exits of each blow: half a window of the fleet."""
    parts = sent(N_VEHICLES, (n_blows + 1) // 2)
    tolls = list(exits(n=N_TOLLS * n_blows, n_trucks=N_TOLLS, seed=5))
    found: list[list[Outgoing]] = [[] for _ in range(n_blows)]
    for part in parts:
        half = int((part.ts - START_S) // (LENGTH_S / 2))
        found[min(half, n_blows - 1)].append(Outgoing(part.topic, part.payload))
    for i, toll in enumerate(tolls):
        found[i // N_TOLLS].append(Outgoing(f"toll/exit/{toll.truck}", toll.payload))
    [after] = exits(n=1, n_trucks=1, seed=5, first_day="2023-01-04")
    found[-1].append(Outgoing(f"toll/exit/{after.truck}", after.payload))
    return found


ALL_BLOWS = (
    "poison",
    *("a", "b, stopped", "c, without its folder"),
    *("one", "two, stopped"),
    *("kafka", "kafka, stopped"),
    *("mosquitto", "mosquitto, saving"),
)


def blows(n: int, *, seed: int) -> list[str]:
    """Return who is struck, and how: everything once, then workers and bridges more often."""
    rng = np.random.default_rng(seed)
    share_of = dict.fromkeys((*ALL_BLOWS, *WORKERS, *BRIDGES), 1.0)
    share = np.array(list(share_of.values())) / len(share_of)
    first: list[str] = rng.permutation(ALL_BLOWS).tolist()
    more: list[str] = rng.choice(list(share_of), max(0, n - len(first)), p=share).tolist()
    return [*first, *more][:n]


def stream_of(said: Said) -> str:
    return str(json.loads(said[1]).get("stream", "positions"))


def check_promises(published: Sequence[Outgoing]) -> None:
    """Check what everybody sees: k members, none twice at a time, and k records a class."""
    seen: set[tuple[float, str]] = set()
    n_of: Counter[str] = Counter()
    for each in published:
        content: dict[str, Any] = json.loads(each.payload)
        stream = stream_of((each.topic, each.payload))
        n_of[stream] += 1
        assert content["k"] >= K[stream]
        if stream == "positions":
            members = {(content["time"], name) for name in content["pseudonyms"]}
            assert len(members) == len(content["pseudonyms"]) >= content["k"]
            assert not members & seen
            seen |= members
    assert all(n_of[stream] for stream in K), n_of


@pytest.mark.kafka
@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("n_blows", [10, 50])
async def test_blows_at_everything_lose_nothing_acknowledged_and_publish_nothing_twice(
    persistent_broker: LocalBroker, tmp_path: Path, n_blows: int
) -> None:
    broker, rng = persistent_broker, np.random.default_rng(n_blows)
    (tmp_path / "kafka").mkdir()
    with (
        running_kafka(tmp_path / "kafka") as kafka,
        processes(tmp_path) as running,
    ):
        world = World(tmp_path, kafka, broker, running)

        def hear(deliveries: Sequence[Delivery]) -> None:
            world.heard |= {(each.topic, each.payload) for each in deliveries}
            analyst.acknowledge(each.receipt for each in deliveries if each.receipt)

        with Journals(world.settings) as journals:
            async with (
                link_of(broker, "analyst", hear, "cloaked/#", "anonymized/#") as analyst,
                link_of(broker, "devices", lambda _: None) as devices,
                asyncio.TaskGroup() as group,
            ):
                world.start()
                await world.bridges_listen(Counter())
                group.create_task(world.drive(devices))
                await world.until(lambda: bool(world.heard), "the first message")
                coming = []
                for victim, parts in zip(
                    blows(n_blows, seed=n_blows), records(n_blows), strict=True
                ):
                    coming.append(group.create_task(world.deliver(devices, parts)))
                    n_before = len(world.heard)
                    await asyncio.sleep(rng.exponential(1.0))
                    await world.strike(victim, journals, analyst)
                    print(f"{time.time():.0f} {victim}", flush=True)  # noqa: T201
                    # Some blows hit what starts or recovers, the others what is at work.
                    if rng.random() < 0.7:
                        await world.until(lambda n=n_before: len(world.heard) > n, "more messages")  # type: ignore[misc]
                        await world.all_in_kafka(journals)
                await asyncio.gather(*coming)
                world.end()
                await world.all_in_kafka(journals)
                # The last exit closes the only window of the tolls.
                await world.until(
                    lambda: "toll" in map(stream_of, list(world.heard)), "classes of tolls"
                )
                await world.until(lambda: adds_up(world, journals), "all accounts")
                poisoned = world.metrics().get("anonymizer_worker_dropped_total", 0)
                # One that is still starting has nothing to commit.
                assert set(await world.stop(*WORKERS)) <= {0, -signal.SIGTERM}
                replay = await asyncio.to_thread(
                    Replay, journals, world.settings, NETWORK, secret=SECRET
                )
                await world.until(lambda: journals.sent() >= replay.sent, "what stages have sent")
                wanted = said(journals.published()) - world.at_risk
                await world.until(lambda: wanted <= world.heard, "what is published")
                assert await world.stop(*BRIDGES) == [0] * len(BRIDGES)
                # Each message of a stage is there, once, and follows from what it has taken.
                assert journals.sent() == replay.sent
                published = list(journals.published())
                assert world.heard <= said(iter(published))
                await lose_kafka(world, kafka, devices)
    check_promises(published)
    for stage in replay.stages.values():
        assert getattr(stage, "counters", {}).get("unverified_classes", 0) == 0
    assert not any("dropped" in line for line in broker.log)
    print(  # noqa: T201
        f"{len(world.acknowledged)} acknowledged, {len(published)} published,"
        f" {sum(replay.sent.values())} messages of stages, {len(world.at_risk)} at risk,"
        f" {world.n_unasked} ended by themselves, {poisoned:.0f} dropped by those that run last"
    )


async def lose_kafka(world: World, kafka: Kafka, devices: MqttLink) -> None:
    """Start all members once more, let Kafka come back empty, and see that nothing comes of it."""
    before = world.subscribed()
    world.start()
    await world.bridges_listen(before)
    async with asyncio.TaskGroup() as group:
        world.go_on()
        group.create_task(world.drive(devices))
        n_before = len(world.heard)
        await world.until(lambda: len(world.heard) > n_before, "messages once more")
        kafka.lose_everything()
        await asyncio.to_thread(kafka.start)
        for name in WORKERS:
            await world.until(
                lambda n=name: "ClusterStateLost" in world.why_not_ready(n),  # type: ignore[misc]
                f"the reason why {name} stands still",
            )
        for name in BRIDGES:  # they serve, and what they bring waits
            await world.until(lambda n=name: world.is_ready(n), f"bridge {name}")  # type: ignore[misc]
        await world.until(lambda: world.n_in("source") > 20, "what bridges bring")
        assert world.n_in("out") == 0
        world.end()
    assert await world.stop(*WORKERS) == [1] * len(WORKERS)
    assert await world.stop(*BRIDGES) == [0] * len(BRIDGES)


def adds_up(world: World, journals: Journals) -> bool:
    """Return whether workers have taken all that bridges brought, and account for all of it."""
    brought = journals.arrived()
    expected = {
        "anonymizer_received_total": brought["source"].total(),
        "anonymizer_record_parts_received_total": brought["stream"].total(),
        "anonymizer_accounting_imbalance": 0,
        "anonymizer_record_parts_imbalance": 0,
    }
    return expected.items() <= world.metrics().items()

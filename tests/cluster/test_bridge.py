"""Bridges between a real Mosquitto and a real Kafka."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from pathlib import Path
from zlib import crc32

import pytest
from confluent_kafka import Producer

from anonymizer.cluster import bridge as bridge_module
from anonymizer.cluster import outflow
from anonymizer.cluster.bridge import Bridge
from anonymizer.cluster.held_files import file_parts
from anonymizer.cluster.kafka import ensure_topics
from anonymizer.cluster.positions.raw_batches import STATEMENTS, Raw, decode_raw, encode_out
from anonymizer.cluster.topics import PARTITIONER, key_of, topics_of
from anonymizer.errors import TransportError
from anonymizer.outputs.output import HeldFile
from anonymizer.outputs.streets import StreetsOutput
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.settings import load_settings
from anonymizer.transport import MqttLink
from anonymizer.transport.kafka_clients import client_options
from anonymizer.transport.local_brokers import LocalBroker, mosquitto
from tests.app.gateway.records import toml
from tests.brokers import QuickBrokerSettings
from tests.cluster.kafka import Kafka, free_ports
from tests.cluster.processes import (
    DEADLINE_S,
    Committed,
    Processes,
    answer,
    processes,
    wait_until,
)
from tests.pipeline.records.made import FLEET

N_SOURCES = 2
TICK_S = 0.05
TOKEN = "of-this-test"  # noqa: S105  of no value


@pytest.fixture
def bridges(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as running:
        yield running


def settings_file(
    folder: Path,
    broker: LocalBroker,
    kafka: Kafka,
    prefix: str,
    more: str = "",
) -> Path:
    """Write the settings of a bridge, which ends at once where Kafka takes what it has."""
    file = folder / f"{prefix}.toml"
    # Sessions outlive a bridge, so that the broker keeps what a dead one has not acknowledged.
    file.write_text(f"""
        inputs = [{{topic = "in/{{device}}", qos = 1}}]
        [broker]
        url = "{broker.url}"
        client_id = "bridge-0123456789abcdef0123456789abcdef"
        session_expiry_s = 600
        [kafka]
        servers = "{kafka.address}"
        group = "{prefix}"
        [cluster]
        n_parts = {N_SOURCES}
        [tick]
        interval_s = {TICK_S}
        [http]
        host = ""
        {more}
    """)
    return file


def start(running: Processes, config: Path, *names: str) -> None:
    for name in names:
        running.start(name, "anonymizer", "bridge", "-c", str(config), "--name", name)
    for name in names:
        wait_until(lambda name=name: running.said(name).count('"connected": true') >= 2, name)  # type: ignore[misc]


def raws(values: list[bytes]) -> list[Raw]:
    return [decode_raw(value) for value in list(values)]


def messages(values: list[bytes]) -> list[Delivery]:
    return [each for raw in raws(values) for batch in raw.arrivals for each in batch.deliveries]


class Payloads:
    """Those of the messages in `sources`. Each value is decoded once: there are many."""

    def __init__(self, stored: Committed) -> None:
        self._stored = stored
        self._n_decoded: Counter[int] = Counter()
        self._known: set[bytes] = set()

    def contain(self, wanted: AbstractSet[bytes]) -> bool:
        for source, values in dict(self._stored.values).items():
            new = values[self._n_decoded[source] :]
            self._n_decoded[source] += len(new)
            self._known.update(each.payload for each in messages(new))
        return wanted <= self._known


@asynccontextmanager
async def device(broker: LocalBroker, name: str = "device") -> AsyncIterator[MqttLink]:
    received: list[Delivery] = []
    link = MqttLink(
        QuickBrokerSettings(url=broker.url),
        client_id=name,
        deliver=received.extend,
        subscriptions=[("out/#", 1)],
    )
    link.received = received  # type: ignore[attr-defined]
    running = asyncio.create_task(link.run())
    await link.until_connected()
    yield link
    await link.close()
    await running


async def say(link: MqttLink, numbers: range) -> set[bytes]:
    """Send a message for each number; return those that the broker has acknowledged."""
    sent = [Outgoing(f"in/{number % 50}", b"%d" % number) for number in numbers]
    results = await link.publish(sent, qos=1, timeout_s=DEADLINE_S)
    return {each.payload for each, result in zip(sent, results, strict=True) if result}


async def until(condition: object, what: str) -> None:
    assert callable(condition)
    await asyncio.to_thread(wait_until, condition, what)


async def test_messages_of_a_topic_come_to_one_source_and_ticks_are_stated_to_all(
    broker: LocalBroker, kafka: Kafka, bridges: Processes, prefix: str, tmp_path: Path
) -> None:
    config = settings_file(tmp_path, broker, kafka, prefix)
    await asyncio.to_thread(start, bridges, config, "one", "two")
    topic = topics_of(load_settings(config)).sources
    with Committed(kafka.address, topic.name, topic.n_partitions) as stored:
        async with device(broker) as link:
            acknowledged = await say(link, range(500))
            payloads = Payloads(stored)
            await until(lambda: payloads.contain(acknowledged), "all messages in Kafka")
        for name in ("one", "two"):
            assert await asyncio.to_thread(bridges.stop, name) == 0, bridges.said(name)
        await until(
            lambda: all(sum(raw.last for raw in raws(stored.values[n])) == 2 for n in range(2)),
            "the last word of both bridges to each source",
        )
    of = [messages(stored.values[source]) for source in range(N_SOURCES)]
    assert sorted(int(each.payload) for part in of for each in part) == list(range(500))
    topics = [{each.topic for each in part} for part in of]
    assert all(topics)
    assert not topics[0] & topics[1]
    for source in range(N_SOURCES):
        by_bridge: dict[str, list[Raw]] = {"one": [], "two": []}
        for raw in raws(stored.values[source]):
            by_bridge[raw.bridge].append(raw)
        for said in by_bridge.values():
            assert any(raw.arrivals for raw in said)  # the subscription is shared
            ticks = [raw.tick for raw in said]
            assert ticks == sorted(ticks)


@pytest.mark.parametrize("kind", ["source", "stream"])
async def test_each_bridge_passes_zones_on_to_the_source_of_the_device_and_to_all_streams(
    broker: LocalBroker, kafka: Kafka, prefix: str, tmp_path: Path, kind: str
) -> None:
    file = settings_file(
        tmp_path, broker, kafka, prefix, '[device_zones]\ntopic = "zones/{device}"'
    )
    n_streams = 3
    if kind == "stream":
        others = [{"topic": f"{n}/{{source}}/{{vehicle}}"} for n in range(n_streams)]
        tables = [
            FLEET
            | {"name": f"fleet-{n}"}
            | {"sources": [each | other for each in FLEET["sources"]]}
            for n, other in enumerate(others)
        ]
        file.write_text(f"streams = [{', '.join(map(toml, tables))}]\n{file.read_text()}")
    settings = load_settings(file)
    ensure_topics(settings)
    topics = topics_of(settings)
    topic = topics.sources if kind == "source" else topics.parts
    n_stages = topic.n_partitions if kind == "source" else n_streams
    n_copies = 2 if kind == "source" else 2 * n_streams
    stop = asyncio.Event()
    bridges = [Bridge(settings, name=name) for name in ("one", "two")]
    devices = range(20)
    with Committed(kafka.address, topic.name, topic.n_partitions) as stored:

        def said(source: int) -> list[tuple[str, Delivery]]:
            found = [
                decode_raw(value, of=STATEMENTS)
                for value in list(stored.values[source])
                if value[:1] == STATEMENTS
            ]
            return [
                (raw.bridge, each)
                for raw in found
                for batch in raw.arrivals
                for each in batch.deliveries
            ]

        def n_said() -> int:
            return sum(len(said(part)) for part in range(n_stages))

        async with device(broker) as link:
            first = [Outgoing(f"zones/{i}", b"[]", retain=True) for i in devices]
            await link.publish(first, qos=1, timeout_s=DEADLINE_S)
            running = [asyncio.create_task(bridge.run(stop)) for bridge in bridges]
            await until(lambda: n_said() == n_copies * len(devices), "what was retained")
            withdrawn = Outgoing("zones/0", b"", retain=True)
            await link.publish([withdrawn], qos=1, timeout_s=DEADLINE_S)
            await until(lambda: n_said() == n_copies * (len(devices) + 1), "the withdrawal")
        stop.set()
        await asyncio.gather(*running)
    of_bridge: Counter[tuple[str, str, bytes]] = Counter()
    for part in range(n_stages):
        for bridge, each in said(part):
            of_bridge[bridge, each.topic, each.payload] += 1
            device_id = each.topic.removeprefix("zones/").encode()
            assert kind == "stream" or crc32(device_id) % N_SOURCES == part, "of its positions"
    assert topic.n_partitions > 1
    assert of_bridge == Counter(
        {
            (bridge, each.topic, each.payload): n_copies // 2
            for bridge in ("one", "two")
            for each in [*first, withdrawn]
        }
    )


async def test_what_lanes_send_is_published_and_committed(
    broker: LocalBroker, kafka: Kafka, bridges: Processes, prefix: str, tmp_path: Path
) -> None:
    config = settings_file(tmp_path, broker, kafka, prefix)
    settings = load_settings(config)
    topic = topics_of(settings).out
    ensure_topics(settings)
    producer = Producer({**client_options(settings.kafka), "partitioner": PARTITIONER})

    def send(value: bytes, lane: int) -> None:
        producer.produce(topic.name, value, key_of("lane", lane, topic.n_partitions))

    for i in range(20):
        send(encode_out([Outgoing("out/a", b"%d" % i), Outgoing("out/b", b"%d" % i)]), i % 3)
    send(b"nonsense", 0)
    assert producer.flush(DEADLINE_S) == 0
    async with device(broker) as link:
        await asyncio.to_thread(start, bridges, config, "one")
        received: list[Delivery] = link.received  # type: ignore[attr-defined]
        await until(lambda: len(received) >= 40, "all messages at the broker")
        expected = [("out/a", i) for i in range(20)] + [("out/b", i) for i in range(20)]
        assert sorted((each.topic, int(each.payload)) for each in received) == expected
        await until(lambda: "cannot be read" in bridges.said("one"), "the bad message")
        assert await asyncio.to_thread(bridges.stop, "one") == 0
        # What was published is not published again.
        await asyncio.to_thread(start, bridges, config, "two")
        send(encode_out([Outgoing("out/c", b"last")]), 0)
        assert producer.flush(DEADLINE_S) == 0
        await until(lambda: received[-1].topic == "out/c", "the next message")
    assert len(received) == 41


async def test_messages_that_the_broker_refuses_do_not_keep_others_waiting(
    kafka: Kafka, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outflow, "_REFUSED_S", 0.5)
    monkeypatch.setattr(outflow, "_RETRY_S", 0.1)
    rules = tmp_path / "acl"
    rules.write_text("topic readwrite out/allowed\ntopic write anonymizer/#\ntopic read in/#\n")
    broker = mosquitto(tmp_path, "allow_anonymous true", f"acl_file {rules}")
    await broker.start()
    settings = load_settings(settings_file(tmp_path, broker, kafka, prefix))
    topic = topics_of(settings).out
    ensure_topics(settings)
    producer = Producer({**client_options(settings.kafka), "partitioner": PARTITIONER})
    stop = asyncio.Event()
    bridge = Bridge(settings, name="one")
    running = asyncio.create_task(bridge.run(stop))
    refused = bridge.passed.n_refused
    async with device(broker) as link:
        received: list[Delivery] = link.received  # type: ignore[attr-defined]
        for number in range(3):
            both = [Outgoing("out/denied", b"-"), Outgoing("out/allowed", b"%d" % number)]
            producer.produce(topic.name, encode_out(both), key_of("out", 0, topic.n_partitions))
            assert producer.flush(DEADLINE_S) == 0
            await until(lambda n=number: len(received) > n, "what is allowed")
            await until(lambda n=number: refused["not_taken"] == n + 1, "what is denied")
    assert [int(each.payload) for each in received] == [0, 1, 2]
    stop.set()
    await running
    await broker.stop()


@pytest.mark.parametrize(
    "n_rounds", [1, pytest.param(10, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])]
)
async def test_nothing_acknowledged_is_lost_when_kafka_and_bridges_are_killed(
    broker: LocalBroker,
    own_kafka: Kafka,
    bridges: Processes,
    prefix: str,
    tmp_path: Path,
    *,
    n_rounds: int,
) -> None:
    rng = random.Random(n_rounds)  # noqa: S311  which bridge dies, and whether before Kafka
    config = settings_file(tmp_path, broker, own_kafka, prefix)
    await asyncio.to_thread(start, bridges, config, "one", "two")
    topic = topics_of(load_settings(config)).sources
    acknowledged: set[bytes] = set()
    ended = asyncio.Event()

    async def talk() -> None:
        n = 0
        async with device(broker) as link:
            while not ended.is_set():
                acknowledged.update(await say(link, range(n, n + 20)))
                n += 20
                await asyncio.sleep(0.05)

    async def kill(victim: str) -> None:
        if victim == "kafka":
            own_kafka.kill()
            await asyncio.to_thread(own_kafka.start)
        else:
            await asyncio.to_thread(bridges.restart, victim)

    with Committed(own_kafka.address, topic.name, topic.n_partitions) as stored:
        payloads = Payloads(stored)

        async def all_in_kafka() -> None:
            wanted = frozenset(acknowledged)

            def there() -> bool:
                bridges.revive()  # those that gave up because Kafka was away when they started
                return payloads.contain(wanted)

            await until(there, "all acknowledged messages in Kafka")

        async with asyncio.TaskGroup() as group:
            group.create_task(talk())
            for _ in range(n_rounds):
                # Bridges and Kafka are at work when they die, and no backlog grows in the broker.
                before = len(acknowledged)
                await until(lambda before=before: len(acknowledged) > before, "traffic")
                await all_in_kafka()
                for victim in rng.sample(["kafka", rng.choice(["one", "two"])], 2):
                    await kill(victim)
            ended.set()
        await all_in_kafka()
    assert not any("dropped" in line for line in broker.log)


async def test_a_bridge_is_not_ready_while_the_broker_refuses_outputs(tmp_path: Path) -> None:
    """Also before anything is published, and without Kafka."""
    rules = tmp_path / "acl"
    rules.write_text("topic readwrite in/#\ntopic readwrite anonymizer/status/#\n")
    rules.chmod(0o600)
    broker = mosquitto(tmp_path, "allow_anonymous true", f"acl_file {rules}")
    await broker.start()
    stop = asyncio.Event()
    settings = load_settings(settings_file(tmp_path, broker, Kafka(tmp_path), "t"))
    bridge = Bridge(settings, name="one")
    running = asyncio.create_task(bridge.run(stop))
    refused = "broker: it refuses messages on cloaked/positions (not authorized)"
    await until(lambda: any(each.startswith(refused) for each in bridge.why_not_ready()), refused)
    stop.set()
    await running
    await broker.stop()


async def test_without_kafka_a_bridge_stops_reading(
    broker: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_module, "_MOST_BYTES", 100_000)
    nowhere = Kafka(tmp_path)
    config = settings_file(tmp_path, broker, nowhere, "t")
    flood = [Outgoing("in/1", b"x" * 1000)] * 2000
    stop = asyncio.Event()
    bridge = Bridge(load_settings(config), name="one")
    running = asyncio.create_task(bridge.run(stop))
    async with device(broker) as link:
        while not bridge.passed.is_paused:
            await link.publish(flood, qos=0, timeout_s=DEADLINE_S)
        assert bridge.passed.n_bytes < 1_000_000
        n = bridge.passed.n_received
        await link.publish(flood, qos=1, timeout_s=DEADLINE_S)
        assert bridge.passed.n_received == n
        assert "kafka: too much waits for it" in bridge.why_not_ready()
        metrics = bridge.registry(exact=False)
        assert metrics.get_sample_value("anonymizer_bridge_wait_seconds")
    stop.set()
    await running


@pytest.mark.kafka
async def test_a_bridge_waits_for_kafka_and_outlives_its_loss(
    broker: LocalBroker, bridges: Processes, prefix: str, tmp_path: Path
) -> None:
    """It starts before Kafka does; then Kafka comes back with an empty disk.

    And it tells the streets of the last hour that is there.
    """
    (tmp_path / "kafka").mkdir()
    kafka, [port] = Kafka(tmp_path / "kafka"), free_ports(1)
    config = settings_file(tmp_path, broker, kafka, prefix)
    http = f'port = {port}\n        token = "{TOKEN}"\n        map = "none"'
    config.write_text(
        config.read_text().replace('host = ""', http) + "\n[counts]\nstreets_s = 3600"
    )
    topics = topics_of(load_settings(config))
    topic = topics.sources
    bridges.start("one", "anonymizer", "bridge", "-c", str(config), "--name", "one")

    def why_not() -> str:
        return answer(port, "/readyz", token=TOKEN, status=503) or ""

    await until(lambda: "waits for Kafka" in why_not(), "the reason")
    try:
        for n in range(2):
            before = bridges.said("one").count('"mqtt in"')
            await asyncio.to_thread(kafka.start)
            await until(
                lambda before=before: bridges.said("one").count('"mqtt in"') > before,
                "a subscription",
            )
            await until(lambda: answer(port, "/readyz", token=TOKEN) is not None, "ready")
            with Committed(kafka.address, topic.name, topic.n_partitions) as stored:
                payloads = Payloads(stored)
                async with device(broker) as link:
                    wanted = await say(link, range(100 * n, 100 * n + 100))
                await until(lambda w=wanted, p=payloads: p.contain(w), "the messages")
            producer = Producer({"bootstrap.servers": kafka.address})
            for part in file_parts(HeldFile("streets", n, b"%d" % n * 700_000)):
                producer.produce(topics.files.name, part)
            producer.flush()
            told = str(n) * 700_000
            await until(
                lambda told=told: answer(port, StreetsOutput.path, token=TOKEN) == told,
                "the last hour",
            )
            await asyncio.to_thread(kafka.lose_everything)
        assert bridges.revive() == 0
        assert await asyncio.to_thread(bridges.stop, "one") == 0
    finally:
        kafka.kill()


async def test_a_bridge_whose_clock_is_far_ahead_closes_no_ticks_and_ends(
    broker: LocalBroker, kafka: Kafka, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(settings_file(tmp_path, broker, kafka, prefix))
    ensure_topics(settings)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 2 * settings.cluster.wait_s)
    with pytest.raises(ExceptionGroup) as caught:
        await Bridge(settings, name="one").run(asyncio.Event())
    assert caught.group_contains(TransportError, match="is the clock of this machine ahead")

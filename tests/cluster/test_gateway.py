"""One gateway that reads and publishes positions in a real Kafka, without any MQTT broker."""

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from anonymizer.networks import load_network
from tests.cluster.kafka import Kafka
from tests.cluster.processes import Processes, processes, wait_until
from tests.transport.registry import Registry, read

N_PARTS = 2
N_DEVICES = 60
K = 5


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as running:
        yield running


class Bus:
    """The two topics of a test, as its devices and its analysts see them."""

    def __init__(self, kafka: Kafka, prefix: str, folder: Path) -> None:
        self.address, self.raw, self.out = kafka.address, f"{prefix}.raw", f"{prefix}.out"
        self.group = prefix
        self.queue_limit, self.registry = 100_000, ""
        self._admin = AdminClient({"bootstrap.servers": kafka.address})
        topics = [NewTopic(name, N_PARTS) for name in (self.raw, self.out)]
        for made in self._admin.create_topics(topics).values():
            made.result()
        self.config = folder / "gateway.toml"
        self.configure()
        self._producer: Any = Producer({"bootstrap.servers": kafka.address})
        network = load_network("grid:10x10")
        self._places = list(zip(network.lat.tolist(), network.lon.tolist(), strict=True))
        self.n_sent = 0

    def configure(self, *, session_s: int = 45) -> None:
        """Write the settings of gateways; one that is silent for a session loses its partitions."""
        self.config.write_text(f"""
            [network]
            source = "grid:10x10"
            [[inputs]]
            topic = "kafka:{self.raw}"
            [output]
            topic = "kafka:{self.out}"
            [kafka]
            servers = "{self.address}"
            group = "{self.group}"
            options = {{"session.timeout.ms" = "{1000 * session_s}"}}
            {f"schema_registry = {{ avro = '{self.registry}' }}" if self.registry else ""}
            [broker]
            url = "mqtt://127.0.0.1:1"
            [region]
            mode = "snapshot"
            [http]
            host = ""
            [presence]
            max_devices = {10 * self.queue_limit}
            max_behind_s = 100
            [tick]
            interval_s = 1.0  # on a loaded machine shorter ticks are late, and then few are decoded
        """)

    def send(self, n: int, *, seed: int = 1) -> None:
        """Send rounds of positions, one of each device."""
        rng = random.Random(seed)  # noqa: S311  traffic of a test
        for _ in range(n):
            for device in range(N_DEVICES):
                lat, lon = rng.choice(self._places)
                body = json.dumps({"ts": time.time(), "lat": lat, "lon": lon})
                self._producer.produce(self.raw, body.encode(), f"car/{device}")
            self._producer.flush()
            time.sleep(0.01)
        self.n_sent += n * N_DEVICES

    def send_raw(self, key: bytes | None, value: bytes | None) -> None:
        self._producer.produce(self.raw, value, key)
        self._producer.flush()
        self.n_sent += 1

    def n_committed(self) -> int:
        """Return how many inputs the gateway need not read again."""
        reader: Any = Consumer({"bootstrap.servers": self.address, "group.id": self.group})
        parts = [TopicPartition(self.raw, i) for i in range(N_PARTS)]
        found = reader.committed(parts, timeout=30)
        reader.close()
        return sum(max(0, each.offset) for each in found)

    def described(self) -> Any:  # noqa: ANN401  the environment of the type checker has it not
        """Return what Kafka says of the gateways' group."""
        [found] = self._admin.describe_consumer_groups([self.group]).values()
        return found.result()

    def is_divided(self) -> bool:
        """Return whether two gateways have partitions, and none is about to move."""
        found = self.described()
        shares = [member.assignment.topic_partitions for member in found.members]
        return found.state == ConsumerGroupState.STABLE and len(shares) == 2 and all(shares)

    def n_published(self) -> int:
        """Return how many messages analysts find."""
        reader, parts = self._analyst()
        n = sum(reader.get_watermark_offsets(part, timeout=30)[1] for part in parts)
        reader.close()
        return int(n)

    def _analyst(self) -> tuple[Any, list[Any]]:
        """Return a reader of what is published, and where it is."""
        reader: Any = Consumer(
            {"bootstrap.servers": self.address, "group.id": "x", "enable.auto.commit": False}
        )
        return reader, [TopicPartition(self.out, i, 0) for i in range(N_PARTS)]

    def published(self) -> list[Any]:
        """Return all messages that analysts find."""
        n, (reader, parts) = self.n_published(), self._analyst()
        reader.assign(parts)
        found: list[Any] = []

        def is_whole() -> bool:
            found.extend(reader.consume(1000, 0.1))
            return bool(len(found) >= n)

        wait_until(is_whole, "out")
        reader.close()
        return found


@pytest.fixture
def bus(kafka: Kafka, prefix: str, tmp_path: Path) -> Bus:
    return Bus(kafka, prefix, tmp_path)


def start(gateways: Processes, bus: Bus, name: str = "one") -> None:
    n = gateways.said(name).count("broker connected") if name_has_log(gateways, name) else 0
    gateways.start(name, "anonymizer", "serve", "-c", str(bus.config))
    wait_until(lambda: gateways.said(name).count("broker connected") > n, name)


def name_has_log(gateways: Processes, name: str) -> bool:
    try:
        gateways.said(name)
    except FileNotFoundError:
        return False
    return True


def accounts(gateways: Processes, name: str = "one") -> dict[str, int]:
    """Stop a gateway; return what it says became of the positions."""
    assert gateways.stop(name) == 0, gateways.said(name)
    said = [json.loads(line) for line in gateways.said(name).splitlines() if line[:1] == "{"]
    [last] = [line for line in said if line["event"] == "stopped"][-1:]
    counts = {key: n for key, n in last.items() if isinstance(n, int)}
    received = counts.pop("received")
    assert received == sum(counts.values()), last
    return counts | {"received": received}


def all_committed(bus: Bus) -> Callable[[], bool]:
    return lambda: bus.n_committed() == bus.n_sent


def test_positions_of_kafka_become_regions_in_kafka_without_mqtt(
    gateways: Processes, bus: Bus
) -> None:
    start(gateways, bus)
    bus.send(20)
    bus.send_raw(b"car/1", b"no position")
    bus.send_raw(None, b'{"lat": 0, "lon": 0}')
    bus.send_raw(b"\xff\xfe", b'{"lat": 0, "lon": 0}')
    bus.send_raw(b"car/2", None)
    wait_until(all_committed(bus), "committed")
    counts = accounts(gateways)
    assert counts["received"] == bus.n_sent
    assert sum(n for key, n in counts.items() if key.startswith("invalid")) == 4
    assert counts["published"] > 0
    messages = bus.published()
    assert messages
    part_of: dict[bytes, int] = {}
    for message in messages:
        said = json.loads(message.value())
        assert len(set(said["pseudonyms"])) >= said["k"] >= 2
        assert said["group"].encode() == message.key()
        assert part_of.setdefault(message.key(), message.partition()) == message.partition()
    assert "car" not in gateways.said("one")


def test_what_a_killed_gateway_had_not_settled_comes_once_more_and_nothing_else(
    gateways: Processes, bus: Bus
) -> None:
    bus.configure(session_s=6)  # after which the next one has the partitions
    start(gateways, bus)
    n_held = 0
    for kill in range(3):
        bus.send(10, seed=kill)
        gateways.kill("one")
        before = bus.n_sent
        bus.send(5, seed=kill)
        committed = bus.n_committed()
        n_held += before - min(before, committed)
        if kill == 2:
            bus.configure()
        start(gateways, bus)
    assert n_held > 0  # when it died it had not settled all, once at least
    wait_until(all_committed(bus), "committed")
    assert accounts(gateways)["received"] == bus.n_sent - committed


def test_a_second_gateway_of_the_group_takes_over_with_exact_accounts(
    gateways: Processes, bus: Bus
) -> None:
    start(gateways, bus)
    bus.send(10)
    start(gateways, bus, "two")
    wait_until(bus.is_divided, "a share for both")
    bus.send(60)
    first = accounts(gateways)
    bus.send(20)
    wait_until(all_committed(bus), "committed")
    second = accounts(gateways, "two")
    # Both ends were in order, and what moved was settled before: nothing came twice.
    assert first["received"] + second["received"] == bus.n_sent
    assert second["received"] > 20 * N_DEVICES


def test_what_is_settled_is_committed_though_the_group_divides_the_partitions_at_the_end(
    gateways: Processes, bus: Bus
) -> None:
    start(gateways, bus)
    bus.send(10)
    wait_until(all_committed(bus), "committed")
    # A member that joins and then answers nothing: until it leaves, Kafka takes no offsets.
    silent: Any = Consumer(
        {
            "bootstrap.servers": bus.address,
            "group.id": bus.group,
            "partition.assignment.strategy": "cooperative-sticky",
        }
    )
    silent.subscribe([bus.raw])
    preparing = ConsumerGroupState.PREPARING_REBALANCING
    wait_until(lambda: bus.described().state == preparing, "divided anew")
    time.sleep(3.0)  # two heartbeats: the gateway has asked to join once more
    n_published = bus.n_published()
    bus.send(10)
    wait_until(lambda: bus.n_published() > n_published, "what it reads meanwhile")
    leaving = Timer(3.0, silent.close)
    leaving.start()
    counts = accounts(gateways)
    leaving.join()
    assert counts["received"] > 10 * N_DEVICES
    assert bus.n_committed() == counts["received"]


def test_a_backlog_waits_in_kafka_and_is_no_overload(gateways: Processes, bus: Bus) -> None:
    bus.queue_limit = 10 * N_DEVICES
    bus.configure()
    bus.send(50)
    start(gateways, bus)
    wait_until(all_committed(bus), "committed")
    counts = accounts(gateways)
    assert counts["received"] == bus.n_sent
    assert not any(n for key, n in counts.items() if "overload" in key)


def test_regions_in_avro_have_the_number_of_a_schema_that_is_registered_before(
    gateways: Processes, bus: Bus
) -> None:
    registry = Registry()
    try:
        registry.answer = 503, b""
        bus.registry = registry.url
        bus.configure()
        gateways.start("one", "anonymizer", "serve", "-c", str(bus.config))
        wait_until(lambda: "refuses the schema" in gateways.said("one"), "refusal")
        bus.send(20)
        registry.answer = None
        wait_until(all_committed(bus), "committed")
        assert accounts(gateways)["received"] == bus.n_sent
        path, body, _ = registry.registered[-1]
    finally:
        registry.close()
    assert path == f"/subjects/{bus.out}-value/versions"
    number = 70_000 + len(registry.registered)
    messages = bus.published()
    assert messages
    for message in messages:
        value = message.value()
        assert value[:5] == b"\0" + number.to_bytes(4)
        said = read(json.loads(body["schema"]), value[5:])
        assert len(set(said["pseudonyms"])) >= said["k"] >= 2
        assert said["group"].encode() == message.key()

"""Gateways of a cluster, for tests."""

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from anonymizer.networks import load_network
from tests.cluster.kafka import Kafka
from tests.cluster.processes import Processes, wait_until

N_PARTS = 2
N_DEVICES = 60


class Bus:
    """The two topics of a test, as its devices and its analysts see them."""

    def __init__(self, kafka: Kafka, prefix: str, folder: Path) -> None:
        self.address, self.raw, self.out = kafka.address, f"{prefix}.raw", f"{prefix}.out"
        self.group = prefix
        self.queue_limit = 100_000
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
            ids_change_s = 0
            [output]
            topic = "kafka:{self.out}"
            [kafka]
            servers = "{self.address}"
            group = "{self.group}"
            options = {{"session.timeout.ms" = "{1000 * session_s}"}}
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

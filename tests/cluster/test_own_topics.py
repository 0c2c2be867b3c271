"""A cluster that reads the operator's own topics of Kafka and publishes there: no MQTT, no bridge.

Workers are killed, and join and leave, while positions and records come. Devices are the keys of
one topic and a header of another, whose messages lie in any partition.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from anonymizer.outputs.groups_contract import GROUP
from anonymizer.settings import load_settings
from tests.algorithms.positions.cloaks.driving import traffic
from tests.app.gateway.records import (
    assert_classes_keep,
    assert_each_window_has_one_partition,
    toml,
)
from tests.cluster.kafka import Kafka, free_ports
from tests.cluster.processes import Processes, answer, metrics_of, processes, wait_until
from tests.cluster.recorded import NETWORK
from tests.pipeline.records.made import FLEET, LENGTH_S, SOURCES, Sent
from tests.pipeline.records.made import traffic as parts_of_fleet

N_DEVICES, N_VEHICLES, N_PARTS, LATENESS_S = 100, 60, 3, 3600
WORKERS = ("a", "b", "c")
TOKEN = "of-this-test"  # noqa: S105  of no value
SECRET = bytes(range(32))
START_S = time.time() // LENGTH_S * LENGTH_S - 100 * LENGTH_S


class Fleet:
    """Topics of an operator, what is sent to them, and workers that read them."""

    def __init__(self, kafka: Kafka, prefix: str, folder: Path, running: Processes) -> None:
        self._kafka, self.prefix, self._folder, self._running = kafka, prefix, folder, running
        self._port_of = dict(zip(WORKERS, free_ports(len(WORKERS)), strict=True))
        self.by_key, self.by_header = f"{prefix}.raw", f"{prefix}.cars"
        self.cloaked, self.classes = f"{prefix}.cloaked", f"{prefix}.classes"
        self.records = {source: f"{prefix}.{source}" for source in SOURCES}
        self.read = [self.by_key, self.by_header, *self.records.values()]
        admin = AdminClient({"bootstrap.servers": kafka.address})
        topics = [NewTopic(name, N_PARTS) for name in (*self.read, self.cloaked, self.classes)]
        for made in admin.create_topics(topics).values():
            made.result()
        self._producer: Any = Producer({"bootstrap.servers": kafka.address})
        self.n_positions = 0
        self.parts: list[Sent] = []
        self._traffic = traffic(NETWORK, N_DEVICES, seed=5, says=0.7)

    def config(self, name: str, *, queue_limit: int = 100_000) -> Path:
        secret = self._folder / "secret"
        secret.touch(mode=0o600)
        secret.write_bytes(SECRET)
        config = self._folder / f"{name}.toml"
        sources = [
            {"topic": f"kafka:{self.records[each['name']]}", **each} for each in FLEET["sources"]
        ]
        stream = {**FLEET, "topic": f"kafka:{self.classes}", "sources": sources}
        config.write_text(f"""
            inputs = [
                {{topic = "kafka:{self.by_key}", ids_change_s = 0}},
                {{topic = "kafka:{self.by_header}", device_from = "header:car", ids_change_s = 0}},
            ]
            streams = [{toml(stream | {"idle_s": 36_000, "lateness_s": LATENESS_S})}]
            [network]
            source = "grid:10x10"
            snap_limit_m = 30
            [output]
            topic = "kafka:{self.cloaked}"
            [broker]
            url = "mqtt://127.0.0.1:1"
            [region]
            mode = "session"
            districts = 2
            min_nodes = 1
            place_devices = 1
            [session]
            epoch_s = 4
            beat_s = 2
            [presence]
            max_devices = {10 * queue_limit}
            ttl_s = 100
            max_behind_s = 100
            [adka]
            density_steps = []
            k_values = [2]
            [tick]
            interval_s = 1
            [http]
            map = "none"
            port = {self._port_of.get(name, 0)}
            token = "{TOKEN}"
            [kafka]
            servers = "{self._kafka.address}"
            group = "{self.prefix}"
            [cluster]
            n_parts = 2
            secret_file = "{secret}"
        """)
        return config

    def start(self, *names: str, queue_limit: int = 100_000) -> None:
        for name in names:
            config = str(self.config(name, queue_limit=queue_limit))
            state = str(self._folder / "state")
            self._running.start(
                name, "anonymizer", "worker", "-c", config, "--name", name, "--state", state
            )

    def send(self, seconds: int, window: int | None = None) -> None:
        """Let devices report for some seconds, and vehicles for a part of a window."""
        parts = (
            []
            if window is None
            else list(
                parts_of_fleet(
                    n_vehicles=N_VEHICLES,
                    n_windows=1,
                    seed=window,
                    start=START_S + window * LENGTH_S,
                )
            )
        )
        for second in range(seconds):
            time.sleep(1.0)
            for device, node in next(self._traffic).items():
                lat, lon = (10.0, 10.0) if node < 0 else (NETWORK.lat[node], NETWORK.lon[node])
                body = {"ts": time.time(), "lat": float(lat), "lon": float(lon)}
                self.send_position(device, json.dumps(body).encode())
            for part in parts[second::seconds]:
                body = {"ts": part.ts, **part.values}
                topic = self.records[part.source]
                self._producer.produce(topic, json.dumps(body).encode(), part.vehicle)
                self.parts.append(part)
            self._producer.flush()

    def send_position(self, device: int, body: bytes) -> None:
        if device % 2:
            self._producer.produce(self.by_key, body, f"d{device}")
        else:
            self._producer.produce(self.by_header, body, headers={"car": f"d{device}".encode()})
        self.n_positions += 1

    def flush(self) -> None:
        self._producer.flush()

    def metrics(self, *names: str) -> dict[str, float]:
        return metrics_of([self._port_of[name] for name in names], token=TOKEN)

    def n_received(self, *names: str) -> float:
        return self.metrics(*names).get("anonymizer_received_total", -1)

    def n_committed(self) -> int:
        """Return how many messages workers have read for good."""
        group = f"{self.prefix}.readers"
        reader: Any = Consumer({"bootstrap.servers": self._kafka.address, "group.id": group})
        where = [TopicPartition(topic, i) for topic in self.read for i in range(N_PARTS)]
        found = reader.committed(where, timeout=30)
        reader.close()
        return sum(max(0, each.offset) for each in found)

    def published(self, topic: str) -> list[Any]:
        """Return all that analysts find in a topic."""
        reader: Any = Consumer(
            {
                "bootstrap.servers": self._kafka.address,
                "group.id": "analyst",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        reader.assign([TopicPartition(topic, i, 0) for i in range(N_PARTS)])
        found: list[Any] = []
        n_ends = 0
        while n_ends < N_PARTS:
            for message in reader.consume(1000, 0.1):
                if message.error() is None:
                    found.append(message)
                else:
                    n_ends += message.error().name() == "_PARTITION_EOF"
        reader.close()
        return found


@pytest.fixture
def fleet(kafka: Kafka, prefix: str, tmp_path: Path) -> Iterator[Fleet]:
    with processes(tmp_path) as running:
        yield Fleet(kafka, prefix, tmp_path, running)


def kill(fleet: Fleet, name: str) -> None:
    fleet._running.restart(name)


def end_of_records(fleet: Fleet) -> None:
    """Let the last window close."""
    end = (max(part.ts for part in fleet.parts) // LENGTH_S + 1) * LENGTH_S + LATENESS_S
    for source, topic in fleet.records.items():
        last = Sent("the-last", source, end, {})
        body = json.dumps({"ts": last.ts}).encode()
        for partition in range(N_PARTS):
            fleet._producer.produce(topic, body, last.vehicle, partition=partition)
            fleet.parts.append(last)
    fleet.flush()


def check_accounts(fleet: Fleet, *names: str) -> None:
    """Check that each message came once, to one stage, and has an outcome or is held."""
    wait_until(lambda: fleet.n_received(*names) >= fleet.n_positions, "positions")
    wait_until(
        lambda: (
            fleet.metrics(*names).get("anonymizer_record_parts_received_total", -1)
            >= len(fleet.parts)
        ),
        "parts",
    )
    time.sleep(3.0)  # whatever came twice would be there by now
    found = fleet.metrics(*names)
    assert found["anonymizer_received_total"] == fleet.n_positions
    assert found["anonymizer_record_parts_received_total"] == len(fleet.parts)
    assert found["anonymizer_accounting_imbalance"] == 0
    assert found["anonymizer_record_parts_imbalance"] == 0
    assert fleet.n_committed() == fleet.n_positions + len(fleet.parts)


def check_positions(fleet: Fleet) -> None:
    part_of: dict[bytes, int] = {}
    time_of: dict[bytes, float] = {}
    seen: Counter[tuple[float, str]] = Counter()
    for message in fleet.published(fleet.cloaked):
        said = json.loads(message.value())
        assert len(set(said["pseudonyms"])) == len(said["pseudonyms"]) >= said["k"] >= 2
        assert said["group"].encode() == message.key()
        assert part_of.setdefault(message.key(), message.partition()) == message.partition()
        assert said["time"] > time_of.get(message.key(), 0.0)  # in order, and none twice
        time_of[message.key()] = said["time"]
        seen.update((said["time"], name) for name in said["pseudonyms"])
    assert seen
    assert max(seen.values()) == 1


def check_classes(fleet: Fleet, n_windows: int) -> None:
    values = [message.value() for message in fleet.published(fleet.classes)]
    assert len(set(values)) == len(values)  # each once
    classes = assert_each_window_has_one_partition(values)
    assert len(classes) == n_windows
    for at, messages in classes.items():
        of_window = [each for each in fleet.parts if at <= each.ts < at + LENGTH_S]
        assert_classes_keep(messages, of_window, k=4, d=2, l=1)


def all_windows(fleet: Fleet, n: int) -> bool:
    said = [json.loads(message.value()) for message in fleet.published(fleet.classes)]
    return len({each["window"][0] for each in said}) >= n


@pytest.mark.timeout(900)
@pytest.mark.parametrize("n_kills", [3, pytest.param(20, marks=pytest.mark.soak)])
def test_each_position_and_record_of_kafka_comes_once_whoever_is_killed(
    fleet: Fleet, tmp_path: Path, n_kills: int
) -> None:
    rng = random.Random(n_kills)  # noqa: S311  victims of a test
    fleet.start("a", "b")
    wait_until(lambda: fleet.n_received("a", "b") >= 0, "workers")
    for blow in range(n_kills):
        fleet.send(3, window=blow)
        time.sleep(rng.uniform(0.0, 0.5))
        kill(fleet, rng.choice("ab"))
    # One more comes, and one leaves in order: the partitions are divided anew, twice.
    fleet.start("c")
    fleet.send(3, window=n_kills)
    wait_until(lambda: fleet.n_received("c") >= 0, "the third one")
    fleet.send(3, window=n_kills + 1)
    assert fleet._running.stop("b") == 0
    fleet.send(12)
    end_of_records(fleet)
    check_accounts(fleet, "a", "c")
    wait_until(lambda: all_windows(fleet, n_kills + 2), "windows")
    check_positions(fleet)
    check_classes(fleet, n_kills + 2)
    assert [fleet._running.stop(name) for name in ("a", "c")] == [0, 0]
    for log in tmp_path.glob("*.log"):
        assert "veh-0001" not in log.read_text()


@pytest.mark.timeout(900)
def test_a_backlog_is_read_no_faster_than_a_source_can_hold_it(fleet: Fleet) -> None:
    rng = np.random.default_rng(3)
    node = rng.integers(len(NETWORK.lat), size=40)
    for i, at in enumerate(np.tile(node, 250).tolist()):
        body = {"ts": time.time(), "lat": float(NETWORK.lat[at]), "lon": float(NETWORK.lon[at])}
        fleet.send_position(i % 40, json.dumps(body).encode())
        if i % 1000 == 0:
            fleet.flush()
    fleet.flush()
    # Without room for it, a source would keep the newest of each device and call the rest overload.
    fleet.start("a", queue_limit=2000)
    wait_until(lambda: fleet.n_received("a") >= fleet.n_positions, "all")
    wait_until(lambda: fleet.metrics("a")["anonymizer_held"] == 0, "all settled")
    assert fleet.metrics("a")["anonymizer_received_total"] == fleet.n_positions
    assert overload(fleet, "a") == 0
    messages = fleet.published(fleet.cloaked)
    assert messages
    for message in messages:
        jsonschema.validate(json.loads(message.value()), GROUP.schema or {})


def overload(fleet: Fleet, name: str) -> float:
    text = answer(fleet._port_of[name], "/metrics", token=TOKEN)
    assert text is not None
    [n] = [
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith("anonymizer_positions_total") and 'reason="overload"' in line
    ] or [0.0]
    return n


def test_a_cluster_of_kafka_alone_wants_no_bridge(fleet: Fleet) -> None:
    config = str(fleet.config("nobody"))
    assert load_settings(Path(config)).in_kafka
    fleet._running.start("bridge", "anonymizer", "bridge", "-c", config)
    wait_until(lambda: "there is nothing for a bridge" in fleet._running.said("bridge"), "refusal")

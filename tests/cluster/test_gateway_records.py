"""One gateway that reads records from a real Kafka and publishes classes there, without MQTT."""

import json
import random
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.app.gateway.records import (
    assert_classes_keep,
    assert_each_window_has_one_partition,
    stored_accounts,
    toml,
)
from tests.cluster.kafka import Kafka
from tests.cluster.processes import Processes, wait_until
from tests.pipeline.records.made import FLEET, LENGTH_S, SOURCES, Sent, traffic

N_VEHICLES = 60


class Depot:
    """A topic for each source of the fleet and one for classes, and a gateway's settings."""

    def __init__(self, kafka: Kafka, prefix: str, folder: Path) -> None:
        self.address, self.group, self.out = kafka.address, prefix, f"{prefix}.out"
        self.topic_of = {source: f"{prefix}.{source}" for source in SOURCES}
        self._admin = AdminClient({"bootstrap.servers": kafka.address})
        self.make(*self.topic_of.values(), self.out)
        self._producer: Any = Producer({"bootstrap.servers": kafka.address})
        self.store, self.config = folder / "records.sqlite", folder / "gateway.toml"
        sources = [
            {"topic": f"kafka:{self.topic_of[each['name']]}", **each}
            | ({"vehicle": "vehicle.id"} if each["name"] == "profile" else {})
            | ({"vehicle": "header:vehicle"} if each["name"] == "telemetry" else {})
            for each in FLEET["sources"]
        ]
        everything: dict[str, Any] = {
            "inputs": [],
            "kafka": {"servers": kafka.address, "group": prefix},
            "broker": {"url": "mqtt://127.0.0.1:1"},
            "http": {"host": ""},
            "store": {"path": str(self.store)},
            "streams": [{**FLEET, "idle_s": 600, "topic": f"kafka:{self.out}", "sources": sources}],
        }
        lines = (f"{key} = {toml(value)}" for key, value in everything.items())
        self.config.write_text("\n".join(lines) + "\n")
        self.sent: list[Sent] = []

    def make(self, *topics: str) -> None:
        for made in self._admin.create_topics([NewTopic(name, 1) for name in topics]).values():
            made.result()

    def make_again(self, topic: str) -> None:
        """Delete a topic and make another one of the same name."""
        [deleted] = self._admin.delete_topics([topic]).values()
        deleted.result()
        wait_until(lambda: topic not in self._admin.list_topics().topics, "deleted")
        self.make(topic)

    def send(self, parts: Iterable[Sent]) -> None:
        for part in parts:
            body = {"ts": part.ts, **part.values}
            topic, vehicle = self.topic_of[part.source], part.vehicle
            if part.source == "profile":
                body["vehicle"] = {"id": vehicle}
                self._producer.produce(topic, json.dumps(body).encode())
            elif part.source == "telemetry":
                self._producer.produce(
                    topic, json.dumps(body).encode(), headers={"vehicle": vehicle.encode()}
                )
            else:
                self._producer.produce(topic, json.dumps(body).encode(), vehicle)
            self.sent.append(part)
        self._producer.flush()

    def n_received(self) -> int:
        """Return how many parts the store says that it has received."""
        try:
            return stored_accounts(self.store).get("received", 0)
        except sqlite3.Error:  # the gateway has it for itself at this moment
            return -1

    def committed(self) -> dict[str, int]:
        """Return where Kafka says that each topic is to be read on."""
        group = f"{self.group}.records"
        reader: Any = Consumer({"bootstrap.servers": self.address, "group.id": group})
        parts = [TopicPartition(topic, 0) for topic in self.topic_of.values()]
        found = {each.topic: each.offset for each in reader.committed(parts, timeout=30)}
        reader.close()
        return found

    def classes(self) -> list[bytes]:
        """Return all classes that analysts find."""
        reader: Any = Consumer(
            {"bootstrap.servers": self.address, "group.id": "x", "enable.auto.commit": False}
        )
        part = TopicPartition(self.out, 0, 0)
        end = reader.get_watermark_offsets(part, timeout=30)[1]
        reader.assign([part])
        found: list[bytes] = []
        while len(found) < end:
            found += [message.value() for message in reader.consume(1000, 0.1)]
        reader.close()
        return found


@pytest.fixture
def depot(kafka: Kafka, prefix: str, tmp_path: Path) -> Depot:
    return Depot(kafka, prefix, tmp_path)


def start(gateways: Processes, depot: Depot) -> None:
    gateways.start("one", "anonymizer", "serve", "-c", str(depot.config))


def is_ready(gateways: Processes, *, n: int = 1) -> bool:
    return gateways.said("one").count("broker connected for records") >= n


def all_is_received(depot: Depot) -> bool:
    return depot.n_received() >= len(depot.sent)


def window(number: int) -> list[Sent]:
    parts = traffic(n_vehicles=N_VEHICLES, n_windows=1, seed=number, start=number * LENGTH_S)
    return list(parts)


def test_records_of_kafka_become_classes_in_kafka_and_kills_miscount_none(
    gateways: Processes, depot: Depot
) -> None:
    rng = random.Random(31)  # noqa: S311  moments of a test
    n_again = kill = 0
    while kill < 3 or not n_again:  # once at least it had committed less than it had stored
        assert kill < 10
        start(gateways, depot)
        wait_until(lambda: is_ready(gateways, n=kill + 1), "ready")  # noqa: B023  awaited here
        before = depot.n_received()
        for part in (3 * kill, 3 * kill + 1, 3 * kill + 2):
            depot.send(window(part))
            time.sleep(rng.uniform(0.0, 0.3))
        # Others have read nothing for the six seconds of the killed one's session.
        wait_until(lambda: depot.n_received() > before, "some")  # noqa: B023  awaited here
        gateways.kill("one")
        n_again += depot.n_received() - sum(max(0, at) for at in depot.committed().values())
        kill += 1
    start(gateways, depot)
    end = 3 * kill * LENGTH_S + FLEET["lateness_s"]  # later, it would be a leap
    depot.send([Sent("the-last", source, end, {}) for source in SOURCES])
    wait_until(lambda: all_is_received(depot), "received")
    wait_until(lambda: "window closed" in gateways.said("one"), "closed")
    wait_until(lambda: len(stays(depot)) == 3 * kill, "all windows")
    assert gateways.stop("one") == 0, gateways.said("one")
    assert sum(depot.committed().values()) == len(depot.sent)
    accounts = stored_accounts(depot.store)
    assert accounts.pop("received") == len(depot.sent)
    assert accounts.pop("published") + sum(accounts.values()) == len(depot.sent) - len(SOURCES)
    assert set(accounts) <= {"suppressed/no_class"}  # none is late or came twice
    classes = assert_each_window_has_one_partition(depot.classes())
    of_window: dict[float, list[Sent]] = {}
    for each in depot.sent:
        of_window.setdefault(each.ts // LENGTH_S * LENGTH_S, []).append(each)
    for at, messages in classes.items():
        assert_classes_keep(messages, of_window[at], k=4, d=2, l=1)
    assert "veh-0001" not in gateways.said("one")


def stays(depot: Depot) -> set[float]:
    """Return the windows that analysts find."""
    return {json.loads(each)["window"][0] for each in depot.classes()}


def test_a_topic_that_was_made_again_is_read_from_its_beginning(
    gateways: Processes, depot: Depot
) -> None:
    start(gateways, depot)
    depot.send(window(0))
    wait_until(lambda: all_is_received(depot), "received")
    assert gateways.stop("one") == 0, gateways.said("one")
    with closing(sqlite3.connect(depot.store)) as db:
        kept = db.execute("SELECT name FROM secrets WHERE name LIKE 'place %'").fetchall()
    assert len(kept) == len(SOURCES)
    for topic in depot.topic_of.values():
        depot.make_again(topic)
    depot.send(window(1)[: N_VEHICLES // 2])  # no offset as high as those of before
    start(gateways, depot)
    wait_until(lambda: all_is_received(depot), "all of the new topics")
    assert gateways.stop("one") == 0, gateways.said("one")
    assert depot.n_received() == len(depot.sent)

"""One gateway that reads and publishes positions in a real Kafka, without any MQTT broker."""

import json
import time
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState

from tests.cluster.gateways import (
    N_DEVICES,
    Bus,
    accounts,
    all_committed,
    start,
)
from tests.cluster.kafka import Kafka
from tests.cluster.processes import Processes, wait_until

K = 5


@pytest.fixture
def bus(kafka: Kafka, prefix: str, tmp_path: Path) -> Bus:
    return Bus(kafka, prefix, tmp_path)


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

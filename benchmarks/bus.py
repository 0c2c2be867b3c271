"""Benchmark of positions in Kafka: a backlog that a gateway reads there, and where it publishes.

Beside it in the same run: a bare program that reads every message and writes it again as it is,
with the same client, and a gateway that has the same messages from Mosquitto at QoS 1.
As a program, `python -m benchmarks.bus ADDRESS GROUP IN OUT N`, it is the bare one.
"""

import asyncio
import json
import resource
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from anonymizer.errors import TransportError
from anonymizer.networks import load_network
from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import running_mosquitto
from benchmarks.cluster import JAVA
from benchmarks.gateways import RunningGateway, running_gateway, until
from benchmarks.processes import cpu_s_of, cpu_s_of_child
from benchmarks.tables import Cell, Table
from tests.cluster.bsm import bsm
from tests.cluster.kafka import JARS, Kafka, running_kafka

_WITHIN_S = 3_600.0
_AT_ONCE = 4096
_SETTLE_S = 8.0
_LOOK_S = 0.4
_SETTINGS = """
[network]
source = "{network}"
[limits]
max_ids_per_topic = 1000000
[tick]
interval_s = 1.0
[http]
port = 0
"""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Positions that wait.

    Attributes
    ----------
    form
        `native`, or `j2735` for basic safety messages, of which each has one position.
    n
        How many there are.
    per_message
        How many one message has.
    """

    form: str
    n: int
    per_message: int = 1
    n_devices: int = 20_000
    network: str = "city:10000"

    @property
    def n_messages(self) -> int:
        """Number of messages."""
        return self.n // self.per_message

    def messages(self) -> Iterator[tuple[str, bytes]]:
        """Yield key and payload of each message, without a time, so that the arrival counts."""
        network, rng = load_network(self.network), np.random.default_rng(1)
        place = rng.integers(0, network.n_nodes, self.n)
        lat, lon = network.lat[place].tolist(), network.lon[place].tolist()
        for first in range(0, self.n, self.per_message):
            rows = range(first, first + self.per_message)
            names = [f"{i % self.n_devices:08X}" for i in rows]
            if self.form == "j2735":
                said: Any = json.loads(bsm(names[0], lat[first], lon[first], at=0, speed_mps=9.0))
                said["metadata"].pop("odeReceivedAt")
            else:
                said = [
                    {"device": name, "lat": lat[i], "lon": lon[i]}
                    for name, i in zip(names, rows, strict=True)
                ]
                said = said if self.per_message > 1 else said[0]
            yield names[0], json.dumps(said).encode()


class _Run(NamedTuple):
    """What a way took: seconds by the clock and of CPU, those of the broker, and positions.

    `overload` is the share of these that were not decoded, because newer ones came too fast.
    """

    seconds: float
    cpu_s: float
    broker_s: float
    n: int = 0
    overload: float = 0.0


def bus(backlogs: Sequence[Backlog]) -> list[Table]:
    """Read these backlogs in each way; no tables, and one line, where there is no Kafka."""
    if not JARS.is_dir():
        print("bus: there is no Kafka; make test-cluster fetches it", file=sys.stderr)
        return []
    rows: list[tuple[Cell, ...]] = []
    ratios: dict[str, float] = {}
    for backlog in backlogs:
        of = asyncio.run(_measured(backlog))
        for way, run in of.items():
            n, name = run.n or backlog.n, f"{backlog.form} x {backlog.per_message}"
            us, broker_us = run.cpu_s / n * 1e6, run.broker_s / n * 1e6
            rows.append((name, way, n, us, broker_us, n / run.seconds, run.overload))
        ratios[f"bus {name}"] = of["Kafka"].cpu_s / of["bare, Kafka"].cpu_s
    columns = (
        "messages",
        "way",
        "received",
        "CPU, µs",
        "broker's CPU, µs",
        "positions/s",
        "overload",
    )
    notes = (
        "CPU is that of the gateway or the bare program for each position.",
        "of several positions of a device in a tick the newest is published.",
        "overload: the share that was not decoded, because newer positions came too fast.",
    )
    return [Table("Positions in Kafka", columns, rows, notes, ratios)]


async def _measured(backlog: Backlog) -> dict[str, _Run]:
    messages = list(backlog.messages())
    folder = TemporaryDirectory(prefix="anonymizer-")
    with folder as name, running_kafka(Path(name), java=JAVA) as kafka:
        await asyncio.to_thread(_make_topics, kafka)
        (await asyncio.to_thread(_filled, kafka, "relayed", messages))()
        await _bare(backlog, kafka)  # Kafka compiles its code
        bare = await _bare(backlog, kafka)
        in_kafka = await _in_kafka(backlog, kafka, messages)
    return {"bare, Kafka": bare, "Kafka": in_kafka, "Mosquitto": await _by_mqtt(backlog, messages)}


def _make_topics(kafka: Kafka) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415  an extra

    admin = AdminClient({"bootstrap.servers": kafka.address})
    topics = [NewTopic(name, 4) for name in ("relayed", "raw", "out", "bare")]
    for made in admin.create_topics(topics).values():
        made.result()


def _filled(
    kafka: Kafka, topic: str, messages: Sequence[tuple[str, bytes]]
) -> Callable[[], object]:
    """Write messages that nobody can read before the function that is returned is called."""
    from confluent_kafka import Producer  # noqa: PLC0415  an extra

    producer = Producer(
        {
            "bootstrap.servers": kafka.address,
            "linger.ms": 5,
            "queue.buffering.max.messages": 10**7,
            "transactional.id": topic,
            "transaction.timeout.ms": 900_000,
        }
    )
    producer.init_transactions()
    producer.begin_transaction()
    for key, payload in messages:
        producer.produce(topic, payload, key)
        producer.poll(0)
    producer.flush()
    return producer.commit_transaction


async def _bare(backlog: Backlog, kafka: Kafka) -> _Run:
    broker_s = cpu_s_of_child("kafka.Kafka")
    group = secrets.token_hex(8)
    command = ("-m", "benchmarks.bus", kafka.address, group, "relayed", "bare", backlog.n_messages)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *map(str, command), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    seconds, cpu_s = json.loads(out)
    return _Run(seconds, cpu_s, cpu_s_of_child("kafka.Kafka") - broker_s)


def _relay(address: str, group: str, source: str, sink: str, n: int) -> None:
    """Read messages and write each again as it is; print the seconds, by the clock and of CPU."""
    from confluent_kafka import Consumer, Producer  # noqa: PLC0415  an extra

    where = {"bootstrap.servers": address}
    consumer: Any = Consumer({**where, "group.id": group, "auto.offset.reset": "earliest"})
    producer: Any = Producer(
        {
            **where,
            "acks": "all",
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 2,
        }
    )
    consumer.subscribe([source])
    began_s, began_cpu_s = 0.0, 0.0
    left = n
    while left:
        read = consumer.consume(_AT_ONCE, 0.025)
        if read and not began_s:
            began_s, began_cpu_s = time.monotonic(), _cpu_s()
        for message in read:
            producer.produce(sink, message.value(), message.key())
        producer.poll(0)
        left -= len(read)
    producer.flush()
    used_s = _cpu_s() - began_cpu_s
    print(json.dumps([time.monotonic() - began_s, used_s]))
    consumer.close()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def _in_kafka(backlog: Backlog, kafka: Kafka, messages: Sequence[tuple[str, bytes]]) -> _Run:
    show = await asyncio.to_thread(_filled, kafka, "raw", messages)
    settings = (
        _SETTINGS.format(network=backlog.network)
        + f"""
[kafka]
servers = "{kafka.address}"
[output]
kafka = "out"
[[inputs]]
kafka = "raw"
codec = "{backlog.form}"
device_from = "payload"
"""
    )
    async with running_gateway(settings) as gateway:
        await asyncio.sleep(_SETTLE_S)
        broker_s = cpu_s_of_child("kafka.Kafka")
        await asyncio.to_thread(show)
        run = await _until_settled(backlog, gateway)
        return run._replace(broker_s=cpu_s_of_child("kafka.Kafka") - broker_s)


async def _by_mqtt(backlog: Backlog, messages: Sequence[tuple[str, bytes]]) -> _Run:
    async with running_mosquitto("max_queued_messages 0", "max_queued_bytes 0") as url:
        settings = (
            _SETTINGS.format(network=backlog.network)
            + f"""
[broker]
url = "{url}"
[[inputs]]
topic = "raw"
codec = "{backlog.form}"
device_from = "payload"
qos = 1
"""
        )
        async with running_gateway(settings) as gateway, _sending(url, messages):
            broker_s = cpu_s_of_child("mosquitto")
            run = await _until_settled(backlog, gateway)
            return run._replace(broker_s=cpu_s_of_child("mosquitto") - broker_s)


@asynccontextmanager
async def _sending(url: str, messages: Sequence[tuple[str, bytes]]) -> AsyncIterator[None]:
    """Send the messages by MQTT while the block runs."""
    link = MqttLink(BrokerSettings(url=url), client_id="devices", deliver=lambda _: None)
    running = asyncio.create_task(link.run(), name="devices")
    await link.until_connected()

    async def send() -> None:
        for first in range(0, len(messages), _AT_ONCE):
            some = [Outgoing("raw", payload) for _, payload in messages[first : first + _AT_ONCE]]
            if not all(await link.publish(some, qos=1, timeout_s=_WITHIN_S)):
                raise TransportError("the broker did not take every message")

    sending = asyncio.create_task(send(), name="send")
    yield
    await sending
    await link.close()
    await running


async def _until_settled(backlog: Backlog, gateway: RunningGateway) -> _Run:
    """Return what a gateway took until it has settled all positions; it has none at first."""
    began_s, used_s = time.monotonic(), cpu_s_of(gateway.pid)
    n, lost = 0, 0.0

    async def done() -> bool:
        nonlocal n, lost
        await asyncio.sleep(_LOOK_S)  # a look costs the gateway a few milliseconds
        now = await gateway.scrape()
        n, lost = now.n_received, now.outcome("suppressed", "overload")
        # Under overload a message that yields to a newer one is not decoded, and counts as one.
        return n >= backlog.n_messages and now.n_settled == n

    if not await until(done, within_s=_WITHIN_S):
        raise TransportError("the gateway did not settle all")
    return _Run(time.monotonic() - began_s, cpu_s_of(gateway.pid) - used_s, 0.0, n, lost / n)


if __name__ == "__main__":
    _address, _group, _source, _sink, _n = sys.argv[1:]
    _relay(_address, _group, _source, _sink, int(_n))

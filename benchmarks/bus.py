"""Benchmark of positions in Kafka: a backlog that gateways read there, and where they publish.

Everything waits in the broker before anybody reads, so that nothing but the gateways and the broker
is at work meanwhile. A measurement begins when a tenth of it has been taken, when all kernels are
loaded and all devices known, and ends when the tick that took the last position is over: then each
has an outcome or is held for its group.

Beside it in the same run: bare programs that read every message and write it again as it is, with
the same client, and a gateway that has the same messages from Mosquitto at QoS 1.
As a program, `python -m benchmarks.bus ADDRESS PARTITIONS IN OUT`, it is a bare one.
"""

import asyncio
import json
import resource
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
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
from anonymizer.transport.kafka_clients import reading, writing
from anonymizer.transport.kafka_problems import Problems
from anonymizer.transport.local_brokers import running_mosquitto
from benchmarks.cluster import JAVA
from benchmarks.gateways import RunningGateway, running_gateway, until
from benchmarks.processes import cpu_s_of, cpu_s_of_child, machine_cpu_s
from benchmarks.tables import Cell, Table
from tests.cluster.bsm import bsm
from tests.cluster.kafka import JARS, Kafka, running_kafka

_WITHIN_S = 3_600.0
_AT_ONCE = 4096
_SETTLE_S = 8.0
_N_PARTITIONS = 4
_LOOK_S = 0.2
_IDLE_S = 3.0
_WARM = 0.1
"""Share of a backlog that is taken before the measurement begins."""
_DEVICES = 10_000_000
"""A gateway holds a tenth as many messages: as the manual says, twice what comes in a tick."""
_SETTINGS = """
[network]
source = "{network}"
[limits]
max_ids_per_topic = 1000000
[presence]
max_devices = {devices}
[tick]
interval_s = 1.0
[http]
port = 0
"""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Positions that wait."""

    form: str
    """`native`, or `j2735` for basic safety messages, of which each has one position."""
    n: int
    """How many there are."""
    per_message: int = 1
    """How many one message has."""
    n_gateways: int = 1
    """So many processes of one consumer group read it; bare programs as well."""
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
    """What was measured of a way, and of how many positions.

    CPU time is that of all gateways or bare programs, and of the broker. `others` are the cores
    that other programs used meanwhile. `overload` is the share of positions that yielded to newer
    ones of their device.
    """

    n: int
    seconds: float
    cpu_s: float
    broker_s: float
    others: float
    overload: float = 0.0

    def cells(self) -> tuple[Cell, ...]:
        us, broker_us = self.cpu_s / self.n * 1e6, self.broker_s / self.n * 1e6
        return (self.n, us, broker_us, round(self.n / self.seconds), self.others, self.overload)


def bus(backlogs: Sequence[Backlog]) -> list[Table]:
    """Read these backlogs in each way; no tables, and one line, where there is no Kafka."""
    if not JARS.is_dir():
        print("bus: there is no Kafka; make test-cluster fetches it", file=sys.stderr)
        return []
    rows: list[tuple[Cell, ...]] = []
    ratios: dict[str, float] = {}
    for backlog in backlogs:
        of = asyncio.run(_measured(backlog))
        name = f"{backlog.form} x {backlog.per_message}"
        for way, run in of.items():
            n_processes = backlog.n_gateways if "Kafka" in way else 1
            rows.append((name, way, n_processes, *run.cells()))
        bare, kafka = of["bare, Kafka"], of["Kafka"]
        ratio = kafka.cpu_s / kafka.n / (bare.cpu_s / bare.n)
        ratios[f"bus {name} in {backlog.n_gateways}"] = ratio
    columns = (
        "messages",
        "way",
        "processes",
        "positions",
        "CPU, µs",
        "broker's CPU, µs",
        "positions/s",
        "other programs, cores",
        "overload",
    )
    notes = (
        "CPU of all gateways or bare programs for each position; no other one runs meanwhile.",
        "positions: those of the measurement, which begins when a tenth of all has been taken.",
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
    found = {"bare, Kafka": bare, "Kafka": in_kafka}
    if backlog.n_gateways == 1:
        found["Mosquitto"] = await _by_mqtt(backlog, messages)
    return found


def _make_topics(kafka: Kafka) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415  an extra

    admin = AdminClient({"bootstrap.servers": kafka.address})
    topics = [NewTopic(name, _N_PARTITIONS) for name in ("relayed", "raw", "out", "bare")]
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
            "compression.type": "lz4",
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
    """Let bare programs relay all; measured from the first message to the last."""
    broker_s, machine_s, at_s = cpu_s_of_child("kafka.Kafka"), machine_cpu_s(), time.monotonic()
    processes = []
    for i in range(backlog.n_gateways):
        parts = ",".join(str(part) for part in range(i, _N_PARTITIONS, backlog.n_gateways))
        command = ("-m", "benchmarks.bus", kafka.address, parts, "relayed", "bare")
        processes.append(
            await asyncio.create_subprocess_exec(
                sys.executable, *command, stdout=asyncio.subprocess.PIPE
            )
        )
    said = [json.loads((await each.communicate())[0]) for each in processes]
    machine_s, at_s = machine_cpu_s() - machine_s, time.monotonic() - at_s
    n, began_s, ended_s, cpu_s = zip(*(each for each in said if each[0]), strict=True)
    if sum(n) != backlog.n_messages:
        raise TransportError("bare programs did not read all")
    broker_s = cpu_s_of_child("kafka.Kafka") - broker_s
    others = (machine_s - sum(cpu_s) - broker_s) / at_s
    return _Run(backlog.n, max(ended_s) - min(began_s), sum(cpu_s), broker_s, others)


def _relay(address: str, parts: str, source: str, sink: str) -> None:
    """Read messages of these partitions and write each again as it is, until none comes.

    Without a group, whose first member would have read all before the second is one.

    Prints their number, when the first and the last came, and the CPU seconds between.
    """
    from confluent_kafka import (  # noqa: PLC0415  an extra
        OFFSET_BEGINNING,
        Consumer,
        Producer,
        TopicPartition,
    )

    where = {"bootstrap.servers": address}
    consumer: Any = Consumer(reading(where, group="none", problems=Problems()))
    producer: Any = Producer(
        {
            **writing(where, problems=Problems()),
            "linger.ms": 2,
            "queue.buffering.max.messages": 10**6,
        }
    )
    consumer.assign(
        [TopicPartition(source, int(part), OFFSET_BEGINNING) for part in parts.split(",")]
    )
    n, began_s, began_cpu_s, last_s, used_s = 0, 0.0, 0.0, time.monotonic() + _WITHIN_S, 0.0
    while time.monotonic() < last_s + _IDLE_S:
        read = consumer.consume(_AT_ONCE, 0.025)
        if read and not n:
            began_s, began_cpu_s = time.monotonic(), _cpu_s()
        for message in read:
            producer.produce(sink, message.value(), message.key())
        producer.poll(0)
        if read:
            n += len(read)
            last_s, used_s = time.monotonic(), _cpu_s() - began_cpu_s
    producer.flush()
    print(json.dumps([n, began_s, last_s, used_s]))
    consumer.close()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def _in_kafka(backlog: Backlog, kafka: Kafka, messages: Sequence[tuple[str, bytes]]) -> _Run:
    show = await asyncio.to_thread(_filled, kafka, "raw", messages)
    settings = (
        _SETTINGS.format(network=backlog.network, devices=_DEVICES)
        + f"""
[kafka]
servers = "{kafka.address}"
[output]
topic = "kafka:out"
[[inputs]]
topic = "kafka:raw"
codec = "{backlog.form}"
device_from = "payload"
"""
    )
    async with AsyncExitStack() as stack:
        gateways = [
            await stack.enter_async_context(running_gateway(settings))
            for _ in range(backlog.n_gateways)
        ]
        await asyncio.sleep(_SETTLE_S)
        await asyncio.to_thread(show)
        return await _until_taken(backlog, gateways, broker="kafka.Kafka")


async def _by_mqtt(backlog: Backlog, messages: Sequence[tuple[str, bytes]]) -> _Run:
    async with running_mosquitto("max_queued_messages 0", "max_queued_bytes 0") as url:
        settings = (
            _SETTINGS.format(network=backlog.network, devices=_DEVICES)
            + f"""
[broker]
url = "{url}"
client_id = "{secrets.token_hex(16)}"
session_expiry_s = 3600
[[inputs]]
topic = "raw"
codec = "{backlog.form}"
device_from = "payload"
qos = 1
"""
        )
        async with running_gateway(settings):
            pass  # the broker keeps its session, and what comes for it
        await _send(url, messages)
        async with running_gateway(settings) as gateway:
            return await _until_taken(backlog, [gateway], broker="mosquitto")


async def _send(url: str, messages: Sequence[tuple[str, bytes]]) -> None:
    """Send the messages by MQTT."""
    link = MqttLink(BrokerSettings(url=url), client_id="devices", deliver=lambda _: None)
    running = asyncio.create_task(link.run(), name="devices")
    await link.until_connected()
    for first in range(0, len(messages), _AT_ONCE):
        some = [Outgoing("raw", payload) for _, payload in messages[first : first + _AT_ONCE]]
        if not all(await link.publish(some, qos=1, timeout_s=_WITHIN_S)):
            raise TransportError("the broker did not take every message")
    await link.close()
    await running


class _Look(NamedTuple):
    """What is to be seen of all gateways together at one moment."""

    at_s: float
    n_taken: int
    """Positions that wait for no tick. Of a batch that is not decoded, only one."""
    n_waiting: int
    n_ticks: tuple[int, ...]
    """Of each gateway."""
    n_overload: int
    cpu_s: float
    broker_s: float
    machine_s: float


async def _look(gateways: Sequence[RunningGateway], *, broker: str) -> _Look:
    seen = [(await each.scrape()).values for each in gateways]
    n_waiting = int(sum(each["anonymizer_inbox_messages{}"] for each in seen))
    overload = 'anonymizer_positions_total{outcome="suppressed",reason="overload"}'
    return _Look(
        time.monotonic(),
        int(sum(each["anonymizer_received_total{}"] for each in seen)) - n_waiting,
        n_waiting,
        tuple(int(each["anonymizer_ticks_total{}"]) for each in seen),
        int(sum(each[overload] for each in seen)),
        sum(cpu_s_of(each.pid) for each in gateways),
        cpu_s_of_child(broker),
        machine_cpu_s(),
    )


async def _until_taken(
    backlog: Backlog, gateways: Sequence[RunningGateway], *, broker: str
) -> _Run:
    """Measure until gateways have taken all positions; they have few at first."""
    looks = [await _look(gateways, broker=broker)]

    async def done() -> bool:
        await asyncio.sleep(_LOOK_S)  # a look costs each gateway a few milliseconds
        looks.append(await _look(gateways, broker=broker))
        return _end(looks, backlog) is not None

    if not await until(done, within_s=_WITHIN_S):
        raise TransportError("the gateways did not take all")
    end = _end(looks, backlog) or looks[-1]
    n_before, n_all = _WARM * end.n_taken, end.n_taken
    cold = next(each for each in reversed(looks) if each.n_taken < n_before)
    start = next((each for each in looks if n_before <= each.n_taken < n_all), cold)
    cpu_s, broker_s = end.cpu_s - start.cpu_s, end.broker_s - start.broker_s
    n, seconds = end.n_taken - start.n_taken, end.at_s - start.at_s
    others = (end.machine_s - start.machine_s - cpu_s - broker_s) / seconds
    lost = (end.n_overload - start.n_overload) / n
    return _Run(n, seconds, cpu_s, broker_s, others, lost)


def _end(looks: Sequence[_Look], backlog: Backlog) -> _Look | None:
    """Return the first look at which the tick of the last position was over; None: there is none.

    Under overload a message that yields to a newer one is not decoded, and counts as one position.
    """
    last = looks[-1]
    first = next(
        each for each in looks if (each.n_taken, each.n_waiting) == (last.n_taken, last.n_waiting)
    )
    whole = backlog.n if not last.n_overload else backlog.n_messages
    if last.n_waiting or last.n_taken < whole:
        return None
    over = all(now > before for now, before in zip(last.n_ticks, first.n_ticks, strict=True))
    return last if over else None


if __name__ == "__main__":
    _relay(*sys.argv[1:])

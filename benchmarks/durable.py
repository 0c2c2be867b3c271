"""Benchmark of record streams on disk: a backlog at Mosquitto, taken in, closed and published.

The gateway subscribes and ends; the messages then wait at the broker. What is measured is a gateway
that starts again: every message is in the store before it is acknowledged, windows close as they
pass, and their classes are published at QoS 1.
"""

import asyncio
import json
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anonymizer.errors import TransportError
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import running_mosquitto
from benchmarks.gateways import RunningGateway, Scrape, running_gateway, until
from benchmarks.processes import cpu_s_of, cpu_s_of_main_thread
from benchmarks.tables import Cell, Table
from simulator.record_fleet import SETTINGS, RecordFleet

_STREAM = '{stream="fleet"}'
_AT_ONCE = 10_000
_WITHIN_S = 3_600.0
_START_S = 1_700_000_000.0
"""Event time of the first message: in the past, so that no message is ahead of the clock."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Messages that wait at the broker."""

    n: int
    """How many. Each is a part of a record from one of three sources, as `simulator records` sends
    them."""
    n_vehicles: int = 2_000
    """Vehicles, each of which reports once a second of event time."""
    window_s: float = 10.0
    """Length of a window. One that is longer has more parts that newer ones supersede."""
    more: tuple[tuple[str, str | float], ...] = ()
    """Further settings of the stream."""


@dataclass(frozen=True, slots=True)
class Drained:
    """A backlog that was taken in."""

    n: int
    """Messages of the backlog."""
    seconds: float
    cpu_s: float
    main_thread_s: float
    """`seconds`, `cpu_s`, `main_thread_s`: time by the clock, and CPU time of the gateway and of
    its event loop."""
    json_us: float
    """CPU time of `json.loads` for a message."""
    at_end: Scrape
    began: Scrape
    """`at_end`, `began`: its metrics at the last look and at the first."""
    n_classes: int
    n_classes_twice: int
    """`n_classes`, `n_classes_twice`: classes that an analyst received, and how many of them had
    come before."""

    @property
    def n_measured(self) -> int:
        """Messages between the first look at the gateway and the last."""
        return int(self._received(self.at_end) - self._received(self.began))

    @property
    def cpu_us(self) -> float:
        """CPU time of the gateway for each message, in microseconds."""
        return self.cpu_s / self.n_measured * 1e6

    def outcomes(self) -> dict[str, int]:
        """Return the number of parts by outcome, those held included."""
        prefix = "anonymizer_record_parts_total{"
        found = {
            "/".join(part.split('"')[1] for part in key.removeprefix(prefix).split(",")[:2]): int(n)
            for key, n in self.at_end.values.items()
            if key.startswith(prefix) and 'stream="fleet"' in key and n
        }
        held = int(self.at_end.values[f"anonymizer_record_parts_held{_STREAM}"])
        return found | ({"held": held} if held else {})

    @property
    def n_connections(self) -> int:
        """Connections of the measured gateway to the broker for records."""
        return int(
            sum(
                n
                for key, n in self.at_end.values.items()
                if key.startswith("anonymizer_broker_connections_total{") and "records" in key
            )
        )

    @staticmethod
    def _received(scrape: Scrape) -> float:
        return scrape.values[f"anonymizer_record_parts_received_total{_STREAM}"]


def durable(backlogs: Sequence[Backlog]) -> list[Table]:
    """Measure a gateway that takes in these backlogs."""
    columns = (
        "messages",
        "window, s",
        "messages/s",
        "CPU, µs",
        "event loop, µs",
        "json.loads, µs",
        "CPU/json.loads",
        "messages/CPU second",
        "connections",
        "classes",
        "classes twice",
        "outcomes",
    )
    notes = (
        "gateway, Mosquitto and the store share the machine; CPU is that of the gateway.",
        "a message is in the store, flushed to the disk, before it is acknowledged.",
        "one connection: the broker sent nothing twice.",
    )
    drained = [asyncio.run(drain(backlog)) for backlog in backlogs]
    rows = [_row(*each) for each in zip(backlogs, drained, strict=True)]
    ratios = {
        f"durable {backlog.window_s:g} s": of.cpu_us / of.json_us
        for backlog, of in zip(backlogs, drained, strict=True)
    }
    return [Table("Records: the durable way, end to end", columns, rows, notes, ratios)]


def _row(backlog: Backlog, of: Drained) -> tuple[Cell, ...]:
    outcomes = ", ".join(f"{name} {n:,}" for name, n in of.outcomes().items())
    return (
        backlog.n,
        backlog.window_s,
        of.n_measured / of.seconds,
        of.cpu_us,
        of.main_thread_s / of.n_measured * 1e6,
        of.json_us,
        of.cpu_us / of.json_us,
        1e6 / of.cpu_us,
        of.n_connections,
        of.n_classes,
        of.n_classes_twice,
        outcomes,
    )


async def drain(backlog: Backlog) -> Drained:
    """Return how a gateway took in a backlog.

    Raises
    ------
    TransportError
        If it does not take in every message.
    """
    limits = (f"max_queued_messages {2 * backlog.n}", "max_queued_bytes 0")
    with TemporaryDirectory(prefix="anonymizer-") as folder:
        async with running_mosquitto(*limits) as url:
            settings = _settings(backlog, url, store=Path(folder, "records.sqlite"))
            async with running_gateway(settings):
                pass  # from now on the broker keeps what is for it
            json_us = await _send(backlog, url)
            analyst = _Analyst(url)
            reading = asyncio.create_task(analyst.link.run(), name="analyst")
            await analyst.link.until_connected()
            async with running_gateway(settings) as gateway:
                drained = await _measured(backlog, gateway, json_us, analyst)
            await analyst.link.close()
            await reading
            return drained


class _Analyst:
    """Who reads the published classes."""

    def __init__(self, url: str) -> None:
        self.n, self.different = 0, set[bytes]()
        self.link = MqttLink(
            BrokerSettings.model_validate({"url": url}),
            client_id="analyst",
            deliver=self._take,
            subscriptions=[("anonymized/#", 1)],
        )

    def _take(self, deliveries: Sequence[Delivery]) -> None:
        self.n += len(deliveries)
        self.different |= {sha256(each.payload).digest() for each in deliveries}
        self.link.acknowledge([each.receipt for each in deliveries])


async def _measured(
    backlog: Backlog, gateway: RunningGateway, json_us: float, analyst: _Analyst
) -> Drained:
    received = f"anonymizer_record_parts_received_total{_STREAM}"
    held = f"anonymizer_record_parts_held{_STREAM}"
    seen = began = await gateway.scrape()
    used_s, loop_s = cpu_s_of(gateway.pid), cpu_s_of_main_thread(gateway.pid)
    at_s = time.monotonic()

    async def done() -> bool:
        nonlocal seen
        seen = await gateway.scrape()
        # The last window stays open: nothing later closes it.
        left = seen.values[held] <= 3 * backlog.n_vehicles * 2
        return seen.values[received] >= backlog.n and left

    if not await until(done, within_s=_WITHIN_S):
        raise TransportError("the gateway did not take in the backlog")
    return Drained(
        n=backlog.n,
        seconds=time.monotonic() - at_s,
        cpu_s=cpu_s_of(gateway.pid) - used_s,
        main_thread_s=cpu_s_of_main_thread(gateway.pid) - loop_s,
        json_us=json_us,
        at_end=seen,
        began=began,
        n_classes=len(analyst.different),
        n_classes_twice=analyst.n - len(analyst.different),
    )


async def _send(backlog: Backlog, url: str) -> float:
    """Send the messages; return the CPU time of `json.loads` on one of them, in microseconds."""
    link = MqttLink(
        BrokerSettings.model_validate({"url": url}), client_id="vehicles", deliver=lambda _: None
    )
    running = asyncio.create_task(link.run(), name="vehicles")
    await link.until_connected()
    fleet = RecordFleet(backlog.n_vehicles, rate_hz=1.0, seed=1)
    best_us = float("inf")
    for first in range(0, backlog.n, _AT_ONCE):
        n = min(_AT_ONCE, backlog.n - first)
        turns = fleet.take(backlog.n / backlog.n_vehicles, limit=n)
        messages = fleet.encode(turns, _START_S + turns.number / backlog.n_vehicles)
        best_us = min(best_us, _json_us(messages))
        accepted = await link.publish(messages, qos=1, timeout_s=600.0)
        if not all(accepted):
            raise TransportError("the broker did not take every message")
    await link.close()
    await running
    return best_us


def _json_us(messages: Sequence[Outgoing]) -> float:
    began_s = time.process_time()
    for message in messages:
        json.loads(message.payload)
    return (time.process_time() - began_s) / len(messages) * 1e6


def _settings(backlog: Backlog, url: str, *, store: Path) -> str:
    stream: dict[str, Any] = tomllib.loads(SETTINGS)["streams"][0]
    stream |= {
        "window_s": backlog.window_s,
        "lateness_s": 1.0,
        "model": "kd",
        "promise": {"k": 5, "d": 2},
        **dict(backlog.more),
    }
    whole = {
        "inputs": [],
        "broker": {"url": url},
        "http": {"port": 0},
        "store": {"path": str(store)},
        "streams": [stream],
    }
    return "\n".join(f"{name} = {_toml(value)}" for name, value in whole.items()) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)

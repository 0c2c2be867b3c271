"""Benchmark end to end: simulator, Mosquitto, gateway and analyst, each in its own process."""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.errors import TransportError
from anonymizer.transport.local_brokers import running_mosquitto
from benchmarks.crowds import network_named
from benchmarks.gateways import RunningGateway, Scrape, running_gateway, running_simulator, until
from benchmarks.probing import CROWD, TOPIC, Prober
from benchmarks.processes import cpu_s_of_child
from benchmarks.tables import Cell, Table

_SETTINGS = """
[network]
source = "{network}"
[broker]
url = "{url}"
[[inputs]]
topic = "positions/{{device}}"
qos = {qos}
[[inputs]]
topic = "{probes}"
device_from = "payload"
qos = {qos}
[output]
topic = "{output}"
qos = {qos}
[region]
mode = "bfs"
[http]
port = 0
"""
_OUTPUT = "cloaked/positions"
_OTHERS = ("broker", "simulator", "analyst")
_START_S = 60.0
_ARRIVAL_S = 3.0
_KEPT_UP = 0.98


@dataclass(frozen=True, slots=True)
class Load:
    """Load of one run.

    Attributes
    ----------
    rate_per_s
        Messages per second, each from another device.
    qos
        QoS of all messages, in and out.
    seconds
        Duration of the measurement, which begins after `settle_s`.
    """

    rate_per_s: int
    qos: int
    seconds: float = 15.0
    settle_s: float = 5.0
    network: str = "city:10000"
    n_probes: int = 8


class Measurement(NamedTuple):
    """Figures measured during the load."""

    between: Scrape
    cpu_s: Sequence[float]
    """CPU time of `_OTHERS` during the measurement."""
    latencies_s: Sequence[float]
    n_cloaked: int
    n_sent: int
    sent_per_s: float


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one run."""

    load: Load
    measured: Measurement
    n_lost: int

    @property
    def kept_up(self) -> bool:
        """Whether the intended rate was sent and nothing was suppressed or lost."""
        gone = self.n_lost + self.n_yielded
        return gone == 0 and self.measured.sent_per_s >= _KEPT_UP * self.load.rate_per_s

    @property
    def n_yielded(self) -> int:
        """Positions suppressed as overload or undelivered."""
        reasons = ("overload", "undelivered")
        return int(sum(self.measured.between.outcome("suppressed", reason) for reason in reasons))

    def row(self) -> tuple[Cell, ...]:
        """Return the run as a row of the table."""
        name = "anonymizer_end_to_end_seconds"
        received = self.measured.between.n_received
        cpu_s = self.measured.between.values["process_cpu_seconds_total{}"]
        probed = (
            np.quantile(self.measured.latencies_s, [0.5, 0.99]).tolist()
            if self.measured.latencies_s
            else []
        )
        p50, p99 = probed or (float("nan"), float("nan"))
        return (
            self.load.qos,
            self.load.rate_per_s,
            round(self.measured.sent_per_s),
            round(self.measured.n_cloaked / self.load.seconds),
            p50 * 1e3,
            p99 * 1e3,
            self.measured.between.quantile(name, 0.5) * 1e3,
            self.measured.between.quantile(name, 0.99) * 1e3,
            cpu_s / received * 1e6,
            *(f"{s / self.load.seconds:.0%}" for s in (cpu_s, *self.measured.cpu_s)),
            self.n_yielded,
            self.n_lost,
        )


def end_to_end(loads: Sequence[Load]) -> list[Table]:
    """Run each load against a fresh broker and gateway."""
    results = [asyncio.run(_run(load)) for load in loads]
    n_probes = sum(len(result.measured.latencies_s) for result in results)
    columns = (
        "QoS",
        "asked/s",
        "sent/s",
        "cloaked/s",
        "p50, ms",
        "p99, ms",
        "own p50, ms",
        "own p99, ms",
        "CPU, µs/position",
        "gateway",
        *_OTHERS,
        "yielded",
        "lost",
    )
    notes = (
        "p50, p99: from a device through the broker to an analyst, by probes during the load.",
        f"probes: {n_probes:,} in all.",
        "own: from arrival to publication, by the gateway's histogram with steps of 33 %.",
        "both include up to 100 ms of waiting for the tick.",
        "cloaked/s: published messages, one for each group, read by one subscriber.",
        "CPU: user and system time of the gateway's process.",
        "gateway to analyst: share of one core used by each process.",
        "the programs share the cores with everything else that runs; p99 shows this first.",
        "yielded: positions suppressed as overload or undelivered during the measurement.",
        "lost: messages that the broker accepted and the gateway never received, in the whole run.",
        *(_best(results, qos) for qos in sorted({r.load.qos for r in results})),
    )
    rows = [result.row() for result in results]
    return [Table(f"Through Mosquitto, {loads[0].network}", columns, rows, notes)]


def _best(results: Sequence[Result], qos: int) -> str:
    rates = [r.load.rate_per_s for r in results if r.load.qos == qos and r.kept_up]
    best = f"{max(rates):,} messages/s" if rates else "none of these"
    return f"highest rate at QoS {qos} with nothing yielded or lost: {best}."


async def _run(load: Load) -> Result:
    async with running_mosquitto() as url:
        toml = _SETTINGS.format(
            network=load.network, url=url, qos=load.qos, probes=TOPIC, output=_OUTPUT
        )
        prober = Prober(
            url,
            network_named(load.network),
            n_crowds=load.n_probes,
            topic=_OUTPUT,
            qos=load.qos,
        )
        async with running_gateway(toml) as gateway:
            async with prober.probing():
                measured = await _measure(load, url, gateway, prober)
            n_lost = await _missing(gateway, measured.n_sent + prober.n_published * CROWD)
    return Result(load, measured, n_lost)


async def _measure(load: Load, url: str, gateway: RunningGateway, prober: Prober) -> Measurement:
    options = ("--network", load.network, "--devices", str(load.rate_per_s), "--rate", "1")
    async with running_simulator(*options, "--qos", str(load.qos), "--broker", url) as simulator:

        def has_all_devices() -> Awaitable[bool]:
            return gateway.has_received(prober.n_published * CROWD + load.rate_per_s)

        if not await until(has_all_devices, within_s=_START_S):
            raise TransportError("the gateway receives too little from the simulator")
        await asyncio.sleep(load.settle_s)
        prober.latencies_s.clear()
        n_cloaked = prober.n_cloaked
        before, spent_s = await gateway.scrape(), _cpu_s()
        await asyncio.sleep(load.seconds)
        between = await gateway.scrape() - before
        cpu_s = [now - then for now, then in zip(_cpu_s(), spent_s, strict=True)]
        latencies_s = tuple(prober.latencies_s)
        n_cloaked = prober.n_cloaked - n_cloaked
        n_sent, sent_per_s = await simulator.end()
    return Measurement(between, cpu_s, latencies_s, n_cloaked, n_sent, sent_per_s)


def _cpu_s() -> list[float]:
    """Return the CPU time of `_OTHERS` so far."""
    return [*map(cpu_s_of_child, ("mosquitto", "simulator")), time.process_time()]


async def _missing(gateway: RunningGateway, n_sent: int) -> int:
    """Return how many positions have not arrived within `_ARRIVAL_S`."""
    await until(lambda: gateway.has_received(n_sent), within_s=_ARRIVAL_S)
    return max(0, n_sent - (await gateway.scrape()).n_received)

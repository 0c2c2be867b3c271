"""Benchmark end to end: devices, Mosquitto, gateway or relay, and analyst, each a process."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from anonymizer.errors import TransportError
from anonymizer.transport.local_brokers import running_mosquitto
from benchmarks.crowds import network_named
from benchmarks.freshness import FRESHNESS, NOTES, freshness_of
from benchmarks.gateways import (
    RunningGateway,
    RunningRelay,
    Scrape,
    running_gateway,
    running_relay,
    running_simulator,
    until,
)
from benchmarks.probing import INPUT, Prober
from benchmarks.processes import cpu_s_of, cpu_s_of_child, cpu_s_of_main_thread
from benchmarks.relays import BATCHES, PREFIX
from benchmarks.tables import Cell, Table
from benchmarks.timing import json_us

GATEWAY = "gateway"
_INPUT = """topic = "positions/{device}"
"""
_BATCHES = f"""topic = "{BATCHES}"
device_from = "payload"
"""
_SETTINGS = """
[network]
source = "{network}"
[broker]
url = "{url}"
[limits]
max_ids_per_topic = 1000000
[[inputs]]
{positions}qos = {qos}
[[inputs]]
topic = "{probes}"
kind = "public"
qos = {qos}
[output]
topic = "{output}"
qos = {qos}
[tick]
interval_s = {tick_s}
[http]
port = 0
"""
_OUTPUT, _PUBLIC = "cloaked/positions", "public/fixed"
_OTHERS = ("broker", "simulator", "analyst")
_TICK_S = 0.1
_START_S = 60.0
_ARRIVAL_S = 3.0
_KEPT_UP = 0.98
_DEVICES = 100_000
_MOST_P99_S = 0.25


@dataclass(frozen=True, slots=True)
class Climb:
    """Runs of one program at rising rates, until it no longer keeps up."""

    program: str
    """`GATEWAY` or one of `benchmarks.relays.RELAYS`."""
    qos: int
    """QoS of all messages, in and out."""
    rates_per_s: Sequence[int]
    """Positions per second; rising. Each is from another device, up to `_DEVICES`."""
    batch: int = 1
    """Positions in a message."""
    seconds: float = 8.0
    """Duration of a measurement, which begins after `settle_s`. By default, all groups of the
    gateway have published by then: within some fifteen seconds of the first position, which brings
    several times as many messages as later."""
    settle_s: float = 20.0
    network: str = "city:10000"
    n_lanes: int = 8


class Measurement(NamedTuple):
    """Figures measured during the load."""

    between: Scrape | None
    """Of the gateway."""
    cpu_s: float
    main_thread_s: float
    others_s: Sequence[float]
    """CPU time of `_OTHERS`."""
    p99_before_s: float
    """Of probes that ended in `Climb.settle_s`."""
    p50_s: float
    p99_s: float
    n_probes: int
    n_received: int
    n_sent: int
    """In the whole run."""
    sent_per_s: float


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one run."""

    climb: Climb
    rate_per_s: int
    measured: Measurement
    n_lost: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing was suppressed or lost, and p99 is within bounds."""
        return self.n_lost + self.n_yielded == 0 and self.measured.p99_s <= _MOST_P99_S

    @property
    def kept_up(self) -> bool:
        """Whether the rate was sent, too."""
        return self.is_whole and self.measured.sent_per_s >= _KEPT_UP * self.rate_per_s

    @property
    def n_yielded(self) -> int:
        """Positions suppressed as overload or undelivered."""
        between = self.measured.between
        reasons = ("overload", "undelivered") if between else ()
        return int(sum(between.outcome("suppressed", reason) for reason in reasons if between))

    @property
    def cpu_us(self) -> float:
        """CPU time of the program for each position that it received."""
        return self.measured.cpu_s / max(1, self.measured.n_received) * 1e6

    def row(self, unit_us: float) -> tuple[Cell, ...]:
        """Return the run as a row of the table."""
        measured, seconds = self.measured, self.climb.seconds
        return (
            self.climb.qos,
            self.climb.batch,
            self.climb.program,
            self.rate_per_s,
            round(measured.sent_per_s),
            measured.p99_before_s * 1e3,
            measured.p50_s * 1e3,
            measured.p99_s * 1e3,
            *freshness_of(measured.between, seconds),
            self.cpu_us,
            self.cpu_us / unit_us,
            f"{measured.main_thread_s / measured.cpu_s:.0%}",
            *(f"{s / seconds:.0%}" for s in (measured.cpu_s, *measured.others_s)),
            self.n_yielded,
            self.n_lost,
            "yes" if self.kept_up else "no",
        )


def end_to_end(climbs: Sequence[Climb]) -> list[Table]:
    """Run each program at rising rates, each time with a fresh broker."""
    results = [result for climb in climbs for result in asyncio.run(_climb(climb))]
    unit_us = json_us()
    columns = (
        "QoS",
        "in a message",
        "program",
        "asked/s",
        "sent/s",
        "probe p99 before, ms",
        "probe p50, ms",
        "probe p99, ms",
        *FRESHNESS,
        "CPU, µs/position",
        "to json.loads",
        "of it event loop",
        "program's core",
        *_OTHERS,
        "yielded",
        "lost",
        "kept up",
    )
    notes = (
        "gateway: mode `session`, default settings. bare: a compiled loop from socket to socket.",
        "reads: the same loop, which drops what it receives: the least that a receiver can cost.",
        "paho, aiomqtt: a client's loop in Python that hashes the ids of devices; none hides them.",
        "relays publish every message, the gateway one for each group; nobody reads the former.",
        (
            "probe p50, p99: from a device to an analyst. Through the gateway, a probe is a public "
            "fixed device, which has no region and waits for no beat; up to "
            f"{_TICK_S * 1e3:.0f} ms are the tick."
        ),
        (
            "probe p99 before: of probes in the seconds before the measurement, "
            f"{climbs[0].settle_s:g} s with the gateway; its groups publish for the first time."
        ),
        f"probes: {sum(result.measured.n_probes for result in results):,} in all.",
        *NOTES,
        (
            "CPU: user and system time of the program's process; json.loads: of one position, "
            f"{unit_us:.2g} µs."
        ),
        "event loop: share of the first thread; the gateway's ticks run in another one.",
        "program's core to analyst: share of one core used by each process; all share the machine.",
        "yielded: positions suppressed as overload or undelivered during the measurement.",
        (
            "lost: what the broker accepted and the program never received, in a whole run; not "
            "counted for relays of batches."
        ),
        (
            "kept up: all was sent, nothing yielded or lost, "
            f"and the probes' p99 was at most {_MOST_P99_S * 1e3:.0f} ms."
        ),
        "jpo-cvdp, a filter that a user might pick, is in no package registry.",
    )
    rows = [result.row(unit_us) for result in results]
    title = f"Through Mosquitto, {climbs[0].network}"
    return [Table(title, columns, rows, notes, _ratios(results, unit_us))]


def _ratios(results: Sequence[Result], unit_us: float) -> dict[str, float]:
    """Return what is compared with stored ratios; infinite for a gateway that never kept up."""
    found = {}
    for qos, batch in sorted({(each.climb.qos, each.climb.batch) for each in results}):
        best = {
            program: max(
                (
                    r
                    for r in results
                    if (r.climb.program, r.climb.qos, r.climb.batch) == (program, qos, batch)
                    if r.is_whole
                ),
                key=lambda result: result.measured.sent_per_s,
                default=None,
            )
            for program in (GATEWAY, "bare")
        }
        gateway, bare = best[GATEWAY], best["bare"]
        of = f"QoS {qos}" + (f", {batch} in a message" if batch > 1 else "")
        found[f"gateway's CPU a position / json.loads, {of}"] = (
            gateway.cpu_us / unit_us if gateway else math.inf
        )
        if bare:
            found[f"bare relay's rate / gateway's, {of}"] = (
                bare.measured.sent_per_s / gateway.measured.sent_per_s if gateway else math.inf
            )
    return found


async def _climb(climb: Climb) -> list[Result]:
    results: list[Result] = []
    for rate_per_s in climb.rates_per_s:
        results.append(await _run(climb, rate_per_s))
        if not results[-1].kept_up:
            break
    return results


_Program: TypeAlias = RunningGateway | RunningRelay


@asynccontextmanager
async def _running(climb: Climb, url: str) -> AsyncIterator[_Program]:
    if climb.program != GATEWAY:
        async with running_relay(climb.program, url, qos=climb.qos) as relay:
            yield relay
        return
    toml = _SETTINGS.format(
        network=climb.network,
        positions=_INPUT if climb.batch == 1 else _BATCHES,
        url=url,
        qos=climb.qos,
        probes=INPUT,
        output=_OUTPUT,
        tick_s=_TICK_S,
    )
    async with running_gateway(toml) as gateway:
        yield gateway


async def _run(climb: Climb, rate_per_s: int) -> Result:
    network = network_named(climb.network)
    is_relay = climb.program != GATEWAY
    async with running_mosquitto() as url, _running(climb, url) as program:
        prober = Prober(
            url,
            (float(network.lat[0]), float(network.lon[0])),
            n_lanes=climb.n_lanes,
            topics=[f"{PREFIX}probes/+"] if is_relay else [_OUTPUT, _PUBLIC],
            qos=climb.qos,
        )
        async with prober.probing():
            measured = await _measure(climb, rate_per_s, url, program, prober)
        # A relay counts messages, of which some are not full: positions cannot be missed there.
        n_lost = 0
        if not is_relay or climb.batch == 1:
            n_lost = await _missing(program, measured.n_sent + prober.n_sent)
    return Result(climb, rate_per_s, measured, n_lost)


async def _measure(
    climb: Climb, rate_per_s: int, url: str, program: _Program, prober: Prober
) -> Measurement:
    n_devices = min(rate_per_s, _DEVICES)
    options = {
        "network": climb.network,
        "devices": n_devices,
        "rate": rate_per_s / n_devices,
        "qos": climb.qos,
        "broker": url,
        "batch": climb.batch,
    }
    stated = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    async with running_simulator(*stated) as simulator:

        async def has_all_devices() -> bool:
            n_messages = n_devices if climb.program == GATEWAY else n_devices // climb.batch
            return await program.n_received() >= prober.n_sent + n_messages

        if not await until(has_all_devices, within_s=_START_S):
            raise TransportError("the program receives too little from the simulator")
        prober.latencies_s.clear()
        await asyncio.sleep(climb.settle_s)
        [p99_before_s] = prober.quantiles_s(0.99)
        prober.latencies_s.clear()
        before, n_before = await _state(program)
        spent_s = _cpu_s(program)
        await asyncio.sleep(climb.seconds)
        cpu_s, main_s, *others_s = (
            now - then for now, then in zip(_cpu_s(program), spent_s, strict=True)
        )
        after, n_after = await _state(program)
        p50_s, p99_s = prober.quantiles_s(0.5, 0.99)
        n_sent, sent_per_s = await simulator.end()
        return Measurement(
            between=after - before if before and after else None,
            cpu_s=cpu_s,
            main_thread_s=main_s,
            others_s=others_s,
            p99_before_s=p99_before_s,
            p50_s=p50_s,
            p99_s=p99_s,
            n_probes=len(prober.latencies_s),
            n_received=(
                n_after - n_before
                if climb.program == GATEWAY or climb.batch == 1
                else round(sent_per_s * climb.seconds)
            ),
            n_sent=n_sent,
            sent_per_s=sent_per_s,
        )


async def _state(program: _Program) -> tuple[Scrape | None, int]:
    """Return the metrics of a gateway, and how many messages the program has received."""
    if isinstance(program, RunningRelay):
        return None, await program.n_received()
    scrape = await program.scrape()
    return scrape, scrape.n_received


def _cpu_s(program: _Program) -> list[float]:
    """Return the CPU time so far of the program, of its first thread, and of `_OTHERS`."""
    return [
        cpu_s_of(program.pid),
        cpu_s_of_main_thread(program.pid),
        *map(cpu_s_of_child, ("mosquitto", "simulator")),
        time.process_time(),
    ]


async def _missing(program: _Program, n_sent: int) -> int:
    """Return how many messages have not arrived within `_ARRIVAL_S`."""

    async def has_all() -> bool:
        return await program.n_received() >= n_sent

    await until(has_all, within_s=_ARRIVAL_S)
    return max(0, n_sent - await program.n_received())

"""Benchmark of a whole cluster: devices, Mosquitto, bridge, Kafka, workers and analyst.

Bridges and workers run in the environment that `make test-cluster` installs, with the settings that
the manual recommends. What is measured here is also what `benchmarks.plan` is checked against.
"""

import asyncio
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from anonymizer.transport.local_brokers import running_mosquitto
from benchmarks.gateways import Scrape, running_simulator, until
from benchmarks.members import (
    MANY,
    ONE,
    TICK_S,
    Analyst,
    Members,
    running_members,
    why_not,
)
from benchmarks.processes import (
    compiling_s_of_child,
    cpu_s_of,
    cpu_s_of_child,
    machine_cpu_s,
    memory_bytes_of,
)
from benchmarks.tables import Cell, Table
from tests.cluster.kafka import Kafka, running_replicas

OTHERS = ("kafka", "broker", "simulator", "analyst")
"""Programs beside the bridge and the workers."""
_COMMAND_OF = {"kafka": "kafka.Kafka", "broker": "mosquitto", "simulator": "simulator"}
JAVA = ("-Xms1g", "-Xmx1g")
"""Options of Java for a Kafka that is measured."""
_ARRIVAL_S = 10.0
_KEPT_UP = 0.98
_MOST_P99_S = 3.0
_MOST_GROWTH_S = 0.5


@dataclass(frozen=True, slots=True)
class Climb:
    """Runs of one cluster at rising rates, until it no longer keeps up."""

    n_workers: int
    """Workers; there is one bridge."""
    per_message: int
    """Positions in a message; more than 1: a gateway sends those of many devices."""
    rates_per_s: Sequence[int]
    """Positions per second, each of another device; rising."""
    qos: int = 0
    """Of the devices' messages."""
    n_sources: int = 4
    n_districts: int = 8
    """`n_sources`, `n_districts`: stages of each kind."""
    n_replicas: int = 1
    """Brokers of Kafka, each with a copy of all that there is."""
    settle_s: float = 20.0
    seconds: float = 30.0
    """`settle_s`, `seconds`: time from the first cloaked message to the measurement, and its
    duration."""
    network: str = "city:10000"


class State(NamedTuple):
    """What is read from all programs at one moment."""

    at_s: float
    cpu_s: dict[str, float]
    machine_s: float
    members: Scrape
    """Sums over bridge and workers."""
    kafka_bytes: int


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one run."""

    climb: Climb
    rate_per_s: int
    sent_per_s: float
    n_lost: int
    """Positions that the broker accepted and no source has received, in the whole run."""
    before: State
    after: State
    delay_s: Sequence[float]
    """Of each cloaked message: from the end of the tick to the analyst."""
    memory_bytes: dict[str, int]

    @property
    def n(self) -> int:
        """Positions received during the measurement."""
        return int(self._counted("anonymizer_received_total{}"))

    def _counted(self, *names: str) -> float:
        """Return the sum of what these counters have counted during the measurement."""
        before = self.before.members.values
        return sum(
            value - before.get(key, 0.0)
            for key, value in self.after.members.values.items()
            if any(name in key for name in names)
        )

    @property
    def n_yielded(self) -> int:
        """Positions suppressed as overload, or too late for their tick."""
        return int(self._counted('reason="overload"', 'event="late_', 'event="incomplete_ticks"'))

    @property
    def growth_s(self) -> float:
        """Median delay of the last third of the messages less that of the first third."""
        third = len(self.delay_s) // 3
        if not third:
            return math.inf
        return float(np.median(self.delay_s[-third:]) - np.median(self.delay_s[:third]))

    @property
    def kept_up(self) -> bool:
        """Whether all was sent and arrived in time, and the delay did not grow."""
        whole = self.n_lost + self.n_yielded == 0
        sent = self.sent_per_s >= _KEPT_UP * self.rate_per_s
        in_time = self.quantile_s(0.99) <= _MOST_P99_S and self.growth_s <= _MOST_GROWTH_S
        return whole and sent and in_time

    def quantile_s(self, q: float) -> float:
        """Return a quantile of the delay."""
        return float(np.quantile(self.delay_s, q)) if self.delay_s else math.inf

    def us(self, program: str) -> float:
        """Return the CPU time of a program, µs for each position."""
        return (self.after.cpu_s[program] - self.before.cpu_s[program]) / max(1, self.n) * 1e6

    @property
    def others_share(self) -> float:
        """Cores that programs outside of the benchmark used meanwhile."""
        ours = sum(self.after.cpu_s.values()) - sum(self.before.cpu_s.values())
        return (self.after.machine_s - self.before.machine_s - ours) / self._seconds

    @property
    def _seconds(self) -> float:
        return self.after.at_s - self.before.at_s

    def head(self) -> tuple[Cell, ...]:
        """Return the cells that say which run it is."""
        climb = self.climb
        stages = (climb.n_sources, climb.n_districts)
        sizes = (climb.n_workers, climb.n_replicas, self.rate_per_s)
        return (climb.per_message, climb.qos, *stages, *sizes)

    def __str__(self) -> str:
        """Return one line for who waits for the tables."""
        messages = "JSON" if self.climb.per_message == 1 else "batches"
        ended = "kept up" if self.kept_up else "did not keep up"
        return f"{self.climb.n_workers} workers, {self.rate_per_s:,}/s in {messages}: {ended}"

    def row(self) -> tuple[Cell, ...]:
        """Return the run as a row of the first table."""
        return (
            *self.head(),
            round(self.sent_per_s),
            self.quantile_s(0.5) * 1e3,
            self.quantile_s(0.99) * 1e3,
            self.us("bridge"),
            self.us("workers"),
            *(self.us(program) for program in OTHERS),
            self.others_share,
            self.n_lost,
            self.n_yielded,
            "yes" if self.kept_up else "no",
        )

    def sizes(self) -> tuple[Cell, ...]:
        """Return the run as a row of the second table."""
        added = (self.after.kafka_bytes - self.before.kafka_bytes) / self.climb.n_replicas
        stored = added / max(1, self.n)
        return (*self.head(), stored, *(size / (1 << 20) for size in self.memory_bytes.values()))


def cluster(climbs: Sequence[Climb]) -> list[Table]:
    """Run each cluster at rising rates; no tables, and one line, where there is no Kafka."""
    missing = why_not()
    if missing is not None:
        sys.stderr.write(f"benchmarks: cluster is skipped: {missing}\n")
        return []
    results = asyncio.run(_all(climbs))
    head = ("positions a message", "QoS", "sources", "districts", "workers", "replicas", "asked/s")
    n = sum(len(result.delay_s) for result in results)
    return [
        Table(
            f"Through a cluster on one machine, {climbs[0].network}",
            (
                *(*head, "sent/s", "p50, ms", "p99, ms", "bridge, µs", "workers, µs"),
                *(f"{program}, µs" for program in OTHERS),
                *("others' cores", "lost", "late", "kept up"),
            ),
            [result.row() for result in results],
            (
                f"mode `session`, ticks of {TICK_S:.0f} s, everything else default; one bridge.",
                "p50, p99: of cloaked messages, from the end of the tick to the analyst.",
                f"a position waits up to {TICK_S:.0f} s for that end, and its group for its beat.",
                f"cloaked messages: {n:,} in all.",
                "µs: CPU time of a program, of all its processes, for each position.",
                "Kafka's without its compiler, which is busy for minutes and then never again.",
                "others' cores: used by programs that are no part of this.",
                "lost: accepted by the broker and never received by a source, in a whole run.",
                "late: yielded to overload, late, or ticks that closed incomplete.",
                f"kept up: all was sent, nothing lost or late, p99 at most {_MOST_P99_S:.0f} s.",
                f"nor did the median grow by {_MOST_GROWTH_S} s within the run.",
            ),
        ),
        Table(
            "Disk and memory of a cluster",
            (*head, "Kafka's disk, bytes a position", "bridge, MiB", "workers, MiB"),
            [result.sizes() for result in results],
            (
                "disk: of one replica; what was erased meanwhile is not counted.",
                "resident memory at the end of the measurement, of all workers together.",
            ),
        ),
    ]


def _bytes_in(folder: Path) -> int:
    """Return the size of Kafka's topics, on all brokers."""
    files = (file for broker in folder.glob("broker-*/data") for file in broker.rglob("*.log"))
    return sum(file.stat().st_size for file in files)


async def _all(climbs: Sequence[Climb]) -> list[Result]:
    """Run all clusters with as many replicas on one Kafka: its code is compiled once."""
    results: list[Result] = []
    for n_replicas, alike in groupby(climbs, key=attrgetter("n_replicas")):
        with TemporaryDirectory(prefix="anonymizer-") as name:
            folder = Path(name)
            with running_replicas(folder, n_replicas, java=JAVA) as (kafka, *_):
                for climb in alike:
                    for rate_per_s in climb.rates_per_s:
                        results.append(await _run(climb, rate_per_s, folder, kafka))
                        sys.stderr.write(f"cluster: {results[-1]}\n")
                        if not results[-1].kept_up:
                            break
    return results


async def _run(climb: Climb, rate_per_s: int, folder: Path, kafka: Kafka) -> Result:
    load = ("--network", climb.network, "--devices", str(rate_per_s), "--rate", "1")
    many = ("--batch", str(climb.per_message)) if climb.per_message > 1 else ()
    async with (
        running_mosquitto("set_tcp_nodelay false") as url,
        running_members(
            folder,
            kafka,
            url,
            network=climb.network,
            inputs=MANY if many else ONE,
            qos=climb.qos,
            n_sources=climb.n_sources,
            n_districts=climb.n_districts,
            n_workers=climb.n_workers,
        ) as members,
    ):
        analyst = Analyst(url)
        options = (*load, *many, "--qos", str(climb.qos), "--broker", url)
        async with analyst.listening(), running_simulator(*options) as simulator:
            await analyst.until_some()
            await asyncio.sleep(climb.settle_s)
            analyst.came.clear()
            before = await _state(members, folder)
            await asyncio.sleep(climb.seconds)
            after = await _state(members, folder)
            delay_s, memory = analyst.delays_s, _memory(members)
            n_sent, sent_per_s = await simulator.end()

            async def has_all() -> bool:
                return await members.n_received() >= n_sent

            await until(has_all, within_s=_ARRIVAL_S)
            n_lost = max(0, n_sent - await members.n_received())
    return Result(climb, rate_per_s, sent_per_s, n_lost, before, after, delay_s, memory)


async def _state(members: Members, folder: Path) -> State:
    """Return what is to be known at this moment; the folder is that of Kafka's brokers."""
    of_others = {name: cpu_s_of_child(command) for name, command in _COMMAND_OF.items()}
    of_others["kafka"] -= compiling_s_of_child(_COMMAND_OF["kafka"])
    return State(
        time.monotonic(),
        {
            "bridge": sum(cpu_s_of(bridge.program.pid) for bridge in members.bridges),
            "workers": sum(cpu_s_of(worker.program.pid) for worker in members.workers),
            **of_others,
            "analyst": time.process_time(),
        },
        machine_cpu_s(),
        await members.scrape(),
        _bytes_in(folder),
    )


def _memory(members: Members) -> dict[str, int]:
    """Return the resident memory of bridges and workers."""
    return {
        name: sum(memory_bytes_of(member.program.pid) for member in some)
        for name, some in (("bridge", members.bridges), ("workers", members.workers))
    }

"""Benchmark of copies: CPU of the broker that leads all partitions, and of one that follows it.

Three brokers of Kafka, bridge, worker, Mosquitto and devices share the machine. The followers are
started anew once everything runs: then the first broker leads, and both others only copy.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from confluent_kafka.admin import AdminClient

from anonymizer.errors import TransportError
from anonymizer.transport.local_brokers import running_mosquitto
from benchmarks.cluster import JAVA
from benchmarks.gateways import RunningSimulator, running_simulator, until
from benchmarks.members import MANY, ONE, Analyst, Members, running_members, why_not
from benchmarks.processes import compiling_s_of, cpu_s_of, machine_cpu_s
from benchmarks.tables import Table
from tests.cluster.kafka import Kafka, running_replicas

STORED = Path(__file__).with_name("followers.json")
_N_BROKERS = 3
_LED_S = 120.0
_KEPT_UP, _MOST_P99_S = 0.98, 3.0
_COLUMNS = (
    "positions a message",
    "asked/s",
    "sent/s",
    "p99, ms",
    "leader, µs",
    "a follower, µs",
    "followers' share",
    "bridge, µs",
    "workers, µs",
    "others' cores",
    "kept up",
)


class Load(NamedTuple):
    """Rates with so many positions in a message, one after the other on the same cluster.

    `warm_s`: time before the first, in which Java compiles the brokers' code; `settle_s`: before
    each.
    """

    per_message: int
    rates_per_s: Sequence[int]
    warm_s: float = 45.0
    settle_s: float = 10.0
    seconds: float = 20.0
    network: str = "city:10000"


class Copied(NamedTuple):
    """What one rate took: CPU seconds of each program while so many positions were received."""

    per_message: int
    rate_per_s: int
    sent_per_s: float
    n: int
    delay_s: Sequence[float]
    cpu_s: dict[str, float]
    others_cores: float

    def us(self, program: str) -> float:
        """Return the CPU time of a program, µs for each position."""
        return self.cpu_s[program] / max(1, self.n) * 1e6

    def row(self) -> tuple[str | int | float, ...]:
        """Return it as a row of the table."""
        p99_s = float(np.quantile(self.delay_s, 0.99)) if self.delay_s else np.inf
        sent = self.sent_per_s >= _KEPT_UP * self.rate_per_s
        return (
            self.per_message,
            self.rate_per_s,
            round(self.sent_per_s),
            p99_s * 1e3,
            self.us("leader"),
            self.us("followers") / (_N_BROKERS - 1),
            self.cpu_s["followers"] / (_N_BROKERS - 1) / self.cpu_s["leader"],
            self.us("bridge"),
            self.us("workers"),
            self.others_cores,
            "yes" if sent and p99_s <= _MOST_P99_S else "no",
        )


def followers(loads: Sequence[Load]) -> list[Table]:
    """Run each load; no table, and one line, where there is no Kafka."""
    missing = why_not()
    if missing is not None:
        sys.stderr.write(f"benchmarks: followers is skipped: {missing}\n")
        return []
    found = asyncio.run(_all(loads))
    return [
        Table(
            "What copies cost in Kafka, beside the first",
            _COLUMNS,
            [each.row() for each in found],
            (
                f"{_N_BROKERS} brokers, one leads all partitions; one bridge, one worker.",
                "µs: CPU time for each position, without Java's compiler.",
                "followers' share: CPU of one follower, as a share of the leader's.",
                "others' cores: used by programs that are no part of this, and the devices.",
                f"kept up: all was sent, p99 at most {_MOST_P99_S:.0f} s.",
            ),
        )
    ]


def share_of_follower(file: Path = STORED) -> float:
    """Return the CPU of a follower as a share of its leader's, the largest of what kept up."""
    tables = json.loads(file.read_text(encoding="utf-8"))["benchmarks"]["followers"]
    return max(
        float(row["followers' share"]) for row in tables[0]["rows"] if row["kept up"] == "yes"
    )


async def _all(loads: Sequence[Load]) -> list[Copied]:
    found: list[Copied] = []
    for load in loads:
        with (
            TemporaryDirectory(prefix="anonymizer-") as name,
            running_replicas(Path(name), _N_BROKERS, java=JAVA) as brokers,
        ):
            async for each in _measured(load, Path(name), brokers):
                found.append(each)
                sys.stderr.write(f"followers: {each.rate_per_s:,}/s is measured\n")
    return found


async def _measured(load: Load, folder: Path, brokers: list[Kafka]) -> AsyncIterator[Copied]:
    async with (
        running_mosquitto("set_tcp_nodelay false") as url,
        running_members(
            folder,
            brokers[0],
            url,
            network=load.network,
            inputs=MANY if load.per_message > 1 else ONE,
            qos=0,
        ) as members,
    ):
        analyst = Analyst(url)
        async with analyst.listening():
            async with _devices(load, load.rates_per_s[0], url):
                await analyst.until_some()
                await _let_first_lead(brokers)
                await asyncio.sleep(load.warm_s)
            for rate in load.rates_per_s:
                async with _devices(load, rate, url) as devices:
                    await asyncio.sleep(load.settle_s)
                    analyst.came.clear()
                    before, n_before = _cpu_s(members, brokers), await members.n_received()
                    began, machine_before = time.monotonic(), machine_cpu_s()
                    await asyncio.sleep(load.seconds)
                    cpu_s = {
                        program: used - before[program]
                        for program, used in _cpu_s(members, brokers).items()
                    }
                    all_s = machine_cpu_s() - machine_before
                    n = await members.n_received() - n_before
                    others = (all_s - sum(cpu_s.values())) / (time.monotonic() - began)
                    delay_s = list(analyst.delays_s)
                    _, sent_per_s = await devices.end()
                yield Copied(load.per_message, rate, sent_per_s, n, delay_s, cpu_s, others)


@asynccontextmanager
async def _devices(load: Load, rate: int, url: str) -> AsyncIterator[RunningSimulator]:
    many = ("--batch", str(load.per_message)) if load.per_message > 1 else ()
    options = ("--network", load.network, "--devices", str(rate), "--rate", "1", *many)
    async with running_simulator(*options, "--qos", "0", "--broker", url) as running:
        yield running


async def _let_first_lead(brokers: list[Kafka]) -> None:
    """Start the others anew: whoever leads goes on, so the first leads every partition.

    Raises
    ------
    TransportError
        If that takes too long.
    """
    for act in (Kafka.stop, Kafka.start):
        for broker in brokers[1:]:
            await asyncio.to_thread(act, broker)
    admin = AdminClient({"bootstrap.servers": brokers[0].address, "log_level": 0})

    async def leads() -> bool:
        topics = await asyncio.to_thread(admin.list_topics, timeout=30)
        places = [each for topic in topics.topics.values() for each in topic.partitions.values()]
        return {each.leader for each in places} == {1} and all(
            len(each.isrs) == len(brokers) for each in places
        )

    if not await until(leads, within_s=_LED_S):
        raise TransportError("the first broker does not lead all partitions")


def _cpu_s(members: Members, brokers: list[Kafka]) -> dict[str, float]:
    """Return the CPU seconds of each program until now."""
    kafka = [cpu_s_of(each.pid) - compiling_s_of(each.pid) for each in brokers]
    return {
        "leader": kafka[0],
        "followers": sum(kafka[1:]),
        "bridge": sum(cpu_s_of(each.program.pid) for each in members.bridges),
        "workers": sum(cpu_s_of(each.program.pid) for each in members.workers),
    }

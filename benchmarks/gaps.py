"""Gaps of a cluster: for how long an analyst hears nothing when members die or are restarted."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from anonymizer.transport.local_brokers import running_mosquitto
from benchmarks.cluster import JAVA
from benchmarks.gateways import running_simulator, until
from benchmarks.members import TICK_S, Analyst, Member, Members, running_members
from benchmarks.members import why_not as why_no_cluster
from benchmarks.tables import Table
from tests.cluster.kafka import JARS, running_kafka

_STEADY_S = 3.0
_ON_TIME_S = 3.0
_RECOVERED_S = 120.0
_ARRIVAL_S = 60.0


@dataclass(frozen=True, slots=True)
class Blows:
    """Members that are ended one after the other, each when the one before has been overcome."""

    n_kills: int
    n_restarts: int
    """`n_kills`, `n_restarts`: how often each of `KINDS` is tried."""
    n_devices: int = 2_000
    """Devices that report once a second."""
    n_workers: int = 3
    """Beside two bridges."""
    network: str = "city:10000"


class Gap(NamedTuple):
    """What one blow did."""

    silent_s: float
    """Longest time without any cloaked message."""
    late_s: float
    """Longest time from the end of a tick to a message about it."""


async def _kill_beside_another(group: list[Member], number: int) -> None:
    """Kill a member beside which another process stands by."""
    old, group[number] = group[number], group[number].twin()
    await group[number].stand_by()
    await old.kill()


async def _restart_beside_another(group: list[Member], number: int) -> None:
    old, group[number] = group[number], group[number].twin()
    await group[number].stand_by()
    await old.stop()


async def _kill(group: list[Member], number: int) -> None:
    await group[number].kill()


async def _kill_and_restart(group: list[Member], number: int) -> None:
    await group[number].kill()
    await group[number].start()


async def _restart(group: list[Member], number: int) -> None:
    await group[number].stop()
    await group[number].start()


class Kind(NamedTuple):
    """A kind of blow: whom it hits, what is done, and how often."""

    group: str
    blow: Callable[[list[Member], int], Awaitable[None]]
    is_kill: bool


KINDS = {
    "worker killed, another process stood by": Kind("workers", _kill_beside_another, True),
    "worker killed, taken over by the group": Kind("workers", _kill, True),
    "bridge killed, started again": Kind("bridges", _kill_and_restart, True),
    "worker stopped, another process stood by": Kind("workers", _restart_beside_another, False),
    "bridge stopped, started again": Kind("bridges", _restart, False),
}


class Found(NamedTuple):
    """What all blows of a run did, and whether anything was lost."""

    gaps: dict[str, list[Gap]]
    n_sent: int
    n_received: int
    imbalance: float


def gaps(sizes: Sequence[Blows]) -> list[Table]:
    """Strike clusters of these sizes; no tables, and one line, where there is no Kafka."""
    missing = why_no_cluster()
    if missing is not None:
        sys.stderr.write(f"benchmarks: gaps is skipped: {missing}\n")
        return []
    tables = []
    for blows in sizes:
        found = asyncio.run(strike(blows))
        rows = []
        for kind, each in found.gaps.items():
            silent, late = np.array(each).T
            quantiles = [np.quantile(of, q) for of in (silent, late) for q in (0.5, 0.99)]
            rows.append((kind, len(each), *quantiles))
        tables.append(
            Table(
                f"Gaps of a cluster, {blows.n_devices:,} devices, two bridges, "
                f"{blows.n_workers} workers",
                (
                    "blow",
                    "times",
                    "silent, p50, s",
                    "silent, p99, s",
                    "late, p50, s",
                    "late, p99, s",
                ),
                rows,
                (
                    "silent: longest time in which an analyst hears nothing.",
                    f"without a blow, a message comes at every tick, {TICK_S:.0f} s.",
                    "late: longest time from the end of a tick to a message about it.",
                    f"acknowledged {found.n_sent:,} positions, received {found.n_received:,}.",
                    f"imbalance {found.imbalance:.0f}.",
                ),
            )
        )
    return tables


async def strike(blows: Blows) -> Found:
    """Run a cluster under load, and strike it."""
    with TemporaryDirectory(prefix="anonymizer-") as name:
        folder = Path(name)
        cleanup = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": "1000"}
        with running_kafka(folder, jars=JARS, java=JAVA, **cleanup) as kafka:
            async with (
                running_mosquitto() as url,
                running_members(
                    folder,
                    kafka,
                    url,
                    network=blows.network,
                    n_bridges=2,
                    n_workers=blows.n_workers,
                ) as members,
            ):
                return await _strike(blows, url, members)


async def _strike(blows: Blows, url: str, members: Members) -> Found:
    analyst = Analyst(url)
    load = ("--network", blows.network, "--devices", str(blows.n_devices), "--rate", "1")
    found: dict[str, list[Gap]] = {kind: [] for kind in KINDS}
    async with (
        analyst.listening(),
        running_simulator(*load, "--qos", "1", "--broker", url) as simulator,
    ):
        await analyst.until_some()
        for kind, (name, blow, is_kill) in KINDS.items():
            group: list[Member] = getattr(members, name)
            for turn in range(blows.n_kills if is_kill else blows.n_restarts):
                await _until_steady(analyst)
                number = turn % len(group)
                found[kind].append(await _gap(analyst, blow(group, number)))
                if not group[number].is_running:
                    await group[number].start()
                sys.stderr.write(f"gaps: {kind}: {found[kind][-1]}\n")
        await _until_steady(analyst)
        n_sent, _ = await simulator.end()

        async def has_all() -> bool:
            return await members.n_received() >= n_sent

        await until(has_all, within_s=_ARRIVAL_S)
        scrape = await members.scrape()
    return Found(
        found,
        n_sent,
        scrape.n_received,
        scrape.values["anonymizer_accounting_imbalance{}"],
    )


async def _until_steady(analyst: Analyst) -> None:
    """Wait until messages have come on time for a while."""

    async def is_steady() -> bool:
        return _is_on_time(analyst, since=time.time() - _STEADY_S)

    await until(is_steady, within_s=_RECOVERED_S)


def _is_on_time(analyst: Analyst, *, since: float) -> bool:
    """Return whether messages came, and none too late."""
    came = [delay_s for at, delay_s in analyst.came if at > since]
    return bool(came) and max(came) <= _ON_TIME_S


async def _gap(analyst: Analyst, blow: Awaitable[None]) -> Gap:
    """Strike; return what the analyst noticed."""
    began = time.time()
    analyst.came = [each for each in analyst.came if each[0] > began - 2 * TICK_S]
    await blow
    await asyncio.sleep(_STEADY_S + _ON_TIME_S)  # what was on its way has come
    await _until_steady(analyst)
    at, late = np.array(analyst.came).T
    return Gap(float(np.diff(at).max()), float(late.max()))

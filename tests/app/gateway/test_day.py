"""A day of traffic in minutes: devices and vehicles come and go, and memory stays flat."""

import asyncio
import gc
import json
import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox
from anonymizer.pipeline.records.flow import MOST_RECENT
from anonymizer.settings import BrokerSettings, Settings, zones_of
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import mosquitto
from tests.app.gateway.recording import serving_records
from tests.app.gateway.records import compiled
from tests.end_to_end import DEADLINE_S
from tests.pipeline.positions.support import NOW, SECRET
from tests.pipeline.records.made import LENGTH_S, Sent, traffic
from tests.pipeline.records.support import Rig
from tests.transport.support import running as connected

FLAT = 0.02
NETWORK = load_network("grid:20x20")
HOUR_S = 3600.0
N_HOURS = 24
N_WARM_HOURS = 6
"""By then every table and memory is as large as it gets."""
TICK_S = 10.0
N_DEVICES = 300
TURNS = 3
"""A device reports in every third tick."""
STAY_S = (600.0, 2400.0)
"""How long a device reports; then one that was never seen before takes its place."""
N_VEHICLES = 300
"""Of each window."""
WINDOWS_TOGETHER = 10
"""Then come other vehicles."""
WINDOW_EVERY_S = 120.0
SERVED_DEVICES = 20_000
"""Devices that the whole service sees."""

__all__ = ["compiled"]


def rss_bytes(pid: int) -> int:
    """Return the memory of a process that is resident."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def payload_at(node: int) -> bytes:
    return json.dumps({"lat": float(NETWORK.lat[node]), "lon": float(NETWORK.lon[node])}).encode()


class Comers:
    """Devices that stay a while, each at a random node; then others come."""

    def __init__(self, n: int, stay_s: tuple[float, float]) -> None:
        self._rng = random.Random(1)  # noqa: S311  places, no secrets
        self._until = [0.0] * n
        self._number = [0] * n
        self._stay_s = stay_s
        self.n = 0

    def report(self, i: int, now: float) -> tuple[str, bytes]:
        """Return topic and payload of the one that is at place `i` now."""
        if self._until[i] < now:
            self.n += 1
            self._number[i], self._until[i] = self.n, now + self._rng.uniform(*self._stay_s)
        node = self._rng.randrange(NETWORK.n_nodes)
        return f"positions/device-{self._number[i]}", payload_at(node)


class Positions:
    """The positions flow."""

    def __init__(self) -> None:
        tables = {"adka": {"density_steps": [], "k_values": [2]}, "session": {"beat_s": 30.0}}
        settings = Settings.model_validate(tables | {"network": {"snap_limit_m": 30}})
        self.now = NOW
        self.devices = Comers(N_DEVICES, STAY_S)
        self.ledger = Ledger()
        self._inbox = Inbox(settings.presence.queue_limit, self.ledger)
        self._flow = PositionFlow(
            settings,
            with_zones(NETWORK, zones_of(settings.zones)),
            self.ledger,
            secret=SECRET,
            monotonic=lambda: self.now - NOW,
        )
        self._turn = 0

    def tick(self) -> None:
        """Let a tick pass, in which some of the devices report."""
        self.now += TICK_S
        self._turn = (self._turn + 1) % TURNS
        reports = [
            Delivery(*self.devices.report(i, self.now), 0)
            for i in range(self._turn, N_DEVICES, TURNS)
        ]
        self._inbox.put(reports, at_s=self.now - NOW)
        output = self._flow.tick(self._inbox.take(), now=self.now)
        self._flow.settle(output, [True] * len(output.messages), seconds=0.0)
        held = self._inbox.n_waiting + self._flow.n_held
        assert self.ledger.n_received == self.ledger.n_settled + held


def window(number: int) -> list[Sent]:
    """Return the records of a window; other vehicles come after some windows."""
    parts = traffic(n_vehicles=N_VEHICLES, n_windows=1, seed=number, start=number * LENGTH_S)
    fleet = number // WINDOWS_TOGETHER
    return [Sent(f"{part.vehicle}-{fleet}", part.source, part.ts, part.values) for part in parts]


@dataclass
class Traffic:
    """Devices and vehicles that send to a broker until it is enough."""

    devices: Comers
    n_windows: int = 0
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, url: str) -> None:
        """Let every device report, and send a window of records, every second."""
        link = MqttLink(BrokerSettings(url=url), client_id="traffic", deliver=lambda _: None)
        async with connected(link):
            while not self.enough.is_set():
                now = time.monotonic()
                positions = [self.devices.report(i, now) for i in range(N_DEVICES)]
                records = [(part.topic, part.payload) for part in window(self.n_windows)]
                messages = [Outgoing(*message) for message in (*positions, *records)]
                assert all(await link.publish(messages, qos=0, timeout_s=DEADLINE_S))
                self.n_windows += 1
                await asyncio.sleep(max(0.0, now + 1.0 - time.monotonic()))


def assert_flat(rss: list[int], *, warm: int) -> None:
    """Assert that the memory never grows beyond what it was after the warm-up."""
    before, after = max(rss[:warm]), max(rss[warm:])
    print(f"{before / 2**20:.1f} MiB, then {after / 2**20:.1f} at most")  # noqa: T201
    assert after <= (1 + FLAT) * before


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_memory_is_flat_over_a_day_of_devices_that_come_and_go(tmp_path: Path) -> None:
    positions, records = Positions(), Rig(tmp_path)
    rss, n_windows, n_parts = [], 0, 0
    for _ in range(N_HOURS):
        until = positions.now + HOUR_S
        while positions.now < until:
            positions.tick()
            if positions.now - NOW >= n_windows * WINDOW_EVERY_S:
                parts = window(n_windows)
                records.clock_s = positions.now - NOW
                records.take(*parts)
                records.close()
                records.publish()
                n_windows, n_parts = n_windows + 1, n_parts + len(parts)
        gc.collect()
        rss.append(rss_bytes(os.getpid()))
    records.store.close()
    n_positions = positions.ledger.n_received
    print(f"{positions.devices.n} devices, {n_positions} positions, {n_parts} parts")  # noqa: T201
    assert n_parts > N_HOURS / N_WARM_HOURS * 2 * MOST_RECENT
    assert_flat(rss, warm=N_WARM_HOURS)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_memory_of_the_service_is_flat_while_devices_come_and_go(tmp_path: Path) -> None:
    broker = mosquitto(tmp_path)
    await broker.start()
    sent = Traffic(Comers(N_DEVICES, (2.0, 6.0)))
    rss = []
    try:
        async with serving_records(
            tmp_path,
            broker.url,
            inputs=[{"topic": "positions/{device}"}],
            network={"source": "grid:20x20"},
            presence={"ttl_s": 5.0, "max_behind_s": 5.0},
            session={"epoch_s": 2.0, "beat_s": 1.0},
        ) as gateway:
            sending = asyncio.create_task(sent.send(broker.url), name="traffic")
            while sent.devices.n < SERVED_DEVICES:
                await asyncio.sleep(0.5)
                assert not sending.done()
                rss.append(rss_bytes(gateway.program.process.pid))
            sent.enough.set()
            await sending
            now = await gateway.until(lambda now: not now.held)
            assert now.imbalance == 0
            assert now.outcomes["published"] > 0
    finally:
        await broker.stop()
    print(f"{sent.devices.n} devices, {sent.n_windows} windows")  # noqa: T201
    assert_flat(rss, warm=len(rss) // 2)

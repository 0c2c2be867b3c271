"""The gateway with a broker that misbehaves: nothing is lost, and the accounts are exact."""

import asyncio
import json
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from anonymizer.pipeline.ports import Outgoing
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import mosquitto
from tests.app.gateway.ordeal import (
    Ordeal,
    Vehicles,
    accounts_of,
    analyst,
    assert_nothing_was_lost,
    has_all_of_its_windows,
    patient,
    stay,
    until_only_the_last_is_held,
)
from tests.app.gateway.records import compiled, write_records_settings
from tests.end_to_end import (
    ANONYMIZER,
    DEADLINE_S,
    TOKEN,
    Accounts,
    eventually,
    running,
)
from tests.transport.faulty_broker import FaultyBroker, schedule

N_DEVICES = 20
EVERY_S = 0.05

__all__ = ["compiled"]


@dataclass
class Devices:
    """They send positions at QoS 1, each in a message of its own, each until it is taken."""

    n_sent: int = 0
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def drive(self, url: str) -> None:
        link = MqttLink(patient(url), client_id="devices", deliver=lambda _: None)
        running_link = asyncio.create_task(link.run(), name="devices' link")
        await link.until_connected()
        while not self.enough.is_set():
            body = json.dumps({"lat": 60.1699, "lon": 24.9384, "ts": time.time()}).encode()
            messages = [Outgoing(f"positions/{i}", body) for i in range(N_DEVICES)]
            assert all(await link.publish(messages, qos=1, timeout_s=DEADLINE_S))
            self.n_sent += N_DEVICES
            with suppress(TimeoutError):
                await asyncio.wait_for(self.enough.wait(), EVERY_S)
        await link.close()
        await running_link


async def endure(
    folder: Path, *, n_faults: int, seed: int, pause_s: float
) -> tuple[Ordeal, Accounts, int]:
    """Return what is left of the records, the accounts of positions, and how many were sent.

    `pause_s` lies between two chunks of records.
    """
    faults = schedule(seed, n_faults)
    # Shown if the test fails, or with -s.
    print(f"seed {seed}", *faults, sep="\n")  # noqa: T201
    store = folder / "records.sqlite"
    real = mosquitto(folder, persistence=True)
    await real.start()
    faulty = FaultyBroker(real.url, faults)
    vehicles, devices, seen = Vehicles(pause_s), Devices(), list[bytes]()
    try:
        async with faulty.serving(), analyst(real.url, seen):
            config = write_records_settings(
                folder / "gateway.toml",
                faulty.url,
                store=store,
                fleet={"idle_s": 600},
                inputs=[{"topic": "positions/{device}", "qos": 1}],
                # A device that came after the groups were formed and fell silent is held so long.
                presence={"ttl_s": 10, "max_behind_s": 10},
                session={"epoch_s": 5, "beat_s": 1},
            )
            environment = {
                "ANONYMIZER__HTTP__TOKEN": TOKEN,
                "ANONYMIZER__BROKER__KEEPALIVE_S": "5",
                "ANONYMIZER__BROKER__SESSION_EXPIRY_S": "600",
            }
            async with running(
                ANONYMIZER, "serve", "-c", config, environment=environment
            ) as program:
                url = (await program.logged("listening"))["url"]
                await program.logged("broker connected for records")
                await program.logged("broker connected")
                driving = [
                    asyncio.create_task(vehicles.drive(real.url), name="vehicles"),
                    asyncio.create_task(devices.drive(real.url), name="devices"),
                ]
                faulty.begin()
                await until_over(faulty, url)
                vehicles.enough.set()
                devices.enough.set()
                await asyncio.gather(*driving)
                await until_only_the_last_is_held(url)
                accounts = await eventually(
                    lambda: accounts_of(url),
                    lambda now: now.received >= devices.n_sent and not now.held,
                )
                program.process.send_signal(signal.SIGTERM)
                assert await program.ended() == 0
            await eventually(lambda: stay(seen), has_all_of_its_windows)
    finally:
        await real.stop()
    print(dict(faulty.happened))  # noqa: T201  as the above
    return Ordeal(vehicles.sent, seen, store), accounts, devices.n_sent


async def until_over(faulty: FaultyBroker, url: str) -> None:
    """Wait for the end of the schedule; meanwhile the accounts must balance at every look."""
    over = asyncio.create_task(faulty.until_over(), name="schedule")
    while not over.done():
        now = await accounts_of(url)
        assert now.imbalance == 0
        assert now.received == now.settled + now.held
        await asyncio.wait([over], timeout=1.0)


def assert_exact(accounts: Accounts, n_sent: int) -> None:
    assert accounts.imbalance == 0
    assert accounts.received == accounts.settled
    assert accounts.received >= n_sent


async def test_whatever_the_broker_does_nothing_is_lost_and_the_accounts_are_exact(
    tmp_path: Path,
) -> None:
    ordeal, accounts, n_sent = await endure(tmp_path, n_faults=6, seed=13, pause_s=0.05)
    assert_nothing_was_lost(ordeal)
    assert_exact(accounts, n_sent)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_a_thousand_faults_of_the_broker_lose_nothing(tmp_path: Path) -> None:
    ordeal, accounts, n_sent = await endure(tmp_path, n_faults=1000, seed=1000, pause_s=0.2)
    assert_nothing_was_lost(ordeal)
    assert_exact(accounts, n_sent)

"""The gateway killed at random moments, with a broker that goes away in between."""

import asyncio
import random
import signal
from pathlib import Path

from anonymizer.transport.local_brokers import LocalBroker, mosquitto
from tests.app.gateway.ordeal import (
    Ordeal,
    Vehicles,
    analyst,
    assert_nothing_raw_is_left,
    assert_nothing_was_lost,
    has_all_of_its_windows,
    stay,
    until_only_the_last_is_held,
)
from tests.app.gateway.records import (
    compiled,
    write_records_settings,
)
from tests.end_to_end import ANONYMIZER, DEADLINE_S, TOKEN, eventually, running

__all__ = ["compiled"]


async def endure(folder: Path, *, n_kills: int, seed: int, pause_s: float) -> Ordeal:
    rng = random.Random(seed)  # noqa: S311  moments, no secrets
    store = folder / "records.sqlite"
    broker = mosquitto(folder, persistence=True, stop_timeout_s=DEADLINE_S)
    await broker.start()
    config = write_records_settings(
        folder / "gateway.toml", broker.url, store=store, fleet={"idle_s": 600}
    )
    serve, token = (ANONYMIZER, "serve", "-c", config), {"ANONYMIZER__HTTP__TOKEN": TOKEN}
    vehicles, seen = Vehicles(pause_s), list[bytes]()
    try:
        async with analyst(broker.url, seen):
            async with running(*serve, environment=token) as program:
                # From now on the broker keeps for the gateway what it does not take.
                await program.logged("broker connected for records")
                driving = asyncio.create_task(vehicles.drive(broker.url), name="vehicles")
                await asyncio.sleep(rng.expovariate(4.0))
            for _ in range(n_kills - 1):
                async with running(*serve, environment=token) as program:
                    if rng.random() < 0.2:  # while it starts
                        await asyncio.sleep(rng.uniform(0.0, 2.0))
                    else:
                        await program.logged("broker connected for records")
                        await asyncio.sleep(rng.expovariate(4.0))
                if rng.random() < 0.4:
                    await restart(broker)
            async with running(*serve, environment=token) as program:
                await program.logged("broker connected for records")
                await restart(broker)
                vehicles.enough.set()
                await driving
                await until_only_the_last_is_held((await program.logged("listening"))["url"])
                program.process.send_signal(signal.SIGTERM)
                assert await program.ended() == 0
            await eventually(lambda: stay(seen), has_all_of_its_windows)
    finally:
        await broker.stop()
    return Ordeal(vehicles.sent, seen, store)


async def restart(broker: LocalBroker) -> None:
    assert await broker.stop() == 0, "it was killed, and has lost messages"
    await broker.start()


async def test_two_kills_lose_nothing_and_publish_no_window_twice_or_below_k(
    tmp_path: Path,
) -> None:
    ordeal = await endure(tmp_path, n_kills=2, seed=20, pause_s=0.1)
    assert_nothing_was_lost(ordeal)
    assert_nothing_raw_is_left(ordeal)

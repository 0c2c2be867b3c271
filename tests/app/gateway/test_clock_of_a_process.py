"""A real `serve` whose wall clock jumps: positions flow on, it ends in time, and streams go on."""

import json
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from anonymizer.networks import load_network
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.records import compiled, write_records_settings
from tests.app.gateway.shifted_clock import put
from tests.cli.support import process
from tests.end_to_end import (
    AS_OPERATOR,
    TOKEN,
    Gateway,
    Witness,
    client,
    eventually,
    http_client,
    running,
    send,
    witness,
)
from tests.pipeline.records.made import LENGTH_S, traffic

__all__ = ["compiled"]

YEAR = 365.25 * 86_400.0
NETWORK = load_network("grid:20x20")
JUMPS = {"ten years on": 10 * YEAR, "to 1970": 3600.0 - time.time(), "an hour back": -3600.0}
TABLES: dict[str, Any] = {
    "inputs": [{"topic": "positions/{device}"}],
    "network": {"source": "grid:20x20", "snap_limit_m": 60},
    "tick": {"interval_s": 0.1},
    "session": {"epoch_s": 60.0, "beat_s": 0.2},
    "region": {"min_nodes": 1, "place_devices": 1},
    "adka": {"density_steps": [], "k_values": [2]},
    "counts": {"privacy": "k", "every_s": 60, "k": 2, "cells": 16, "streets_s": 60},
    "trips_out": {"every_s": 60},
    "trips": {"gap_s": 10.0, "dwell_s": 5.0},
    "device_zones": {"topic": "zones/{device}"},
    "fleet": {"lateness_s": 0, "idle_s": 2},
}


class Machine:
    """A gateway on a machine whose clock can be set, and those who send with the same clock."""

    def __init__(self, folder: Path, broker: LocalBroker) -> None:
        self.folder, self.broker, self.shift_s = folder, broker, 0.0
        self.clock = folder / "clock"
        self.config = write_records_settings(
            folder / "gateway.toml", broker.url, store=folder / "records.sqlite", **TABLES
        )
        self.put(0.0)

    def put(self, shift_s: float) -> None:
        self.shift_s = shift_s
        put(self.clock, shift_s)

    @property
    def now(self) -> float:
        return time.time() + self.shift_s

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Gateway]:
        command = (sys.executable, "-m", "tests.app.gateway.shifted_clock", self.clock)
        token = {"ANONYMIZER__HTTP__TOKEN": TOKEN}
        async with running(*command, "serve", "-c", self.config, environment=token) as program:
            url = (await program.logged("listening"))["url"]
            await program.logged("broker connected for records")
            await program.logged("broker connected")
            async with http_client(url, headers=AS_OPERATOR) as http:
                yield Gateway(program, http)

    async def positions_flow(self, watching: Witness) -> None:
        """Send positions until some of now are published."""
        before = watching.n_pseudonyms
        async with client(self.broker.url, "bus") as bus:

            async def sent() -> int:
                said = [
                    {"lat": NETWORK.lat[i], "lon": NETWORK.lon[i], "ts": self.now}
                    for i in range(12)
                ]
                told = [
                    (f"positions/d{i}", json.dumps(each).encode()) for i, each in enumerate(said)
                ]
                await send(bus, told, qos=1)
                return watching.n_pseudonyms

            await eventually(sent, lambda n: n > before)

    async def send_records(self) -> None:
        start = self.now // LENGTH_S * LENGTH_S - LENGTH_S
        parts = traffic(n_vehicles=24, n_windows=1, seed=1, start=start)
        async with client(self.broker.url, "vehicles") as vehicles:
            await send(vehicles, [(part.topic, part.payload) for part in parts], qos=1)

    async def records_flow(self, watching: Witness) -> None:
        before = len(classes(watching))
        await self.send_records()
        await watching.until(lambda: len(classes(watching)) > before)


def classes(watching: Witness) -> list[dict[str, Any]]:
    return watching.on("anonymized/fleet")


async def end(gateway: Gateway) -> None:
    gateway.signal(signal.SIGTERM)
    assert await gateway.program.ended() == 0


# In one process: test_clock_jumps.py.
@pytest.mark.soak
@pytest.mark.parametrize("jump", JUMPS)
async def test_a_process_whose_clock_jumps_goes_on_and_ends_in_time(
    jump: str, broker: LocalBroker, tmp_path: Path
) -> None:
    machine = Machine(tmp_path, broker)
    async with witness(broker.url) as watching, machine.serving() as gateway:
        await machine.positions_flow(watching)
        machine.put(JUMPS[jump])
        await gateway.program.logged("the system's clock has jumped")
        await machine.positions_flow(watching)
        assert (await gateway.get("/healthz")).status_code == 200
        await end(gateway)


async def test_after_ten_years_ahead_the_command_lets_records_go_on(
    broker: LocalBroker, tmp_path: Path
) -> None:
    machine = Machine(tmp_path, broker)
    async with witness(broker.url) as watching:
        machine.put(10 * YEAR)
        async with machine.serving() as gateway:
            await machine.positions_flow(watching)
            await machine.records_flow(watching)
            machine.put(0.0)
            await gateway.program.logged("the system's clock has jumped")
            await machine.positions_flow(watching)
            await machine.send_records()
            said = await gateway.get("/readyz")
            assert "parts of times before 20" in said.text
            assert "anonymizer clock --config FILE" in said.text
            await end(gateway)
        n = len(classes(watching))
        async with machine.serving() as gateway:
            assert "anonymizer clock" in gateway.program.events("the clock")[0]["problem"]
            await machine.positions_flow(watching)
            assert "parts of times before 20" in (await gateway.get("/readyz")).text
            await end(gateway)
        assert len(classes(watching)) == n
        went = process("clock", "-c", machine.config, "--go-on")
        assert (went.returncode, "goes on at" in went.stdout) == (0, True)
        async with machine.serving() as gateway:
            assert gateway.program.events("the clock") == []
            # The window of the present was accepted by nobody; the next one is.
            machine.put(2 * LENGTH_S)
            await machine.records_flow(watching)
            starts = [each["window"][0] for each in classes(watching)[n:]]
            assert all(abs(start - machine.now) < 5 * LENGTH_S for start in starts)
            await end(gateway)

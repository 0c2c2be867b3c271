"""Mixed hostile traffic at every QoS, on Mosquitto and aedes, while everything else fails too.

It lasts $ANONYMIZER_SOAK_S seconds, two hours unless it is set, divided among the brokers. aedes
needs $ANONYMIZER_BROKERS (`make soak` installs it).
"""

import asyncio
import json
import os
import random
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import httpx
import pytest

from anonymizer.transport.local_brokers import mosquitto
from tests.app.gateway.ordeal import Vehicles, send_patiently
from tests.app.gateway.records import compiled
from tests.app.gateway.test_chaos import (
    PATIENCE_S,
    Blow,
    Machine,
    Scene,
    assert_every_promise_is_kept,
    blows,
    events,
    play,
)
from tests.end_to_end import AS_OPERATOR, eventually
from tests.other_brokers.brokers import FOLDER, aedes
from tests.transport.unchanged import UnchangedBroker

SOAK_S = float(os.environ.get("ANONYMIZER_SOAK_S", "7200"))
RECOVERY_S = float(os.environ.get("ANONYMIZER_RECOVERY_S", "10"))
"""Within which everything must flow again; more on a machine that is busy with other things."""
BROKERS = [("mosquitto", "5"), ("mosquitto", "3.1.1"), ("aedes", "3.1.1")]
_HUGE_EVERY = 40
_PAUSE_S = 0.5
_QUEUE = "max_queued_bytes 4000000000"
"""For what waits while the gateway is away: beyond it Mosquitto drops messages."""

__all__ = ["compiled"]


@dataclass
class Hostile:
    """Sends what nobody can use, at every QoS, until the vehicles have enough."""

    vehicles: Vehicles
    version: str
    n_bad: int = 0
    """Records that the broker has taken at QoS 1 or 2."""

    async def drive(self, url: str) -> None:
        rng = random.Random(1)  # noqa: S311  keeps no secret
        for turn in count():
            if self.vehicles.enough.is_set():
                return
            async with self.vehicles.sending:
                records = [
                    (f"records/profile/bad-{i % 3}", self._bad(rng, turn * 10 + i), i % 3)
                    for i in range(6)
                ]
                if turn % _HUGE_EVERY == 0:
                    huge = bytes(17 << 20) + b"%d" % turn
                    records.append(("records/telemetry/huge", huge, 1 + turn // _HUGE_EVERY % 2))
                others = [
                    (rng.choice(["positions/bad", "records/nobody/x"]), self._bad(rng, i), i % 3)
                    for i in range(6)
                ]
                name = f"hostile-{self.version}"
                await send_patiently(url, records + others, name=name, version=self.version)
                self.n_bad += sum(qos > 0 for _, _, qos in records)
            await asyncio.sleep(_PAUSE_S)

    def _bad(self, rng: random.Random, number: int) -> bytes:
        """Return a payload that nobody can read, and that no other has."""
        stamp = b"%d" % number
        return rng.choice(
            [
                b"{" + stamp,
                b"\x00\xff" + stamp,
                b'["a", %s]' % stamp,
                json.dumps({"ts": "no time", "lat": 999, "lon": None, "age": [number]}).encode(),
                stamp.ljust(300_000, b"x"),
            ]
        )


async def until_everything_flows(machine: Machine) -> None:
    """Wait until the gateway is ready, and has received records that it did not have."""
    seen: dict[str, set[float]] = defaultdict(set)

    async def look() -> bool:
        program = await machine.supervisor.connected()
        url = events(program, "listening")[0]["url"]
        with suppress(httpx.HTTPError):  # it has just ended
            async with httpx.AsyncClient(base_url=url, timeout=2, headers=AS_OPERATOR) as http:
                is_ready = (await http.get("/readyz")).status_code == httpx.codes.OK
                text = (await http.get("/metrics")).text
            for line in text.splitlines():
                if line.startswith("anonymizer_record_parts_received_total"):
                    seen[url].add(float(line.split(" ")[-1]))
            return is_ready and len(seen[url]) > 1
        return False

    try:
        await eventually(look, bool)
    except AssertionError:
        said = machine.supervisor._program
        print(*(said.lines[-9:] if said else []), sep="\n")  # noqa: T201  shown if the test fails
        raise


@pytest.mark.soak
@pytest.mark.timeout(SOAK_S + 3600)
@pytest.mark.parametrize(("name", "version"), BROKERS, ids=map("-".join, BROKERS))
async def test_under_hostile_traffic_every_message_is_accounted_for(
    name: str, version: str, tmp_path: Path
) -> None:
    if name == "aedes" and not FOLDER:
        pytest.skip("there is no npm: see `make soak`")
    is_aedes = name == "aedes"
    real = (
        aedes()
        if is_aedes
        else mosquitto(tmp_path, _QUEUE, persistence=True, stop_timeout_s=PATIENCE_S)
    )
    await real.start()
    vehicles = Vehicles(0.3, version, at_qos_2=True)
    hostile = Hostile(vehicles, version)
    took: list[tuple[Blow, float]] = []

    async def happens(machine: Machine) -> None:
        until_s = time.monotonic() + SOAK_S / len(BROKERS)
        for seed in count():
            for blow, x in blows(seed, 7):
                await until_everything_flows(machine)
                if time.monotonic() > until_s:
                    return
                await machine.suffer(blow, x)
                ended_s = time.monotonic()
                await until_everything_flows(machine)
                took.append((blow, time.monotonic() - ended_s))
                print(f"{blow}: {took[-1][1]:.1f} s")  # noqa: T201  shown with -s
                if took[-1][1] > RECOVERY_S:
                    said = machine.supervisor._program
                    print(*(said.lines if said else []), sep="\n")  # noqa: T201  with their times

    scene = Scene(
        real,
        # aedes hands everything on unchanged by itself; the relay changes nothing there.
        UnchangedBroker(real.url, version5=version == "5"),
        happens,
        vehicles,
        version=version,
        keeps_sessions=not is_aedes,
        hostile=hostile.drive,
    )
    after = await play(tmp_path, scene)
    after.records.n_bad = hostile.n_bad
    # aedes sends what waited for a client after what has just come.
    after.records.in_order = not is_aedes
    print(f"{len(after.records.sent)} records, {hostile.n_bad} bad ones")  # noqa: T201
    assert_every_promise_is_kept(tmp_path, after)
    slow = [(blow, seconds) for blow, seconds in took if seconds > RECOVERY_S]
    assert not slow, slow

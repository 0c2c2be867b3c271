"""The demo: all its parts, over the wire, on both brokers."""

import asyncio
import math
import os
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from anonymizer.app.demo import (
    _OTHER_MODES,
    DemoPlan,
    Scene,
    _tables,
    _tables_of_other,
    _unless,
    run_demo,
)
from anonymizer.app.live_map.rates import FlowSnapshot
from anonymizer.errors import InputError, SettingsError, TransportError
from anonymizer.settings import BrokerSettings, Settings
from tests.app.contracts import Contract, channels_of
from tests.end_to_end import ANONYMIZER, OF_THE_MACHINE, START_S, witness

SMALL = DemoPlan(network="grid:8x8", n_devices=80, rate_hz=5.0)
LOOK_S = 0.1
REPOSITORY = Path(__file__).parents[2]
MOST_CHECKED = 5
"""Messages that are compared with the contract on each topic."""


async def watch(plan: DemoPlan, *, n_published: int) -> tuple[Scene, list[FlowSnapshot]]:
    """Run a demo until so many positions are published; return what there was to see."""
    stop = asyncio.Event()
    scenes: list[Scene] = []
    looks: list[FlowSnapshot] = []

    def show(now: FlowSnapshot) -> None:
        looks.append(now)
        if now.n_published >= n_published:
            stop.set()

    async with asyncio.timeout(START_S):
        looks.append(await run_demo(plan, stop, begin=scenes.append, show=show))
    [scene] = scenes
    return scene, looks


@pytest.mark.parametrize(
    ("broker", "name"),
    [
        ("mosquitto", "Mosquitto at"),
        pytest.param("embedded", "embedded amqtt at", marks=pytest.mark.soak),
    ],
)
async def test_positions_go_in_and_regions_come_out_and_nothing_is_unaccounted_for(
    broker: str, name: str
) -> None:
    plan = replace(SMALL, broker=broker)  # type: ignore[arg-type]
    scene, looks = await watch(plan, n_published=100)
    last = looks[-1]
    assert scene.broker.startswith(name)
    assert ("for demos only" in scene.broker) == (broker == "embedded")
    assert last.n_published >= 100
    assert last.n_held == 0
    assert [look.n_unaccounted for look in looks] == [0] * len(looks)
    assert '"region"' in scene.analyst.last
    assert "lat" not in scene.analyst.last
    streams = scene.streams()
    assert [each.model for each in streams] == ["kd", "kld", "cells", "kaca"]
    assert all(each.n_unaccounted == 0 for each in streams)
    latency_s = last.latency_s
    assert 0 < latency_s.quantile(0.5) <= latency_s.quantile(0.99) < START_S


PUBLISHED = {
    "cloaked/positions", "cloaked-snapshot/positions", "cloaked-adka/positions", "public/fixed",
    "anonymizer/network", "anonymizer/network/parts/0", "anonymizer/status",
    "anonymizer-snapshot/status", "anonymizer-adka/status",
}  # fmt: skip


@pytest.mark.soak
async def test_every_message_of_a_demo_is_as_the_contract_says() -> None:
    plan, stop = replace(SMALL, broker="mosquitto"), asyncio.Event()
    started: asyncio.Future[Scene] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(START_S), asyncio.TaskGroup() as group:
        group.create_task(
            run_demo(plan, stop, begin=started.set_result, show=lambda _now: None), name="demo"
        )
        async with witness((await started).broker.rpartition(" ")[2]) as watching:
            await watching.until(lambda: {each.topic for each in watching.seen} >= PUBLISHED)
            seen = [each for each in watching.seen if each.payload]
        stop.set()
    own = BrokerSettings()
    tables = [_tables(plan, own), *(_tables_of_other(plan, own, each) for each in _OTHER_MODES)]
    contracts = [Contract(Settings.model_validate(each)) for each in tables]
    n_seen: Counter[str] = Counter()
    for message in seen:
        contract = next(each for each in contracts if channels_of(message.topic, each.channels))
        [channel, *_] = channels_of(message.topic, contract.channels)
        n_seen[channel.address] += 1
        if n_seen[channel.address] <= MOST_CHECKED:
            contract.check(message)
    assert {"positions/{device}", "sensors/{device}"} <= set(n_seen)


async def test_the_duration_counts_from_the_first_position() -> None:
    plan = replace(SMALL, duration_s=1.0, compare=False)
    _, looks = await watch(plan, n_published=sys.maxsize)
    assert looks[-1].n_received > 0
    assert looks[0].seconds == 0
    assert all(look.seconds == 0 for look in looks if not look.n_received)


async def test_what_stops_the_simulator_is_what_the_user_is_told() -> None:
    with pytest.raises(TransportError, match=r"^simulator: .*--devices"):
        await watch(replace(SMALL, n_devices=0), n_published=1)


async def test_a_network_or_a_port_that_cannot_be_used_ends_it_before_it_begins() -> None:
    with pytest.raises(InputError, match=r"^nowhere\.osm: "):
        await watch(replace(SMALL, network="nowhere.osm"), n_published=1)
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as taken:
        port = taken.sockets[0].getsockname()[1]
        with pytest.raises(SettingsError, match=r"^http\.host, http\.port: "):
            await watch(replace(SMALL, http_port=port, broker="embedded"), n_published=1)


SILENT_S = 2.0
"""Nobody who starts it hears nothing for so long."""


@dataclass(slots=True)
class Said:
    """What a program says, and the longest time that it says nothing after its first word."""

    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    last_s: float = math.inf
    silent_s: float = 0.0

    async def hear(self, stream: asyncio.StreamReader | None, into: bytearray) -> None:
        """Read a stream to its end."""
        assert stream is not None
        while heard := await stream.read(1 << 16):
            into += heard
            now_s = time.monotonic()
            self.silent_s, self.last_s = max(self.silent_s, now_s - self.last_s), now_s


@asynccontextmanager
async def saying(
    *command: str | Path, cwd: Path, **environment: str
) -> AsyncIterator[tuple[Said, asyncio.subprocess.Process]]:
    """Run a program while the block runs, and to its end."""
    said, pipe = Said(), asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
        cwd=cwd,
        env=os.environ | environment,
    )
    async with asyncio.TaskGroup() as group:  # ends when nobody holds its output any more
        group.create_task(said.hear(process.stdout, said.out))
        group.create_task(said.hear(process.stderr, said.err))
        yield said, process
    await process.wait()


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)]
)
async def test_ctrl_c_ends_it_with_a_summary_and_no_process_stays(
    number: signal.Signals, tmp_path: Path
) -> None:
    command = (ANONYMIZER, "demo", "--headless", "--devices", "80", "--network", "grid:8x8")
    async with asyncio.timeout(START_S), saying(*command, cwd=tmp_path) as (said, process):
        while b"metrics" not in said.out:
            assert process.returncode is None
            await asyncio.sleep(LOOK_S)
        process.send_signal(number)
    assert process.returncode == 0
    waits = ("loading", "still at work", "compiling ", "as plain Python", "kernels")
    usual = (*OF_THE_MACHINE, *waits)
    lines = said.err.decode().splitlines()
    assert [line for line in lines if not any(each in line for each in usual)] == []
    assert said.out.decode().split("unaccounted for")[1].split()[0] == "0"


ON_A_TERMINAL = (sys.executable, "-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) > 0)")


@pytest.mark.soak  # a minute: it installs, and compiles modules and kernels
@pytest.mark.parametrize("around", [(), ON_A_TERMINAL], ids=["in a pipe", "on a terminal"])
async def test_the_first_demo_of_a_clone_is_never_silent(
    around: tuple[str, ...], tmp_path: Path
) -> None:
    made = shutil.ignore_patterns(".*", "__pycache__")
    shutil.copytree(REPOSITORY, clone := tmp_path / "clone", ignore=made)
    cold = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "PYTHONDONTWRITEBYTECODE": ""}
    command = (*around, "make", "demo", f"PYTHON={sys.executable}", "ARGS=--duration 5")
    n_to_a_core = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    async with asyncio.timeout(START_S), saying(*command, cwd=clone, **cold) as (said, process):
        pass
    assert process.returncode == 0, (said.out + said.err).decode()
    assert b"compiling kernels" in said.out + said.err
    assert said.silent_s < SILENT_S * n_to_a_core, "Python itself starts as late as others let it"


async def test_it_ends_while_the_gateway_is_made_and_waits_for_no_kernel() -> None:
    stop, kernel = asyncio.Event(), threading.Event()
    asyncio.get_running_loop().call_soon(stop.set)
    try:
        async with asyncio.timeout(START_S):
            assert await _unless(stop, kernel.wait) is None
        with pytest.raises(asyncio.CancelledError):
            await run_demo(SMALL, stop, begin=lambda _: None, show=lambda _: None)
    finally:
        kernel.set()


@pytest.mark.soak  # the same in one process: tests/app/gateway/test_all_methods.py
async def test_every_method_publishes_of_the_same_vehicles_and_the_toll_api_answers() -> None:
    plan = replace(SMALL, n_devices=400, rate_hz=1.0, network="city:400", compare=False)
    stop = asyncio.Event()
    scenes: list[Scene] = []

    def show(_now: FlowSnapshot) -> None:
        [scene] = scenes
        if scene.analyst.last and all(each.last for each in scene.classes.values()):
            stop.set()

    async with asyncio.timeout(START_S):
        last = await run_demo(plan, stop, begin=scenes.append, show=show)
    [scene] = scenes
    assert last.n_unaccounted == 0
    for each in scene.streams():
        assert each.n_published >= each.k
        assert each.n_unaccounted == 0
        assert f'"stream":"{each.name}"' in scene.classes[each.name].last
        assert "veh-" not in scene.classes[each.name].last
    assert all(row["truck_count"] >= 5 for row in scene.tolls)
    assert scene.tolls

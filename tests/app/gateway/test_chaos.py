"""The gateway on a machine that fails in every way, with a broker that misbehaves.

A supervisor starts the gateway again whenever it ends, as in production. The relay before the
broker cuts, freezes and repeats by one schedule; kills, restarts, freezes, a full or read-only disk
and a clock that is put forward or back follow another. Both are seeded and printed. Afterwards no
record is lost, all accounts are exact, and the audit finds every promise kept.

The broker is restarted, not killed: Mosquitto saves its sessions when it ends, so a kill loses
messages that it has acknowledged, whatever its clients do.
"""

import asyncio
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import httpx
import pytest

from anonymizer.networks import load_network
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import LocalBroker, mosquitto
from tests.app.gateway.ordeal import (
    Ordeal,
    Vehicles,
    accounts_of,
    analyst,
    assert_nothing_was_lost,
    has_all_of_its_windows,
    patient,
    stay,
    until_all_is_stored,
    until_only_the_last_is_held,
    until_ready,
)
from tests.app.gateway.records import compiled, write_records_settings
from tests.app.gateway.shifted_clock import put
from tests.app.gateway.test_service_failures import assert_balanced
from tests.end_to_end import (
    ANONYMIZER,
    DEADLINE_S,
    TOKEN,
    Program,
    eventually,
    running,
)
from tests.transport.faulty_broker import FaultyBroker, schedule
from tests.transport.support import running as connected

SIDE = 10
NETWORK_NAME = f"grid:{SIDE}x{SIDE}"
NETWORK = load_network(NETWORK_NAME)
N_DEVICES = 40
EVERY_S = 0.5
LIFE_S = (40.0, 90.0)
"""How long a device reports before another takes its place."""
TTL_S = 120.0
MAX_BACKLOG_S = 10.0
"""What waited longer in the broker, because the gateway was away, is refused: it has no time."""
DISK_MIB = 192
"""The gateway wants 100 MB of it to be free, or lets records wait."""
PATIENCE_S = 300.0
"""For a start, through a relay that cuts, on a machine that may be busy."""
POLL_S = 0.05

Blow = Literal[
    "kill gateway",
    "restart broker",
    "freeze gateway",
    "freeze broker",
    "fill disk",
    "read-only disk",
    "put clock",
]

__all__ = ["compiled"]


def blows(seed: int, n: int) -> list[tuple[Blow, float]]:
    """Return what happens to the machine, with a random number below 1 each, in random order."""
    rng = random.Random(seed)  # noqa: S311  faults, no secrets
    kinds = get_args(Blow)
    found = [(kinds[i % len(kinds)], rng.random()) for i in range(n)]
    rng.shuffle(found)
    return found


@dataclass
class Devices:
    """They stand somewhere, report without a time of their own, and come and go."""

    version: str = "5"
    """Of MQTT."""
    positions: list[tuple[float, str, int]] = field(default_factory=list)
    """Unix seconds, device and node of each position that the broker has taken."""

    async def drive(self, url: str) -> None:
        """Report until cancelled."""
        rng = random.Random(0)  # noqa: S311  places, no secrets
        at = [("", 0, 0.0)] * N_DEVICES
        n = 0
        link = MqttLink(
            patient(url, version=self.version), client_id="devices", deliver=lambda _: None
        )
        async with connected(link):
            while True:
                now = time.time()
                for i, (_, _, until) in enumerate(at):
                    if until < now:
                        at[i] = (
                            f"d{n}",
                            rng.randrange(NETWORK.n_nodes),
                            now + rng.uniform(*LIFE_S),
                        )
                        n += 1
                messages = [
                    Outgoing(
                        f"positions/{device}",
                        json.dumps(
                            {"lat": float(NETWORK.lat[node]), "lon": float(NETWORK.lon[node])}
                        ).encode(),
                    )
                    for device, node, _ in at
                ]
                taken = await link.publish(messages, qos=1, timeout_s=DEADLINE_S)
                # What may have been taken counts too: the device was there, until it was taken.
                self.positions += [
                    (ts, device, node)
                    for (device, node, _), there in zip(at, taken, strict=True)
                    if there is not False
                    for ts in (now, time.time())
                ]
                await asyncio.sleep(EVERY_S)


@dataclass
class Disk:
    """A small file system of its own, if this machine lets us mount one."""

    folder: Path
    is_mounted: bool

    @contextmanager
    def full(self) -> Iterator[None]:
        filler = self.folder / "filler"
        try:
            with suppress(OSError), filler.open("wb") as file:
                while True:
                    file.write(bytes(1 << 16))
            yield
        finally:
            filler.unlink()

    def remount(self, mode: Literal["ro", "rw"]) -> None:
        assert _mount("-o", f"remount,{mode}", str(self.folder))


def _mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], check=False, capture_output=True).returncode == 0


@contextmanager
def disk(folder: Path) -> Iterator[Disk]:
    """Mount a small file system at a folder."""
    folder.mkdir()
    is_mounted = _mount("-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(folder))
    try:
        yield Disk(folder, is_mounted)
    finally:
        if is_mounted:
            subprocess.run(["umount", str(folder)], check=True)


def events(program: Program, event: str) -> list[dict[str, Any]]:
    """Return the lines of its log about an event; its last words may be plain text."""
    log = [json.loads(line) for line in program.lines if line.startswith("{")]
    return [line for line in log if line["event"] == event]


@dataclass
class Supervisor:
    """Starts the gateway again whenever it ends, until it is told to stop."""

    command: Sequence[str | Path]
    codes: Counter[int] = field(default_factory=Counter)
    """Exit codes, negative for signals."""
    n_looks: int = 0
    may_start: asyncio.Event = field(default_factory=asyncio.Event)
    refused: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the gateway could not start."""
    _program: Program | None = None
    _stopping: bool = False

    async def run(self) -> None:
        self.may_start.set()
        while not self._stopping:
            await self.may_start.wait()
            environment = {
                "ANONYMIZER__HTTP__TOKEN": TOKEN,
                "ANONYMIZER__BROKER__KEEPALIVE_S": "5",
                "ANONYMIZER__BROKER__SESSION_EXPIRY_S": "600",
                "ANONYMIZER__OUTPUT__QOS": "1",
            }
            async with running(*self.command, environment=environment) as program:
                self._program = program
                code = await program.ended(within_s=3600)
            self.codes[code] += 1
            if code == 1:
                self.refused.set()
            assert code in {0, 1, -signal.SIGKILL}, program.lines[-5:]

    async def connected(self) -> Program:
        """Wait for a gateway that receives records; return it."""

        async with asyncio.timeout(PATIENCE_S):
            while True:
                program = self._program
                if (
                    program is not None
                    and program.process.returncode is None
                    and events(program, "broker connected for records")
                ):
                    return program
                await asyncio.sleep(POLL_S)

    async def stop(self) -> dict[str, Any]:
        """Stop it; return the last line of its log, which states its accounts."""
        program = await self.connected()
        self._stopping = True
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 0
        return events(program, "stopped")[0]

    async def watch(self) -> None:
        """Look at the accounts again and again, until cancelled: they balance at every look."""
        while True:
            await asyncio.sleep(0.5)
            listening = events(self._program, "listening") if self._program else []
            if not listening:
                continue
            with suppress(httpx.HTTPError):  # it is frozen, or has just been killed
                now = await accounts_of(listening[0]["url"], timeout_s=2.0)
                assert now.imbalance == 0, now
                assert now.received == now.settled + now.held, now
                self.n_looks += 1


@dataclass
class Machine:
    """What fails."""

    supervisor: Supervisor
    broker: LocalBroker
    disk: Disk
    clock: Path
    shifts_s: list[float] = field(default_factory=lambda: [0.0])
    silence: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Waits until nothing is in the broker that it would lose in a restart, and keeps it so."""

    async def suffer(self, blow: Blow, x: float) -> None:
        """Let one thing happen, and wait until the gateway has recovered."""
        program = await self.supervisor.connected()
        match blow:
            case "kill gateway":
                program.process.kill()
            case "restart broker":
                async with self.silence():
                    assert await self.broker.stop() == 0, "it was killed, and has lost messages"
                    await asyncio.sleep(x)
                    await self.broker.start()
            case "freeze gateway":
                program.process.send_signal(signal.SIGSTOP)
                await asyncio.sleep(3 * x)
                program.process.send_signal(signal.SIGCONT)
            case "freeze broker":
                self.broker.send_signal(signal.SIGSTOP)
                await asyncio.sleep(3 * x)
                self.broker.send_signal(signal.SIGCONT)
            case "fill disk" if self.disk.is_mounted:
                with self.disk.full():
                    await asyncio.sleep(3 * x)
            case "read-only disk" if self.disk.is_mounted:
                await self._start_on_a_read_only_disk(program)
            case "put clock":
                shift_s = (-1) ** round(x) * (200.0 + 5000.0 * x)
                self.shifts_s.append(shift_s)
                put(self.clock, shift_s)
                await asyncio.sleep(1 + x)
                put(self.clock, 0.0)

    async def _start_on_a_read_only_disk(self, program: Program) -> None:
        """Remounting needs a store that nobody has open, so the gateway is killed first."""
        self.supervisor.refused.clear()
        self.supervisor.may_start.clear()
        program.process.kill()
        await program.ended()
        self.disk.remount("ro")
        self.supervisor.may_start.set()

        async with asyncio.timeout(PATIENCE_S):
            await self.supervisor.refused.wait()
        self.disk.remount("rw")


@dataclass
class Aftermath:
    """What is left."""

    records: Ordeal
    positions: list[tuple[float, str, int]]
    regions: list[tuple[float, bytes]]
    """When a message about a group arrived, and the message."""
    supervisor: Supervisor
    stopped: dict[str, Any]
    shifts_s: list[float]


class Relay(Protocol):
    """What is between the gateway and the broker."""

    url: str

    def serving(self) -> AbstractAsyncContextManager[None]: ...


@dataclass
class Scene:
    """The broker, the traffic, and what happens to them."""

    real: LocalBroker
    relay: Relay
    happens: Callable[[Machine], Awaitable[None]]
    """Lets everything happen."""
    vehicles: Vehicles
    version: str = "5"
    """Of MQTT."""
    keeps_sessions: bool = True
    """Whether a restart of the broker loses nothing."""
    hostile: Callable[[str], Awaitable[None]] | None = None
    """Sends bad messages, given the address of the broker, until the vehicles have enough."""


async def endure(folder: Path, *, n_faults: int, n_blows: int, seed: int) -> Aftermath:
    faults, to_suffer = schedule(seed, n_faults), blows(seed, n_blows)
    print(f"seed {seed}", *faults, *(f"{b} {x:.2f}" for b, x in to_suffer), sep="\n")  # noqa: T201
    real = mosquitto(folder, persistence=True, stop_timeout_s=PATIENCE_S)
    await real.start()
    faulty = FaultyBroker(real.url, faults)

    async def happens(machine: Machine) -> None:
        faulty.begin()
        for blow, x in to_suffer:
            await machine.suffer(blow, x)
        await faulty.until_over()

    after = await play(folder, Scene(real, faulty, happens, Vehicles(0.5)))
    print(dict(faulty.happened))  # noqa: T201
    return after


async def play(folder: Path, scene: Scene) -> Aftermath:
    """Let a scene happen, then wait until everything has been taken in; the broker ends with it."""
    real, version = scene.real, scene.version
    vehicles, devices, seen = scene.vehicles, Devices(version), list[bytes]()
    regions = list[tuple[float, bytes]]()
    clock = folder / "clock"
    put(clock, 0.0)
    with disk(folder / "disk") as small:
        store = small.folder / "records.sqlite"
        try:
            async with (
                scene.relay.serving(),
                analyst(real.url, seen, version=version) as reader,
                _watching(real.url, regions, version=version),
            ):
                config = write_records_settings(
                    folder / "gateway.toml",
                    scene.relay.url,
                    store=store,
                    fleet={"idle_s": 600},
                    inputs=[{"topic": "positions/{device}", "qos": 1}],
                    network={"source": NETWORK_NAME},
                    broker={
                        "max_backlog_s": MAX_BACKLOG_S,
                        "version": version,
                    },
                    presence={"ttl_s": TTL_S},
                    session={"beat_s": 1.0, "epoch_s": 20.0},
                )
                supervisor = Supervisor(
                    [
                        sys.executable,
                        "-m",
                        "tests.app.gateway.shifted_clock",
                        clock,
                        "serve",
                        "-c",
                        config,
                    ]
                )
                machine = Machine(supervisor, real, small, clock)
                if not scene.keeps_sessions:
                    machine.silence = lambda: _silence(machine, vehicles, reader)
                async with asyncio.TaskGroup() as group:
                    kept_up = group.create_task(supervisor.run(), name="supervisor")
                    await supervisor.connected()
                    driving = group.create_task(vehicles.drive(real.url), name="vehicles")
                    reporting = group.create_task(devices.drive(real.url), name="devices")
                    watching = group.create_task(supervisor.watch(), name="watch")
                    harming = asyncio.ensure_future(
                        scene.hostile(real.url) if scene.hostile else asyncio.sleep(0)
                    )
                    await scene.happens(machine)
                    reporting.cancel()
                    vehicles.enough.set()
                    await driving
                    await harming
                    program = await supervisor.connected()
                    url = events(program, "listening")[0]["url"]
                    await until_only_the_last_is_held(url)
                    watching.cancel()
                    stopped = await supervisor.stop()
                    await kept_up
                await eventually(lambda: stay(seen), has_all_of_its_windows)
        finally:
            await real.stop()
        print(dict(supervisor.codes), supervisor.n_looks)  # noqa: T201
        copy = folder / "records.sqlite"
        for file in small.folder.glob("records.sqlite*"):
            shutil.copy2(file, folder)
    return Aftermath(
        Ordeal(vehicles.sent, seen, copy),
        devices.positions,
        regions,
        supervisor,
        stopped,
        machine.shifts_s,
    )


@asynccontextmanager
async def _silence(machine: Machine, vehicles: Vehicles, reader: MqttLink) -> AsyncIterator[None]:
    """Keep vehicles silent, from when all that they have sent is stored until all are back."""
    async with vehicles.sending:
        program = await machine.supervisor.connected()
        await until_all_is_stored(events(program, "listening")[0]["url"])
        yield
        await reader.until_connected()
        await until_ready(events(program, "listening")[0]["url"])


@asynccontextmanager
async def _watching(
    url: str, regions: list[tuple[float, bytes]], *, version: str
) -> AsyncIterator[None]:
    """See the regions of positions; the subscription outlives the broker."""
    link: MqttLink

    def see(batch: Sequence[Delivery]) -> None:
        regions.extend((time.time(), message.payload) for message in batch)
        link.acknowledge(message.receipt for message in batch)

    link = MqttLink(
        patient(url, session_expiry_s=600, version=version),
        client_id="watcher",
        deliver=see,
        subscriptions=[("cloaked/positions", 1)],
    )
    async with connected(link):
        yield


def audit(folder: Path, after: Aftermath) -> dict[str, Any]:
    """Audit the release of positions with the command line; return the report."""
    trace = ["device_id,ts,node", *(f"{d},{t:.3f},{node}" for t, d, node in after.positions)]
    (folder / "trace.csv").write_text("\n".join(trace) + "\n")
    lines: dict[bytes, None] = {}
    for arrived_s, payload in after.regions:
        message = json.loads(payload)
        # Published while the gateway's clock was put forward or back.
        shift_s = min(after.shifts_s, key=lambda s: abs(message["time"] - s - arrived_s))
        for name in message["pseudonyms"]:
            line = {
                "pseudonym": name,
                "time": round(message["time"] - shift_s, 3),
                "region": message["region"],
                "k": message["k"],
            }
            lines[json.dumps(line).encode()] = None  # at QoS 1 some messages come twice
    (folder / "release.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    report = folder / "report.json"
    # A device counts for so long after its position has arrived, and until then it may wait.
    settings = (folder / "gateway.toml").read_text()
    counts = settings.replace(f"ttl_s = {TTL_S}", f"ttl_s = {TTL_S + MAX_BACKLOG_S}")
    assert counts != settings
    (folder / "audit.toml").write_text(counts)
    done = subprocess.run(
        [
            *(ANONYMIZER, "audit", "stream", folder / "trace.csv", folder / "release.jsonl"),
            *("--network", NETWORK_NAME, "--tick", "0.1", "--json", report),
            *("-c", folder / "audit.toml"),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode in {0, 1}, done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    return found


async def suffer_all(folder: Path, *, n_faults: int, n_blows: int, seed: int) -> None:
    assert_every_promise_is_kept(
        folder, await endure(folder, n_faults=n_faults, n_blows=n_blows, seed=seed)
    )


def assert_every_promise_is_kept(folder: Path, after: Aftermath) -> None:
    assert_nothing_was_lost(after.records)
    assert after.supervisor.n_looks > 0
    assert_balanced(after.stopped)
    report = audit(folder, after)
    required = [f for f in report["findings"] if f["required"] and f["holds"] is not None]
    print(report["n_pseudonyms"], [(f["attack"], f["holds"]) for f in required])  # noqa: T201
    assert {"k", "session"} <= {f["attack"] for f in required}
    assert all(f["holds"] for f in required)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_a_thousand_faults_break_no_promise(tmp_path: Path) -> None:
    await suffer_all(tmp_path, n_faults=930, n_blows=70, seed=13)

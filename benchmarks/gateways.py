"""Processes of an end-to-end run: gateway, relays and simulator, and the gateway's metrics."""

import asyncio
import json
import math
import os
import re
import secrets
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from prometheus_client.parser import text_string_to_metric_families

from anonymizer.errors import TransportError
from benchmarks.relays import READY

_UP_S = 60.0
_POLL_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Scrape:
    """Values of `/metrics` at one moment, by name and labels as text."""

    values: Mapping[str, float]

    @classmethod
    def of(cls, exposition: str) -> "Scrape":
        """Return the values of a text of metrics."""
        return cls(
            {
                _key(sample.name, sample.labels): sample.value
                for family in text_string_to_metric_families(exposition)
                for sample in family.samples
            }
        )

    def __sub__(self, before: "Scrape") -> "Scrape":
        """Return the differences between two scrapes."""
        return Scrape({key: value - before.values[key] for key, value in self.values.items()})

    @property
    def n_received(self) -> int:
        """Positions received."""
        return int(self.values["anonymizer_received_total{}"])

    @property
    def n_settled(self) -> int:
        """Positions with an outcome."""
        return int(
            sum(
                n for key, n in self.values.items() if key.startswith("anonymizer_positions_total{")
            )
        )

    def outcome(self, outcome: str, reason: str = "") -> float:
        """Return the number of positions with an outcome."""
        return self.values[
            _key("anonymizer_positions_total", {"outcome": outcome, "reason": reason})
        ]

    def mean(self, histogram: str) -> float:
        """Return the mean of a histogram without labels; NaN when it is empty."""
        n = self.values[f"{histogram}_count{{}}"]
        return self.values[f"{histogram}_sum{{}}"] / n if n else math.nan

    def quantile(self, histogram: str, q: float) -> float:
        """Return a quantile of a histogram, linear within its step; NaN when it is empty.

        Of one with labels, it is that of all of them together.
        """
        name, of_edge = f"{histogram}_bucket", defaultdict[float, float](float)
        for key, count in self.values.items():
            if key.startswith(f"{name}{{"):
                of_edge[float(key.partition('le="')[2].partition('"')[0])] += count
        steps = sorted(of_edge.items())
        total = steps[-1][1]
        below, n_below = 0.0, 0.0
        for edge, count in steps:
            if total and count >= q * total:
                share = (q * total - n_below) / (count - n_below)
                return below + share * (edge - below) if math.isfinite(edge) else math.inf
            below, n_below = edge, count
        return math.nan


class RunningGateway:
    """A running gateway, by its HTTP interface."""

    def __init__(self, http: httpx.AsyncClient, pid: int) -> None:
        self._http = http
        self.pid = pid

    async def ready(self) -> bool:
        """Return whether it is connected to its broker."""
        return (await self._http.get("/readyz")).is_success

    async def why_not_ready(self) -> str:
        """Return what it says about being ready."""
        return (await self._http.get("/readyz")).text

    async def scrape(self) -> Scrape:
        """Return its metrics."""
        return Scrape.of((await self._http.get("/metrics")).raise_for_status().text)

    async def n_received(self) -> int:
        """Return how many positions it has received."""
        return (await self.scrape()).n_received


@asynccontextmanager
async def running_gateway(toml: str) -> AsyncIterator[RunningGateway]:
    """Run `anonymizer serve` with these settings.

    Parameters
    ----------
    toml
        Settings with `http.port = 0` and JSON logs, which contain the address.

    Raises
    ------
    TransportError
        If the gateway does not start.
    """
    with TemporaryDirectory(prefix="anonymizer-") as folder:
        config = Path(folder, "gateway.toml")
        config.write_text(toml, encoding="utf-8")  # noqa: ASYNC240  nothing else runs yet
        async with running_program("serve", "--config", str(config)) as gateway:
            if not await until(gateway.ready, within_s=_UP_S):
                raise TransportError("the gateway did not find the broker")
            yield gateway


@asynccontextmanager
async def running_program(
    *arguments: str,
) -> AsyncIterator[RunningGateway]:
    """Run a command of `anonymizer` that has an HTTP interface; it may not be ready yet.

    Parameters
    ----------
    arguments
        With a settings file as in `running_gateway`.

    Raises
    ------
    TransportError
        If it does not start.
    """
    # Exact counts are for the bearer of the token alone.
    token = secrets.token_urlsafe()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "anonymizer", *arguments),
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"ANONYMIZER__HTTP__TOKEN": token},
    )
    log = process.stderr or asyncio.StreamReader()
    reading = None
    try:
        async with asyncio.timeout(_UP_S):
            url = await _address(log)
        reading = asyncio.create_task(_read_on(log), name="log")
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=url, timeout=_UP_S, headers=headers) as http:
            yield RunningGateway(http, process.pid)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        if reading is not None:
            await reading
        await process.communicate()


class RunningRelay:
    """A running relay, see `benchmarks.relays`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._out = process.stdout or asyncio.StreamReader()
        self.pid = process.pid

    async def n_received(self) -> int:
        """Return how many messages it has received."""
        self._process.send_signal(signal.SIGUSR1)
        return int(await self._out.readline())


@asynccontextmanager
async def running_relay(name: str, url: str, *, qos: int) -> AsyncIterator[RunningRelay]:
    """Run a relay.

    Raises
    ------
    TransportError
        If it does not start.
    """
    command = (sys.executable, "-m", "benchmarks.relays", name, url, str(qos))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(_UP_S):
            if (
                await (process.stdout or asyncio.StreamReader()).readline()
                != READY.encode() + b"\n"
            ):
                raise TransportError(f"the relay {name} did not start")
        yield RunningRelay(process)
    finally:
        await _end(process)


class RunningSimulator:
    """A simulator that runs or has ended."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def end(self) -> tuple[int, float]:
        """End it; return the number and the rate of the messages that the broker accepted."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        out, _ = await self._process.communicate()
        sent = re.search(r"sent +([\d,]+)", out.decode())
        rate = re.search(r"rate +([\d,.]+)", out.decode())
        if sent is None or rate is None:
            raise TransportError("the simulator gave no summary")
        return int(sent[1].replace(",", "")), float(rate[1].replace(",", ""))


@asynccontextmanager
async def running_simulator(*options: str) -> AsyncIterator[RunningSimulator]:
    """Run `simulator run` with these options."""
    command = (sys.executable, "-m", "simulator", "run", "--quiet", *options)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        yield RunningSimulator(process)
    finally:
        await _end(process)


async def until(condition: Callable[[], Awaitable[bool]], *, within_s: float) -> bool:
    """Poll a condition of another process; return whether it became true in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while not await condition():  # noqa: ASYNC110  another process has no event to wait for
                await asyncio.sleep(_POLL_EVERY_S)
            return True
    return False


async def _address(log: asyncio.StreamReader) -> str:
    said = b""
    async for line in log:
        said = line
        with suppress(json.JSONDecodeError):
            event = json.loads(line)
            if event["event"] == "listening":
                return str(event["url"])
    raise TransportError(f"the program did not start: {said.decode(errors='replace').strip()}")


async def _read_on(log: asyncio.StreamReader) -> None:
    """Read a log to its end: a full pipe would stop who writes."""
    while await log.read(1 << 16):
        pass


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    await process.communicate()


def _key(name: str, labels: Mapping[str, str]) -> str:
    text = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{text}}}"

"""Whole programs on a real broker, watched from outside: their log, their metrics, the wire."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlsplit

import aiomqtt
import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.preloaded import Forked, forked

T = TypeVar("T")
Message: TypeAlias = tuple[str, bytes]
"""A topic and a payload."""

DEADLINE_S = 120.0
"""For anything to happen at all, on a machine with ten times more work than cores."""
START_S = 1500.0
"""For a program to come up. The first in a fresh checkout compiles its kernels: all those of a demo
take two idle cores more than a minute, and ten times that on such a machine."""
TOKEN = "open sesame"  # noqa: S105  of a test
AS_OPERATOR = {"Authorization": f"Bearer {TOKEN}"}
"""The operator's header, for exact metrics."""
_POLL_S, _MOST_POLL_S = 0.02, 0.1
"""Between two looks, which cost both programs time: a tenth of the time that they take so far."""
_OF_ACCOUNTS = ("_positions", "_received", "_held", "_accounting_imbalance")
OF_THE_MACHINE = (
    "starting",
    "compiling kernels",
    "kernels are compiled",
    "ticks are",
    "drain deadline passed",
    "nothing arrives",
    "nothing is published",
    "nothing that arrives can be used",
    "a share of the input is refused",
    "there is no room for all that arrives",
)
"""How lines of a log begin that depend on how busy a machine is, and on what it has compiled.

Whoever is stopped for some seconds between two messages has a gateway that tells of what is missing
meanwhile, and one that is stopped itself is late."""
ANONYMIZER = Path(sys.executable).parent / "anonymizer"
"""The console script that users call."""
SIMULATOR = Path(sys.executable).parent / "simulator"


def write_settings(path: Path, tables: Mapping[str, Any]) -> Path:
    """Write a settings file; a list of tables becomes an array of tables."""
    lines: list[str] = []
    for name, table in tables.items():
        several = table if isinstance(table, list) else [table]
        for one in several:
            lines.append(f"[[{name}]]" if several is table else f"[{name}]")
            # A JSON text, number, boolean or list of these is TOML too.
            lines += [f"{key} = {json.dumps(value)}" for key, value in one.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def quick(url: str, **tables: Mapping[str, Any] | list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return settings for a small grid, short ticks and a free port; `tables` add to them.

    Ids are said to stay, so that each counts from its first report on.
    """
    defaults: dict[str, Any] = {
        "network": {"source": "grid:20x20", "snap_limit_m": 60},
        "broker": {"url": url},
        "tick": {"interval_s": 0.03},
        "session": {"epoch_s": 1e9},  # one pseudonym a device, for all of a test
        "region": {"mode": "adka"},
        "http": {"port": 0},
    }
    merged = {
        name: table if isinstance(table, list) else {**defaults.get(name, {}), **table}
        for name, table in tables.items()
    }
    inputs: Any = tables.get("inputs", [{}])
    return defaults | merged | {"inputs": [{"ids_change_s": 0} | each for each in inputs]}


@dataclass(frozen=True)
class Accounts:
    """What `/metrics` says of the accounting; `outcomes` holds no zeros."""

    received: int
    outcomes: dict[str, int]
    held: int
    imbalance: int

    @property
    def settled(self) -> int:
        return sum(self.outcomes.values())


def read_accounts(exposition: str) -> Accounts:
    """Read these metrics as any scraper would; all of them would take ten times as long."""
    value: dict[str, float] = {}
    outcomes: dict[str, int] = {}
    lines = [line for line in exposition.splitlines() if any(map(line.__contains__, _OF_ACCOUNTS))]
    for family in text_string_to_metric_families("\n".join(lines)):
        for sample in family.samples:
            if sample.name == "anonymizer_positions_total" and sample.value:
                reason = "/".join(filter(None, (sample.labels["outcome"], sample.labels["reason"])))
                outcomes[reason] = int(sample.value)
            elif not sample.labels:
                value[sample.name] = sample.value
    return Accounts(
        received=int(value["anonymizer_received_total"]),
        outcomes=outcomes,
        held=int(value["anonymizer_held"]),
        imbalance=int(value["anonymizer_accounting_imbalance"]),
    )


class Program:
    """A program that runs, and the lines it has written to standard error."""

    def __init__(self, process: asyncio.subprocess.Process | Forked) -> None:
        self.process = process
        self.lines: list[str] = []
        self._changed = asyncio.Event()
        self._reader = asyncio.create_task(self._read(), name="standard error")

    @property
    def log(self) -> list[dict[str, Any]]:
        """Its log, line by line."""
        return [json.loads(line) for line in self.lines]

    def events(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of its log that tell of an event."""
        return [line for line in self.log if line["event"] == event]

    async def logged(self, event: str, *, times: int = 1) -> dict[str, Any]:
        """Wait until an event has been logged so many times; return the last line of it."""
        async with asyncio.timeout(START_S):
            while len(self.events(event)) < times:
                assert not self._reader.done(), f"ended before it logged {event!r}"
                self._changed.clear()
                await self._changed.wait()
        return self.events(event)[-1]

    async def ended(self, *, within_s: float = DEADLINE_S) -> int:
        """Wait for its end; return the exit code, negative for a signal."""
        async with asyncio.timeout(within_s):
            code = await self.process.wait()
            await self._reader
            if isinstance(self.process, Forked):
                await self.process.closed()
        return code

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.lines.append(line.decode().rstrip("\n"))
            self._changed.set()
        self._changed.set()


@asynccontextmanager
async def running(
    *command: str | Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Program]:
    """Run a program in a session of its own; it is killed if it still runs at the end.

    Console scripts are forked from a process that has loaded them, unless the environment says how
    Python or numba are to start.
    """
    process: asyncio.subprocess.Process | Forked
    if command[0] in {ANONYMIZER, SIMULATOR} and not any(
        name.startswith(("NUMBA", "PYTHON")) for name in environment or {}
    ):
        process = await forked(*command, environment=os.environ | (environment or {}))
    else:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=os.environ | (environment or {}),
            start_new_session=True,
        )
    program = Program(process)
    try:
        yield program
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await program.ended()


def _states(pid: int) -> set[str]:
    """Return the states of the threads of a process."""
    found = set[str]()
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):  # a thread that has just ended
            found.add(path.read_text().rpartition(")")[2].split()[0])
    return found


class Gateway:
    """An `anonymizer serve` that runs."""

    def __init__(self, program: Program, http: httpx.AsyncClient) -> None:
        self.program = program
        self._http = http

    @property
    def url(self) -> str:
        return str(self._http.base_url).rstrip("/")

    async def get(self, path: str) -> httpx.Response:
        return await self._http.get(path)

    async def post(self, path: str) -> httpx.Response:
        return await self._http.post(path)

    async def accounts(self) -> Accounts:
        return read_accounts((await self.get("/metrics")).text)

    async def until(self, condition: Callable[[Accounts], bool]) -> Accounts:
        """Look at the metrics again and again until the condition holds."""
        return await eventually(self.accounts, condition)

    async def until_settled(self, n_received: int) -> Accounts:
        """Wait until exactly so many positions have come and none of them is on its way."""
        return await self.until(lambda now: now.received >= n_received and not now.held)

    async def until_ready(self) -> None:
        await eventually(lambda: self.get("/readyz"), lambda answer: answer.status_code == 200)

    def signal(self, number: int) -> None:
        self.program.process.send_signal(number)

    async def get_at_once(self, connection: aiomqtt.Client, messages: Sequence[Message]) -> None:
        """Let messages come within one tick, however long this process takes to send them."""
        await self.freeze()
        await send(connection, messages, qos=1)
        self.signal(signal.SIGCONT)

    async def freeze(self) -> None:
        """Stop it, and wait until it stands: on a busy machine a signal may wait for its turn."""
        self.signal(signal.SIGSTOP)

        async def states() -> set[str]:
            return _states(self.program.process.pid)

        await eventually(states, lambda found: found == {"T"})


async def eventually(
    look: Callable[[], Awaitable[T]],
    condition: Callable[[T], bool],
    *,
    within_s: float = DEADLINE_S,
) -> T:
    """Look until the condition holds, and return what was seen; fail at the deadline."""
    seen: T | None = None
    begun = time.monotonic()
    try:
        async with asyncio.timeout(within_s):
            while True:
                seen = await look()
                if condition(seen):
                    return seen
                waited_s = time.monotonic() - begun
                await asyncio.sleep(min(max(_POLL_S, waited_s / 10), _MOST_POLL_S))
    except TimeoutError:
        raise AssertionError(f"never came true; last seen: {seen}") from None


@asynccontextmanager
async def serving(
    folder: Path, tables: Mapping[str, Any], *, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Gateway]:
    """Run `anonymizer serve` with a settings file in a folder, and wait until it listens."""
    config = write_settings(folder / "gateway.toml", tables)
    environment, headers = dict(environment or {}), {}
    if not any(name.startswith("ANONYMIZER__HTTP__TOKEN") for name in environment):
        environment["ANONYMIZER__HTTP__TOKEN"], headers = TOKEN, AS_OPERATOR
    async with running(ANONYMIZER, "serve", "-c", config, environment=environment) as program:
        url = (await program.logged("listening"))["url"]
        async with http_client(url, headers=headers) as http:
            yield Gateway(program, http)


def http_client(url: str, **options: Any) -> httpx.AsyncClient:  # noqa: ANN401  httpx's own
    """Return a client of a gateway's web server, with a connection for each request.

    A server ends one that is idle: just now, if this process stood still before it asked again.
    """
    once = httpx.Limits(max_keepalive_connections=0)
    return httpx.AsyncClient(base_url=url, timeout=DEADLINE_S, limits=once, **options)


class Seen(NamedTuple):
    """One message on the wire."""

    topic: str
    payload: bytes
    retained: bool
    content_type: str | None = None
    properties: Mapping[str, str] = MappingProxyType({})
    """User properties."""
    at_s: float = 0.0
    """When it was seen, in unix seconds."""


@dataclass
class Witness:
    """Somebody who sees everything that passes through the broker, in its order."""

    seen: list[Seen] = field(default_factory=list)
    n_pseudonyms: int = 0
    """How many positions were published, as seen from outside."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def on(self, topic: str) -> list[dict[str, Any]]:
        """Return the JSON messages of a topic."""
        return [json.loads(message.payload) for message in self.seen if message.topic == topic]

    async def until(self, condition: Callable[[], bool], *, within_s: float = DEADLINE_S) -> None:
        """Wait for messages that make the condition true."""
        async with asyncio.timeout(within_s):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def watch(self, messages: AsyncIterator[aiomqtt.Message]) -> None:
        """See all messages until cancelled."""
        async for message in messages:
            assert isinstance(message.payload, bytes)
            said = message.properties
            self.seen.append(
                Seen(
                    str(message.topic),
                    message.payload,
                    bool(message.retain),
                    getattr(said, "ContentType", None),
                    dict(getattr(said, "UserProperty", ())),
                    time.time(),
                )
            )
            if self.seen[-1].topic == "cloaked/positions":
                self.n_pseudonyms += len(json.loads(message.payload).get("pseudonyms", [""]))
            self._changed.set()


def client(url: str, name: str, **options: Any) -> aiomqtt.Client:  # noqa: ANN401  aiomqtt's own
    """Return an MQTT client that shares no code with ours."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    options.setdefault("protocol", aiomqtt.ProtocolVersion.V5)
    options.setdefault("timeout", DEADLINE_S)  # of each answer of the broker
    made = aiomqtt.Client(parts.hostname, parts.port, identifier=name, **options)
    made._client.connect_timeout = DEADLINE_S  # of TCP and TLS, which aiomqtt leaves at 5 s
    return made


@asynccontextmanager
async def witness(url: str, name: str = "witness", **options: Any) -> AsyncIterator[Witness]:  # noqa: ANN401  aiomqtt's own
    """See everything there is on a broker, retained messages first."""
    async with client(url, name, **options) as connection:
        await connection.subscribe("#", qos=1)
        watching = Witness()
        task = asyncio.create_task(watching.watch(connection.messages), name="witness")
        try:
            yield watching
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def send(connection: aiomqtt.Client, messages: Sequence[Message], *, qos: int = 0) -> None:
    """Publish messages in order."""
    for topic, payload in messages:
        await connection.publish(topic, payload, qos=qos)

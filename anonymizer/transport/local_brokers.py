"""Local brokers on the loopback interface, for demos and tests.

Mosquitto is used if it is installed. The embedded broker needs nothing else on the machine, but
speaks only MQTT 3.1.1, handles about a thousand messages a second and loses acknowledged messages
in bursts. It is good enough for a demo and for nothing more.
"""

import asyncio
import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Literal

from anonymizer.child_processes import ending_with_parent
from anonymizer.errors import SettingsError, TransportError
from anonymizer.extras import require
from anonymizer.settings import BrokerSettings
from anonymizer.transport.connecting import read_access

MOSQUITTO_LIMITS = (
    # Mosquitto's defaults drop messages silently: 20 in flight, 1,000 queued for a client.
    "max_inflight_messages 2000",
    "max_inflight_bytes 16777216",
    "max_queued_messages 400000",
    "max_queued_bytes 134217728",
    "set_tcp_nodelay true",
)
"""Configuration lines without which Mosquitto loses bursts, or takes any amount of memory."""

_ATTEMPTS = 5
_PORTS = range(20_000, 32_768)
_ANSWER_S = 2.0
_AGAIN_S = 0.5
"""Until a broker that has not ended is told again."""
_LOG_LINES = 1000


class LocalBroker:
    """A broker in its own process, which can be stopped and started again.

    It ends with this process in any case.

    Parameters
    ----------
    command
        Returns the command that runs it on a given port.
    ready
        Text of the output line that reports that it accepts connections.
    port
        Port on 127.0.0.1; 0: a free one, chosen at the first start and kept.
    scheme
        Scheme of its address, `mqtt` or `mqtts`.
    start_timeout_s, stop_timeout_s
        How long it may take to become ready, and to end before it is killed.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str | Path]],
        *,
        ready: str,
        port: int = 0,
        scheme: str = "mqtt",
        start_timeout_s: float = 60.0,
        stop_timeout_s: float = 5.0,
    ) -> None:
        self.log: deque[str] = deque(maxlen=_LOG_LINES)
        """The last lines of its output since the last start."""
        self._command = command
        self._ready = ready
        self._port = port
        self._scheme = scheme
        self._start_timeout_s = start_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Address for clients."""
        return f"{self._scheme}://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        """Id of its process; None: it does not run."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start it and wait until it accepts connections.

        Raises `TransportError` if it does not start; the message contains its last line of output.
        """
        attempts = 1 if self._port else _ATTEMPTS
        for _ in range(attempts):
            port = self._port or free_port()
            if await self._launch(port):
                self._port = port
                return
            await self.stop()  # most likely another process took the port just now
        reason = self.log[-1] if self.log else "it wrote no output"
        raise TransportError(f"the broker did not start: {reason}")

    async def stop(self) -> int:
        """Terminate it; a persistent broker saves its state first.

        Returns
        -------
        int
            Its exit code; negative if it had to be killed, and may have saved nothing.
        """
        return await self._end(lambda process: process.terminate())

    async def kill(self) -> None:
        """Kill it, which is like a crash."""
        await self._end(lambda process: process.kill())

    def send_signal(self, number: int) -> None:
        """Send it a signal, SIGSTOP for example."""
        if self._process is not None:
            self._process.send_signal(number)

    async def _launch(self, port: int) -> bool:
        """Start the process; return whether it became ready in time."""
        self.log.clear()
        self._process = await asyncio.create_subprocess_exec(
            *ending_with_parent([str(part) for part in self._command(port)]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is not for the broker: its clients disconnect first
        )
        is_ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        reading = self._read_log(self._process, is_ready)
        self._reader = asyncio.create_task(reading, name="broker log")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._start_timeout_s):
                return await is_ready
        return False

    async def _read_log(
        self, process: asyncio.subprocess.Process, is_ready: asyncio.Future[bool]
    ) -> None:
        """Read the output until it ends, and decide whether the broker has become ready."""
        output = process.stdout or asyncio.StreamReader()
        async for line in output:
            self.log.append(line.decode(errors="replace").rstrip())
            if self._ready in self.log[-1] and not is_ready.done():
                is_ready.set_result(True)
        if not is_ready.done():
            is_ready.set_result(False)

    async def _end(self, how: Callable[[asyncio.subprocess.Process], None]) -> int:
        process, reader = self._process, self._reader
        if process is None or reader is None:
            return 0
        self._process = self._reader = None
        try:
            async with asyncio.timeout(self._stop_timeout_s):
                while process.returncode is None:
                    # Mosquitto misses a signal that comes just after its line that it runs.
                    with contextlib.suppress(ProcessLookupError):
                        how(process)
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(process.wait(), _AGAIN_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):  # it has ended just now
                process.kill()
        code = await process.wait()
        await reader
        return code


def find_mosquitto() -> Path | None:
    """Return the path of the installed Mosquitto broker; None if there is none."""
    folders = [os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin"]
    found = shutil.which("mosquitto", path=os.pathsep.join(folders))
    return Path(found) if found else None


def mosquitto(
    folder: Path,
    *config_lines: str,
    port: int = 0,
    persistence: bool = False,
    stop_timeout_s: float = 5.0,
) -> LocalBroker:
    """Return a Mosquitto broker with its own folder; it is not started yet.

    Parameters
    ----------
    folder
        Folder for its configuration and persistent state.
    config_lines
        Additional configuration. Unless it contains `allow_anonymous`, any client is accepted;
        with `certfile` the broker speaks TLS.
    port
        Port on 127.0.0.1; 0: a free one.
    persistence
        Whether sessions survive a restart.
    stop_timeout_s
        How long it may take to end, and to save them, before it is killed.

    Raises
    ------
    TransportError
        If there is no Mosquitto on this machine.
    """
    program = find_mosquitto()
    if program is None:
        raise TransportError("there is no Mosquitto on this machine")
    given = {line.split(" ")[0] for line in config_lines}

    def command(port: int) -> list[str | Path]:
        lines = [
            f"listener {port} 127.0.0.1",
            *config_lines,
            *([] if "allow_anonymous" in given else ["allow_anonymous true"]),
            *(line for line in MOSQUITTO_LIMITS if line.split(" ")[0] not in given),
            f"persistence {str(persistence).lower()}",
            f"persistence_location {folder}/",
            # If started by root, it would switch to a user who cannot read the folder.
            *(["user root"] if os.geteuid() == 0 else []),
        ]
        config = folder / "mosquitto.conf"
        config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return [program, "-c", config]

    scheme = "mqtts" if "certfile" in given else "mqtt"
    return LocalBroker(
        command, ready=" running", port=port, scheme=scheme, stop_timeout_s=stop_timeout_s
    )


@contextlib.asynccontextmanager
async def running_mosquitto(
    *config_lines: str, port: int = 0, persistence: bool = False
) -> AsyncIterator[str]:
    """Run a Mosquitto in a temporary folder and yield its address; see `mosquitto`."""
    with tempfile.TemporaryDirectory(prefix="anonymizer-") as folder:
        broker = mosquitto(Path(folder), *config_lines, port=port, persistence=persistence)
        async with _running(broker):
            yield broker.url


@contextlib.asynccontextmanager
async def running_embedded_broker(*, port: int = 0) -> AsyncIterator[str]:
    """Run the embedded broker and yield its address."""
    require("demo")
    module = "anonymizer.transport.embedded"
    broker = LocalBroker(
        lambda port: [sys.executable, "-m", module, str(port)], ready="ready", port=port
    )
    async with _running(broker):
        yield broker.url


@contextlib.asynccontextmanager
async def running_broker(
    kind: Literal["auto", "mosquitto", "embedded"] = "auto", *, port: int = 0
) -> AsyncIterator[tuple[str, BrokerSettings]]:
    """Run a broker of a kind; yield what to call it and how to reach it.

    `auto`: Mosquitto if it is installed, else the embedded broker.
    """
    embedded = kind == "embedded" or (kind == "auto" and find_mosquitto() is None)
    running = running_embedded_broker(port=port) if embedded else running_mosquitto(port=port)
    async with running as url:
        yield (
            f"embedded amqtt at {url} (for demos only: it loses messages in bursts)"
            if embedded
            else f"Mosquitto at {url}",
            BrokerSettings(url=url, version="3.1.1" if embedded else "5"),
        )


@contextlib.asynccontextmanager
async def broker_if_none(settings: BrokerSettings) -> AsyncIterator[tuple[str, BrokerSettings]]:
    """Run a broker at the address of the settings, unless one answers there.

    Yields what to call it (nothing: one answers) and the settings with which to reach it.

    Raises `SettingsError` if none answers and the address is not one of this machine without TLS.
    """
    access = read_access(settings)
    try:
        _, writer = await asyncio.wait_for(
            asyncio.open_connection(access.host, access.port), _ANSWER_S
        )
    except OSError:
        pass
    else:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        yield "", settings
        return
    if not settings.url.startswith("mqtt://") or access.host not in {"127.0.0.1", "localhost"}:
        raise SettingsError(
            f"broker.url: no broker answers at {settings.url}, and one can be started only at "
            "mqtt://127.0.0.1"
        )
    async with running_broker(port=access.port) as (name, broker):
        yield name, settings.model_copy(update={"version": broker.version})


@contextlib.asynccontextmanager
async def _running(broker: LocalBroker) -> AsyncIterator[None]:
    try:
        await broker.start()
        yield
    finally:
        await broker.stop()


def free_port() -> int:
    """Return a port on 127.0.0.1 that was free a moment ago.

    It is below those that systems give to outgoing connections, which could take it meanwhile.
    """
    for port in random.sample(_PORTS, len(_PORTS)):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise TransportError("no port is free")

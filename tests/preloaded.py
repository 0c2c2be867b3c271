"""Programs that are forked from a process which has loaded them already.

A gateway loads its modules for more than a second of CPU time, and the tests start many. Here one
process a test run loads them, and forks for every start: a process of its own with its own files,
environment, session and signals, in which the console script's `main` is called.

A process of `multiprocessing`'s fork server would end without the end of an interpreter (`atexit`),
and know that it is a child. All programs that are forked here have one seed of `hash()`; pages of
the documentation and `tests.app.gateway.test_store_failures` start `serve` anew.
"""

import asyncio
import atexit
import gc
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, NoReturn

import typer.main
from numba.core.registry import cpu_target

from tests import slim

# What a gateway with positions and records loads, or none of it would be shared.
_MODULES = (
    "anonymizer.__main__",
    "anonymizer.app.compilation",
    "anonymizer.app.gateway.api",
    "anonymizer.app.gateway.http_side",
    "anonymizer.app.gateway.recorder",
    "anonymizer.app.gateway.service",
    "anonymizer.app.gateway.starting",
    "anonymizer.settings.toml_file",
    "anonymizer.web.map",
    "anonymizer.web.network_file",
    "pydantic.v1",  # FastAPI asks whether an answer is one of its models
    "simulator.__main__",
    "uvicorn.lifespan.off",
)
_NUMBER = struct.Struct("<q")
_NUMBERS = struct.Struct("<qq")
"""A pid and an exit code."""
_MOST_FILES = 1024
_MOST_BYTES = 1 << 20
"""Of a request."""


class Asked(NamedTuple):
    """What is to be started."""

    program: str
    """The package of which `__main__.main` is called."""
    command: list[str]
    environment: dict[str, str]
    folder: str
    """`command`, `environment`, `folder`: as of a process."""
    without: Sequence[str] = ()
    """Extras whose modules are not to be found."""
    most_bytes: int = 0
    """Of a file that it writes; more is an error of the system. Negative: it is told to end
    (SIGTERM) where it would write one byte more. 0: as many as it likes."""


class _Pipe(asyncio.StreamReaderProtocol):
    """The end of a pipe that is read."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__(reader)
        self.reader = reader
        self.closed = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.closed.set()


class Forked:
    """A program that runs: what the tests use of `asyncio.subprocess.Process`."""

    def __init__(self, pid: int, stderr: _Pipe, status: _Pipe) -> None:
        self.pid = pid
        self.stderr = stderr.reader
        self.returncode: int | None = None
        self._stderr, self._status = stderr, status

    def send_signal(self, number: int) -> None:
        """Send a signal; ProcessLookupError if it has ended."""
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL; ProcessLookupError if it has ended."""
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Wait for its end; return the exit code, negative for a signal."""
        await self._status.closed.wait()  # others may wait as well, or have waited
        if self.returncode is None:
            (self.returncode,) = _NUMBER.unpack(await self._status.reader.read())
        assert self.returncode is not None
        return self.returncode

    async def closed(self) -> None:
        """Wait until its standard error is closed, which is after its end has been read."""
        await self._stderr.closed.wait()


def begin() -> None:
    """Start the process that forks, which those that are forked from this one share then."""
    _server()


async def forked(*command: str | Path, environment: Mapping[str, str]) -> Forked:
    """Start a console script in a session of its own; only its standard error is read."""
    (said, stderr), (status, ended) = os.pipe(), os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    program = Path(command[0]).name
    asked = Asked(program, [*map(str, command)], dict(environment), str(Path.cwd()))
    _ask(asked, [nothing, os.dup(nothing), stderr, ended])
    pipe = await _pipe(status)
    (pid,) = _NUMBER.unpack(await pipe.reader.readexactly(_NUMBER.size))
    return Forked(pid, await _pipe(said), pipe)


def ran(
    program: str,
    *arguments: str | Path,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    without: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Run `anonymizer` or `simulator` to its end, as if some extras were not installed."""
    command = [program, *map(str, arguments)]
    more = os.environ | (environment or {})
    asked = Asked(program, command, dict(more), str(folder or Path.cwd()), without)
    status, ended = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        _ask(asked, [nothing, os.dup(out.fileno()), os.dup(error.fileno()), ended])
        with os.fdopen(status, "rb") as told:
            _, code = _NUMBERS.unpack(told.read())
        said = []
        for file in (out, error):
            file.seek(0)
            said.append(file.read().decode())
    return subprocess.CompletedProcess(asked.command, code, *said)


def ended_by_full_file(
    program: str, *arguments: str | Path, most_bytes: int, told: bool
) -> tuple[int, str]:
    """Run a program that can write so many bytes to a file; return its exit code and what it says.

    `told`: it is told to end (SIGTERM) while it writes the byte after them, instead of an error.
    """
    command = [program, *map(str, arguments)]
    limit = -most_bytes if told else most_bytes
    asked = Asked(program, command, dict(os.environ), str(Path.cwd()), (), limit)
    (status, ended), (said, saying) = os.pipe(), os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    _ask(asked, [nothing, saying, os.dup(saying), ended])
    with os.fdopen(said, "rb") as words, os.fdopen(status, "rb") as end:
        text = words.read().decode()
        _, code = _NUMBERS.unpack(end.read())
    return code, text


def _ask(asked: "Asked", files: list[int]) -> None:
    """Have a program started with these files, which are closed here."""
    socket.send_fds(_server(), [json.dumps(asked).encode()], files)
    for file in files:
        os.close(file)


async def _pipe(end: int) -> _Pipe:
    pipe = _Pipe(asyncio.StreamReader())
    file = os.fdopen(end, "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: pipe, file)
    return pipe


@cache
def _server() -> socket.socket:
    """Return the connection to the process that forks; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.preloaded", str(theirs.fileno())],
            cwd=Path(__file__).parents[1],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _serve(server: socket.socket) -> None:
    """Fork whenever it is asked for, until the tests are gone."""
    for module in _MODULES:
        import_module(module)
    # What numba loads for the first kernel.
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    # The command line, which Typer makes anew at each start otherwise.
    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(import_module("anonymizer.cli.main").app)
    # Or each program would look for garbage among them when it ends, in a third of a second.
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that keep programs
    while True:
        body, files, _, _ = socket.recv_fds(server, _MOST_BYTES, 4)
        if not body:
            return
        if os.fork() == 0:
            server.close()
            _keep(Asked(*json.loads(body)), files)
        for file in files:
            os.close(file)


def _keep(asked: Asked, files: list[int]) -> NoReturn:
    """Start a program, and report its pid and at last its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *standard, status = files
    pid = os.fork()
    if pid == 0:
        _become(asked, standard)
    for file in standard:
        os.close(file)
    os.write(status, _NUMBER.pack(pid))
    _, ended = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):
        os.write(status, _NUMBER.pack(os.waitstatus_to_exitcode(ended)))
    os._exit(0)


def _become(asked: Asked, standard: list[int]) -> NoReturn:
    """Run a program in this process, as if it had been started anew."""
    os.setsid()
    for number, file in enumerate(standard):
        os.dup2(file, number)
    os.closerange(len(standard), _MOST_FILES)
    os.chdir(asked.folder)
    os.environ.clear()
    os.environ.update(asked.environment)
    sys.argv = asked.command
    slim.remove(asked.without)
    if asked.most_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (abs(asked.most_bytes), resource.RLIM_INFINITY))
    if asked.most_bytes < 0:
        signal.signal(signal.SIGXFSZ, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    # Processes that it spawns load the console script, and not this file.
    main = sys.modules["__main__"]
    main.__spec__, main.__file__ = None, asked.command[0]
    import_module(f"{asked.program}.__main__").main()
    sys.exit()


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))

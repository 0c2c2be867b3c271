"""Child processes end with their parent, whatever ends it; nothing is left after some seconds."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from anonymizer.child_processes import ending_with_parent
from anonymizer.transport.local_brokers import free_port
from tests.end_to_end import ANONYMIZER, START_S, write_settings

WAYS = [signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGKILL]
GONE_S = 60.0
"""Until nothing may be left, on a busy machine."""


def descendants(of: int) -> dict[int, str]:
    """Return the command of each process below one, by its id."""
    listed = subprocess.run(
        ["ps", "-wweo", "pid=,ppid=,stat=,args="],
        check=True,
        capture_output=True,
        text=True,
    )
    rows = [line.split(maxsplit=3) for line in listed.stdout.splitlines()]
    found: dict[int, str] = {}
    above = {of}
    while above:
        below = {int(pid): args for pid, parent, _, args in rows if int(parent) in above}
        found |= below
        above = set(below)
    return {pid: args for pid, args in found.items() if not args.startswith("ps -wweo")}


def alive(processes: Sequence[int]) -> list[int]:
    """Return those that run; one that has ended, and that nobody waited for, does not."""
    stat = (Path(f"/proc/{pid}/stat") for pid in processes)
    if not Path("/proc/self/stat").exists():
        return [pid for pid in processes if _answers(pid)]
    running = []
    for pid, file in zip(processes, stat, strict=True):
        with suppress(OSError):
            if file.read_text().rpartition(")")[2].split()[0] not in "ZX":
                running.append(pid)
    return running


def _answers(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


async def until(condition: Callable[[], bool], *, within_s: float = START_S) -> None:
    by_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < by_s, "too late"
        await asyncio.sleep(0.05)


async def running(below: int, *names: str) -> list[int]:
    """Return the processes below one when commands with all of these names are among them."""
    await until(
        lambda: all(any(n in command for command in descendants(below).values()) for n in names)
    )
    return list(descendants(below))


async def all_gone(processes: Sequence[int]) -> None:
    try:
        await until(lambda: not alive(processes), within_s=GONE_S)
    finally:
        for pid in alive(processes):
            os.kill(pid, signal.SIGKILL)


@asynccontextmanager
async def program(
    *command: str | Path, **options: object
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
        **options,  # type: ignore[arg-type]
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def said(process: asyncio.subprocess.Process, text: bytes) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(START_S):
        while text not in (line := await process.stdout.readline()):
            assert line


PARENT = """
import asyncio, signal, subprocess, sys
from anonymizer.child_processes import ending_with_parent
# Whoever runs the tests may ignore them, as nohup does, and a shell for what runs behind it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
stubborn = "import os, signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; "
wait = "os.write(1, bytes([117, 112, 10])); signal.pause()"  # up
for code in ("import os, signal; " + wait, stubborn + wait):
    subprocess.Popen(
        ending_with_parent([sys.executable, "-c", code]),
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
asyncio.run(asyncio.Event().wait())
"""


@pytest.mark.parametrize("number", WAYS)
async def test_a_command_ends_with_the_process_that_started_it(number: signal.Signals) -> None:
    async with program(sys.executable, "-c", PARENT, stderr=asyncio.subprocess.DEVNULL) as parent:
        for _ in range(2):
            await said(parent, b"up")
        children = list(descendants(parent.pid))
        parent.send_signal(number)
        await parent.wait()
        await all_gone(children)
    assert len(children) == 4


TOLD = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print(os.getpid(), sys.stdin.read(), flush=True)
signal.pause()
"""


async def test_a_command_that_ends_before_its_parent_leaves_nothing() -> None:
    process = subprocess.Popen(  # noqa: ASYNC220  asyncio would close its input
        ending_with_parent([sys.executable, "-c", TOLD]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"%d \n" % process.pid
        beside = list(descendants(process.pid))
        held = [Path(f"/proc/{pid}/fd/{output}") for pid in beside for output in (1, 2)]
        await until(lambda: all(str(each.readlink()) == os.devnull for each in held))
        process.terminate()
        assert process.stdout.read() == b"", "nobody else holds its output"
        assert process.wait() == 7
        await all_gone(beside)
    assert len(beside) == 1


async def test_a_command_that_does_not_exist_is_an_error_of_the_process() -> None:
    process = await asyncio.create_subprocess_exec(
        *ending_with_parent(["/nowhere/at-all"]),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert (process.returncode, err) == (127, b"/nowhere/at-all: No such file or directory\n")


POOL = """
import sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from anonymizer.child_processes import end_with_parent
if __name__ == "__main__":
    pool = ProcessPoolExecutor(2, get_context("spawn"), end_with_parent)
    list(pool.map(abs, range(9)))
    print("up", flush=True)
    pool.submit(time.sleep, 999)
    time.sleep(999)
"""


async def test_the_processes_of_a_pool_end_with_the_one_that_uses_it(tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(POOL)
    async with program(sys.executable, tmp_path / "pool.py") as parent:
        await said(parent, b"up")
        children = list(descendants(parent.pid))
        parent.kill()
        await parent.wait()
        await all_gone(children)
    assert len(children) >= 2


DEMO = ("demo", "--headless", "--no-compare", "--devices", "20", "--network", "grid:8x8")
IN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


async def test_nothing_of_a_demo_is_left_when_its_terminal_is_closed(tmp_path: Path) -> None:
    terminal, inside = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", IN_TERMINAL, ANONYMIZER, *DEMO),
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        cwd=tmp_path,
    )
    os.close(inside)
    shown = bytearray()
    asyncio.get_running_loop().add_reader(terminal, lambda: shown.extend(os.read(terminal, 4096)))
    await until(lambda: b"metrics" in shown)
    children = descendants(process.pid)
    asyncio.get_running_loop().remove_reader(terminal)
    os.close(terminal)
    await all_gone([process.pid, *children])
    await process.wait()
    assert sum("simulator" in command for command in children.values()) >= 2
    assert any("mosquitto" in command for command in children.values())


@pytest.mark.parametrize(
    ("broker", "number"),
    [
        ("mosquitto", signal.SIGKILL),
        pytest.param("mosquitto", signal.SIGHUP, marks=pytest.mark.soak),
        pytest.param("mosquitto", signal.SIGTERM, marks=pytest.mark.soak),
        pytest.param("mosquitto", signal.SIGINT, marks=pytest.mark.soak),
        pytest.param("embedded", signal.SIGKILL, marks=pytest.mark.soak),
        pytest.param("embedded", signal.SIGHUP, marks=pytest.mark.soak),
    ],
)
async def test_nothing_of_a_demo_is_left_whatever_ends_it(
    broker: str, number: signal.Signals, tmp_path: Path
) -> None:
    async with program(ANONYMIZER, *DEMO, "--broker", broker, cwd=tmp_path) as process:
        await said(process, b"metrics")
        children = list(descendants(process.pid))
        process.send_signal(number)
        await all_gone([process.pid, *children])
    assert len(children) >= 3


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGTERM, marks=pytest.mark.soak),
        pytest.param(signal.SIGINT, marks=pytest.mark.soak),
    ],
)
async def test_the_broker_ends_with_the_gateway(number: signal.Signals, tmp_path: Path) -> None:
    tables = {
        "network": {"source": "grid:8x8"},
        "broker": {"url": f"mqtt://127.0.0.1:{free_port()}"},
        "http": {"port": 0},
    }
    config = write_settings(tmp_path / "gateway.toml", tables)
    command = (ANONYMIZER, "serve", "-c", config, "--with-broker")
    async with program(*command, stderr=asyncio.subprocess.STDOUT) as process:
        await said(process, b"broker connected")
        children = await running(process.pid, "mosquitto")
        process.send_signal(signal.SIGHUP)  # it reads its settings again, in a terminal, too
        await said(process, b"settings reloaded")
        still = alive([process.pid, *children])
        process.send_signal(number)
        await all_gone([process.pid, *children])
    assert set(still) == {process.pid, *children}

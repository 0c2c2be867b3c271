"""A crash in compiled code leaves a trace in the log, and is counted over restarts."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from anonymizer.transport.local_brokers import LocalBroker
from tests.brokers import broker
from tests.end_to_end import ANONYMIZER, DEADLINE_S, SIMULATOR, START_S, quick, serving

__all__ = ["broker"]
SEGFAULT = "Fatal Python error: Segmentation fault"
HALF = "import os, sys; from anonymizer.crashes import CRASHES; from pathlib import Path;"
REMEMBER = HALF + "CRASHES.remember(Path(sys.argv[1])); print(CRASHES.n, flush=True);"


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, path],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )


def test_crashes_are_counted_and_other_ends_are_not(tmp_path: Path) -> None:
    path = tmp_path / "store"
    ends = ("os.kill(os.getpid(), 11)", "os.kill(os.getpid(), 9)", "sys.exit(3)", "os.abort()")
    counted, logged = [], []
    for end in (*ends, "0"):
        done = run(f"{REMEMBER}secret = 'device-7'; {end}", path)
        counted.append(int(done.stdout.split()[-1]))
        logged.append("crashed before this start" in done.stderr + done.stdout)
    assert counted == [0, 1, 1, 1, 2]
    assert logged == [False, True, False, False, True]


def test_an_end_that_is_no_crash_leaves_no_trace_nor_takes_that_of_another(tmp_path: Path) -> None:
    path = tmp_path / "store"
    again = f"import subprocess; subprocess.run([sys.executable, '-c', {REMEMBER!r}, sys.argv[1]]);"
    done = run(f"{REMEMBER}{again}print(os.listdir(os.path.dirname(sys.argv[1])))", path)
    assert done.stdout.splitlines() == ["0", "0", "['store.crash']"], done.stderr
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_a_service_starts_all_the_same(tmp_path: Path) -> None:
    done = run(REMEMBER, tmp_path / "nowhere" / "store")
    assert (done.returncode, done.stdout) == (0, "0\n")


@pytest.mark.parametrize(
    "command",
    [
        (SIMULATOR, "run", "--network", "grid:5x5", "--devices", "3", "--broker", "mqtt://127.0.0.1:1"),
        (ANONYMIZER, "demo", "--headless", "--duration", "600"),
    ],
)  # fmt: skip
def test_every_program_says_where_it_crashed(command: tuple[str, ...], tmp_path: Path) -> None:
    with (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=err, start_new_session=True
        )
    try:
        ready = Path(f"/proc/{process.pid}/status")
        while f"{1 << 10:x}" not in _caught(ready):  # until it has its handlers
            assert process.poll() is None, (tmp_path / "err").read_text()
        process.send_signal(signal.SIGSEGV)
        assert process.wait(DEADLINE_S) == -signal.SIGSEGV
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert SEGFAULT in (tmp_path / "err").read_text()


def _caught(status: Path) -> str:
    """Return which signals a process handles, as a number in hexadecimal digits; 400: SIGSEGV."""
    [line] = [each for each in status.read_text().splitlines() if each.startswith("SigCgt:")]
    return f"{int(line.split()[1], 16) & 1 << 10:x}"


async def test_a_gateway_that_crashed_says_so_when_it_is_started_again(
    broker: LocalBroker, tmp_path: Path
) -> None:
    settings = quick(broker.url, store={"path": str(tmp_path / "store.sqlite")})
    async with serving(tmp_path, settings) as gateway:
        await gateway.until_ready()
        assert "anonymizer_crashes_total 0.0" in (await gateway.get("/metrics")).text
        gateway.signal(signal.SIGSEGV)
        assert await gateway.program.ended(within_s=START_S) != 0
    async with asyncio.timeout(START_S), serving(tmp_path, settings) as gateway:
        line = await gateway.program.logged("crashed before this start")
        assert line["crash"] == "Segmentation fault"
        assert line["frames"]
        await gateway.until_ready()
        assert "anonymizer_crashes_total 1.0" in (await gateway.get("/metrics")).text

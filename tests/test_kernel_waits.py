"""Whoever waits until a kernel is compiled is told so, whatever program it is."""

import inspect
import io
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import pytest
import typer

from anonymizer.cli.main import app as anonymizer_app
from anonymizer.cli.main import main as anonymizer_main
from anonymizer.compiling_aloud import CompilingAloud
from anonymizer.kernel_waits import compiling_here, wait_in
from anonymizer.observe.logs import configure_logs
from anonymizer.settings import LogSettings
from simulator.__main__ import main as simulator_main
from simulator.cli.main import app as simulator_app
from tests.cli.support import in_process, process
from tests.cold import told_cold
from tests.end_to_end import DEADLINE_S

FOREVER_S = 1e9
KERNEL = """
import json
import numpy as np
from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.compiling_aloud import CompilingAloud
from anonymizer.kernel_waits import wait_in

@inner_kernel
def plus(x, y):
    return x + y

@kernel
def total(x):
    sum = 0.0
    for i in range(len(x)):
        sum = plus(sum, x[i])
    return sum

said = []
wait_in(CompilingAloud(said.append, silent_s=0.0).compiling)
found = []
for x in [np.ones(3), np.ones(4), np.ones(3, np.int64)]:
    total(x)
    found.append(bool(said))
    said.clear()
print(json.dumps(found))
"""
CHILD = """
import os
from anonymizer.compiling_aloud import CompilingAloud
from anonymizer.kernel_waits import compiling_here, wait_in

def say(_seconds):
    if os.getpid() == parent:
        if child := os.fork():
            ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        else:
            with compiling_here():
                os._exit(7)

parent, ended = os.getpid(), []
wait_in(CompilingAloud(say, silent_s=0.0).compiling)
with compiling_here():
    pass
assert ended and set(ended) == {7}, ended
"""


class Said:
    """What was said, and how often."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._one_more = threading.Semaphore(0)

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self._one_more.release()

    def once(self) -> bool:
        return self._one_more.acquire(timeout=DEADLINE_S)


def compile_until(is_told: Callable[[], bool]) -> None:
    """Take as long to compile as it takes to be told of it."""
    until_s = time.monotonic() + DEADLINE_S
    with compiling_here():
        while not is_told():
            assert time.monotonic() < until_s
            time.sleep(0.02)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = wait_in(nullcontext)
    yield
    wait_in(before)


def test_it_is_said_for_as_long_as_it_lasts() -> None:
    said = Said()
    aloud = CompilingAloud(said, silent_s=0.01)
    with aloud.compiling():
        assert all(said.once() for _ in range(3))
    with aloud.compiling():
        assert all(said.once() for _ in range(3)), "and again, when another one is compiled"
    assert said.seconds == sorted(said.seconds)


def test_many_that_take_little_are_told_of_as_one_that_takes_long() -> None:
    said = Said()
    aloud = CompilingAloud(said, silent_s=1e-9)
    for _ in range(100):
        with aloud.compiling():
            pass
    assert said.once()


def test_what_takes_no_time_is_not_told_of() -> None:
    said = Said()
    aloud = CompilingAloud(said, silent_s=FOREVER_S)
    for _ in range(3):
        with aloud.compiling(), aloud.compiling():
            pass
    assert said.seconds == []


def test_a_word_that_reaches_nobody_is_no_reason_to_stop() -> None:
    def gone(_seconds: float) -> None:
        raise BrokenPipeError

    with CompilingAloud(gone, silent_s=0.0).compiling():
        pass


def test_a_kernel_is_waited_for_once_for_each_of_its_types(tmp_path: Path) -> None:
    assert told_cold(tmp_path, KERNEL) == [True, False, True]
    assert told_cold(tmp_path, KERNEL) == [False, False, False], "it lies on disk"


def test_a_child_neither_speaks_for_its_parent_nor_waits_for_it() -> None:
    subprocess.run([sys.executable, "-c", CHILD], check=True, timeout=DEADLINE_S)


@pytest.mark.parametrize(
    ("main", "app"), [(anonymizer_main, anonymizer_app), (simulator_main, simulator_app)]
)
def test_every_command_tells_of_it(
    main: Callable[[], None], app: typer.Typer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tests share the commands of a program; this one has a further command for itself.
    monkeypatch.setattr(typer.main, "get_command", inspect.unwrap(typer.main.get_command))

    @app.command("probe")
    def probe() -> None:
        said = cast("io.BytesIO", sys.stderr.buffer)

        def is_told() -> bool:
            sys.stderr.flush()
            return b"compiling" in said.getvalue()

        compile_until(is_told)

    try:
        done = in_process(main, "program", "probe")
    finally:
        app.registered_commands.pop()
    assert (done.returncode, done.stdout) == (0, "")
    line = r"compiling what this needs, once on this machine: \d+ s\n"
    assert re.fullmatch(f"({line})+", done.stderr)
    assert wait_in(nullcontext) is nullcontext, "the next one has words of its own"


def test_a_service_tells_of_it_in_its_log(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(LogSettings())
    told = ""

    def is_told() -> bool:
        nonlocal told
        told += capsys.readouterr().err
        return '"event": "compiling kernels"' in told

    compile_until(is_told)


@pytest.mark.soak
@pytest.mark.parametrize(
    "command",
    [
        ("profile", "t.csv", "-k", "2"),
        ("anonymize", "t.csv", "--model", "kd", "-k", "2", "--qi", "age,zip", "--method", "best",
         "--out", "out.csv"),
        ("cloak", "trace.csv", "--network", "city:300", "--out", "out.jsonl"),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_a_command_on_a_new_machine_says_that_it_compiles(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("age,zip\n" + "".join(f"{i},{i % 4}\n" for i in range(40)))
    trace = ["device_id,ts,lat,lon"]
    trace += [f"d{i},{1_800_000_000 + s},60.17,24.94" for s in range(20) for i in range(20)]
    (tmp_path / "trace.csv").write_text("\n".join(trace) + "\n")
    words = [str(tmp_path / word) if "." in word else word for word in command]
    done = process(*words, environment={"NUMBA_CACHE_DIR": str(tmp_path / "cache")})
    assert done.returncode == 0, done.stderr
    assert "compiling what this needs, once on this machine" in done.stderr

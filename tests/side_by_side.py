"""Runs tests in several processes that are forked from the one which has collected them.

A plugin of pytest: `-p tests.side_by_side --side-by-side auto`. To import and to collect all tests
takes longer than most files of them: here it is done once, and the processes share one that forks
programs (`tests.preloaded`). Each takes the next file, in the order of the collection, when it
begins with the last test of its own.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

_WORKERS_OF_CORE = 2
"""Tests wait for other processes half of the time."""
_MOST_WORKERS = 8
_NUMBER = 4
"""Bytes of the number of a file; a pipe holds 16,000 of them."""
_IDLE = {"jemalloc_bg_thd", "polars-ooc-clea"}
"""Threads that polars starts when it is imported, and that a fork can do without."""
_MANY = 100
"""Files, of which some start programs."""


class _Reporter:
    """Sends what a worker finds to the process that collected."""

    def __init__(self, config: pytest.Config, told: Connection) -> None:
        self._config, self._told = config, told

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._told.send((nodeid, location))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        of = self._config.hook.pytest_report_to_serializable
        self._told.send(of(config=self._config, report=report))


def _number(text: str) -> int:
    if text == "auto":
        return min((os.cpu_count() or 1) * _WORKERS_OF_CORE, _MOST_WORKERS)
    return int(text)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--side-by-side", type=_number, default=0, help="run N workers, or `auto`")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    option = session.config.option
    if not option.side_by_side or option.collectonly or session.testsfailed:
        return None
    files = [list(items) for _, items in groupby(session.items, key=lambda item: item.path)]
    threads = {path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}
    assert len(threads - _IDLE) <= 1, f"a fork has the locks of threads, and not these: {threads}"
    if len(files) > _MANY:
        from tests import preloaded  # noqa: PLC0415  conftest is the first to load numpy

        preloaded.begin()
    numbers, writer = os.pipe()
    os.write(writer, b"".join(i.to_bytes(_NUMBER, "big") for i in range(len(files))))
    os.close(writer)
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # of all
    workers: dict[Connection, int] = {}
    for _ in range(min(option.side_by_side, len(files))):
        heard, told = Pipe(duplex=False)
        if (pid := os.fork()) == 0:
            _become_worker(session.config, told)
            _run(session, files, numbers)
            return True
        told.close()
        workers[heard] = pid
    try:
        _relay(session, workers)
    except BaseException:  # also if interrupted: no worker may go on
        for heard, pid in workers.items():
            heard.close()
            os.kill(pid, signal.SIGINT)
        raise
    finally:
        for pid in workers.values():
            os.waitpid(pid, 0)
    return True


def _become_worker(config: Any, told: Connection) -> None:  # noqa: ANN401  its private attributes
    """Have a forked process write, capture and report for itself."""
    config.workerinput = {}  # by which plugins know a worker
    config.get_terminal_writer()._file = Path(os.devnull).open("w")  # noqa: SIM115  to the end
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    factory = config._tmp_path_factory
    factory._basetemp = factory.getbasetemp() / f"worker-{os.getpid()}"
    factory._basetemp.mkdir()
    config.pluginmanager.register(_Reporter(config, told))


def _run(session: pytest.Session, files: Sequence[list[pytest.Item]], numbers: int) -> None:
    """Run files of tests for as long as there are any."""

    def items() -> Iterator[pytest.Item]:
        while number := os.read(numbers, _NUMBER):
            yield from files[int.from_bytes(number, "big")]

    mine = items()
    item = next(mine, None)
    while item and not (session.shouldfail or session.shouldstop):
        after = next(mine, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        item = after


def _relay(session: pytest.Session, workers: dict[Connection, int]) -> None:
    """Report what the workers find, until all have ended; Failed if one ends within a test."""
    hook = session.config.hook
    in_test = dict.fromkeys(workers, "")
    while in_test:
        for heard in wait(list(in_test)):
            assert isinstance(heard, Connection)
            try:
                said = heard.recv()
            except EOFError:
                if name := in_test.pop(heard):
                    session.shouldfail = f"{name} ended its process"
                said = None
            if isinstance(said, tuple):
                in_test[heard], location = said
                hook.pytest_runtest_logstart(nodeid=in_test[heard], location=location)
            elif said:
                report = hook.pytest_report_from_serializable(config=session.config, data=said)
                hook.pytest_runtest_logreport(report=report)
                if report.when == "teardown":
                    hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)
                    in_test[heard] = ""
            if session.shouldfail:
                raise session.Failed(session.shouldfail)

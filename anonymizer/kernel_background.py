"""Kernels that run as plain Python until another process has made their machine code.

numba compiles a kernel at its first call, and whoever called waits: half a minute on two cores
until a gateway has what its first ticks need. Within `compiling_in_background` nobody waits. A
kernel whose machine code is not on disk is asked for, by its types, from processes that write it
there; until then the same function runs as Python, with the same result. That bears a thousand
devices.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import Empty, PriorityQueue
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np
from numba.core.dispatcher import Dispatcher

from anonymizer.child_processes import end_with_parent, starting_deaf
from anonymizer.kernel_cache import compile_in, current_background
from anonymizer.kernel_stamps import Kernel

_Types: TypeAlias = tuple[Any, ...]
_Job: TypeAlias = tuple[Callable[..., None], tuple[Any, ...]]
_MOST_ITEMS = 300_000
"""Of all arrays of a call: beyond, machine code is waited for, as Python would take longer. Not
in the thread of an event loop: whoever it serves would wait, too, and the broker would hang up."""
_NICE = 5
"""Of the processes that compile: the one that serves comes first."""
_IDLE_S = 3.0
"""A process without work ends after this time, as it holds memory; the next work starts another."""


class Background:
    """Compiles kernels in processes of its own, and says what runs in their place meanwhile.

    `changed`: called with the number of kernels that are compiled, and of those asked for, at each
    change; in any thread.
    """

    def __init__(self, changed: Callable[[int, int], None] = lambda _done, _asked: None) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._work: PriorityQueue[tuple[int, int, _Job, Future[None]]] = PriorityQueue()
        self._turns = count()
        self._asked: dict[tuple[Kernel, _Types], Future[None]] = {}
        self._jobs: dict[Callable[..., None], Future[None]] = {}
        self._n_asked = self._n_done = self._n_workers = 0
        self._stopped = False
        self._idle = threading.Condition(self._lock)
        self._processes: set[Any] = set()

    @property
    def n_waiting(self) -> int:
        """The number of kernels and jobs that are asked for and not done."""
        return self._n_asked - self._n_done

    @property
    def n_kernels_waiting(self) -> int:
        """The number of kernels that run as plain Python at present."""
        return sum(not asked.done() for asked in list(self._asked.values()))

    def stand_in(self, kernel: Kernel, types: _Types) -> Callable[..., Any] | None:
        """Return what runs in place of a kernel, or None if it is to be compiled or loaded here."""
        asked = self._asked.get((kernel, types))
        if asked is None:
            one = (compile_one, (kernel.py_func.__module__, kernel.__name__, types))
            asked = self._put(one, place=0)
            self._asked[kernel, types] = asked
        if asked.done():
            return None

        def run(*args: Any) -> Any:  # noqa: ANN401  as the kernel
            if _n_items(args) <= _MOST_ITEMS or _in_event_loop():
                return plainly(plain_twin(kernel), *args)
            with suppress(Exception):  # the call below compiles, and raises what is wrong
                asked.result()
            return kernel(*args)

        return run

    def submit(self, job: Callable[..., None], *args: object) -> "Future[None]":
        """Let another process do what compiles kernels: a function of a module, with arguments.

        A job that was asked for is not asked for again, with whatever arguments. The kernels that
        are called by now come first. The future has an error if the process did not live to the
        end, or is never to begin.
        """
        future = self._jobs.get(job)
        if future is None:
            future = self._jobs[job] = self._put((job, args), place=1)
        return future

    def _put(self, job: _Job, *, place: int) -> "Future[None]":
        future: Future[None] = Future()
        with self._lock:
            self._n_asked += 1
            self._work.put((place, next(self._turns), job, future))
            starts = self._n_workers < min(self.n_waiting, os.cpu_count() or 1)
            self._n_workers += starts
        if starts:
            threading.Thread(target=self._serve, name="compiling", daemon=True).start()
        self._changed(self._n_done, self._n_asked)
        return future

    def wait(self) -> None:
        """Wait until all that was asked for is done."""
        with self._idle:
            self._idle.wait_for(lambda: self.n_waiting == 0)

    def stop(self) -> None:
        """Compile nothing more: what is asked for fails."""
        with self._lock:
            self._stopped = True
            for process in self._processes:
                process.kill()

    def _serve(self) -> None:
        """Hand jobs to a process until there are none."""
        ours: tuple[Any, Connection] | None = None
        while True:
            try:
                _, _, job, future = self._work.get(timeout=_IDLE_S)
            except Empty:
                with self._lock:
                    if not self._work.empty():
                        continue
                    self._n_workers -= 1
                break
            try:
                ours = ours or self._started()
                ours[1].send(job)
                ours[1].recv()
            except Exception as error:  # noqa: BLE001  whatever it is, nobody may wait for ever
                self._end(ours)
                ours = None
                future.set_exception(error)
            else:
                future.set_result(None)
            with self._idle:
                self._n_done += 1
                self._idle.notify_all()
            self._changed(self._n_done, self._n_asked)
        self._end(ours)

    def _end(self, ours: tuple[Any, Connection] | None) -> None:
        """Let a process end, which it does when nobody can send it anything."""
        if ours:
            ours[1].close()
            ours[0].join()
            with self._lock:
                self._processes.discard(ours[0])

    def _started(self) -> tuple[Any, Connection]:
        context = get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=_do_jobs, args=(there,), daemon=True, name="compiling")
        with self._lock:
            if self._stopped:
                raise EOFError
            with starting_deaf():
                process.start()
            self._processes.add(process)
        there.close()
        return process, here


@contextmanager
def compiling_in_background(
    changed: Callable[[int, int], None] = lambda _done, _asked: None,
) -> Iterator[Background]:
    """Let kernels without machine code run as plain Python while the block runs."""
    before, background = current_background(), Background(changed)
    compile_in(background)
    try:
        yield background
    finally:
        background.stop()
        compile_in(before)


def compile_one(module: str, name: str, types: _Types) -> None:
    """Compile a kernel for types, which writes its machine code to disk."""
    getattr(import_module(module), name).compile(types)


def plainly(function: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401  as the function
    """Call a plain kernel. FloatingPointError where numpy would only warn that a number wraps.

    Machine code has wider numbers, so there the result would be another.
    """
    with np.errstate(over="raise" if np.geterr()["over"] == "warn" else None):
        return function(*args)


@cache
def plain_twin(kernel: Kernel) -> FunctionType:
    """Return what `meanwhile` states for a kernel, or its own function.

    The kernels that it calls are plain as well.
    """
    function: FunctionType = getattr(kernel, "in_python", kernel.py_func)
    return _twin(function, _plain_globals(function.__module__))


_PLAIN_GLOBALS: dict[str, dict[str, Any]] = {}


def _plain_globals(module: str) -> dict[str, Any]:
    if module not in _PLAIN_GLOBALS:
        found = _PLAIN_GLOBALS[module] = dict(vars(sys.modules[module]))
        for name, value in found.items():
            if isinstance(value, Dispatcher):
                found[name] = plain_twin(value)
    return _PLAIN_GLOBALS[module]


def _twin(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    return FunctionType(function.__code__, names, function.__name__, None, function.__closure__)


def _in_event_loop() -> bool:
    """Return whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _n_items(values: tuple[Any, ...]) -> int:
    """Return the number of items of all arrays in some values."""
    return sum(
        value.size if isinstance(value, np.ndarray) else _n_items(value)
        for value in values
        if isinstance(value, np.ndarray | tuple)
    )


def _do_jobs(jobs: Connection) -> None:
    """Do jobs, and say of each when it is done, until nobody sends any."""
    end_with_parent()
    os.nice(_NICE)
    with suppress(EOFError):
        while True:
            job, args = jobs.recv()
            with suppress(Exception):  # who calls the kernel compiles it then, and sees why
                job(*args)
            jobs.send(None)

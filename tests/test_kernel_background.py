"""The background: whoever calls a kernel never waits for its machine code, and gets the same."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher

from anonymizer import kernel_background, kernel_cache
from anonymizer.algorithms.kernels import sort_in_place
from anonymizer.algorithms.positions import grouping, regions, spanning_forest
from anonymizer.algorithms.records.class_methods import search_is_compiled
from anonymizer.domain.arrays import Int32Array
from anonymizer.kernel_background import (
    Background,
    compiling_in_background,
    plain_twin,
)
from anonymizer.kernel_cache import KernelCache, current_background
from anonymizer.networks.grids import grid
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.name_hashes import hash_all
from anonymizer.pipeline.packed_deliveries import PackedDeliveries, _copied
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox
from anonymizer.settings import Settings, zones_of
from tests.cold import told_cold
from tests.end_to_end import DEADLINE_S

pytestmark = pytest.mark.compiled

COLD = """
import json
import sys
import time

from numba.core import event

from anonymizer.algorithms.positions.spanning_forest import spanning_forest
from anonymizer.kernel_background import compiling_in_background
from anonymizer.networks.grids import grid


class Compiled(event.Listener):
    names = []

    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)

    def on_end(self, event):
        pass


def forest(network):
    made = spanning_forest(network)
    return [made.parent_of.tolist(), made.order.tolist()]


if __name__ == "__main__":
    told = []
    event.register("numba:compile", Compiled())
    network = grid("30x30")
    with compiling_in_background(lambda done, asked: told.append([done, asked])) as background:
        began = time.process_time()
        first = forest(network)
        took = time.process_time() - began
        waiting = background.n_kernels_waiting
        background.wait()
        then = forest(network)
    json.dump([first, then, took, waiting, Compiled.names, told], sys.stdout)
"""


def test_a_first_call_runs_as_python_and_later_ones_as_what_another_process_compiled(
    tmp_path: Path,
) -> None:
    first, then, took, waiting, compiled, told = told_cold(tmp_path, COLD)
    assert first == then
    assert took < 1  # to compile them takes longer
    assert waiting == 2
    assert compiled == []
    assert told == [[0, 1], [0, 2], [1, 2], [2, 2]]


class NeverDone(Background):
    """A background that gets nothing done."""

    def _put(self, *_: object, **__: object) -> "Future[None]":
        return Future()


@pytest.fixture
def never_done(monkeypatch: pytest.MonkeyPatch) -> Background:
    """Kernels run as plain Python, whatever is on disk and in memory."""
    background = NeverDone()
    monkeypatch.setattr(kernel_cache, "_background", background)
    return background


def released(mode: str, *, as_python: bool, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what a flow publishes of a fleet that moves, statements and all."""
    if as_python:
        for module in {name for name in sys.modules if name.startswith("anonymizer.")}:
            for name, value in list(vars(sys.modules[module]).items()):
                if isinstance(value, Dispatcher):
                    monkeypatch.setattr(sys.modules[module], name, plain_twin(value))
    network = grid("12x12")
    settings = Settings.model_validate(
        {
            "region": {"mode": mode},
            "adka": {"density_steps": [3], "k_values": [4, 2]},
            "inputs": [{"max_speed_mps": 1e9}],
            "zones": [{"circle": {"lat": network.lat[5], "lon": network.lon[5], "radius_m": 80}}],
        }
    )
    ledger = Ledger()
    zoned = with_zones(network, zones_of(settings.zones))
    flow = PositionFlow(settings, zoned, ledger, secret=b"s" * 32, monotonic=lambda: 0.0)
    rng, seen = np.random.default_rng(7), []
    at = rng.integers(0, network.n_nodes, 60)
    for second in range(40):
        moves = rng.random(60) < 0.4
        at = np.where(moves, rng.integers(0, network.n_nodes, 60), at)
        told = [
            Delivery(
                f"positions/{device}",
                json.dumps({"lat": network.lat[node], "lon": network.lon[node]}).encode(),
                0,
            )
            for device, node in enumerate(at.tolist())
            if rng.random() < 0.8
        ]
        inbox = Inbox(1 << 10, ledger)
        inbox.put(PackedDeliveries.of(told), at_s=float(second))
        output = flow.tick(inbox.take(), now=1_800_000_000.0 + second)
        flow.settle(output, [True] * len(output.messages), seconds=0.0)
        seen += [(second, message.topic, message.payload) for message in output.messages]
    return [seen, {each.label: n for each, n in ledger.counts().items()}]


@pytest.mark.parametrize("mode", ["session", "snapshot", "adka"])
def test_what_is_published_is_the_same_byte_for_byte(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = released(mode, as_python=False, monkeypatch=monkeypatch)
    assert len(compiled[0]) > 20
    assert released(mode, as_python=True, monkeypatch=monkeypatch) == compiled


def kernels_within(function: Callable[..., Any]) -> list[str]:
    """Return the names in a function that are no plain functions."""
    found, left, seen = [], [function], set[int]()
    while left:
        one = left.pop()
        for name in one.__code__.co_names:
            value = one.__globals__.get(name)
            if isinstance(value, Dispatcher):
                found.append(name)
            elif type(value) is type(one) and id(value.__code__) not in seen:
                seen.add(id(value.__code__))
                left.append(value)
    return found


def test_a_plain_kernel_calls_plain_kernels_alone() -> None:
    for module in (grouping, regions, spanning_forest):
        found = [each for each in vars(module).values() if isinstance(each, Dispatcher)]
        assert found != []
        for kernel in found:
            assert kernels_within(plain_twin(kernel)) == []


def test_a_call_with_large_arrays_waits_for_machine_code(never_done: Background) -> None:
    waiting = Future[None]()
    never_done._asked[sort_in_place, KEY] = waiting
    run = never_done.stand_in(sort_in_place, KEY)
    assert run is not None
    items = np.arange(kernel_background._MOST_ITEMS + 1, dtype=np.int32)[::-1].copy()
    calls = threading.Thread(target=run, args=(items,))
    calls.start()
    calls.join(0.3)
    assert calls.is_alive()
    waiting.set_result(None)
    calls.join()
    assert np.array_equal(items, np.arange(len(items)))


async def test_an_event_loop_never_waits_for_machine_code(never_done: Background) -> None:
    run = never_done.stand_in(hash_all, KEY)
    assert run is not None
    stream = np.zeros(kernel_background._MOST_ITEMS + 1, np.uint8)
    names = np.array([[0, 2], [1, 3], [2, 5]], np.int32)
    one, same, other = run(stream, names, 256, 257)
    assert one == same != other


SPANS = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(sorted)


@settings(deadline=None)
@given(
    st.lists(st.tuples(SPANS, SPANS), max_size=6),
    st.binary(min_size=40, max_size=40),
    st.tuples(st.integers(256, (1 << 30) - 1), st.integers(256, (1 << 30) - 1)),
)
def test_what_runs_in_place_of_a_kernel_returns_the_same(
    spans: list[tuple[list[int], list[int]]], content: bytes, bases: tuple[int, int]
) -> None:
    stream = np.frombuffer(content, np.uint8)
    bounds = np.array(spans, np.int32).reshape(-1, 4)
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        (hash_all, (bounds, *bases)),
        (_copied, (bounds,)),
    ]
    for kernel, args in calls:
        plain = plain_twin(kernel)
        assert plain.__code__ is not kernel.py_func.__code__
        meanwhile, compiled = plain(stream, *args), kernel(stream, *args)
        pairs = (
            [(meanwhile, compiled)] if kernel is hash_all else zip(meanwhile, compiled, strict=True)
        )
        for one, other in pairs:
            assert np.array_equal(one, other)
            assert one.dtype == other.dtype


KEY = ("types of no call",)


def _ends() -> None:
    os._exit(3)


def _does() -> None:
    pass


def test_a_process_that_is_killed_costs_its_own_work_and_no_other() -> None:
    with compiling_in_background() as background:
        assert current_background() is background
        failed = background.submit(_ends)
        assert isinstance(failed.exception(timeout=DEADLINE_S), OSError | EOFError)
        assert background.submit(_does).result(timeout=DEADLINE_S) is None
        assert background.submit(_does) is background.submit(_does)
        background.wait()
        assert background.n_waiting == 0
    assert current_background() is None


def test_ctrl_c_in_its_terminal_leaves_a_process_alone_from_its_start_on() -> None:
    told = threading.Event()

    def interrupt() -> None:
        while not told.wait(0.01):
            for process in active_children():
                with suppress(ProcessLookupError):
                    os.kill(process.pid or 0, signal.SIGINT)

    with compiling_in_background() as background:
        threading.Thread(target=interrupt).start()
        try:
            assert background.submit(_does).result(timeout=DEADLINE_S) is None
        finally:
            told.set()


def test_a_job_that_cannot_be_sent_keeps_nobody_waiting() -> None:
    with compiling_in_background() as background:
        failed = background.submit(_does, lambda: None)
        assert failed.exception(timeout=DEADLINE_S) is not None
        background.wait()


def _waits() -> None:
    signal.pause()


def test_the_end_of_the_background_waits_for_nothing() -> None:
    with compiling_in_background() as background:
        slow = background.submit(_waits)
    assert slow.exception(timeout=DEADLINE_S) is not None


def test_a_kernel_that_cannot_be_compiled_elsewhere_is_compiled_at_its_next_call() -> None:
    failed = Future[None]()
    failed.set_exception(EOFError())
    with compiling_in_background() as background:
        background._asked[sort_in_place, KEY] = failed
        assert background.stand_in(sort_in_place, KEY) is None


def test_a_sum_that_numpy_would_wrap_is_an_error_and_no_result() -> None:
    with pytest.raises(FloatingPointError):
        kernel_background.plainly(_doubled, np.array([2**31 - 1], np.int32))


def _doubled(items: Int32Array) -> int:
    return int(items[0] + items[0])


def test_a_search_begins_when_it_has_its_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    assert search_is_compiled()
    with compiling_in_background():
        monkeypatch.setattr(KernelCache, "is_filled", lambda _: False)
        assert not search_is_compiled()
        monkeypatch.setattr(KernelCache, "is_filled", lambda _: True)
        assert search_is_compiled()

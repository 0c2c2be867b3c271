"""Benchmark of the whole positions flow at 1 Hz in `session` mode: where each microsecond goes."""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from anonymizer.algorithms.positions.cloaks import SessionCloak
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.algorithms.positions.operator import CloakingOperator
from anonymizer.algorithms.positions.protection import Zones
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decode.decoding import Decoder
from anonymizer.pipeline.positions.out.encoding import ReleaseEncoder
from anonymizer.pipeline.positions.tick import fleet
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.pipeline.positions.tick.intake import Intake
from anonymizer.pipeline.positions.tick.tick_accounts import Accounts
from anonymizer.settings import Settings
from benchmarks.crowds import network_named
from benchmarks.tables import Table
from benchmarks.timing import json_us

_NOW = 1_800_000_000.0
_TICKS_PER_S = 10
_MOVE_EVERY_S = 10
_SPREAD_DEG = 1e-4  # about ten metres

_PARTS: dict[str, Sequence[tuple[object, str]]] = {
    "decode": ((Decoder, "decode"), (fleet.Admission, "_admitted")),
    "locate": ((Intake, "locate"),),
    "density": ((DensityMap, "advance"), (DensityMap, "expire")),
    "cloak": ((SessionCloak, "cloak"), (SessionCloak, "kept")),
    "verify": ((CloakingOperator, "_verified"),),
    "encode": ((ReleaseEncoder, "encode"),),
    "accounting": (
        (Accounts, "book"),
        (fleet, "part_of"),
        (PositionFlow, "begin"),
        (PositionFlow, "book"),
        (PositionFlow, "settle"),
    ),
    "measuring": ((PositionFlow, "_measure"),),
}
"""What each part of a tick consists of; a part does not include the parts that it calls."""
_DOOR = ("decode",)
"""The parts before the core: from bytes to columns."""


class Stopwatch:
    """Time spent in each part of a tick, in seconds, without the parts called from there."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(_PARTS, 0.0)
        self._inner = [0.0]
        """Seconds spent in parts that the part on top of the stack has called."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time the parts while the block runs."""
        with ExitStack() as stack:
            for part, places in _PARTS.items():
                for owner, name in places:
                    timed = self._timed(part, getattr(owner, name))
                    stack.enter_context(patch.object(owner, name, timed))
            yield

    def _timed(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(work)
        def timed(*args: Any, **options: Any) -> Any:  # noqa: ANN401  of any function
            self._inner.append(0.0)
            began = time.thread_time()
            try:
                return work(*args, **options)
            finally:
                spent = time.thread_time() - began
                self.seconds[part] += spent - self._inner.pop()
                self._inner[-1] += spent

        return timed


class Case(NamedTuple):
    """A case to be timed."""

    network: str
    n_devices: int
    seconds: int
    """`network`, `n_devices`, `seconds`: name of the network, number of devices, and seconds of
    traffic."""
    hz: int = 1
    """Reports of each device in a second, a divisor of the ticks in a second."""
    batch: int = 1
    """Positions in a message."""

    @property
    def settings(self) -> Settings:
        """Default settings that take these messages."""
        if self.batch == 1:
            return Settings()
        feed = {"topic": "feed", "device_from": "payload"}
        limits = {"max_ids_per_topic": self.n_devices}
        return Settings.model_validate({"inputs": [feed], "limits": limits})


def costs(cases: Sequence[Case]) -> list[Table]:
    """Time ticks of the flow."""
    columns = (
        "network",
        "devices",
        "positions/s",
        "in a message",
        "flow",
        *(f"of it {part}" for part in _PARTS),
        "of it rest",
        "core",
        "median tick, ms",
        "p99 tick, ms",
        "worst tick, ms",
    )
    notes = (
        "mode `session`, default settings, ten ticks a second.",
        "a device moves to a neighbouring node every ten seconds; groups form every 7.5 s.",
        "core: all but decode, from columns to encoded regions and settled accounts.",
        "encode includes pseudonyms, cloak includes forming groups and their regions.",
    )
    rows = [_row(case) for case in cases]
    unit_us = json_us()
    ratios = {
        f"{part} of {case.n_devices:,} devices at {case.hz} Hz"
        + (f", {case.batch} in a message" if case.batch > 1 else "")
        + " / json.loads": float(dict(zip(columns, row, strict=True))[part]) / unit_us
        for case, row in zip(cases, rows, strict=True)
        if case.n_devices == max(each.n_devices for each in cases)
        for part in ("flow", "core")
    }
    title = "The flow in memory: CPU time, µs a position"
    return [Table(title, columns, rows, notes, ratios)]


def _row(case: Case) -> tuple[str | int | float, ...]:
    """Return the row of a case, with CPU time in all columns behind what it is."""
    network, seconds = network_named(case.network), case.seconds
    tested = PositionFlow(
        case.settings,
        with_zones(network, Zones()),
        Ledger(),
        secret=b"of a benchmark",
        monotonic=time.perf_counter,
    )
    ticks = traffic(network, case.n_devices, hz=case.hz, batch=case.batch)
    n_settling = _TICKS_PER_S * max(1, seconds // 4)
    watch, n_positions = Stopwatch(), 0
    laps: list[float] = []
    with watch.running():
        for number, (now, deliveries) in zip(range(_TICKS_PER_S * seconds), ticks, strict=False):
            if number == n_settling:
                watch.seconds = dict.fromkeys(_PARTS, 0.0)
                laps, n_positions = [], 0
                gc.collect()
            laps.append(lap(tested, now, deliveries))
            n_positions += len(deliveries) * case.batch
    parts = [s / n_positions * 1e6 for s in watch.seconds.values()]
    whole = sum(laps) / n_positions * 1e6
    door = sum(watch.seconds[part] for part in _DOOR) / n_positions * 1e6
    percentiles = (np.percentile(laps, (50, 99, 100)) * 1e3).tolist()
    stated = (case.network, case.n_devices, case.n_devices * case.hz, case.batch)
    return *stated, whole, *parts, whole - sum(parts), whole - door, *percentiles


def lap(tested: PositionFlow, now: float, deliveries: Sequence[Delivery]) -> float:
    """Run one tick; return its duration in seconds."""
    tested.ledger.receive(len(deliveries))
    arrivals = Arrivals(time.perf_counter(), deliveries)
    began = time.thread_time()
    output = tested.tick([arrivals], now=now)
    tested.settle(output, [True] * len(output.messages), seconds=0.0)
    return time.thread_time() - began


def traffic(
    network: RoadNetwork, n: int, *, hz: int = 1, batch: int = 1
) -> Iterator[tuple[float, Sequence[Delivery]]]:
    """Yield the time and the messages of each tick, see `Case`; of batches, only full ones."""
    rng = np.random.default_rng(n)
    topic = [f"positions/device-{s}" for s in range(n)]
    node: Int32Array = rng.integers(network.n_nodes, size=n).astype(np.int32)
    number, every = 0, _TICKS_PER_S // hz
    while True:
        slot = np.arange(number % every, n, every)
        turn = number // _TICKS_PER_S % _MOVE_EVERY_S
        begins = slot % _TICKS_PER_S == number % _TICKS_PER_S
        moving = slot[begins & (slot // _TICKS_PER_S % _MOVE_EVERY_S == turn)]
        first = network.first_arc_of[node[moving]]
        degree = network.first_arc_of[node[moving] + 1] - first
        arc = first + (rng.random(len(moving)) * degree).astype(np.int64)
        node[moving] = network.neighbour_of[arc]
        number += 1
        now = _NOW + number / _TICKS_PER_S
        aside = rng.normal(scale=_SPREAD_DEG, size=(2, len(slot)))
        lat, lon = network.lat[node[slot]] + aside[0], network.lon[node[slot]] + aside[1]
        texts = [
            b'"ts":%.3f,"lat":%.7f,"lon":%.7f}' % (now, y, x)
            for y, x in zip(lat.tolist(), lon.tolist(), strict=True)
        ]
        if batch == 1:
            deliveries = [
                Delivery(topic[s], b"{" + text, 0)
                for s, text in zip(slot.tolist(), texts, strict=True)
            ]
        else:
            named = [
                b'{"device":"device-%d",' % s + text
                for s, text in zip(slot.tolist(), texts, strict=True)
            ]
            deliveries = [
                Delivery("feed", b"[%b]" % b",".join(named[i : i + batch]), 0)
                for i in range(0, len(named) - batch + 1, batch)
            ]
        yield now, PackedDeliveries.of(deliveries)

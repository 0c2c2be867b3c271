"""A recorded trace through the same operators as the live service, without MQTT."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np

from anonymizer.algorithms.protection import keep_out, round_time
from anonymizer.app.zoning import open_network
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.network import NodeNames, RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.regions import Release
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.traces import Trace
from anonymizer.pipeline.accounts import Accounts
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.encoding import DeviceMessage, ReleaseEncoder
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.operators import cloaking_operator
from anonymizer.pipeline.places import Places
from anonymizer.pipeline.trips import Positions, TripGuard
from anonymizer.settings import Settings, zones_of

_LATEST_S = 253_402_300_799.0
"""The end of the year 9999; beyond it lie milliseconds taken for seconds."""
_REFUSED = [
    outcome
    for outcome in Outcome
    if outcome.label[0] == "suppressed" and outcome is not Outcome.SUPPRESSED__SUPERSEDED
]


@dataclass(slots=True)
class CloakSummary:
    """What became of a trace.

    Attributes
    ----------
    ledger
        The accounting, as in the live service.
    n_ticks
        Ticks in which anything was reported.
    region_nodes
        Nodes of the regions of each tick's groups.
    """

    ledger: Ledger = field(default_factory=Ledger)
    n_ticks: int = 0
    region_nodes: list[IntArray] = field(default_factory=list)


def cloak_trace(
    trace: Trace,
    network: RoadNetwork,
    settings: Settings,
    *,
    tick_s: float,
    seed: int,
    out: Path,
    auditor_map: Path | None = None,
    progress: Callable[[int], None] = lambda _rows: None,
) -> CloakSummary:
    """Cloak a trace in event time and write what an analyst would have seen.

    Parameters
    ----------
    trace, network
        Positions or node names, and the network they lie on.
    settings
        Those of the service; what concerns brokers and clocks is not used.
    tick_s
        Length of a tick in the trace's own time, at most `presence.ttl_s`.
    seed
        Equal input, settings and seed give equal files.
    out
        One line per pseudonym and tick; region `[]` and k 0 when suppressed.
    auditor_map
        Which device each pseudonym was, or None for no such file.
    progress
        Told how many rows were done since the last time.

    Raises
    ------
    InputError
        If a file cannot be written, or the trace names a node that the network lacks.
    SettingsError
        If a tick is longer than a device counts as present.
    """
    if not 0 < tick_s <= settings.presence.ttl_s:
        raise SettingsError("tick: must be above 0 and not exceed presence.ttl_s")
    summary = CloakSummary()
    summary.ledger.receive(trace.n_rows + trace.n_unusable)
    summary.ledger.settle(Outcome.INVALID__SCHEMA, trace.n_unusable)
    fate, node = _placed(trace, network, settings)
    summary.ledger.settle_all(fate[fate != Outcome.HELD])
    believed = np.flatnonzero(fate == Outcome.HELD)
    progress(trace.n_rows - len(believed))
    network = open_network(settings, network)
    operator = cloaking_operator(settings, network)
    accounts = Accounts(summary.ledger)
    trips = TripGuard(settings.trips, summary.ledger)
    lat, lon = _coordinates(trace, network, node)
    with ExitStack() as stack:
        auditor = _AuditorMap(stack.enter_context(_create(auditor_map)) if auditor_map else None)
        scribe = _Scribe(trace.device_id, network, settings, seed=seed, auditor=auditor)
        lines = stack.enter_context(_create(out))
        for new, now in _ticks(trace.ts, believed, tick_s, behind_s=trips.delay_s):
            came = trace.device_of[new].astype(np.int32)
            number = new.astype(np.float64)  # rows by which to know them when they come out
            due = Positions(came, trace.ts[new], lat[new], lon[new], number)
            rows = trips.pass_on(due, now=now).at_s.astype(np.int64)
            slot, ts = trace.device_of[rows].astype(np.int32), trace.ts[rows]
            told_s = now - trips.delay_s
            result = operator.tick(slot, ts, node[rows], now=told_s)
            refused = slot[np.isin(result.outcome, _REFUSED)]
            lines.writelines(scribe.lines(result.release, refused, now=told_s))
            carried = accounts.book(result, slot, ts)
            summary.ledger.settle(Outcome.PUBLISHED, len(carried.slot))
            summary.n_ticks += 1
            summary.region_nodes.append(np.diff(result.release.first_node_of))
            progress(len(new))
    trips.close()
    accounts.close()
    return summary


class _Scribe:
    """Writes the lines of a release file, one for every pseudonym of a tick."""

    def __init__(
        self,
        device_id: Sequence[str],
        network: RoadNetwork,
        settings: Settings,
        *,
        seed: int,
        auditor: "_AuditorMap",
    ) -> None:
        secret = blake2b(str(seed).encode()).digest()
        self._devices = DeviceTable(secret=secret, max_devices=len(device_id))
        for name in device_id:
            self._devices.slot(name)  # slots are given in order: slot i is device_id[i]
        self._device_id = device_id
        self._n_ticks = 0
        self._step_s = settings.output.time_step_s
        self._encoder = ReleaseEncoder(network, topic=settings.output.topic, form="device")
        self._auditor = auditor

    def lines(self, release: Release, refused: Int32Array, *, now: float) -> list[bytes]:
        """Return the lines of one tick, by pseudonym: the order of groups is nobody's business."""
        messages, _ = self._encoder.encode(
            release, time=round_time(now, self._step_s), pseudonyms=self._names
        )
        told = [message.payload for message in messages]
        self._n_ticks += 1
        # A name that is never used again: a life of its own would be one to follow.
        once = [-self._n_ticks] * len(refused)
        told += [
            msgspec.json.encode(DeviceMessage(name, round(round_time(now, self._step_s), 3), (), 0))
            for name in self._names(refused.tolist(), once)
        ]
        return [line + b"\n" for line in sorted(told)]

    def _names(self, slots: Sequence[int], versions: Sequence[int]) -> list[str]:
        names = self._devices.pseudonyms(slots, versions)
        self._auditor.note(names, [self._device_id[slot] for slot in slots])
        return names


class _AuditorMap:
    """Writes down, once each, which device a pseudonym was; for the auditor alone."""

    def __init__(self, lines: BinaryIO | None) -> None:
        self._lines = lines
        self._noted: set[str] = set()

    def note(self, names: Sequence[str], devices: Sequence[str]) -> None:
        if self._lines is None:
            return
        for name, device in zip(names, devices, strict=True):
            if name not in self._noted:
                self._noted.add(name)
                line = {"pseudonym": name, "device": device}
                self._lines.write(msgspec.json.encode(line) + b"\n")


def _ticks(
    ts: FloatArray, rows: IntArray, tick_s: float, *, behind_s: float
) -> Iterator[tuple[IntArray, float]]:
    """Yield the rows of each tick and the time it closes at.

    Ticks without rows are left out, unless positions are passed on `behind_s` later: then each
    tick may have some, until so long after the last row.
    """
    number = np.ceil(ts[rows] / tick_s)
    first = np.flatnonzero(np.diff(number, prepend=-np.inf))
    row_of = {
        int(number[start]): rows[start:end] for start, end in pairwise([*first.tolist(), len(rows)])
    }
    numbers: Iterable[int] = row_of
    if behind_s and row_of:
        numbers = range(min(row_of), max(row_of) + math.ceil(behind_s / tick_s) + 1)
    for n in numbers:
        yield row_of.get(n, rows[:0]), n * tick_s


def _placed(
    trace: Trace, network: RoadNetwork, settings: Settings
) -> tuple[UInt8Array, Int32Array]:
    """Return what is wrong with each row (else `HELD`), and its node (negative: nowhere)."""
    fate = np.full(trace.n_rows, Outcome.HELD, np.uint8)
    fate[trace.ts < 0] = Outcome.INVALID__ANCIENT_TIME
    fate[trace.ts > _LATEST_S] = Outcome.INVALID__FUTURE_TIME
    if trace.node is not None:
        node = _nodes_named(trace.node, network)
        if not settings.zones:
            return fate, node
        closed = zones_of(settings.zones).contains(network.lat, network.lon)
        return fate, keep_out(node, closed=closed)
    if not network.has_coordinates:
        raise InputError("the network has no coordinates: the trace must name nodes")
    fate[(trace.lat == 0) & (trace.lon == 0)] = Outcome.INVALID__NULL_ISLAND
    fate[(np.abs(trace.lat) > 90) | (np.abs(trace.lon) > 180)] = Outcome.INVALID__OUT_OF_RANGE
    return fate, Places(settings, network).find(trace.lat, trace.lon)


def _coordinates(
    trace: Trace, network: RoadNetwork, node: Int32Array
) -> tuple[FloatArray, FloatArray]:
    """Return where each row is; a trace of nodes is where those are."""
    return (trace.lat, trace.lon) if trace.node is None else (network.lat[node], network.lon[node])


def _nodes_named(names: NodeNames, network: RoadNetwork) -> Int32Array:
    if names.dtype.kind != network.node_id.dtype.kind:
        raise InputError("the trace's nodes and the network's are not named alike")
    order = np.argsort(network.node_id)
    at = np.searchsorted(network.node_id, names, sorter=order)
    node = order[np.minimum(at, network.n_nodes - 1)].astype(np.int32)
    n_unknown = int((network.node_id[node] != names).sum())
    if n_unknown:
        raise InputError(f"the network lacks the node of {n_unknown} rows of the trace")
    return node


def _create(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None

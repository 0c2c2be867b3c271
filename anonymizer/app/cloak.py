"""A recorded trace through the same operators as the live service, without MQTT."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np

from anonymizer.algorithms.positions.protection import keep_out
from anonymizer.app.zoning import open_network
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.network import NodeNames, RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.release_lines import AuditorMapWriter, ReleaseWriter
from anonymizer.files.traces import Trace
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.positions.factory import Places, cloaking_operator
from anonymizer.pipeline.positions.group_readings import GroupReadings
from anonymizer.pipeline.positions.tick_accounts import Accounts
from anonymizer.pipeline.positions.trip_guard import Positions, TripGuard
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
    n_clamped, n_left_out
        By declared reading: values outside its range, and groups of which nothing was told
        because too few members had one.
    """

    ledger: Ledger = field(default_factory=Ledger)
    n_ticks: int = 0
    region_nodes: list[IntArray] = field(default_factory=list)
    n_clamped: dict[str, int] = field(default_factory=dict)
    n_left_out: dict[str, int] = field(default_factory=dict)


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
        Positions or node names, with the readings that the settings declare, and the network
        they lie on.
    settings
        Those of the service; what concerns brokers and clocks is not used.
    tick_s
        Length of a tick in the trace's own time, at most `presence.ttl_s`.
    seed
        Equal input, settings and seed give equal files.
    out
        One line per pseudonym and tick; region `[]` and k 0 when suppressed. What is told of
        readings stands beside them, as in the messages that the service sends for each device.
    auditor_map
        Which device each pseudonym was, or None for no such file.
    progress
        Told how many rows were done since the last time.

    Raises
    ------
    InputError
        If a file cannot be written, the trace lacks a declared reading, or it names a node
        that the network lacks.
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
    sensed = _Sensed(trace, settings)
    with ExitStack() as stack:
        auditor = AuditorMapWriter(
            stack.enter_context(_create(auditor_map)) if auditor_map else None
        )
        scribe = ReleaseWriter(trace.device_id, network, settings, seed=seed, auditor=auditor)
        lines = stack.enter_context(_create(out))
        for new, now in _ticks(trace.ts, believed, tick_s, behind_s=trips.delay_s):
            came = trace.device_of[new].astype(np.int32)
            number = new.astype(np.float64)  # rows by which to know them when they come out
            due = Positions(came, trace.ts[new], lat[new], lon[new], number)
            sensed.note(new, slot=came, ts=due.ts)
            rows = trips.pass_on(due, now=now).at_s.astype(np.int64)
            slot, ts = trace.device_of[rows].astype(np.int32), trace.ts[rows]
            told_s = now - trips.delay_s
            result = operator.tick(slot, ts, node[rows], now=told_s)
            refused = slot[np.isin(result.outcome, _REFUSED)]
            told = sensed.group.tell(result.release, now=now)
            lines.writelines(scribe.lines(result.release, refused, told, now=told_s))
            carried = accounts.book(result, slot, ts)
            summary.ledger.settle(Outcome.PUBLISHED, len(carried.slot))
            summary.n_ticks += 1
            summary.region_nodes.append(np.diff(result.release.first_node_of))
            progress(len(new))
    trips.close()
    accounts.close()
    sensed.sum_up(summary)
    return summary


class _Sensed:
    """The readings of a trace, taken in tick by tick as by the live service.

    Each device has a slot to itself, so none inherits anything and nothing is forgotten.
    """

    def __init__(self, trace: Trace, settings: Settings) -> None:
        self.group = GroupReadings(settings.readings, ttl_s=settings.presence.ttl_s)
        if missing := [name for name in self.group.names if name not in trace.readings]:
            raise InputError(f"the trace was read without the declared reading {missing[0]}")
        self._columns = [trace.readings[name] for name in self.group.names]

    def note(self, rows: IntArray, *, slot: Int32Array, ts: FloatArray) -> None:
        """Take in the readings of some rows, given their slots and times."""
        for attribute, column in enumerate(self._columns):
            value = column[rows]
            row = np.flatnonzero(~np.isnan(value))
            self.group.note(row, np.full(len(row), attribute), value[row], slot=slot, ts=ts)

    def sum_up(self, summary: CloakSummary) -> None:
        """Write down what became of the readings."""
        names = self.group.names
        summary.n_clamped = dict(zip(names, self.group.n_clamped.tolist(), strict=True))
        summary.n_left_out = dict(zip(names, self.group.n_left_out.tolist(), strict=True))


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

"""Cloaking of a recorded trace with the engine of the live service, without MQTT."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np

from anonymizer.app.trace_trust import TraceClaims
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.fixes import check_coordinates
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.trace import Trace, layers_of, named_nodes
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.atomic_write import whole_file
from anonymizer.files.release_lines import AuditorMapWriter, ReleaseWriter
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.histograms import BatchHistogram
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.positions.decode.headings import headings_in
from anonymizer.pipeline.positions.tick.engine import PositionEngine, TickRelease
from anonymizer.pipeline.positions.tick.factory import engine_parameters, intake_parameters
from anonymizer.pipeline.positions.tick.flow_stats import InformationAges, histogram_of_ages
from anonymizer.pipeline.positions.tick.intake import Intake, LocatedPositions, matching_with
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.settings import Settings, zones_of

_LATEST_S = 253_402_300_799.0
"""The end of the year 9999; later times are milliseconds mistaken for seconds."""


_CAUSES = {
    Outcome.INVALID__SCHEMA: "rows lack a device, a time or a place",
    Outcome.INVALID__OUT_OF_RANGE: (
        "lat or lon is outside the earth: the columns are exchanged, or not in degrees"
    ),
    Outcome.INVALID__NULL_ISLAND: "lat and lon are exactly 0: the receivers had no position",
    Outcome.INVALID__FUTURE_TIME: "ts is in milliseconds, not in seconds: divide it by 1000",
    Outcome.INVALID__ANCIENT_TIME: "ts is before 1970",
    Outcome.SUPPRESSED__OFF_GRAPH: (
        "no road is near: the network is of another place, or lat and lon are exchanged"
    ),
}
"""What is likely to be wrong with a trace if this is the outcome of most of it."""


_NO_GROUP = (Outcome.SUPPRESSED__NEVER_GROUPED, Outcome.SUPPRESSED__TOO_FEW_DEVICES)
_TOO_FEW = (
    "nothing is published, because no group was formed: too few devices were present at once"
    " (adka.k_values, adka.k_floor), or for too short a time"
)


@dataclass(slots=True)
class CloakSummary:
    """The accounts of a cloaked trace."""

    ledger: Ledger = field(default_factory=Ledger)
    """Outcomes of its positions, as in the live service."""
    n_ticks: int = 0
    """Ticks that contained positions."""
    region_nodes: list[IntArray] = field(default_factory=list)
    """For each tick, the number of nodes of each group's region."""
    n_clamped: dict[str, int] = field(default_factory=dict)
    n_left_out: dict[str, int] = field(default_factory=dict)
    """`n_clamped`, `n_left_out`: by declared reading: values outside its range, and groups about
    which nothing was published because fewer than k members had a value."""
    ids_change: bool = False
    """Whether ids seem to change that are said to stay: groups may have fewer than k vehicles."""
    age_s: BatchHistogram = field(default_factory=histogram_of_ages)
    """Ages of information, once a second: see `InformationAges`."""

    @property
    def nothing_published(self) -> str:
        """Why nothing was published, with the number of positions by reason; else empty."""
        counts = self.ledger.counts()
        if counts[Outcome.PUBLISHED]:
            return ""
        found = sorted(((n, outcome) for outcome, n in counts.items() if n), reverse=True)
        told = ", ".join(
            f"{n:,} {' '.join(filter(None, outcome.label)).replace('_', ' ')}"
            for n, outcome in found
        )
        return f"nothing was published: {told or 'it has no rows'}"

    @property
    def warning(self) -> str:
        """Why more than half of the trace was refused, or none was published; else empty."""
        counts, n_all = self.ledger.counts(), self.ledger.n_received
        outcome = max(_CAUSES, key=lambda each: counts[each])
        if 2 * counts[outcome] <= n_all:
            none = not counts[Outcome.PUBLISHED] and any(counts[each] for each in _NO_GROUP)
            return _TOO_FEW if none else ""
        reason = " ".join(outcome.label).replace("_", " ")
        return f"{counts[outcome]:,} of {n_all:,} positions are {reason}: {_CAUSES[outcome]}"


def cloak_trace(
    trace: Trace,
    network: RoadNetwork,
    settings: Settings,
    *,
    tick_s: float,
    seed: int,
    ids_change: bool = False,
    out: Path | BinaryIO,
    auditor_map: Path | BinaryIO | None = None,
    progress: Callable[[int], None] = lambda _rows: None,
    watch: Callable[[PositionEngine, TickRelease], None] = lambda _engine, _tick: None,
) -> CloakSummary:
    """Cloak a trace in event time; write what an analyst would have received.

    Parameters
    ----------
    trace, network
        Positions or node names, with the readings that the settings declare, and the network
        on which the devices move.
    settings
        As for the live service; brokers and clocks are not used.
    tick_s
        Length of a tick in the trace's own time, at most `presence.ttl_s`.
    seed
        Equal input, settings and seed give equal files.
    ids_change
        Whether vehicles change their ids in the trace; also if an input of the settings says so.
    out
        One line per pseudonym and tick; if suppressed, without a pseudonym (`""`), region `[]` and
        k 0. Readings are published as in the messages that the service sends for each device.
        A path or an open file.
    auditor_map
        Receives the device of each pseudonym; None: it is not written. Likewise.
    progress
        Called with the number of rows finished since the previous call.
    watch
        Called with each tick and the engine that made it, for whoever measures an adversary who is
        told more than subscribers are.

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
    ledger = summary.ledger
    ledger.receive(trace.n_rows + trace.n_unusable)
    ledger.settle(Outcome.INVALID__SCHEMA, trace.n_unusable)
    outcome = _check_rows(trace)
    ledger.settle_all(outcome[outcome != Outcome.HELD])
    accepted = np.flatnonzero(outcome == Outcome.HELD)
    rng = np.random.default_rng(seed % 2**128)
    source = _TraceColumns(trace, network, settings, ledger, rng)
    source.ids_change = ids_change or any(each.ids_live_s for each in settings.inputs)
    engine = source.engine
    session = settings.session if settings.region.mode == "session" else None
    information = InformationAges(groups_last=session is not None and session.beat_s > 0)
    progress(trace.n_rows - len(accepted))
    with ExitStack() as stack:
        auditor = AuditorMapWriter(
            stack.enter_context(_create(auditor_map, private=True)) if auditor_map else None
        )
        writer = ReleaseWriter(trace.device_id, seed=seed, auditor=auditor)
        lines = stack.enter_context(_create(out))
        for rows, now in _ticks(trace.ts, accepted, tick_s, source):
            tick = engine.tick(source.located(rows, now=now))
            source.forget(tick, now=now)
            messages, _ = engine.messages(tick, writer.pseudonyms)
            lines.write(b"".join(writer.lines(tick, messages)))
            lines.flush()  # a reader of a pipe gets the groups of a tick at once
            ledger.settle(Outcome.PUBLISHED, len(tick.carried.slot))
            summary.n_ticks += 1
            summary.age_s.observe(information.until(now))
            information.see(tick.release, tick.until_s, event_s=tick.event_s, now=now)
            watch(engine, tick)
            summary.region_nodes.append(np.diff(tick.release.first_node_of))
            progress(len(rows))
    source.close()
    summary.ids_change = source.intake.succession.ids_change
    names, readings = engine.readings.names, engine.readings
    summary.n_clamped = dict(zip(names, readings.n_clamped.tolist(), strict=True))
    summary.n_left_out = dict(zip(names, readings.n_left_out.tolist(), strict=True))
    return summary


class _TraceColumns:
    """The columns of a trace, tick by tick, and the intake and engine that they pass.

    Each device has a slot to itself, its index; a slot is never given to another device.

    Attributes
    ----------
    intake, engine
        See there.
    ids_change
        Whether the ids of all devices change.
    """

    ids_change = False

    def __init__(
        self,
        trace: Trace,
        network: RoadNetwork,
        settings: Settings,
        ledger: Ledger,
        rng: np.random.Generator,
    ) -> None:
        node = named_nodes(trace, network)
        zoned = with_zones(network, zones_of(settings.zones))
        matching = matching_with(
            zoned,
            snap_limit_m=settings.network.snap_limit_m,
            secret=rng.bytes(32),
            node_of_row=node,
        )
        self.engine = PositionEngine(engine_parameters(settings, network), network, ledger)
        # Whoever has the trace says whether ids change in it.
        parameters = replace(intake_parameters(settings), stays_after_s=0.0)
        self.intake = Intake(parameters, matching, ledger, self.engine.operator)
        names = self.engine.readings.names
        if missing := [name for name in names if name not in trace.readings]:
            raise InputError(f"the trace was read without the declared reading {missing[0]}")
        self._readings = [trace.readings[name] for name in names]
        self._ts, self._ledger = trace.ts, ledger
        self._claims = TraceClaims(trace, network, settings)
        self._heading = headings_in(trace)
        self._layer = None if node is not None else layers_of(trace, network)

    @property
    def n_held(self) -> int:
        """Positions that wait for their trip to go on, or for a group."""
        return self.intake.n_held + self.engine.n_held

    @property
    def quiet_after_s(self) -> float:
        """Seconds after the last position in which releases may still follow, at most."""
        return self.intake.delay_s + self.engine.publishes_for_s

    def located(self, rows: IntArray, *, now: float) -> LocatedPositions:
        """Return the positions of a tick, tagged with their rows; note their readings."""
        slot, ts = self._claims.slot[rows], self._ts[rows]
        if self.ids_change:
            self.intake.ids.mark(slot)
        heading = None if self._heading is None else self._heading[rows]
        if self.intake.layers is not None and self._layer is not None:
            self.intake.layers.mark(slot, self._layer[rows], now=now)
        place = self._claims.lat[rows], self._claims.lon[rows]
        positions = Positions(slot, ts, *place, rows.astype(np.float64), heading)
        believed = self._believed(positions, rows, now=now)
        located = self.intake.locate(believed, now=now)
        self._note(believed, hidden=located.positions.slot[located.node < 0])
        return located

    def _note(self, positions: Positions, *, hidden: Int32Array) -> None:
        """Note the readings of positions, but of no device that is hidden or off the roads."""
        rows = positions.tag.astype(np.int64)
        heard = ~np.isin(positions.slot, hidden)
        for attribute, column in enumerate(self._readings):
            value = column[rows]
            row = np.flatnonzero(~np.isnan(value) & heard)
            self.engine.readings.note(
                row,
                np.full(len(row), attribute),
                value[row],
                slot=positions.slot,
                ts=positions.ts,
            )

    def _believed(self, positions: Positions, rows: IntArray, *, now: float) -> Positions:
        """Return the positions that are where their devices are; settle the others."""
        if self.intake.trust is None:
            return positions
        outcome = self._claims.judge(rows, self.intake.trust, now=now)
        believed = outcome == Outcome.HELD
        if believed.all():
            return positions
        self._ledger.settle_all(outcome[~believed])
        return positions.only(believed)

    def forget(self, tick: TickRelease, *, now: float) -> None:
        """Forget the devices that are gone after a tick."""
        present = self.engine.operator.density.is_known
        self.engine.readings.free(self.intake.forget(tick.freed, now=now, present=present))

    def close(self) -> None:
        """Settle the positions that are held; after the last tick."""
        self.intake.close()
        self.engine.close()


def _ticks(
    ts: FloatArray, rows: IntArray, tick_s: float, source: _TraceColumns
) -> Iterator[tuple[IntArray, float]]:
    """Yield the rows of each tick and the time at which it closes.

    Ticks without rows are left out unless something may be published at them. After the last row
    they go on until no position waits any more.
    """
    number = np.ceil(ts[rows] / tick_s)
    first = np.flatnonzero(np.diff(number, prepend=-np.inf))
    numbers = [int(n) for n in number[first].tolist()]
    bounds = pairwise([*first.tolist(), len(rows)])
    next_ones = [*numbers[1:], None][: len(numbers)]
    for n, following, (start, end) in zip(numbers, next_ones, bounds, strict=True):
        yield rows[start:end], n * tick_s
        quiet = n + math.ceil(source.quiet_after_s / tick_s) + 1
        for empty in range(n + 1, quiet if following is None else min(following, quiet)):
            over = empty > n + source.intake.delay_s / tick_s + 1
            if following is None and not source.n_held and over:
                break
            yield rows[:0], empty * tick_s


def _check_rows(trace: Trace) -> UInt8Array:
    """Return the outcome of each row that is rejected, else `HELD`, shape (rows,)."""
    outcome = np.full(trace.n_rows, Outcome.HELD, np.uint8)
    outcome[trace.ts < 0] = Outcome.INVALID__ANCIENT_TIME
    outcome[trace.ts > _LATEST_S] = Outcome.INVALID__FUTURE_TIME
    if trace.node is None:
        coordinates = check_coordinates(trace.lat, trace.lon)
        outcome = np.where(coordinates == Outcome.HELD, outcome, coordinates)
    return outcome


def _create(path: Path | BinaryIO, *, private: bool = False) -> AbstractContextManager[BinaryIO]:
    """Create a file; one that is open already is used as it is, and stays open."""
    return whole_file(path, private=private) if isinstance(path, Path) else nullcontext(path)

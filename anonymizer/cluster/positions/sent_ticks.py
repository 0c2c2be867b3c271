"""Ticks that a source has sent, until all districts have reported what became of their rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.district_routing import NOWHERE, Sent
from anonymizer.algorithms.positions.operator import Newest
from anonymizer.cluster.positions.stage_messages import Report, decode_report, encode_report
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.discreet import discreet
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.pipeline.positions.tick.zone_places import suppress_hidden

_NEVER = -(1 << 62)


@dataclass(slots=True, eq=False, repr=False)
class SentTick:
    """The positions of a tick, and what is known of their outcomes."""

    tick: int
    """Its number."""
    slot: Int32Array
    tag: FloatArray
    outcome: UInt8Array
    """`slot`, `tag`, `outcome`: device, tag and outcome of each position, as far as the source
    knows it, shape (n,)."""
    hidden: BoolArray
    """Which positions are in a privacy zone, shape (n,)."""
    moved: IntArray
    home: Int32Array
    """`moved`, `home`: rows of the positions that were routed, and the district that each belongs
    to, negative for none, shape (m,)."""
    rows_of: dict[int, IntArray]
    """Which positions each district was sent of those in it, by the numbers of those that have not
    reported."""
    withdrawn: Int32Array
    """Devices that take no part from this tick on."""

    @classmethod
    def of(
        cls,
        tick: int,
        positions: Positions,
        hidden: BoolArray,
        newest: Newest,
        sent: Sent,
        *,
        withdrawn: Int32Array,
        n_lanes: int,
    ) -> "SentTick":
        """Return a tick of which nothing has been reported."""
        rows_of = dict.fromkeys(range(n_lanes), np.zeros(0, np.int64))
        for number, rows, source in zip(sent.district, sent.rows, sent.source, strict=True):
            # Those that are not there any more, or off the graph, have their outcome.
            rows_of[number] = np.where(rows.node >= 0, newest.moved[source], NOWHERE)
        return cls(
            tick,
            positions.slot,
            positions.tag,
            newest.outcome,
            hidden,
            newest.moved,
            sent.home.astype(np.int32),
            rows_of,
            withdrawn,
        )

    def read(self, lane: int, outcome: UInt8Array) -> None:
        """Take the outcomes that a district reports."""
        rows = self.rows_of.pop(lane, None)
        if rows is not None:
            there = rows != NOWHERE
            self.outcome[rows[there]] = outcome[there]

    def final(self) -> UInt8Array:
        """Return the outcome of each position, once all districts have reported."""
        outcome = self.outcome.copy()
        suppress_hidden(outcome, self.hidden)
        return outcome


@discreet
class Booked(NamedTuple):
    """A tick that all districts have reported."""

    sent: SentTick
    reports: Sequence[Report]


class SentTicks:
    """Collects the reports of all districts, and returns ticks in order once they are complete."""

    def __init__(self, n_lanes: int) -> None:
        self._ticks: dict[int, SentTick] = {}
        self._reports: list[list[Report]] = [[] for _ in range(n_lanes)]
        self._heard = [_NEVER] * n_lanes
        self.n_positions = 0

    @property
    def oldest(self) -> int | None:
        """The first tick that some district has not reported; None: all have been."""
        return next(iter(self._ticks), None)

    def add(self, sent: SentTick) -> None:
        """Add a tick, after all earlier ones."""
        self._ticks[sent.tick] = sent
        self.n_positions += len(sent.slot)

    def read(self, report: Report) -> bool:
        """Read a report; return whether it is new.

        Each district sends them in the order of ticks, and some may come again.
        """
        if report.tick <= self._heard[report.lane]:
            return False
        self._heard[report.lane] = report.tick
        for tick, outcome in zip(report.batches, report.outcome, strict=False):
            if tick in self._ticks:
                self._ticks[tick].read(report.lane, outcome)
        self._reports[report.lane].append(report._replace(outcome=()))
        return True

    def pop(self) -> Booked | None:
        """Return the first tick if all districts have reported it, and forget it."""
        tick = self.oldest
        if tick is None or self._ticks[tick].rows_of:
            return None
        sent = self._ticks.pop(tick)
        self.n_positions -= len(sent.slot)
        reports = [
            report for lane in range(len(self._reports)) for report in self._up_to(tick, lane)
        ]
        return Booked(sent, reports)

    def _up_to(self, tick: int, lane: int) -> list[Report]:
        """Return the reports of a district that concern no batch after a tick, and forget them."""
        reports = self._reports[lane]
        later = (i for i, report in enumerate(reports) if max(report.batches, default=tick) > tick)
        n = next(later, len(reports))
        taken, self._reports[lane] = reports[:n], reports[n:]
        return taken

    def state(self) -> dict[str, Any]:
        """Return what changes with each tick and report."""
        return {
            "ticks": [
                [
                    *(getattr(sent, name) for name in _COLUMNS),
                    list(sent.rows_of.items()),
                ]
                for sent in self._ticks.values()
            ],
            "reports": [encode_report(each) for of in self._reports for each in of],
            "heard": self._heard,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._ticks = {}
        for *columns, rows_of in state["ticks"]:
            known = dict(zip(_COLUMNS, columns, strict=True))
            sent = SentTick(**known, rows_of=dict(rows_of))
            self._ticks[sent.tick] = sent
        self.n_positions = sum(len(sent.slot) for sent in self._ticks.values())
        self._reports = [[] for _ in self._reports]
        for value in state["reports"]:
            report = decode_report(value, n_lanes=len(self._reports))
            self._reports[report.lane].append(report)
        self._heard = state["heard"]


_COLUMNS = ("tick", "slot", "tag", "outcome", "hidden", "moved", "home", "withdrawn")

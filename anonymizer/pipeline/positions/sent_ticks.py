"""Ticks that a source has sent, until all districts have reported what became of their rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.district_operator import Outcomes
from anonymizer.algorithms.positions.district_routing import Sent
from anonymizer.algorithms.positions.operator import Newest
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.pipeline.positions.stage_messages import Report, decode_report, encode_report
from anonymizer.pipeline.positions.trip_guard import Positions
from anonymizer.pipeline.positions.zone_places import suppress_hidden

_NEVER = -(1 << 62)


@dataclass(slots=True, eq=False, repr=False)
class SentTick:
    """The positions of a tick, and what is known of their outcomes.

    Attributes
    ----------
    tick
        Its number.
    slot, tag, outcome
        Device, tag and outcome of each position, as far as the source knows it, shape (n,).
    hidden
        Which positions are in a privacy zone, shape (n,).
    moved
        Rows of the positions that were routed, shape (m,).
    leader
        District whose territory each routed position is in, negative for none, shape (m,).
    reported
        What the districts have reported of these.
    rows_of
        Which of them each district was sent, by the numbers of those that have not reported.
    """

    tick: int
    slot: Int32Array
    tag: FloatArray
    outcome: UInt8Array
    hidden: BoolArray
    moved: IntArray
    leader: Int32Array
    reported: Outcomes
    rows_of: dict[int, Int32Array]

    @classmethod
    def of(
        cls,
        tick: int,
        positions: Positions,
        hidden: BoolArray,
        newest: Newest,
        sent: Sent,
        *,
        n_lanes: int,
    ) -> "SentTick":
        """Return a tick of which nothing has been reported."""
        rows_of = dict.fromkeys(range(n_lanes), np.zeros(0, np.int32))
        rows_of |= {
            number: rows.astype(np.int32)
            for number, rows in zip(sent.district, sent.source, strict=True)
        }
        return cls(
            tick,
            positions.slot,
            positions.tag,
            newest.outcome,
            hidden,
            newest.moved,
            sent.leader.astype(np.int32),
            Outcomes.held(len(sent.leader)),
            rows_of,
        )

    def read(self, lane: int, outcome: UInt8Array) -> None:
        """Take the outcomes that a district reports."""
        rows = self.rows_of.pop(lane, None)
        if rows is not None:
            self.reported.take(rows, outcome, self.leader[rows] == lane)

    def merged(self) -> UInt8Array:
        """Return the outcome of each position, once all districts have reported."""
        outcome = self.outcome.copy()
        on_graph = self.leader >= 0
        outcome[self.moved[on_graph]] = self.reported.merged()[on_graph]
        suppress_hidden(outcome, self.hidden)
        return outcome


class Booked(NamedTuple):
    """A tick that all districts have reported.

    Attributes
    ----------
    tick, slot, tag, outcome
        As of `SentTick`; outcomes are complete.
    released, began, ended
        As of `Report`, of all districts; each device is released once.
    n_shared
        Devices that two districts have released at one tick.
    """

    tick: int
    slot: Int32Array
    tag: FloatArray
    outcome: UInt8Array
    released: Int32Array
    began: Int32Array
    ended: Int32Array
    n_shared: int

    def __repr__(self) -> str:
        """Reveal no device."""
        return f"Booked({self.tick})"


class SentTicks:
    """Collects the reports of all districts, and returns ticks in order once they are complete.

    Parameters
    ----------
    n_lanes
        How many districts report.
    """

    def __init__(self, n_lanes: int) -> None:
        self._ticks: dict[int, SentTick] = {}
        self._reports: list[list[Report]] = [[] for _ in range(n_lanes)]
        self._heard = [_NEVER] * n_lanes
        self._until = [_NEVER] * n_lanes
        """Tick of the last report of each that belongs to what was returned."""
        self._released: IntArray = np.zeros(0, np.int64)
        """Tick and device of what districts released after the last common tick."""
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
        return Booked(
            tick,
            sent.slot,
            sent.tag,
            sent.merged(),
            np.unique(_joined([report.released for report in reports])),
            _joined([report.began for report in reports]),
            _joined([report.ended for report in reports]),
            self._n_shared(reports),
        )

    def _up_to(self, tick: int, lane: int) -> list[Report]:
        """Return the reports of a district that hold no batch after a tick, and forget them."""
        reports = self._reports[lane]
        later = (i for i, report in enumerate(reports) if max(report.batches, default=tick) > tick)
        n = next(later, len(reports))
        taken, self._reports[lane] = reports[:n], reports[n:]
        if taken:
            self._until[lane] = taken[-1].tick
        return taken

    def _n_shared(self, reports: Sequence[Report]) -> int:
        codes = [report.released + (np.int64(report.tick) << 32) for report in reports]
        released, n = np.unique(np.concatenate([self._released, *codes]), return_counts=True)
        self._released = released[released >> 32 > min(self._until)]
        return int((n > 1).sum())

    def state(self) -> dict[str, Any]:
        """Return what changes with each tick and report."""
        return {
            "ticks": [
                [
                    *(getattr(sent, name) for name in _COLUMNS),
                    *sent.reported,
                    list(sent.rows_of.items()),
                ]
                for sent in self._ticks.values()
            ],
            "reports": [encode_report(each) for of in self._reports for each in of],
            "heard": self._heard,
            "until": self._until,
            "released": self._released,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._ticks = {}
        for *columns, of, published, rows_of in state["ticks"]:
            known = dict(zip(_COLUMNS, columns, strict=True))
            sent = SentTick(**known, reported=Outcomes(of, published), rows_of=dict(rows_of))
            self._ticks[sent.tick] = sent
        self.n_positions = sum(len(sent.slot) for sent in self._ticks.values())
        self._reports = [[] for _ in self._reports]
        for value in state["reports"]:
            report = decode_report(value)
            self._reports[report.lane].append(report)
        self._heard, self._until = state["heard"], state["until"]
        self._released = state["released"]


_COLUMNS = ("tick", "slot", "tag", "outcome", "hidden", "moved", "leader")


def _joined(parts: Sequence[Int32Array]) -> Int32Array:
    return np.concatenate([np.zeros(0, np.int32), *parts])

"""A stream in a joiner: the records of its open windows, the window that closes, the memories."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from anonymizer.algorithms.windows import NEVER, Seen
from anonymizer.cluster.records.window_messages import (
    UNPLANNED,
    Close,
    Held,
    Memories,
    Plan,
    RangeAnswer,
    RangeRows,
    Recall,
    Survey,
    encode,
)
from anonymizer.cluster.records.window_ranges import Places
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.records.anonymize_window import standing
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.join import Joined, numbered, recoded
from anonymizer.pipeline.records.open_stream import OpenStream
from anonymizer.pipeline.records.store_port import forgotten_before
from anonymizer.pipeline.records.topics import KEY_BYTES
from anonymizer.pipeline.records.window_models import seed_of
from anonymizer.settings import LimitSettings

_PIECE_ROWS = 8192
"""Most rows in one message: with the memories of vehicles, well below the limit of Kafka's."""
_TOP_BIT = np.uint64(1 << 63)


@dataclass(slots=True, eq=False, repr=False)
class _Closing:
    """A window that is closed and not yet settled.

    `chosen`: the records that stand for their vehicles; `range_of`: of each of them, None for not
    known yet; `answered`: ranges and pieces whose outcomes are booked.
    """

    window: int
    joined: Joined
    chosen: IntArray
    range_of: Int32Array | None = None
    n_ranges: int = 0
    answered: set[tuple[int, int]] = field(default_factory=set)

    @property
    def key(self) -> IntArray:
        """A number for the vehicle of each chosen record, in the order of their digests."""
        heads = b"".join(self.joined.vehicle[i][:8] for i in self.chosen.tolist())
        return (np.frombuffer(heads, ">u8").astype(np.uint64) ^ _TOP_BIT).view(np.int64)

    def pieces(self, range_: int) -> list[IntArray]:
        """Return the chosen records of each piece for a range; at least one piece."""
        if self.range_of is None:
            return []
        mine = np.flatnonzero(self.range_of == range_)
        return np.split(mine, range(_PIECE_ROWS, len(mine), _PIECE_ROWS))

    @property
    def n_pieces(self) -> int:
        """Number of pieces for all ranges; 0 if they are not known yet."""
        if self.range_of is None:
            return 0
        n_rows = np.bincount(self.range_of, minlength=self.n_ranges)
        return int(np.maximum(-(-n_rows // _PIECE_ROWS), 1).sum())


class JoinedStream(OpenStream):
    """Joins the parts of one stream of the vehicles of one joiner."""

    def __init__(
        self,
        stream: Stream,
        number: int,
        *,
        joiner: int,
        n_joiners: int,
        key: Callable[[str], bytes],
        limits: LimitSettings,
        records_per_range: int,
        secret: bytes,
    ) -> None:
        self.ledger = Ledger()
        super().__init__(
            stream,
            limits,
            key=key,
            accounts=self.ledger,
            # Windows close when the planner says so; only where there are too many, by themselves.
            rule=replace(stream.rule, lateness_s=inf, silence_s=inf),
            at_s=-inf,
            n_shares=n_joiners,
        )
        self._number, self._joiner = number, joiner
        self._secret, self._records_per_range = secret, records_per_range
        self._closing: _Closing | None = None
        self._next: list[int] = []
        """The window to close when the present one is settled, if there is one."""
        self._last: int | None = None
        """The window that was closed last, or is to be."""
        self._next_message = 1
        """Above the numbers of all messages of the windows that are settled here."""
        self._memories: dict[bytes, tuple[int, bytes]] = {}
        """What is stored of each vehicle, and the window in which it was published last."""

    def seen(self) -> Seen:
        """Return what was placed so far."""
        windows = self.windows
        windows.due(at_s=0.0)  # the planner closes them
        return Seen(windows.newest, windows.heard_s, sorted(self.records.windows()), windows.floor)

    def close(self, close: Close) -> Survey | None:
        """Close a window; return its survey, None if there is none now."""
        if self._last is not None and close.window <= self._last:
            return None
        self._last = close.window
        self.windows.close_before(close.floor)
        for window in sorted(self.records.windows()):
            if window < close.window:  # it was closed before the planner knew of it
                n_parts = self.take(window).n_parts
                self.settle(n_parts, np.full(len(n_parts), Outcome.LATE, np.uint8))
        self._next.append(close.window)
        return self._begin()

    def _begin(self) -> Survey | None:
        if self._closing is not None or not self._next:
            return None
        window = self._next.pop()
        joined = self.take(window)
        seed = seed_of(self._secret, self.stream.settings.name, window)
        outcome, chosen = standing(self.stream, joined.meant(), seed=seed)
        left = outcome != Outcome.SUPPRESSED__NO_CLASS
        self.settle(joined.n_parts[left], outcome[left])
        self._closing = closing = _Closing(window, joined, chosen)
        return self._survey(closing)

    def _survey(self, closing: _Closing) -> Survey:
        """Return the survey of a window of which nothing is settled by a range yet."""
        joined, chosen = closing.joined, closing.chosen
        places = Places.of(self.stream.in_window(joined.values_of))
        place, _ = places.of_rows(joined.cells[chosen], closing.key, self._stored(closing))
        sample = places.sample(place, records_per_range=self._records_per_range)
        return Survey(
            self._number,
            self._joiner,
            closing.window,
            joined.n,
            len(chosen),
            len(np.unique(joined.person[chosen])),
            joined.reported[chosen].sum(axis=0),
            self._next_message,
            sample.ravel(),
            joined.values_of,
            {
                column: np.bincount(joined.cells[:, column], minlength=len(texts))[: len(texts)]
                for column, texts in joined.values_of.items()
            },
        )

    def plan(self, plan: Plan) -> Iterator[RangeRows]:
        """Take the plan of the window that closes; yield the rows for each range."""
        closing = self._closing
        if closing is None or closing.window != plan.window or closing.range_of is not None:
            return
        cells = self._cells(closing, plan)
        places = Places.of(self.stream.in_window(plan.values_of))
        closing.range_of = np.zeros(len(cells), np.int32)
        if plan.n_asked:
            division = places.division(plan.sample, plan.n_asked)
            place, turn = places.of_rows(cells, closing.key, self._stored(closing))
            closing.range_of, closing.n_ranges = division.ranges_of(place, turn), division.n_ranges
        key, memories = closing.key, self._stored(closing)
        for range_ in range(closing.n_ranges):
            pieces = closing.pieces(range_)
            for number, rows in enumerate(pieces):
                yield RangeRows(
                    self._number,
                    self._joiner,
                    plan.window,
                    range_,
                    number,
                    len(pieces),
                    closing.n_ranges,
                    plan.silent,
                    plan.values_of,
                    list(np.ascontiguousarray(cells[rows].T)),
                    key[rows],
                    [memories[i] for i in rows.tolist()] if memories else [],
                )

    def book(self, answer: RangeAnswer) -> None:
        """Settle the rows of an answer, and remember their vehicles."""
        closing, piece = self._closing, (answer.range_, answer.piece)
        if closing is None or closing.window != answer.window or piece in closing.answered:
            return
        closing.answered.add(piece)
        self._next_message = max(self._next_message, answer.next_message)
        rows = closing.chosen[closing.pieces(answer.range_)[answer.piece]]
        self.settle(closing.joined.n_parts[rows], answer.outcome)
        for row, blob in zip(rows.tolist(), answer.memories, strict=False):
            if blob is not None:
                self._memories[closing.joined.vehicle[row][:KEY_BYTES]] = closing.window, blob

    def held(self, recall: Recall) -> Held:
        """Return what a new planner has to know of the window that was closed last."""
        closing, last = self._closing, NEVER if self._last is None else self._last
        n_ranges, survey = 0, b""
        if closing is not None:
            n_ranges = UNPLANNED
            if closing.window == last:
                survey = encode(self._survey(closing))
                n_ranges = UNPLANNED if closing.range_of is None else closing.n_ranges
        return Held(self._number, self._joiner, recall.asked, last, n_ranges, survey)

    def next_survey(self) -> Survey | None:
        """Return the survey of the next window if all of this one is settled."""
        closing = self._closing
        if closing is None or closing.range_of is None or len(closing.answered) < closing.n_pieces:
            return None
        before = forgotten_before(closing.window, length_s=self.stream.settings.window_s)
        self._memories = {v: m for v, m in self._memories.items() if m[0] >= before}
        self._closing = None
        return self._begin()

    def _cells(self, closing: _Closing, plan: Plan) -> Int32Array:
        """Return the codes of the chosen records among the values of the whole window."""
        cells = closing.joined.cells[closing.chosen]
        for column, code in plan.code_of.items():
            n_values = len(plan.values_of[column])
            cells[:, column] = recoded(cells[:, column], code.tolist(), n_values)
        return cells

    def _stored(self, closing: _Closing) -> Memories:
        if not self.stream.lasting:
            return []
        of = self._memories
        found = (of.get(closing.joined.vehicle[i][:KEY_BYTES]) for i in closing.chosen.tolist())
        return [None if each is None else each[1] for each in found]

    def state(self) -> dict[str, Any]:
        """Return all that changes."""
        return {
            "shape": self.stream.shape,
            "ledger": self.ledger.state(),
            "open": super().state(),
            "closing": None if self._closing is None else _packable(self._closing),
            "next": self._next,
            "last": self._last,
            "next_message": self._next_message,
            "memories": [[vehicle, *stored] for vehicle, stored in self._memories.items()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state.

        Raises
        ------
        ValueError
            If the stream was declared in another way.
        """
        if state["shape"] != self.stream.shape:
            raise ValueError("the stream was declared in another way")
        self.ledger.restore(state["ledger"])
        super().restore(state["open"])
        closing = state["closing"]
        self._closing = None if closing is None else _unpacked(closing, self.stream)
        self._next, self._last = list(state["next"]), state["last"]
        self._next_message = state["next_message"]
        self._memories = {vehicle: (window, blob) for vehicle, window, blob in state["memories"]}


def _packable(closing: _Closing) -> dict[str, Any]:
    joined = closing.joined
    return {
        "window": closing.window,
        "cells": joined.cells.ravel(),
        "vehicle": joined.vehicle,
        "n_parts": joined.n_parts,
        "reported": joined.reported.ravel(),
        "values_of": list(joined.values_of.items()),
        "chosen": closing.chosen,
        "range_of": closing.range_of,
        "n_ranges": closing.n_ranges,
        "answered": sorted(closing.answered),
    }


def _unpacked(state: Mapping[str, Any], stream: Stream) -> _Closing:
    vehicle: list[bytes] = list(state["vehicle"])
    n = len(vehicle)
    reported: BoolArray = state["reported"].reshape(n, len(stream.settings.sources))
    joined = Joined(
        state["cells"].reshape(n, len(stream.attributes)),
        vehicle,
        numbered([key[:KEY_BYTES] for key in vehicle]),
        state["n_parts"],
        reported,
        dict(state["values_of"]),
    )
    return _Closing(
        state["window"],
        joined,
        state["chosen"],
        state["range_of"],
        state["n_ranges"],
        {(range_, piece) for range_, piece in state["answered"]},
    )

"""Trip ends: suppression of positions within some metres or seconds of the ends of a trip.

The end of a trip is known only afterwards, so every position is held for a delay. After the
delay it is passed on if the device has moved far enough away from it in the meantime. If there
is no sign of that, the trip may have ended there.

A *trip* begins when a device appears, reappears after silence, or moves on after dwelling. It
ends where the next silence or dwelling begins. A *stay* is a run of reports near its first one;
a stay that lasts is a dwelling.

Not promised: protection of a place that a device circles for longer than the delay, or of an end
that an outlier hides. One distant position in the middle of a stay looks like moving on.
"""

from dataclasses import astuple, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.protection.delay_buffer import (
    ACCEPTED,
    DUPLICATE,
    HELD,
    LATE,
    OVERFLOW,
    PASSED,
    REPORT,
    TRIP,
    TRIP_END,
    UNKNOWN,
    advance,
    link_free,
    release,
)
from anonymizer.domain.arrays import (
    BoolArray,
    FloatArray,
    Int32Array,
    IntArray,
    RecordArray,
    UInt8Array,
)
from anonymizer.domain.discreet import discreet
from anonymizer.domain.protection import TripRule

_RULE = np.dtype([(field.name, np.float64) for field in fields(TripRule)])
_COLUMNS = ("slot", "ts", "lat", "lon", "tag", "heading")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TripTick:
    """Positions that a tick has decided; all others are still held.

    `passed`: positions to pass on, sorted by slot and time; `trip_end`: those near an end of a
    trip, to be suppressed; `overflow`: the oldest of devices with too many held, to be suppressed
    as overload; `late`, `duplicate`: older than the newest of their device, or of the same time.
    """

    passed: RecordArray
    trip_end: RecordArray
    overflow: RecordArray
    late: RecordArray
    duplicate: RecordArray


@discreet
class Forgotten(NamedTuple):
    """Devices that have been forgotten."""

    slot: Int32Array
    trip_end: RecordArray


class TripEnds:
    """Holds every position until it is known not to be near an end of its trip.

    Notes
    -----
    The result depends only on the reports, not on the ticks or the order within them, as long as
    each report arrives before the delay of the earlier ones is over. A report that arrives later
    finds them already decided.
    """

    def __init__(self, rule: TripRule) -> None:
        self.n_held = 0
        self._rule = np.array([astuple(rule)], _RULE)[0]
        self._trips = np.zeros(0, TRIP)
        self._due_at = np.zeros(0)
        self._held = np.zeros(1, HELD)

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick. It holds positions: store it like raw ones."""
        tables = {"trips": self._trips, "held": self._held}
        columns = {name: np.frombuffer(table.tobytes(), np.uint8) for name, table in tables.items()}
        return columns | {"due_at": self._due_at, "n_held": self.n_held}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._trips = np.frombuffer(state["trips"].tobytes(), TRIP).copy()
        self._held = np.frombuffer(state["held"].tobytes(), HELD).copy()
        self._due_at, self.n_held = state["due_at"].copy(), state["n_held"]

    def knows(self, slot: Int32Array) -> BoolArray:
        """Return which slots have reported and were not forgotten, shape (n,)."""
        known = slot < len(self._trips)
        known[known] = self._trips["ts"][slot[known]] > -np.inf
        return known

    def tick(
        self,
        slot: Int32Array,
        ts: FloatArray,
        lat: FloatArray,
        lon: FloatArray,
        *,
        tag: FloatArray,
        now: float,
        heading: FloatArray | None = None,
    ) -> TripTick:
        """Process reports; return the positions that are decided now.

        `slot`, `ts` (plausible unix seconds), `lat`, `lon` (WGS84 degrees): shape (n,), in any
        order; `tag` and `heading` are returned with each position. Positions are passed on at an
        age of `delay_s`, plus at most one tick.

        Notes
        -----
        O(slots + n log n + positions decided): each position is visited when it arrives, when it
        is decided and when it leaves.
        """
        reports = np.empty(len(slot), REPORT)
        columns = (slot, ts, lat, lon, tag, np.nan if heading is None else heading)
        for name, column in zip(_COLUMNS, columns, strict=True):
            reports[name] = column
        reports = reports[np.lexsort((tag, lon, lat, ts, slot))]
        self._make_room(reports)
        outcome = advance(self._trips, self._held, self._due_at, reports, self._rule)
        self.n_held += int((outcome == ACCEPTED).sum())
        most = int(self._rule["max_held"])
        gone, why = self._release(np.flatnonzero(self._due_at <= now), now, most)
        return TripTick(
            passed=gone[why == PASSED],
            trip_end=np.concatenate([reports[outcome == TRIP_END], gone[why == TRIP_END]]),
            overflow=gone[why == OVERFLOW],
            late=reports[outcome == LATE],
            duplicate=reports[outcome == DUPLICATE],
        )

    def expire(self, before: float) -> Forgotten:
        """Forget every device whose newest report is older than a time.

        `before`: unix seconds; inf forgets all devices, at shutdown. O(slots + positions
        suppressed).
        """
        last = self._trips["ts"]
        slot = np.flatnonzero((last < before) & (last > -np.inf))
        trip_end, _ = self._release(slot, -np.inf, 0)
        self._trips[slot] = UNKNOWN
        return Forgotten(slot.astype(np.int32), trip_end)

    def drop(self, slot: Int32Array) -> RecordArray:
        """Forget these devices, whenever they reported; return what was held for them."""
        known = slot[self.knows(slot)]
        gone, _ = self._release(known.astype(np.int64), -np.inf, 0)
        self._trips[known] = UNKNOWN
        return gone

    def _release(self, slot: IntArray, now: float, most: int) -> tuple[RecordArray, UInt8Array]:
        """Return the positions of some devices that are due or beyond `most`, and why."""
        entry, why = release(
            self._trips, self._held, self._due_at, slot, now, most, self._rule, self.n_held
        )
        self.n_held -= len(entry)
        gone = np.empty(len(entry), REPORT)
        for name in _COLUMNS:
            gone[name] = self._held[name][entry]
            self._held[name][entry] = 0  # the entries are free now
        return gone, why

    def _make_room(self, reports: RecordArray) -> None:
        """Make room for the trip of every slot and an entry for every report."""
        if not len(reports):
            return
        have = len(self._trips)
        n_slots = int(reports["slot"][-1]) + 1
        if n_slots > have:
            more = max(n_slots, 2 * have) - have
            self._trips = np.concatenate([self._trips, np.full(more, UNKNOWN, TRIP)])
            self._due_at = np.concatenate([self._due_at, np.full(more, np.inf)])
        have = len(self._held)
        n_entries = 1 + self.n_held + len(reports)
        if n_entries > have:
            room = np.zeros(max(n_entries, 2 * have) - have, HELD)
            self._held = np.concatenate([self._held, room])
            link_free(self._held, have)

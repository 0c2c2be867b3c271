"""Protected trip ends: what lies within some metres or seconds of a trip's ends is not passed on.

That a trip ends is known only afterwards, so every position is held for a while. When that is
over, it is passed on if the device has gone far enough from it meanwhile; if there is no sign
of that, the trip may have ended there.

A *trip* begins when a device appears, or appears again after silence, or moves on after
dwelling, and ends where the next silence or dwelling begins. A *stay* is a run of reports near
its first one; a stay that lasts is a dwelling.

Not promised: anything of a place that a device circles for longer than the delay, or of ends
that a wild position hides: one far away, in the middle of a stay, looks like moving on.
"""

from dataclasses import astuple, dataclass, fields
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.protection.delay_buffer import (
    DUPLICATE,
    HELD,
    LATE,
    PASSED,
    REPORT,
    TAKEN,
    TRIP,
    TRIP_END,
    UNKNOWN,
    YIELDED,
    link_free,
    release,
    take_in,
)
from anonymizer.domain.arrays import (
    BoolArray,
    FloatArray,
    Int32Array,
    IntArray,
    RecordArray,
    UInt8Array,
)


@dataclass(frozen=True, slots=True)
class TripRule:
    """What of a trip is not passed on, and what a trip is.

    Attributes
    ----------
    start_m, start_s
        A position is passed on only if it lies this far from where its trip began, and this
        long after.
    end_m, end_s, delay_s
        And only if, `delay_s` after it, the device is this far from it, and has travelled on
        for this long (up to the beginning of the stay it is in then).
    gap_s
        After being silent for longer a device is on another trip.
    dwell_m, dwell_s
        Reports within so many metres of the first of them are a stay; one that was seen to last
        as long as this ends the trip.
    max_held
        Positions held for one device; beyond them the oldest yield.

    Raises
    ------
    ValueError
        If the delay is too short to see that a trip goes on.
    """

    start_m: float = 200.0
    start_s: float = 60.0
    end_m: float = 200.0
    end_s: float = 60.0
    delay_s: float = 120.0
    gap_s: float = 300.0
    dwell_m: float = 50.0
    dwell_s: float = 120.0
    max_held: int = 600

    def __post_init__(self) -> None:
        if not self.delay_s >= self.end_s:
            raise ValueError("delay_s must not be below end_s")


_RULE = np.dtype([(field.name, np.float64) for field in fields(TripRule)])
_COLUMNS = ("slot", "ts", "lat", "lon", "tag")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TripTick:
    """What a tick made of its reports and of those held before; the rest is still held.

    Attributes
    ----------
    passed
        Positions to be passed on, by slot, and by time for each.
    trip_end
        Positions near an end of a trip: to be suppressed.
    yielded
        The oldest of a device that had too many held: to be suppressed as overload.
    late, duplicate
        Reports older than the newest of their device, or of the same time.
    """

    passed: RecordArray
    trip_end: RecordArray
    yielded: RecordArray
    late: RecordArray
    duplicate: RecordArray


class Forgotten(NamedTuple):
    """Devices that are known no more.

    Attributes
    ----------
    slot
        Theirs, rising.
    trip_end
        What was held of them: to be suppressed.
    """

    slot: Int32Array
    trip_end: RecordArray

    def __repr__(self) -> str:
        """Say nothing of where."""
        return "Forgotten(...)"


class TripEnds:
    """Holds every position until it is known not to be near an end of its trip.

    Parameters
    ----------
    rule
        What is near.

    Notes
    -----
    Everything hangs on the reports alone, whatever the ticks and the order within them, as long
    as each report is here when the delay of those before it is over. One that comes later finds
    them decided: as if it had not been sent in time.
    """

    def __init__(self, rule: TripRule) -> None:
        self.n_held = 0
        self._rule = np.array([astuple(rule)], _RULE)[0]
        self._trips = np.zeros(0, TRIP)
        self._due_at = np.zeros(0)
        self._held = np.zeros(1, HELD)

    @property
    def next_due_s(self) -> float:
        """Unix seconds when the delay of the next held position is over; inf: none is held."""
        return float(self._due_at.min(initial=np.inf))

    def tick(
        self,
        slot: Int32Array,
        ts: FloatArray,
        lat: FloatArray,
        lon: FloatArray,
        *,
        tag: FloatArray,
        now: float,
    ) -> TripTick:
        """Take in reports; return what is settled now.

        Parameters
        ----------
        slot, ts, lat, lon
            Device slot, believable unix seconds and WGS84 degrees, shape (n,), in any order.
        tag
            Handed on with each position, shape (n,).
        now
            Unix seconds that the tick closes at. What is passed on is `delay_s` old, and not
            more than a tick older: who takes it lives that much behind.

        Notes
        -----
        O(slots + n log n + positions settled): each position is looked at when it comes, when
        it is decided and when it leaves.
        """
        reports = np.empty(len(slot), REPORT)
        for name, column in zip(_COLUMNS, (slot, ts, lat, lon, tag), strict=True):
            reports[name] = column
        reports = reports[np.lexsort((tag, lon, lat, ts, slot))]
        self._make_room(reports)
        fate = take_in(self._trips, self._held, self._due_at, reports, self._rule)
        self.n_held += int((fate == TAKEN).sum())
        most = int(self._rule["max_held"])
        gone, why = self._let_go(np.flatnonzero(self._due_at <= now), now, most)
        return TripTick(
            passed=gone[why == PASSED],
            trip_end=np.concatenate([reports[fate == TRIP_END], gone[why == TRIP_END]]),
            yielded=gone[why == YIELDED],
            late=reports[fate == LATE],
            duplicate=reports[fate == DUPLICATE],
        )

    def expire(self, before: float, *, kept: BoolArray | None = None) -> Forgotten:
        """Forget every device last heard of before a time.

        Parameters
        ----------
        before
            Unix seconds; inf: all of them, at the end.
        kept
            Slots that are not to be forgotten all the same, because somebody else knows them
            still, shape (any,); None: there are none.

        Notes
        -----
        O(slots + positions suppressed).
        """
        last = self._trips["ts"]
        stale = (last < before) & (last > -np.inf)
        if kept is not None:
            n = min(len(kept), len(stale))
            stale[:n] &= ~kept[:n]
        slot = np.flatnonzero(stale)
        trip_end, _ = self._let_go(slot, -np.inf, 0)
        self._trips[slot] = UNKNOWN
        return Forgotten(slot.astype(np.int32), trip_end)

    def _let_go(self, slot: IntArray, now: float, most: int) -> tuple[RecordArray, UInt8Array]:
        """Return what is due of some devices, or is more than they may hold, and its fate."""
        entry, why = release(
            self._trips, self._held, self._due_at, slot, now, most, self._rule, self.n_held
        )
        self.n_held -= len(entry)
        # The entries are free now, and hold what they held until something is put there.
        gone = np.empty(len(entry), REPORT)
        for name in _COLUMNS:
            gone[name] = self._held[name][entry]
        return gone, why

    def _make_room(self, reports: RecordArray) -> None:
        """Have a trip for every slot and an entry for every report."""
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

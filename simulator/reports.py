"""Reports of devices, when they are due, and the sources of reports that the publisher plays."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from anonymizer.domain.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from simulator.trace_writer import TraceWriter


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reports:
    """Positions in the order in which they are due; all arrays have the shape (m,)."""

    device: IntArray
    """Index of the device."""
    due_s: FloatArray
    """When to publish, in seconds of playing."""
    lat: FloatArray
    lon: FloatArray
    """`lat`, `lon`: WGS84 degrees."""
    ts: FloatArray | None = None
    """Unix seconds to state; None: the moment at which the report is due."""
    speed_mps: FloatArray | None = None
    """Speed to state as a reading, NaN where it is not known; None: reports state none."""

    def __len__(self) -> int:
        """Return the number of reports."""
        return len(self.device)

    def only(self, rows: IntArray) -> Self:
        """Return some of the reports."""
        ts = None if self.ts is None else self.ts[rows]
        speed = None if self.speed_mps is None else self.speed_mps[rows]
        lat, lon = self.lat[rows], self.lon[rows]
        return type(self)(self.device[rows], self.due_s[rows], lat, lon, ts, speed)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Turns:
    """Turns of devices to say something, in the order in which they are due, shape (m,)."""

    device: IntArray
    """Index of the device."""
    due_s: FloatArray
    """When to publish, in seconds of playing."""
    number: IntArray
    """Number of the turn since the start."""
    ts: None = None
    """None: a message states the moment of publishing."""

    def __len__(self) -> int:
        """Return the number of turns."""
        return len(self.device)

    def only(self, rows: IntArray) -> Self:
        """Return some of the turns."""
        return type(self)(self.device[rows], self.due_s[rows], self.number[rows])


class Rounds:
    """Rounds in which every device has one turn, `rate_hz` rounds a second.

    Turn m is due at m / (devices * rate) and belongs to device m of a shuffled round. So the load
    is as even as possible, and each device keeps its phase.

    Parameters
    ----------
    order
        All devices in the order of their turns, shape (devices,).
    rate_hz
        Turns of each device per second.
    duration_s
        When to end, in seconds; None: never.
    """

    def __init__(self, order: IntArray, *, rate_hz: float, duration_s: float | None) -> None:
        self.rate_per_s = len(order) * rate_hz
        self.n_total = None if duration_s is None else max(1, round(duration_s * self.rate_per_s))
        self._order = order
        self._first = 0

    @property
    def next_due_s(self) -> float:
        """When the next turn is due, in seconds of playing; infinite at the end."""
        over = not self.rate_per_s or (self.n_total is not None and self._first >= self.n_total)
        return math.inf if over else self._first / self.rate_per_s

    def take(self, until_s: float, *, limit: int) -> Turns:
        """Return the turns due up to a moment, at most the oldest `limit`."""
        if math.isinf(self.next_due_s):
            return Turns(self._order[:0], np.empty(0), np.empty(0, np.int64))
        stop = min(math.floor(until_s * self.rate_per_s) + 1, self._first + limit)
        if self.n_total is not None:
            stop = min(stop, self.n_total)
        number = np.arange(self._first, max(stop, self._first))
        self._first += len(number)
        return Turns(self._order[number % len(self._order)], number / self.rate_per_s, number)


def uniform_draws(key: tuple[int, int], turns: Turns, *, n_each: int) -> FloatArray:
    """Return numbers from 0 to 1 that depend only on a key and the number of the turn.

    Parameters
    ----------
    key
        Seed, and number of the stream that the draws belong to.
    turns
        Consecutive turns.
    n_each
        Numbers for each turn, at most 4: one step of the Philox counter yields four. So they are
        the same however the turns are divided into batches.
    """
    if not len(turns):
        return np.empty((0, n_each))
    bits = np.random.Philox(key=np.array(key, np.uint64)).advance(int(turns.number[0]))
    return np.random.Generator(bits).random((len(turns), 4))[:, :n_each]


class Due(Protocol):
    """Items to publish, in the order in which they are due."""

    @property
    def device(self) -> IntArray:
        """Index of the device of each item."""

    @property
    def due_s(self) -> FloatArray:
        """When to publish, in seconds of playing."""

    @property
    def ts(self) -> FloatArray | None:
        """Unix seconds to state; None: the moment at which each item is due."""

    def __len__(self) -> int:
        """Return the number of items."""

    def only(self, rows: IntArray) -> Self:
        """Return some of the items."""


D_co = TypeVar("D_co", bound=Due, covariant=True)


class Playable(Protocol[D_co]):
    """A source of due items, which depend only on how far it has been played."""

    device_id: tuple[str, ...]
    """Id of each device."""
    rate_per_s: float
    """Average number of items due in a second of playing."""
    n_total: int | None
    """Number of items from start to end; None: endless."""

    @property
    def next_due_s(self) -> float:
        """When the next item is due, in seconds of playing; infinite at the end."""

    def take(self, until_s: float, *, limit: int) -> D_co:
        """Return the items due up to a moment, at most the oldest `limit`."""


Source: TypeAlias = Playable[Reports]
"""A source of reports."""


class Recording:
    """A source that also writes its reports to a trace.

    Times in the trace count from the start of playing and do not depend on the clock, so that
    equal traffic gives an equal file.
    """

    def __init__(self, source: Source, writer: "TraceWriter") -> None:
        self.device_id = source.device_id
        self.rate_per_s = source.rate_per_s
        self.n_total = source.n_total
        self._source = source
        self._writer = writer

    @property
    def next_due_s(self) -> float:
        """When the next report is due, in seconds of playing; infinite at the end."""
        return self._source.next_due_s

    def take(self, until_s: float, *, limit: int) -> Reports:
        """Return the reports due up to a moment, and write them."""
        reports = self._source.take(until_s, limit=limit)
        self._writer.write(reports.device, reports.due_s, reports.lat, reports.lon)
        return reports

"""Event-time windows: which window a part of a record belongs to, and when each window closes.

A pure state machine: the time is passed in. Event time, watermark and lateness are those of the
dataflow model.

References
----------
.. [1] T. Akidau et al., "The Dataflow Model", PVLDB 8(12), 2015.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, inf
from typing import Any

from anonymizer.domain.outcomes import Outcome

NEVER = -(2**62)
"""Window number that is smaller than all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRule:
    """Length of tumbling windows, and how long they wait for late parts."""

    length_s: float
    offset_s: float = 0.0
    """`length_s`, `offset_s`: window w covers the event times from `offset_s + w * length_s` to the
    start of the next."""
    lateness_s: float = 0.0
    """How far the watermark lags behind the newest event time. A window closes when the watermark
    reaches its end."""
    silence_s: float = inf
    """A source of which no part has been accepted for longer is not waited for. When that holds for
    all sources, every window closes. Nor is a window held for longer than this by sources whose
    times are behind those of another source."""
    max_open: int = 8
    """Largest number of open windows; closed windows that are not yet processed do not count. At
    least `least_open`."""
    max_ahead_s: float = inf
    """How far event time may be ahead of the wall clock."""
    n_to_leap: int = 1
    """So many vehicles state times that are more than `step_s` after all others before these are
    taken for the present, as long as anybody states times that are not."""

    @property
    def step_s(self) -> float:
        """How far the newest event time goes by one part."""
        return self.length_s + self.lateness_s

    @property
    def least_open(self) -> float:
        """Number of windows in the span of event times that are accepted at one moment.

        With fewer open windows, none would close before parts of its successors are refused, or a
        clock that is ahead could take the place of the present.
        """
        return (self.lateness_s + self.max_ahead_s) // self.length_s + 2

    def window_of(self, ts: float) -> int:
        """Return the number of the window that contains an event time."""
        return floor((ts - self.offset_s) / self.length_s)

    def span(self, window: int) -> tuple[float, float]:
        """Return the start and the end of a window, unix seconds."""
        return (
            self.offset_s + window * self.length_s,
            self.offset_s + (window + 1) * self.length_s,
        )


class Windows:
    """The open windows of one stream, and the watermark that closes them.

    The watermark of a source is the newest event time received from it. The watermark of the
    stream is the smallest among the active sources, less the lateness, and never goes back. A
    source that has not reported yet is active: it keeps all windows open until it has been
    silent for too long.

    No source can hold a window for long: when another source alone would have closed it for
    `silence_s`, it closes, however often the slow one reports. If too many are open, a part of the
    present closes the oldest of them. Parts ahead of the wall clock close none: they count as if
    they had been sent now. Nor does a vehicle whose time leaps: its windows are `max_open` others.

    Parameters
    ----------
    rule
        See `WindowRule`.
    newest
        Newest event time of each source, -inf for none; after a restart, `newest_open`.
    floor
        Windows before this one are closed; after a restart, the stored `floor`.
    opened
        Windows that were open before the restart.
    released
        Windows that are closed wherever the floor is.
    at_s
        Current seconds of a monotonic clock.
    in_ticks
        Whether the watermark closes windows in `due` alone: of the parts between two calls, no
        order is known.

    Notes
    -----
    The outcome of a part depends on the order in which parts are placed, not on how they are
    batched. It does not depend on the order either, as long as no part is placed after one that
    is newer by `lateness_s`, and none leaps. O(sources) a part.
    """

    def __init__(
        self,
        rule: WindowRule,
        newest: Sequence[float],
        *,
        at_s: float,
        floor: int = NEVER,
        opened: Iterable[int] = (),
        released: Sequence[range] = (),
        in_ticks: bool = False,
    ) -> None:
        self.rule, self._in_ticks = rule, in_ticks
        self._released = released
        self.newest = list(newest)
        """Newest event time of each source; -inf for none."""
        self.floor = floor
        """Windows before this one are closed."""
        self._last_heard_s = [at_s] * len(self.newest)
        self._leaps: dict[bytes, tuple[float, int]] = {}
        """By vehicle whose time has leapt: the earliest such time, and its source."""
        self._last_near_s = at_s
        self._closed: set[int] = set()
        self._open = set(opened)
        self._next_close_ts = -inf  # no earlier event time can close another window
        self._passed: deque[tuple[float, float]] = deque()
        """When the newest time of all sources reached further windows, and that time."""
        self._long_known = -inf
        """Newest time of all sources as it was `silence_s` ago, as far as windows closed by it."""
        self._close_below_floor()

    @property
    def n_open(self) -> int:
        """Number of open windows."""
        return len(self._open)

    @property
    def n_due(self) -> int:
        """Number of closed windows that `due` has not returned yet."""
        return len(self._closed)

    @property
    def newest_open(self) -> list[float]:
        """Newest event time of each source; at least the start of the first open window.

        It does not reveal the time of a part of a closed window, and continues the windows after a
        restart as `newest` would: a time in a closed window closes no other. -inf for none.
        """
        start = self.rule.span(self.floor)[0]
        return [max(ts, start) if ts > -inf else ts for ts in self.newest]

    def watermark(self, *, at_s: float) -> float:
        """Return the event time up to which all parts are assumed received; -inf: unknown."""
        active = self._active_sources(at_s)
        slowest = min((self.newest[s] for s in active), default=-inf)
        return max(slowest, self._long_known) - self.rule.lateness_s

    def place(
        self, source: int, ts: float, *, now: float, at_s: float, vehicle: bytes = b""
    ) -> tuple[int, Outcome]:
        """Return the window of a part, and `HELD` or the reason why it is refused.

        Parameters
        ----------
        source, ts, vehicle
            Index of the source, the event time in unix seconds, and whose part it is.
        now, at_s
            The wall clock in unix seconds, and the seconds of a monotonic clock.
        """
        if ts > now + self.rule.max_ahead_s:
            return NEVER, Outcome.INVALID__FUTURE_TIME
        if ts < 0:
            return NEVER, Outcome.INVALID__ANCIENT_TIME
        window = self.rule.window_of(ts)
        if window < self.floor or any(window in each for each in self._released):
            return window, Outcome.LATE
        leaps = self._is_leap(source, min(ts, now), vehicle, at_s)
        if window not in self._open:
            alike = self._opened_by(leaps=leaps)
            if len(alike) >= self.rule.max_open:
                oldest = min(alike)
                if ts > now or window < oldest or leaps:
                    return window, Outcome.SUPPRESSED__TOO_MANY_WINDOWS
                self._raise_floor(oldest + 1)
            self._open.add(window)
        self._last_heard_s[source] = at_s
        if not leaps:
            self._reached(source, min(ts, now), at_s)
        return window, Outcome.HELD

    def due(self, *, at_s: float) -> list[int]:
        """Return the windows that have closed, each once, oldest first."""
        active = self._active_sources(at_s)
        self._follow_watermark(at_s)
        if not active and self._open:
            self._raise_floor(max(self._open) + 1)
        due, self._closed = sorted(self._closed), set()
        return due

    def begin(self, *, at_s: float) -> None:
        """Wait for every source from now on, as from the start."""
        self._last_heard_s = [at_s] * len(self.newest)
        self._last_near_s = at_s

    def state(self) -> dict[str, Any]:
        """Return all that changes."""
        return {
            "newest": self.newest,
            "floor": self.floor,
            "heard_s": self._last_heard_s,
            "closed": sorted(self._closed),
            "open": sorted(self._open),
            "next_close_ts": self._next_close_ts,
            "passed": list(self._passed),
            "long_known": self._long_known,
            "leaps": [[vehicle, *leap] for vehicle, leap in self._leaps.items()],
            "near_s": self._last_near_s,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.newest, self.floor = list(state["newest"]), state["floor"]
        self._last_heard_s = list(state["heard_s"])
        self._closed, self._open = set(state["closed"]), set(state["open"])
        self._next_close_ts = state["next_close_ts"]
        self._passed = deque((at_s, ts) for at_s, ts in state["passed"])
        self._long_known = state["long_known"]
        self._leaps = {vehicle: (ts, source) for vehicle, ts, source in state["leaps"]}
        self._last_near_s = state["near_s"]

    @property
    def _reach(self) -> float:
        """The last time that one part takes for the present."""
        return max(self.newest, default=-inf) + self.rule.step_s

    def _opened_by(self, *, leaps: bool) -> list[int]:
        """Return the open windows of times that have leapt, or the others."""
        reach = self._reach
        if self.rule.n_to_leap == 1:
            return [*self._open]
        far = self.rule.window_of(reach) if reach > -inf else NEVER
        return [window for window in self._open if (window > far) == leaps]

    def _is_leap(self, source: int, ts: float, vehicle: bytes, at_s: float) -> bool:
        """Return whether a time is far after all others, and stated by too few vehicles."""
        if self.rule.n_to_leap == 1:
            return False
        if ts <= self._reach:
            self._last_near_s = at_s
            self._leaps.pop(vehicle, None)
            return False
        if at_s - self._last_near_s > self.rule.silence_s:
            return False
        self._leaps[vehicle] = min(self._leaps.get(vehicle, (ts, source)), (ts, source))
        if len(self._leaps) < self.rule.n_to_leap:
            return True
        # The earliest of these times is the present; more than one vehicle in error has the latest.
        first, its_source = min(self._leaps.values())
        self._reached(its_source, first, at_s)
        return ts > self._reach

    def _reached(self, source: int, ts: float, at_s: float) -> None:
        """Take a time for the present of a source, and those of leaps that are not far after it."""
        reach, reached = max(ts + self.rule.step_s, self._reach), [(ts, source)]
        for vehicle, leap in list(self._leaps.items()) if self._leaps else ():
            if leap[0] <= reach:
                reached.append(self._leaps.pop(vehicle))
        closes = False
        for each, its_source in reached:
            if each > self.newest[its_source]:
                self.newest[its_source] = each
                closes |= each >= self._next_close_ts
        if closes and not self._in_ticks:
            self._follow_watermark(at_s)

    def _active_sources(self, at_s: float) -> list[int]:
        return [s for s, h in enumerate(self._last_heard_s) if at_s - h <= self.rule.silence_s]

    def _follow_watermark(self, at_s: float) -> None:
        """Raise the floor to the window that contains the watermark."""
        self._note_newest(at_s)
        watermark = self.watermark(at_s=at_s)
        if watermark > -inf:
            self._raise_floor(self.rule.window_of(watermark))
            self._next_close_ts = self.rule.span(self.floor)[1] + self.rule.lateness_s

    def _note_newest(self, at_s: float) -> None:
        """Note which windows the newest time of all sources alone would close, and since when."""
        newest = max(self.newest, default=-inf)
        before = self._passed[-1][1] if self._passed else self._long_known
        if self._closed_by(newest) > self._closed_by(before):
            self._passed.append((at_s, newest))
        while self._passed and at_s - self._passed[0][0] > self.rule.silence_s:
            self._long_known = self._passed.popleft()[1]

    def _closed_by(self, ts: float) -> int:
        """Return the first window that stays open when all sources have reached an event time."""
        watermark = ts - self.rule.lateness_s
        return self.rule.window_of(watermark) if watermark > -inf else NEVER

    def _raise_floor(self, floor: int) -> None:
        if floor > self.floor:
            self.floor = floor
            self._close_below_floor()

    def _close_below_floor(self) -> None:
        closed = {window for window in self._open if window < self.floor}
        self._open -= closed
        self._closed |= closed

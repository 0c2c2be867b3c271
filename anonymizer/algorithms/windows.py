"""Event-time windows: which one a part belongs to, and when each closes. Time is passed in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, inf

from anonymizer.domain.outcomes import Outcome

NEVER = -(2**62)
"""Number of a window before all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRule:
    """Tumbling windows, and how long one waits for what is late.

    Attributes
    ----------
    length_s, offset_s
        Window w is the event time from `offset_s + w * length_s` up to the next one's.
    lateness_s
        A window is over when the watermark, this much behind what was heard, reaches its end.
    silence_s
        A source not heard of for so long is not waited for; when none was, every window is over.
    max_open
        Windows at once, besides those that are over.
    max_ahead_s
        How far event time may run ahead of the clock on the wall.
    """

    length_s: float
    offset_s: float = 0.0
    lateness_s: float = 0.0
    silence_s: float = inf
    max_open: int = 8
    max_ahead_s: float = inf

    def window_of(self, ts: float) -> int:
        """Return the number of the window that an event time lies in."""
        return floor((ts - self.offset_s) / self.length_s)

    def span(self, window: int) -> tuple[float, float]:
        """Return the beginning and the end of a window, unix seconds."""
        return (
            self.offset_s + window * self.length_s,
            self.offset_s + (window + 1) * self.length_s,
        )


class Windows:
    """The open windows of one stream, and the watermark that closes them.

    The watermark of a source is the newest event time heard from it; that of the stream is the
    least among the sources that are alive, less the lateness. It never goes back. A source that
    has not spoken yet is alive, and holds everything open until it is silent for too long.

    Parameters
    ----------
    rule
        See `WindowRule`.
    newest
        Newest event time of each source, as `newest` was told before a restart; -inf: none.
    floor
        Windows before this one are closed, as `floor` was told before a restart.
    opened
        Windows that were open then.
    at_s
        Seconds of a clock that never runs back, now.

    Notes
    -----
    What becomes of a part depends on the order in which parts are placed, not on how they come in
    batches; and where no part is placed after one that is `lateness_s` newer, not on the order
    either. O(sources) a part.
    """

    def __init__(
        self,
        rule: WindowRule,
        newest: Sequence[float],
        *,
        at_s: float,
        floor: int = NEVER,
        opened: Iterable[int] = (),
    ) -> None:
        self.rule = rule
        self.newest = list(newest)
        """Newest event time of each source; -inf: none."""
        self.floor = floor
        """Windows before this one are closed."""
        self._heard_s = [at_s] * len(self.newest)
        self._over: set[int] = set()
        self._open = set(opened)
        self._raise_at = -inf
        self._part_from_the_over()

    @property
    def n_open(self) -> int:
        """Windows that are open."""
        return len(self._open)

    @property
    def n_over(self) -> int:
        """Windows that `due` would return."""
        return len(self._over)

    def watermark(self, *, at_s: float) -> float:
        """Return the event time before which nothing is waited for; -inf: it is not known."""
        alive = self._alive(at_s)
        return min((self.newest[s] for s in alive), default=-inf) - self.rule.lateness_s

    def place(self, source: int, ts: float, *, now: float, at_s: float) -> tuple[int, Outcome]:
        """Return the window of a part, and `HELD` or why it cannot wait there.

        Parameters
        ----------
        source, ts
            Who told it, and the event time in unix seconds.
        now, at_s
            The clock on the wall, and one that never runs back.
        """
        if ts > now + self.rule.max_ahead_s:
            return NEVER, Outcome.INVALID__FUTURE_TIME
        if ts < 0:
            return NEVER, Outcome.INVALID__ANCIENT_TIME
        self._heard_s[source] = at_s
        window = self.rule.window_of(ts)
        if window < self.floor:
            return window, Outcome.LATE
        if window not in self._open:
            if len(self._open) >= self.rule.max_open:
                return window, Outcome.SUPPRESSED__TOO_MANY_WINDOWS
            self._open.add(window)
        if ts > self.newest[source]:
            self.newest[source] = ts
            if ts >= self._raise_at:
                self._raise(at_s)
        return window, Outcome.HELD

    def due(self, *, at_s: float) -> list[int]:
        """Return the windows that are over, each once, oldest first."""
        alive = self._alive(at_s)
        self._raise(at_s)
        if not alive and self._open:
            self._move_floor(max(self._open) + 1)
        over, self._over = sorted(self._over), set()
        return over

    def _alive(self, at_s: float) -> list[int]:
        return [s for s, h in enumerate(self._heard_s) if at_s - h <= self.rule.silence_s]

    def _raise(self, at_s: float) -> None:
        """Let the watermark take the floor with it."""
        watermark = self.watermark(at_s=at_s)
        if watermark > -inf:
            self._move_floor(self.rule.window_of(watermark))
            # Until some source tells of this time nothing changes.
            self._raise_at = self.rule.span(self.floor)[1] + self.rule.lateness_s

    def _move_floor(self, floor: int) -> None:
        if floor > self.floor:
            self.floor = floor
            self._part_from_the_over()

    def _part_from_the_over(self) -> None:
        over = {window for window in self._open if window < self.floor}
        self._open -= over
        self._over |= over

"""Troubles of an input, recognized by counts; each is reported once, until it is over.

- Ids change although the settings say that they stay. A vehicle under a new id then has its former
  self for company: groups hold fewer than k vehicles.
- Nothing arrives on a connection. It is no fault of the gateway, so readiness does not depend on
  it: devices may be off at night.
- Regions exceed the cap: devices are not published because of a setting.
- There is no room for all that arrives: who comes first keeps others out.
"""

from collections.abc import Mapping
from math import inf

from anonymizer.algorithms.positions.id_succession import Succession
from anonymizer.domain.outcomes import Outcome

IDS_CHANGE = (
    "new ids begin where others ended, so vehicles seem to change their ids and count twice: set"
    " ids_change_s of the input"
)
"""What is wrong, and what to do."""
WHY_SILENT = (
    "no device publishes to these topics (compare a device's own topic, level by level), or the"
    " access rules of the broker let this user subscribe but not read"
)
"""What is likely to be wrong."""
_MOST = 0.1
"""Reported while so large a share of what is settled is suppressed with this reason."""
TOO_LARGE = (
    "regions: many positions are suppressed because a region that hides them would need more nodes"
    " than region.max_nodes allows"
)

_FULL_S = 3.0
_ROOM_S = 30.0
NO_ROOM = (
    "inputs: positions are lost because there is no room for more devices or messages: look in the"
    " broker's log for a user who publishes under many ids or very often, else raise"
    " presence.max_devices"
)
TOO_SLOW = (
    "inputs: positions are lost because ticks take longer than tick.interval_s: kernels are still"
    " being compiled, as the log says, or there is too little CPU for so many positions"
)
"""What is wrong, and what to do; it contains no number."""


class NoRoomWatch:
    """Watches positions that are lost as overload: a table or queue is full, or ticks are late.

    It reports once they have been lost for some seconds, and again only after there was room for
    longer. A burst that passes sooner is in the counts alone.
    """

    def __init__(self) -> None:
        self._n: int | None = None
        self._since_s: float | None = None
        self._last_s = 0.0
        self._reported = False
        self._n_late, self._late_s, self._why = 0, -inf, NO_ROOM

    def see(self, counts: Mapping[Outcome, int], *, n_late: int, at_s: float) -> bool:
        """Take in counts since any time, at a monotonic time; return whether it has just begun.

        `n_late`: ticks that were late. Who is late keeps the newest position of each device.
        """
        n = counts.get(Outcome.SUPPRESSED__OVERLOAD, 0)
        before, self._n = self._n, n
        if n_late > self._n_late:
            self._n_late, self._late_s = n_late, at_s
        if before is not None and n > before:
            self._why = TOO_SLOW if at_s - self._late_s <= _ROOM_S else NO_ROOM
            self._since_s = at_s if self._since_s is None else self._since_s
            self._last_s = at_s
        elif self._since_s is not None and at_s - self._last_s > _ROOM_S:
            self._since_s = None
        was, lasts = self._reported, self._since_s is not None
        self._reported = lasts and (was or self._last_s - (self._since_s or 0.0) >= _FULL_S)
        return self._reported and not was

    @property
    def problems(self) -> list[str]:
        """A sentence for readiness while they are lost."""
        return [self._why] if self._reported else []


class ChangingIds:
    """Reports once that ids change, and again only after they have stayed."""

    def __init__(self) -> None:
        self._reported = False

    def see(self, succession: Succession) -> bool:
        """Return whether it is to be reported now that ids change."""
        before, self._reported = self._reported, succession.ids_change
        return self._reported and not before


class SilentConnection:
    """Watches one connection. It reports once, and again only after a lost connection.

    `after_s`: how long a connection must have been up without a message; 0: it never reports.
    """

    def __init__(self, *, after_s: float) -> None:
        self._after_s = after_s
        self._since_s: float | None = None
        self._n_before: int | None = None
        self._settled = not after_s

    def see(self, n_arrived: int, *, connected: bool, at_s: float) -> bool:
        """Take in the state of the connection; return whether its silence is to be reported.

        `n_arrived`: how many messages have arrived, since any time.
        """
        if not connected or self._n_before is None:
            self._n_before = n_arrived
        if not connected:
            self._since_s, self._settled = None, not self._after_s
            return False
        if self._since_s is None:
            self._since_s = at_s
        if self._settled or n_arrived != self._n_before:
            self._settled = True
            return False
        self._settled = at_s - self._since_s >= self._after_s
        return self._settled


class TooLargeWatch:
    """Watches the counts of positions.

    Members of a group whose region would exceed `region.max_nodes` are suppressed until it ends.
    Places are never made smaller to fit, so the cap decides who is published at all: that must not
    go unnoticed.

    `look_s`: how long to count: the life of a group.
    """

    def __init__(self, *, look_s: float) -> None:
        self._look_s = look_s
        self._since: tuple[float, int, int] | None = None
        self._share = 0.0

    def see(self, counts: Mapping[Outcome, int], *, at_s: float) -> bool:
        """Take in counts; return whether the problem has just begun.

        `counts`: how many positions had each final outcome, since any time.
        """
        now = at_s, counts.get(Outcome.SUPPRESSED__REGION_TOO_LARGE, 0), sum(counts.values())
        if self._since is None:
            self._since = now
        if at_s - self._since[0] < self._look_s:
            return False
        was = bool(self.problems)
        n = now[2] - self._since[2]
        self._share = (now[1] - self._since[1]) / n if n else 0.0
        self._since = now
        return bool(self.problems) and not was

    @property
    def problems(self) -> list[str]:
        """A sentence for readiness if the share is too large; it contains no number."""
        return [TOO_LARGE] if self._share >= _MOST else []

"""Effort of a search: what it may use, and what it has used.

By work, equal searches end with equal classes, however fast or busy the machine is. By a clock,
they end in time.
"""

from collections.abc import Callable


class Effort:
    """What a search may use: time by a clock, or work, or both without a limit.

    Parameters
    ----------
    keep_going
        Once False, the search ends.
    time_left
        Share of the time that is left, from 1 down to 0. None: it is not known.
    work
        How much work may be done, in the unit of `make_moves`; then the time is not asked for.
    """

    def __init__(
        self,
        keep_going: Callable[[], bool],
        time_left: Callable[[], float] | None,
        work: int | None,
    ) -> None:
        self._keep_going, self._time_left, self.work = keep_going, time_left, work
        self.used = 0

    @property
    def is_limited(self) -> bool:
        """Whether it is known when the search will end."""
        return self.work is not None or self._time_left is not None

    def spend(self, work: int) -> None:
        """Count work that was done."""
        self.used += work

    def left(self) -> float:
        """Return the share that is left; 1 where no limit is known."""
        if self.work is not None:
            return max(1 - self.used / self.work, 0.0) if self.work else 0.0
        return 1.0 if self._time_left is None else self._time_left()

    def goes_on(self) -> bool:
        """Return whether anything is left."""
        return self._keep_going() and self.left() > 0

    def until(self, left: float) -> Callable[[], bool]:
        """Return what tells whether the search goes on, and more than this share is left."""
        return lambda: self.goes_on() and (not self.is_limited or self.left() > left)

    def portion(self, share: float) -> "Effort":
        """Return this share of what is left now; its work has to be spent here, too."""
        if self.work is not None:
            most = int((self.work - self.used) * share)
            return Effort(self._keep_going, None, max(most, 0))
        first = self.left()
        leave = first * (1 - share)

        def left() -> float:
            return max((self.left() - leave) / (first - leave), 0.0) if first > leave else 0.0

        return Effort(self._keep_going, None if self._time_left is None else left, None)

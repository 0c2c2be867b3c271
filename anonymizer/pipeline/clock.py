"""Steady clock: unix time that runs on evenly when the wall clock is put forward or back."""

from collections.abc import Callable

_LEAST_JUMP_S = 0.05
"""Smaller differences are taken for delays between two readings. Both clocks of an operating system
run at the rate that its time service sets, so they do not drift apart."""


class SteadyClock:
    """The wall clock's time at the start, continued by the monotonic clock.

    Whatever is kept from tick to tick is dated by it, so a jump of the wall clock makes nothing
    late and expires nothing. Times that devices state, and published times, are those of the wall
    clock: they differ from it by `wall_ahead_s`.

    `on_jump`: called with the seconds by which the wall clock was put forward, negative for back.
    """

    def __init__(
        self,
        *,
        wall: Callable[[], float],
        monotonic: Callable[[], float],
        on_jump: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._on_jump = on_jump
        self._zero_s = wall() - monotonic()
        self._ahead_s = 0.0

    def now(self) -> float:
        """Return unix seconds."""
        return self._zero_s + self._monotonic()

    def wall_ahead_s(self) -> float:
        """Return how far the wall clock is ahead. It changes only when the wall clock is set."""
        before_s = self.now()
        wall_s = self._wall()
        delay_s = self.now() - before_s
        jump_s = wall_s - before_s - delay_s / 2 - self._ahead_s
        if abs(jump_s) > _LEAST_JUMP_S + delay_s:
            self._ahead_s += jump_s
            self._on_jump(jump_s)
        return self._ahead_s

"""How far the bridges have come, by what they state."""

from collections.abc import Collection, Sequence

from anonymizer.cluster.positions.raw_batches import Raw


class Frontier:
    """The last tick that all bridges have stated.

    `n_behind`: by how many ticks the newest statement is before it, because a clock was ahead.
    A bridge that has stated nothing for `wait_s` seconds, of the inputs' time, is not waited for.
    """

    def __init__(self, *, wait_s: float) -> None:
        self._wait_s = wait_s
        self.tick: int | None = None
        self.n_behind = 0
        self._stated: dict[str, tuple[int, float]] = {}

    def passes(self, raw: Raw, *, now: float) -> bool:
        """Take what a bridge states; return whether the frontier has moved."""
        before = self._stated.get(raw.bridge, (raw.tick, now))[0]
        self._stated[raw.bridge] = max(before, raw.tick), now
        self.n_behind = 0 if self.tick is None else max(0, self.tick - raw.tick)
        if raw.last:
            del self._stated[raw.bridge]
        since = now - self._wait_s
        self._stated = {name: at for name, at in self._stated.items() if at[1] >= since}
        tick = min((tick for tick, _ in self._stated.values()), default=raw.tick)
        if self.tick is not None and tick <= self.tick:
            return False
        self.tick = tick
        return True

    @property
    def bridges(self) -> Collection[str]:
        """The bridges that are waited for."""
        return self._stated.keys()

    def state(self) -> list[object]:
        """Return all that changes."""
        return [self.tick, [[name, *at] for name, at in self._stated.items()]]

    def restore(self, tick: int | None, stated: Sequence[tuple[str, int, float]]) -> None:
        """Go on from a state."""
        self.tick, self._stated = tick, {name: (last, at) for name, last, at in stated}

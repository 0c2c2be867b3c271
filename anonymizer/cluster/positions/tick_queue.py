"""Messages of bridges that wait for their ticks, and how far each bridge has come."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anonymizer.cluster.positions.raw_batches import Raw, decode_raw, encode_raw
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.newest_messages import newest_of_each_topic
from anonymizer.pipeline.packed_deliveries import MAX_WAITING_BYTES, PackedDeliveries, waiting_bytes
from anonymizer.pipeline.positions.tick.inbox import Arrivals


class TickQueue:
    """A bounded queue of messages, by tick.

    A tick is due when every bridge has stated it that stated a new tick within `wait_s`, or when it
    has waited for so long itself. At the start nobody knows which bridges there are, so the first
    tick waits for `wait_s`. A tick that some bridge has stated does not wait for others if half of
    what may wait is there: what comes later belongs to the next one, and nothing has to yield.

    Beyond `limit` messages and `max_bytes` each yields to a newer one of its topic, and the oldest
    yield if that is not enough. `wait_s`: seconds of the inputs' time. `last`: the tick that was
    taken last. `n_late`: messages that came after their tick was taken, and wait for the next;
    `n_incomplete`: ticks that were due although a bridge had not stated them. `n_behind`: by how
    many ticks the newest statement is before `last`, because a clock was ahead; then all wait.
    """

    def __init__(
        self,
        limit: int,
        ledger: Ledger,
        *,
        wait_s: float,
        is_shared: Callable[[str], bool] | None = None,
        max_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._limit, self._max_bytes = limit, max_bytes
        self._ledger = ledger
        self._wait_s = wait_s
        self._is_shared = is_shared
        self.last: int | None = None
        self.n_waiting = self._n_bytes = self.n_late = self.n_incomplete = self.n_behind = 0
        self.now = -np.inf
        self._begun_at: float | None = None
        self._bridges: dict[str, tuple[int, float]] = {}
        """Tick that each has stated, and when."""
        self._since_of: dict[int, float] = {}
        """When each tick that is to come was first stated."""
        self._waiting: dict[int, list[Arrivals]] = {}

    def pass_time(self, at_s: float) -> None:
        """Let time go on to when an input was written; it never goes back."""
        self.now = max(self.now, at_s)

    def put(self, raw: Raw) -> None:
        """Take in what a bridge has sent."""
        stated = self._bridges.get(raw.bridge, (raw.tick - 1, 0.0))[0]
        if self._begun_at is None:
            self._begun_at = self.now
        self.n_behind = 0 if self.last is None else max(0, self.last - raw.tick)
        # What belongs to a tick comes before the statement of that tick or together with it.
        tick = max(raw.tick, stated + 1)
        if raw.last:
            self._bridges.pop(raw.bridge, None)
        elif raw.tick > stated and (self.last is None or raw.tick > self.last):
            self._bridges[raw.bridge] = raw.tick, self.now
        n = sum(len(batch.deliveries) for batch in raw.arrivals)
        is_late = self.last is not None and tick <= self.last
        if self.last is not None and is_late:
            self.n_late += n
            tick = self.last + 1
        if n or (raw.tick > stated and not is_late):
            self._since_of.setdefault(tick, self.now)
        if n:
            self._waiting.setdefault(tick, []).extend(raw.arrivals)
            self._ledger.receive(n)
            self._count(raw.arrivals, 1)
            if self.n_waiting > self._limit or self._n_bytes > self._max_bytes:
                self._keep_newest()

    def due(self) -> int | None:
        """Return the tick that may be taken next, None if it is to be waited for."""
        if not self._since_of or self._begun_at is None:
            return None
        tick = min(self._since_of)
        if self._presses and any(stated >= tick for stated, _ in self._bridges.values()):
            return tick
        if self.last is None and self.now - self._begun_at <= self._wait_s:
            return None
        if self._is_stated(tick) or self.now - self._since_of[tick] > self._wait_s:
            return tick
        return None

    @property
    def _presses(self) -> bool:
        """Whether half of what may wait is there."""
        return 2 * self.n_waiting > self._limit or 2 * self._n_bytes > self._max_bytes

    @property
    def bridges(self) -> set[str]:
        """Names of the bridges that state ticks."""
        since = self.now - self._wait_s
        return {name for name, (_, at) in self._bridges.items() if at >= since}

    def _is_stated(self, tick: int) -> bool:
        """Return whether every bridge that states ticks has stated this one."""
        return all(self._bridges[name][0] >= tick for name in self.bridges)

    def take(self, tick: int) -> list[Arrivals]:
        """Return the messages of the tick that is due."""
        self.n_incomplete += not self._is_stated(tick)
        self.last = tick
        self._since_of.pop(tick)
        forgotten = self.now - self._wait_s
        self._bridges = {name: at for name, at in self._bridges.items() if at[1] >= forgotten}
        arrivals = self._waiting.pop(tick, [])
        self._count(arrivals, -1)
        return arrivals

    def _count(self, arrivals: Sequence[Arrivals], sign: int) -> None:
        self.n_waiting += sign * sum(len(batch.deliveries) for batch in arrivals)
        self._n_bytes += sign * sum(waiting_bytes(batch.deliveries) for batch in arrivals)

    def _count_anew(self) -> None:
        self.n_waiting = self._n_bytes = 0
        for arrivals in self._waiting.values():
            self._count(arrivals, 1)

    def _keep_newest(self) -> None:
        """Keep three quarters of the limits at most, so that this is done seldom."""
        ticks = [(tick, batch) for tick in sorted(self._waiting) for batch in self._waiting[tick]]
        left = newest_of_each_topic(
            [PackedDeliveries.of(batch.deliveries) for _, batch in ticks],
            is_shared=self._is_shared,
            most=self._limit - self._limit // 4,
            max_bytes=self._max_bytes - self._max_bytes // 4,
        )
        self._waiting = {}
        for (tick, batch), rest in zip(ticks, left, strict=True):
            if len(rest):
                self._waiting.setdefault(tick, []).append(Arrivals(batch.at_s, rest))
        n_before = self.n_waiting
        self._count_anew()
        self._ledger.settle(Outcome.SUPPRESSED__OVERLOAD, n_before - self.n_waiting)

    def state(self) -> dict[str, Any]:
        """Return what changes with each input."""
        return {
            "last": self.last,
            "counts": [self.n_late, self.n_incomplete],
            "now": self.now,
            "begun_at": self._begun_at,
            "bridges": [[name, *stated] for name, stated in self._bridges.items()],
            "since_of": list(self._since_of.items()),
            "waiting": [
                encode_raw(Raw("-", tick, False, _packed(batches)))
                for tick, batches in self._waiting.items()
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.last, self.now = state["last"], state["now"]
        self.n_late, self.n_incomplete = state["counts"]
        self._begun_at = state["begun_at"]
        self._bridges = {name: (tick, at) for name, tick, at in state["bridges"]}
        self._since_of = dict(state["since_of"])
        waiting = map(decode_raw, state["waiting"])
        self._waiting = {raw.tick: list(raw.arrivals) for raw in waiting}
        self._count_anew()


def _packed(batches: Sequence[Arrivals]) -> list[Arrivals]:
    return [Arrivals(batch.at_s, PackedDeliveries.of(batch.deliveries)) for batch in batches]

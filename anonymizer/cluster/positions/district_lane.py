"""The lane of a district: its inputs in any order, its ticks in order.

A lane closes a tick when all sources have stated that they have nothing more for it: what it
publishes then depends on what was sent, and on nothing else. If a source stays silent for too long,
the tick closes without it, and what it sends later belongs to the next. No promise is broken.

Only inputs make time advance. A lane that is given the same inputs in the same order therefore
makes the same ticks again.
"""

from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.cloaks.protocol import State
from anonymizer.algorithms.positions.district import District, DistrictTick
from anonymizer.algorithms.positions.district_routing import join_rows
from anonymizer.cluster.positions.stage_messages import Batch, decode_batch, encode_batch


def closes_at(tick: int, interval_s: float) -> float:
    """Return when a tick closes, unix seconds: tick t covers [t, t + 1) intervals."""
    return (tick + 1) * interval_s


class Closed(NamedTuple):
    """A tick of a district that has closed.

    `at_s`: the time at which its positions were current, unix seconds; `batches`: those whose rows
    are in it, in the order of the outcomes.
    """

    tick: int
    at_s: float
    result: DistrictTick
    batches: list[Batch]


class DistrictLane:
    """Collects the inputs of one district and closes its ticks.

    A tick waits for `wait_s`, from the first batch for it, before it closes without sources that
    are silent. The positions of a tick are `latency_s` older than it. `last`: the tick that closed
    last. `n_incomplete`: ticks that closed without all sources; `n_late`: batches that came after
    their tick had closed, and went into the next.
    """

    def __init__(
        self,
        district: District,
        *,
        n_sources: int,
        interval_s: float,
        wait_s: float,
        latency_s: float = 0.0,
    ) -> None:
        self.district = district
        self._latency_s = latency_s
        self._interval_s, self._wait_s = interval_s, wait_s
        self.last: int | None = None
        self.n_closed = self.n_incomplete = self.n_late = 0
        self._now = -np.inf
        self._first_of: list[int | None] = [None] * n_sources
        self._heard: list[int | None] = [None] * n_sources
        self._batches: dict[int, list[Batch]] = {}
        self._since_of: dict[int, float] = {}
        self._late: list[Batch] = []

    def take(self, batch: Batch, *, at_s: float) -> None:
        """Take a batch; those of a source come in the order of ticks, and some again.

        `at_s`: when it was written, unix seconds.
        """
        self._now = max(self._now, at_s)
        heard = self._heard[batch.source]
        if heard is not None and batch.tick <= heard:
            return
        if heard is None:
            self._first_of[batch.source] = batch.tick
        self._heard[batch.source] = batch.tick
        if self.last is not None and batch.tick <= self.last:
            self.n_late += 1
            self._late.append(batch)
        else:
            self._batches.setdefault(batch.tick, []).append(batch)
            self._since_of.setdefault(batch.tick, self._now)

    def close(self) -> Closed | None:
        """Close the next tick if it is complete, or if it has waited for too long."""
        if self.last is None:
            self._begin()
        if not self._batches:
            return None
        tick = min(self._batches)
        heard = all(each is not None and each >= tick for each in self._heard)
        if not heard and self._now - self._since_of[tick] <= self._wait_s:
            return None
        batches = self._late + self._batches.pop(tick)
        at_s = closes_at(tick, self._interval_s) - self._latency_s
        for batch in batches:
            if len(batch.withdrawn):
                self.district.withdraw(batch.withdrawn)
        result = self.district.tick(join_rows([batch.rows for batch in batches]), now=at_s)
        self.last, self._late = tick, []
        self._since_of.pop(tick)
        self.n_closed += 1
        self.n_incomplete += not heard
        return Closed(tick, at_s, result, batches)

    def _begin(self) -> None:
        """Begin at the largest first tick of the sources that were heard so far."""
        first = max((first for first in self._first_of if first is not None), default=-np.inf)
        for tick in sorted(tick for tick in self._batches if tick < first):
            self._late += self._batches.pop(tick)
            self._since_of.pop(tick)

    def state(self) -> State:
        """Return what changes with each input."""
        return {
            "district": self.district.state(),
            "last": self.last,
            "counts": [self.n_closed, self.n_incomplete, self.n_late],
            "now": self._now,
            "first_of": self._first_of,
            "heard": self._heard,
            "batches": [[encode_batch(batch) for batch in of] for of in self._batches.values()],
            "since_of": list(self._since_of.items()),
            "late": [encode_batch(batch) for batch in self._late],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of a lane of the same district."""
        self.district.restore(state["district"])
        self.last = state["last"]
        self.n_closed, self.n_incomplete, self.n_late = state["counts"]
        self._now = state["now"]
        self._first_of, self._heard = state["first_of"], state["heard"]
        self._batches = {}
        for batches in state["batches"]:
            parts = list(map(decode_batch, batches))
            self._batches[parts[0].tick] = parts
        self._since_of = dict(state["since_of"])
        self._late = list(map(decode_batch, state["late"]))

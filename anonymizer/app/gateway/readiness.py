"""Readiness of a gateway: what `/healthz` and `/readyz` say is wrong with it."""

import time
from collections.abc import Callable

from anonymizer.app.gateway.sides import Sides
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.settings import TickSettings

_STALLED_S = 10.0


class Readiness:
    """Looks at the ticks of a gateway, and asks all of its sides."""

    def __init__(
        self,
        tick: TickSettings,
        flow: PositionFlow,
        sides: Sides,
        *,
        stopping: Callable[[], bool],
    ) -> None:
        self._tick, self._flow, self._sides, self._stopping = tick, flow, sides, stopping

    def why_dead(self) -> list[str]:
        """Return why the process should be started anew; empty: it lives."""
        silent_s = time.monotonic() - self._flow.stats.last_tick_s
        # A broker that accepts nothing delays a tick by up to the deadline of publishing.
        patience_s = self._tick.interval_s + self._tick.drain_s + _STALLED_S
        return [f"no tick for {silent_s:.0f} s"] if silent_s > patience_s else []

    def notes(self) -> list[str]:
        """Return what may be as it should be, or not: no message has arrived yet."""
        return [*self._sides.notes()]

    def why_not_ready(self) -> list[str]:
        """Return what is wrong; empty: nothing is."""
        stopping = ["stopping"] if self._stopping() else []
        return [*self.why_dead(), *self._sides.problems(), *stopping]

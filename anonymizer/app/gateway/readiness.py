"""Readiness of a gateway: what `/healthz` and `/readyz` say is wrong with it."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from anonymizer.app.gateway.input_watch import InputWatch
from anonymizer.app.gateway.unsent import Unsent
from anonymizer.app.gateway.wrong_clock import AheadOfClock
from anonymizer.app.gateway.zones_link import ZonesLink
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.settings import TickSettings
from anonymizer.transport import MqttLink
from anonymizer.transport.backlog import Backlog

if TYPE_CHECKING:
    from anonymizer.app.gateway.recorder import Recorder
    from anonymizer.transport.kafka import KafkaLink

_STALLED_S = 10.0


class Readiness:
    """Looks at the parts of a gateway.

    Parameters
    ----------
    tick
        Settings of the ticks.
    flow, link, zones, backlog, records, watch, unsent, ahead
        The parts; None: the gateway has none.
    stopping
        Returns whether the gateway ends.
    """

    def __init__(
        self,
        tick: TickSettings,
        flow: PositionFlow,
        link: "MqttLink | KafkaLink",
        *,
        zones: ZonesLink | None,
        backlog: Backlog | None,
        records: "Recorder | None",
        watch: InputWatch,
        unsent: Unsent,
        ahead: AheadOfClock,
        stopping: Callable[[], bool],
    ) -> None:
        self._tick, self._flow, self._link = tick, flow, link
        self._zones, self._backlog, self._records = zones, backlog, records
        self._watch, self._unsent, self._stopping = watch, unsent, stopping
        self._ahead = ahead

    def why_dead(self) -> list[str]:
        """Return why the process should be started anew; empty: it lives."""
        silent_s = time.monotonic() - self._flow.stats.last_tick_s
        # A broker that accepts nothing delays a tick by up to the deadline of publishing.
        patience_s = self._tick.interval_s + self._tick.drain_s + _STALLED_S
        return [f"no tick for {silent_s:.0f} s"] if silent_s > patience_s else []

    def notes(self) -> list[str]:
        """Return what may be as it should be, or not: no message has arrived yet."""
        return [*self._watch.notes, *(self._link.lacks if isinstance(self._link, MqttLink) else ())]

    def _of_broker(self) -> list[str]:
        """Return what is wrong with the broker, as it or the system says."""
        link, problems = self._link, []
        if not link.connected:
            said = link.problem if isinstance(link, MqttLink) else ""
            refused = said.startswith("subscription refused")  # of all filters
            why = said if refused else ": ".join(filter(None, ["not connected", said]))
            problems.append(f"broker: {why}")
        if isinstance(link, MqttLink) and link.blocked:
            problems.append(f"broker: {link.blocked}")
        refusals = [*link.refused, *(self._records.refused if self._records else ())]
        return problems + [f"broker: subscription refused: {each}" for each in refusals]

    def why_not_ready(self) -> list[str]:
        """Return what is wrong; empty: nothing is."""
        problems = self.why_dead()
        problems += self._of_broker()
        if self._zones and not self._zones.connected:
            problems.append("broker: not connected for zones")
        if self._zones and self._zones.full:
            problems.append(
                "zones: there is no room for those of some devices, so these are hidden everywhere"
            )
        if self._records and not self._records.connected:
            problems.append("broker: not connected for records")
        if self._records and not self._records.usable:
            problems.append("store: cannot be used, so records wait at the broker")
        if self._records and self._records.session.problem:
            problems.append(self._records.session.problem)
        if self._records:
            problems += self._records.problems
        if self._backlog and self._link.connected and self._backlog.is_too_old:
            problems.append(self._backlog.problem)
        problems += [*self._watch.problems, *self._unsent.problems, *self._ahead.problems]
        if self._stopping():
            problems.append("stopping")
        return problems

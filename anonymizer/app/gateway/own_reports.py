"""Reports of a gateway on itself: what it did not publish and why, its state for Home Assistant.

Their figures are those of the public ledger.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from anonymizer.app.gateway.input_watch import InputWatch
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.counts.figures import Figures
from anonymizer.pipeline.positions.counts.public_ledger import PublicLedger
from anonymizer.settings import Settings
from anonymizer.transport import MqttLink

if TYPE_CHECKING:
    from anonymizer.transport.kafka import KafkaLink

_TIMEOUT_S = 1.0


def rejected(figures: Figures) -> dict[str, int]:
    """Return the figures of what was not published, by `outcome/reason`; no zeros."""
    return {
        "/".join(filter(None, label)): n
        for label, n in figures.n_of.items()
        if n and label != Outcome.PUBLISHED.label
    }


def why_topic(settings: Settings) -> str:
    """Return the topic on which it is stated why nothing is published."""
    return f"{settings.broker.status_topic}/why"


class OwnReports:
    """Publishes the reports of a gateway on itself.

    `refused`: returns that the broker refuses groups; empty: it does not.
    """

    def __init__(
        self,
        settings: Settings,
        public: PublicLedger,
        link: "MqttLink | KafkaLink",
        *,
        watch: InputWatch,
        refused: Callable[[], str],
        ready: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._public = public
        self._link = link
        self._ready, self._watch, self._refused = ready, watch, refused
        self._said: tuple[str, int] | None = None
        self._reported: dict[str, int] = {}
        self._described_at = 0

    async def run(self) -> None:
        """Publish the reports again and again."""
        while True:
            await asyncio.sleep(self._settings.tick.report_every_s)
            self._watch.turn()
            await self._publish_rejected()
            await self._publish_silence()
            await self._publish_state()

    async def close(self) -> None:
        """Publish the last counts, and clear the reason why nothing is published."""
        await self._publish_rejected()
        await self._publish_silence(over=True)

    async def _publish_rejected(self) -> None:
        """Publish of how many devices something was not used since the previous report, and why."""
        counts = rejected(self._public.shown)
        fresh = {
            reason: n - self._reported.get(reason, 0)
            for reason, n in counts.items()
            if n > self._reported.get(reason, 0)
        }
        if fresh:
            body = msgspec.json.encode({"time": round(time.time(), 3), "rejected": fresh})
            message = Outgoing(self._settings.topics.rejected, body)
            if all(await self._link.publish([message], qos=0, timeout_s=_TIMEOUT_S)):
                self._reported = counts

    async def _publish_silence(self, *, over: bool = False) -> None:
        """State, retained, why nothing is published; the broker keeps nothing if something is.

        `over`: whether the gateway stops: then it has nothing more to say.
        """
        why = "" if over else self._refused() or self._watch.silent
        # At a new connection the broker may keep a sentence of an earlier run.
        said = why, self._link.counts.n_connections
        if said == self._said or not (self._settings.inputs and self._link.connected):
            return
        topic = why_topic(self._settings)
        message = Outgoing(topic, why.encode(), retain=True)
        if all(await self._link.publish([message], qos=0, timeout_s=_TIMEOUT_S)):
            self._said = said

    async def _publish_state(self) -> None:
        """Publish the state for Home Assistant, and before it, at each connection, what it is."""
        if "home_assistant" not in self._settings.output.forms or not self._link.connected:
            return
        from anonymizer.app.gateway.home_assistant import (  # noqa: PLC0415  few gateways need it
            discovery,
            state,
        )

        n_connections = self._link.counts.n_connections
        messages = [state(self._settings, self._public.shown, ready=self._ready())]
        if self._described_at != n_connections:
            messages.insert(0, discovery(self._settings))
        if all(await self._link.publish(messages, qos=0, timeout_s=_TIMEOUT_S)):
            self._described_at = n_connections

"""Reports of a gateway on itself: what it did not publish and why, its state for Home Assistant.

Their counts are public ones, see `public_counts`.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.counts.public_counts import PublicCounts
from anonymizer.settings import Settings
from anonymizer.transport import MqttLink

if TYPE_CHECKING:
    from anonymizer.transport.kafka import KafkaLink

_TIMEOUT_S = 1.0


def why_topic(settings: Settings) -> str:
    """Return the topic on which it is stated why nothing is published."""
    return f"{settings.broker.status_topic}/why"


class OwnReports:
    """Publishes the reports of a gateway on itself.

    Parameters
    ----------
    settings
        The whole settings.
    public
        Public counts of the gateway.
    link
        Where to publish.
    ready
        Returns whether the gateway is ready.
    silent
        Returns why nothing is published, empty if there is nothing to say.
    """

    def __init__(
        self,
        settings: Settings,
        public: PublicCounts,
        link: "MqttLink | KafkaLink",
        *,
        ready: Callable[[], bool],
        silent: Callable[[], str],
    ) -> None:
        self._settings = settings
        self._public = public
        self._link = link
        self._ready = ready
        self._silent = silent
        self._said: tuple[str, int] | None = None
        self._reported: dict[str, int] = {}
        self._described_at = 0

    async def publish_rejected(self) -> None:
        """Publish how many positions were not published since the previous report, by reason."""
        counts = self._public.not_published()
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

    async def publish_silence(self, *, over: bool = False) -> None:
        """State, retained, why nothing is published; the broker keeps nothing if something is.

        Parameters
        ----------
        over
            Whether the gateway stops: then it has nothing more to say.
        """
        why = "" if over else self._silent()
        # At a new connection the broker may keep a sentence of an earlier run.
        said = why, self._link.counts.n_connections
        if said == self._said or not (self._settings.inputs and self._link.connected):
            return
        topic = why_topic(self._settings)
        message = Outgoing(topic, why.encode(), retain=True)
        if all(await self._link.publish([message], qos=0, timeout_s=_TIMEOUT_S)):
            self._said = said

    async def publish_state(self) -> None:
        """Publish the state for Home Assistant, and before it, at each connection, what it is."""
        if self._settings.forms.home_assistant is None or not self._link.connected:
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

"""Drops of the broker: how many messages it reports to have dropped.

A broker silently drops what its queues cannot hold. Only its own count shows how much of the input
never arrived.
"""

from collections.abc import Sequence

from anonymizer.pipeline.ports import Delivery, LinkCounts
from anonymizer.settings import BrokerSettings
from anonymizer.transport.connecting import client_id_of
from anonymizer.transport.link import MqttLink


class BrokerDrops:
    """Reads the count on a connection of its own, which no burst of input delays.

    Parameters
    ----------
    broker
        Settings of the broker; `drops_topic` must be set.
    key
        Secret for the client id, see `client_id_of`.
    """

    def __init__(self, broker: BrokerSettings, *, key: bytes) -> None:
        assert broker.drops_topic is not None  # noqa: S101  the caller asked
        self.n: int | None = None
        """Messages dropped since the broker was started; None: not known yet."""
        self._link = MqttLink(
            broker.model_copy(update={"session_expiry_s": 0}),
            client_id=client_id_of(broker, key=key, role="drops"),
            subscriptions=[(broker.drops_topic, 0)],
            deliver=self._deliver,
        )

    @property
    def counts(self) -> LinkCounts:
        """Counts of the connections."""
        return self._link.counts

    async def run(self) -> None:
        """Read the count until `close`."""
        await self._link.run()

    async def close(self) -> None:
        """Disconnect, so that `run` returns."""
        await self._link.close()

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        newest = deliveries[-1].payload
        if newest.isdigit():
            self.n = int(newest[:20])

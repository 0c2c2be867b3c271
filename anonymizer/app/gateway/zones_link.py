"""Connection on which devices state privacy zones of their own, apart from their positions.

A queue of positions can therefore neither delay nor displace a statement. The connection keeps no
session: whenever it is made, the broker sends everything that it retains.
"""

from collections.abc import Sequence
from functools import partial

import structlog

from anonymizer.observe.logs import log_quarantined
from anonymizer.pipeline.ports import Delivery, LinkCounts
from anonymizer.pipeline.positions.device_zones import DeviceZones
from anonymizer.pipeline.positions.topics import subscription
from anonymizer.settings import Settings
from anonymizer.transport import MqttLink
from anonymizer.transport.connecting import client_id_of

_GOODBYE_S = 2.0


class ZonesLink:
    """Passes the statements of devices on to their zones.

    Parameters
    ----------
    settings
        The whole settings.
    zones
        Receives the statements.
    key
        See `client_id_of`.
    """

    def __init__(self, settings: Settings, zones: DeviceZones, *, key: bytes) -> None:
        self._zones = zones
        self._log = structlog.get_logger()
        self._closing = False
        self._link = MqttLink(
            settings.broker.model_copy(update={"session_expiry_s": 0}),
            client_id=client_id_of(settings.broker, key=key, role="zones"),
            subscriptions=[(subscription(settings.device_zones.topic), 1)],
            deliver=self._deliver,
            on_state=self._on_state,
            close_timeout_s=_GOODBYE_S,
            max_payload_bytes=settings.device_zones.max_payload_bytes,
            on_quarantined=partial(log_quarantined, "zones"),
        )

    @property
    def connected(self) -> bool:
        """Whether statements can arrive now."""
        return self._link.connected

    @property
    def counts(self) -> LinkCounts:
        """Counts of the connections."""
        return self._link.counts

    async def until_connected(self) -> None:
        """Wait until the broker has accepted the subscription."""
        await self._link.until_connected()

    async def run(self) -> None:
        """Keep the connection until `close`."""
        await self._link.run()

    async def close(self) -> None:
        """Disconnect, so that `run` returns."""
        self._closing = True
        await self._link.close()

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        self._zones.put(deliveries)
        self._link.acknowledge([each.receipt for each in deliveries if each.receipt])

    def _on_state(self, connected: bool, reason: str) -> None:  # noqa: FBT001  the link's callback
        if connected:
            self._log.info("broker connected for zones")
        elif not self._closing:
            self._log.warning("no broker for zones", reason=reason)

"""Connection on which devices state privacy zones of their own, apart from their positions.

A queue of positions can therefore neither delay nor displace a statement. The connection keeps no
session, so the broker sends all that it retains whenever the connection is made. It is made anew
when there is room again for devices that had been left out.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import structlog

from anonymizer.app.gateway.sides import GatewaySide, Service
from anonymizer.observe.logs import log_quarantined
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decode.topics import subscription
from anonymizer.pipeline.positions.tick.device_zones import ZONES_BYTES, DeviceZones
from anonymizer.settings import Settings
from anonymizer.transport import MqttLink
from anonymizer.transport.connecting import client_id_of

_GOODBYE_S = 2.0
_LOOK_S = 1.0
_APPLIED_S = 0.02
_HEAR_S = 10.0
_AGAIN_S = 60.0
"""Everything retained is asked for once more at most so often, and heard for `_HEAR_S`."""


class ZonesLink:
    """Passes the statements of devices on to their zones, and acknowledges them once they apply.

    Parameters
    ----------
    zones
        Receives the statements.
    key
        See `client_id_of`.
    withdraw
        Is told which devices take no part (true), and which do. None: nobody else has anything of
        them.
    """

    def __init__(
        self,
        settings: Settings,
        zones: DeviceZones,
        *,
        key: bytes,
        withdraw: Callable[[Mapping[str, bool]], Awaitable[None]] | None = None,
    ) -> None:
        self._zones = zones
        self._withdraw = withdraw
        self._waiting: deque[tuple[int, Sequence[Delivery]]] = deque()
        self._has_arrived = asyncio.Event()
        self._log = structlog.get_logger()
        self._closing = False
        make_link = partial(
            MqttLink,
            settings.broker.model_copy(update={"session_expiry_s": 0}),
            subscriptions=[(subscription(settings.device_zones.filter_topic), 1)],
            close_timeout_s=_GOODBYE_S,
            max_payload_bytes=ZONES_BYTES,
            on_quarantined=partial(log_quarantined, "zones"),
        )
        self._link = make_link(
            client_id=client_id_of(settings.broker, key=key, role="zones"),
            deliver=self._deliver,
            on_state=self._on_state,
        )
        self._make_second = partial(
            make_link, client_id=client_id_of(settings.broker, key=key, role="zones-again")
        )
        self.full = False
        """Whether devices are hidden because there is no room for their zones."""

    def side(self) -> GatewaySide:
        """Return what it is to a gateway."""
        return GatewaySide(
            services=[Service("zones link", self.run, close=self.close)],
            links={"zones": self._link.counts},
            problems=self._problems,
        )

    def _problems(self) -> list[str]:
        problems = [] if self._link.connected else ["broker: not connected for zones"]
        if self.full:
            problems.append(
                "zones: there is no room for those of some devices, so these are hidden everywhere"
            )
        return problems

    async def until_connected(self) -> None:
        """Wait until the broker has accepted the subscription."""
        await self._link.until_connected()

    async def run(self) -> None:
        """Keep the connection until `close`."""
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch(), name="room for zones")
            applying = group.create_task(self._apply(), name="apply zones")
            await self._link.run()
            watching.cancel()
            applying.cancel()

    async def close(self) -> None:
        """Disconnect, so that `run` returns."""
        self._closing = True
        await self._link.close()

    async def _watch(self) -> None:
        """Tell when devices are left out, and ask for their zones again when there is room."""
        asked_s = -_AGAIN_S
        while True:
            n = self._zones.n_left_out
            if bool(n) is not self.full:
                self.full = bool(n)
                if n:
                    self._log.warning("no room for the zones of some devices", devices=n)
                else:
                    self._log.info("room for all zones")
            if self._zones.room_again and time.monotonic() - asked_s > _AGAIN_S:
                asked_s = time.monotonic()
                await self._hear_again()
            await asyncio.sleep(_LOOK_S)

    async def _hear_again(self) -> None:
        second: MqttLink

        def deliver(deliveries: Sequence[Delivery]) -> None:
            self._zones.put(deliveries, again=True)
            second.acknowledge([each.receipt for each in deliveries if each.receipt])

        second = self._make_second(deliver=deliver)
        async with asyncio.TaskGroup() as group:
            group.create_task(second.run(), name="zones link again")
            await asyncio.sleep(_HEAR_S)
            await second.close()

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        self._zones.put(deliveries)
        self._waiting.append((self._zones.n_put, deliveries))
        self._has_arrived.set()

    async def _apply(self) -> None:
        """Acknowledge statements when a tick has applied them, and all records are erased."""
        while True:
            await self._has_arrived.wait()
            self._has_arrived.clear()
            while self._waiting:
                n, deliveries = self._waiting.popleft()
                if self._withdraw is not None:
                    await self._withdraw(self._zones.takes_no_part(deliveries))
                while self._zones.n_applied < n:  # noqa: ASYNC110  ticks are in another thread
                    await asyncio.sleep(_APPLIED_S)
                self._link.acknowledge([each.receipt for each in deliveries if each.receipt])

    def _on_state(self, connected: bool, reason: str) -> None:  # noqa: FBT001  the link's callback
        if connected:
            self._log.info("broker connected for zones")
        elif not self._closing:
            self._log.warning("no broker for zones", reason=reason)

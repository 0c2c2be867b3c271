"""Other gateways on one broker that publish what this one does: of two the younger one ends.

Each would hide a device among groups of its own, and who reads both intersects them. So each says
every few seconds that it is there.
"""

import asyncio
import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress

from anonymizer.errors import GuaranteeError
from anonymizer.pipeline.ports import Delivery, LinkCounts, Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport.connecting import client_id_of
from anonymizer.transport.link import MqttLink

MARK = b"anonymizer gateway "
"""With which all begins that gateways send to themselves and to each other."""
_SAYS = re.compile(MARK + rb"\d{20} [0-9a-f]{32}")
_EVERY_S = 5.0
_ANSWER_S = 0.25
"""Time for the answer of another, after what this one said has come back from the broker."""
_PATIENCE_S = 2.0
"""Time for that to come back, at the start."""
_IS_YOUNGER = (
    "broker.status_topic: another gateway is at work on this broker with the same, and together"
    " they would promise less than k: stop one, or if their devices differ, give this one a"
    " status_topic of its own"
)
_IS_DEAF = (
    "broker: what the gateway says on {topic} does not come back, so a second gateway with these"
    " settings would not be noticed: let it, and nobody else, publish and read there"
)


class OtherGateways:
    """Finds other gateways with the same topic, on a connection of its own.

    Parameters
    ----------
    topic
        On which gateways say that they are there. Who may publish to it can end a gateway.
    key
        Secret for the client id, see `client_id_of`.
    started_ns
        Wall-clock time at which this gateway was started: of two, the earlier one stays.
    found
        Called when a younger one is there, at most once between two messages of this one.
    """

    def __init__(
        self,
        broker: BrokerSettings,
        *,
        topic: str,
        key: bytes,
        started_ns: int,
        found: Callable[[], None],
    ) -> None:
        token = secrets.token_hex(16)
        self._own = MARK + b"%020d %s" % (started_ns, token.encode())
        self._topic, self._found = topic, found
        self._due, self._elder, self._decided = (asyncio.Event() for _ in range(3))
        self._is_heard = False
        # A fixed client id is that of the other gateway, too.
        client_id = f"{client_id_of(broker, key=key, role='beside')}-{token[:8]}"
        self.link = MqttLink(
            broker.model_copy(update={"session_expiry_s": 0}),
            client_id=client_id,
            deliver=self._deliver,
            subscriptions=[(topic, 0)],
            on_state=self._on_state,
        )
        """The connection."""

    @property
    def counts(self) -> LinkCounts:
        """Counts of the connections."""
        return self.link.counts

    @property
    def notes(self) -> list[str]:
        """Why another would not be noticed; empty: it would, or there is no connection."""
        is_let_in = self.link.connected or self.link.problem.startswith("subscription refused")
        is_deaf = is_let_in and self._decided.is_set() and not self._is_heard
        return [_IS_DEAF.format(topic=self._topic)] if is_deaf else []

    async def until_alone(self) -> None:
        """Wait until an older one would have been heard, at most 2 s; forever if there is one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                await self._decided.wait()
        self._decided.set()
        if self._elder.is_set():
            await asyncio.Event().wait()  # `run` ends the gateway

    async def run(self) -> None:
        """Say that this gateway is there until `close`; GuaranteeError if there is an older one."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(does()) for does in (self._say, self._end_if_younger)]
            await self.link.run()
            for task in tasks:
                task.cancel()

    async def close(self) -> None:
        """Disconnect, so that `run` returns."""
        await self.link.close()

    async def _say(self) -> None:
        while True:
            await self.link.until_connected()
            self._due.clear()
            message = Outgoing(self._topic, self._own)
            await self.link.publish([message], qos=0, timeout_s=_EVERY_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(_EVERY_S):
                    await self._due.wait()

    async def _end_if_younger(self) -> None:
        await self._elder.wait()
        raise GuaranteeError(_IS_YOUNGER)

    def _on_state(self, connected: bool, _why: str) -> None:  # noqa: FBT001  the link's callback
        if not connected:
            self._decided.set()  # the gateway's own connection says what is wrong

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        for each in deliveries:
            said = bytes(each.payload)
            if said == self._own:
                self._is_heard = True
                asyncio.get_running_loop().call_later(_ANSWER_S, self._decided.set)
            elif _SAYS.fullmatch(said) and said < self._own:
                self._elder.set()
                self._decided.set()
            elif _SAYS.fullmatch(said) and not self._due.is_set():
                self._due.set()  # it is answered at once
                self._found()

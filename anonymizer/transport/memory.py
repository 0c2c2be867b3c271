"""An in-memory broker and link, for tests of code that uses a `Link`.

Deliveries arrive on the event loop, in batches and in order, as from a real broker. Nothing
sleeps and nothing is random. `MemoryLink.go_down` simulates a lost connection,
`MemoryLink.come_up` its return.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from anonymizer.pipeline.ports import Deliver, Delivery, Outgoing


def topic_matches(topic_filter: str, topic: str) -> bool:
    """Return whether a topic matches a filter with `+` and `#`.

    As in section 4.7 of MQTT 5: `#` also matches the parent, and a leading wildcard matches no
    topic that begins with `$`.
    """
    if topic.startswith("$") and topic_filter[:1] in {"+", "#"}:
        return False
    pattern, levels = topic_filter.split("/"), topic.split("/")
    for i, level in enumerate(pattern):
        if level == "#":
            return True
        if i >= len(levels) or level not in {"+", levels[i]}:
            return False
    return len(pattern) == len(levels)


@dataclass(slots=True, kw_only=True, repr=False)
class _Session:
    """The broker's state of one client; `unsettled` and `waiting` are in order of arrival."""

    link: "MemoryLink | None"
    waiting: deque[tuple[Delivery, int]] = field(default_factory=deque)
    """Messages that have no receipt yet, with their QoS."""
    unsettled: dict[int, Delivery] = field(default_factory=dict)
    subscriptions: tuple[tuple[str, int], ...] = ()

    def qos_of(self, topic: str) -> int | None:
        """Return the highest QoS of the matching subscriptions; None if none matches."""
        return max((q for f, q in self.subscriptions if topic_matches(f, topic)), default=None)


class MemoryBroker:
    """Passes messages on to the links attached to it.

    `max_queued`: most messages queued for one client; further ones are dropped, as by real brokers.
    """

    def __init__(self, *, max_queued: int = 100_000) -> None:
        self._max_queued = max_queued
        self._sessions: dict[str, _Session] = {}
        self._receipts = itertools.count(1)
        self.retained: dict[str, bytes] = {}
        """The retained message of each topic that has one."""

    def attach(self, link: "MemoryLink") -> None:
        """Connect a client; its unsettled deliveries come first, with new receipts."""
        session = self._sessions.get(link.client_id)
        if session is not None:
            session.link = link
            session.waiting.extendleft((d, 1) for d in reversed(session.unsettled.values()))
            session.unsettled.clear()
            self._hand_over_soon(session)
            return
        session = _Session(link=link, subscriptions=link.subscriptions)
        self._sessions[link.client_id] = session
        for topic, payload in self.retained.items():
            self._queue(session, Delivery(topic, payload, 0, retained=True), qos=1)

    def detach(self, link: "MemoryLink") -> None:
        """Disconnect a client, and delete its session unless it is kept."""
        session = self._sessions[link.client_id]
        session.link = None
        if not link.keeps_session:
            del self._sessions[link.client_id]
        else:
            session.waiting = deque((d, qos) for d, qos in session.waiting if qos)

    def take(self, messages: Iterable[Outgoing], *, qos: int) -> None:
        """Pass messages on to every session with a matching subscription."""
        for message in messages:
            if message.retain and message.payload:
                self.retained[message.topic] = message.payload
            elif message.retain:
                self.retained.pop(message.topic, None)
            for session in self._sessions.values():
                self._queue(session, Delivery(message.topic, message.payload, 0), qos=qos)

    def settle(self, link: "MemoryLink", receipts: Iterable[int]) -> list[Delivery]:
        """Settle deliveries and return them; unknown receipts are ignored."""
        unsettled = self._sessions[link.client_id].unsettled
        return [unsettled.pop(receipt) for receipt in receipts if receipt in unsettled]

    def unsubscribe(self, link: "MemoryLink") -> None:
        """Remove the subscriptions of a client."""
        self._sessions[link.client_id].subscriptions = ()

    def _queue(self, session: _Session, delivery: Delivery, *, qos: int) -> None:
        granted = session.qos_of(delivery.topic)
        if granted is None or len(session.waiting) >= self._max_queued:
            return
        qos = min(granted, qos)
        if session.link is not None or qos:
            session.waiting.append((delivery, qos))
            self._hand_over_soon(session)

    def _hand_over_soon(self, session: _Session) -> None:
        asyncio.get_running_loop().call_soon(self._hand_over, session)

    def _hand_over(self, session: _Session) -> None:
        """Deliver all waiting messages as one batch."""
        if session.link is None or not session.link.receiving or not session.waiting:
            return
        batch = []
        while session.waiting:
            delivery, qos = session.waiting.popleft()
            if qos:
                delivery = delivery._replace(receipt=next(self._receipts))
                session.unsettled[delivery.receipt] = delivery
            batch.append(delivery)
        session.link.hand_over(batch)


class MemoryLink:
    """A connection to a `MemoryBroker`; implements `anonymizer.pipeline.ports.Link`.

    Parameters
    ----------
    client_id, deliver, subscriptions, on_state
        As for `anonymizer.transport.MqttLink`.
    keeps_session
        Whether the broker keeps subscriptions and unsettled deliveries while the link is down.
    """

    def __init__(
        self,
        broker: MemoryBroker,
        *,
        client_id: str,
        deliver: Deliver,
        subscriptions: Sequence[tuple[str, int]] = (),
        keeps_session: bool = False,
        on_state: Callable[[bool, str], None] = lambda *_: None,
    ) -> None:
        self.client_id = client_id
        self.subscriptions = tuple(subscriptions)
        self.keeps_session = keeps_session
        self.receiving = True
        self.settled: list[Delivery] = []
        """Acknowledged deliveries, in the order of acknowledgement."""
        self._broker = broker
        self._deliver = deliver
        self._on_state = on_state
        self._failure: Exception | None = None
        self._up = asyncio.Event()
        self._closing = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()

    @property
    def connected(self) -> bool:
        """Whether the link is connected."""
        return self._up.is_set()

    async def until_connected(self) -> None:
        """Wait until the link is connected."""
        await self._up.wait()

    async def run(self) -> None:
        """Stay connected until `close`; raises whatever `deliver` raised."""
        self._ended.clear()
        try:
            self.come_up()
            await self._closing.wait()
        finally:
            self.go_down("closed")
            self._ended.set()
        if self._failure is not None:
            raise self._failure

    def come_up(self) -> None:
        """Restore the connection."""
        if not self.connected:
            self._up.set()
            self._broker.attach(self)
            self._on_state(True, "connected")

    def go_down(self, reason: str = "connection closed") -> None:
        """Break the connection."""
        if self.connected:
            self._up.clear()
            self._broker.detach(self)
            self._on_state(False, reason)

    async def publish(
        self,
        messages: Sequence[Outgoing],
        *,
        qos: int,
        timeout_s: float,  # noqa: ARG002  this broker answers at once
    ) -> Sequence[bool | None]:
        """Publish a batch: all of it if connected, else none."""
        if self.connected:
            self._broker.take(messages, qos=qos)
        return [self.connected] * len(messages)

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Settle deliveries; receipts of an earlier connection are ignored."""
        if self.connected:
            self.settled += self._broker.settle(self, receipts)

    async def stop_receiving(self) -> None:
        """Stop deliveries; a kept session continues to queue messages."""
        self.receiving = False
        if self.connected and not self.keeps_session:
            self._broker.unsubscribe(self)

    async def close(self) -> None:
        """Disconnect, so that `run` returns."""
        self._closing.set()
        await self._ended.wait()

    def hand_over(self, batch: Sequence[Delivery]) -> None:
        """Deliver a batch from the broker; if `deliver` fails, `run` raises its error."""
        try:
            self._deliver(batch)
        except Exception as error:  # noqa: BLE001  the loop would only log it; `run` raises it
            self._failure = error
            self._closing.set()

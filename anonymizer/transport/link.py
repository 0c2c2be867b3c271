"""A link to an MQTT broker that reconnects by itself."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from anonymizer.errors import TransportError
from anonymizer.pipeline.ports import Deliver, LinkCounts, Loss, Outgoing
from anonymizer.transport.broker_profile import (
    AskedFilters,
    BrokerManners,
    BrokerProfile,
    lacking,
)
from anonymizer.transport.connecting import (
    Access,
    backoff_s,
    doubting,
    is_mute,
    open_wire,
    read_access,
    reason_of,
)
from anonymizer.transport.exactly_once import ExactlyOnce
from anonymizer.transport.mqtt import PahoControl
from anonymizer.transport.mqtt_session import REST_S, Session, SessionMemory
from anonymizer.transport.packet_sizes import PacketSizes
from anonymizer.transport.packets import MAX_PAYLOAD_BYTES
from anonymizer.transport.quarantine import OnQuarantined, Quarantine
from anonymizer.transport.unsettled import Receipts

if TYPE_CHECKING:
    from anonymizer.settings import BrokerSettings

ONLINE, OFFLINE, LOST = b"online", b"offline", b"lost"
"""Retained payloads of the status topic."""

_MUTE = {Loss.CLOSED, Loss.MALFORMED}
_ASKED_S = 2.0
"""Time for the answer of a broker that is asked in MQTT 5."""


class MqttLink:
    """A connection to an MQTT broker that reconnects by itself.

    Implements `anonymizer.pipeline.ports.Link`. The caller runs `run` in a task of its own; the
    other methods may be called from any task of the same loop.

    Parameters
    ----------
    client_id
        Id under which the broker knows this client; a second client with it replaces the first.
    deliver
        Receives deliveries in batches; under continuous load a batch is what `rest_s` brings.
    subscriptions
        Topic filters, each with its QoS, 0 or 1.
    announce
        Whether to maintain the status topic of the settings: `online`, `offline`, or `lost` as
        the last will.
    needs_qos_1
        Whether nothing may be published at QoS 1 to a broker that takes QoS 0 alone. Else it is
        published at QoS 0 there.
    has_session
        Whether the broker should have kept the session of an earlier link.
    on_state
        Called with whether the link is connected and the reason, at every change and at every
        failed attempt.
    connect_timeout_s, close_timeout_s
        Deadline of one attempt to connect, from the last message before it, and to disconnect.
    rest_s
        Pause after a read that brought messages, which `collect` cuts short: the cost of a read is
        the wake-up, not the bytes.
    max_payload_bytes
        Largest payload that the consumer takes. Messages above 16 MiB are not held: they come with
        a payload that is one byte longer.
    on_quarantined
        See `OnQuarantined`.

    Notes
    -----
    With `session_expiry_s` the broker keeps the session and its subscriptions while the client
    is away: after `stop_receiving` or `close` it queues messages for the next start.
    """

    def __init__(
        self,
        settings: "BrokerSettings",
        *,
        client_id: str,
        deliver: Deliver,
        subscriptions: Sequence[tuple[str, int]] = (),
        announce: bool = False,
        needs_qos_1: bool = False,
        has_session: bool = False,
        on_state: Callable[[bool, str], None] = lambda *_: None,
        connect_timeout_s: float = 10.0,
        close_timeout_s: float = 5.0,
        rest_s: float = REST_S,
        max_payload_bytes: int = MAX_PAYLOAD_BYTES,
        on_quarantined: OnQuarantined = lambda *_: None,
    ) -> None:
        if any(qos not in {0, 1} for _, qos in subscriptions):
            raise ValueError("subscriptions must be at QoS 0 or 1")
        self._settings = settings
        self._client_id = client_id
        self._deliver = deliver
        self._subscriptions = tuple(subscriptions)
        self._announce = announce
        self._needs_qos_1 = needs_qos_1
        self._has_session = has_session
        self._on_state = on_state
        self._connect_timeout_s = connect_timeout_s
        self._close_timeout_s = close_timeout_s
        self._rest_s = rest_s
        self._session: Session | None = None
        self._failure: Exception | None = None
        self._max_payload_bytes = max_payload_bytes
        receipts = Receipts()
        self._sizes, self._manners, self._asked = PacketSizes(), BrokerManners(), AskedFilters()
        self._profile = BrokerProfile()
        self._problem = ""
        self._memory = SessionMemory(
            receipts, ExactlyOnce(receipts), Quarantine(on_quarantined), self._sizes
        )
        self._receiving = True
        self._reading = True
        self.counts = LinkCounts()
        """What happened to the connections since the start."""
        self._up = asyncio.Event()
        self._closing = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()

    @property
    def connected(self) -> bool:
        """Whether messages can flow now."""
        return self._session is not None and self._session.usable

    @property
    def refused(self) -> Sequence[str]:
        """Filters that the broker refuses while it lets others flow, each with its reason."""
        return self._session.refused if self._session is not None and self.connected else ()

    @property
    def answers(self) -> Mapping[str, str]:
        """What the broker has said to each filter, on this connection."""
        return self._session.answers if self._session is not None else {}

    @property
    def profile(self) -> BrokerProfile:
        """What the broker announced last."""
        return self._profile

    @property
    def lacks(self) -> list[str]:
        """What is missing with this broker, in sentences; empty: nothing, or it is not known."""
        if not self.connected:
            return []
        kept_s = self._settings.session_expiry_s
        return lacking(self._profile, self._manners.now, session_expiry_s=kept_s)

    @property
    def blocked(self) -> str:
        """Why nothing is published although it is connected; empty: it is."""
        if self.connected and self._needs_qos_1 and not self._manners.now.qos:
            return (
                "the broker takes QoS 0 alone, and an echo or output.forms device needs QoS 1, so"
                " nothing is published"
            )
        return ""

    @property
    def problem(self) -> str:
        """Why there is no connection, as the broker or the system says; empty: there is one."""
        return "" if self.connected else self._problem

    async def until_connected(self) -> None:
        """Wait until the broker has accepted the connection and the subscriptions."""
        while not (self._up.is_set() and self.connected):
            await self._up.wait()
            await asyncio.sleep(0)  # if it has just been lost, its task has yet to notice

    async def run(self) -> None:
        """Keep the connection until `close`.

        Raises whatever `deliver` raised. Failures of the broker are reported, never raised.
        """
        self._ended.clear()
        self._memory.once.abandon()  # a consumer that runs it again has lost what it had
        try:
            async with asyncio.TaskGroup() as group:
                connection = group.create_task(self._keep_connected(), name="mqtt connection")
                await self._closing.wait()
                await self._disconnect()
                connection.cancel()
        finally:
            self._ended.set()
        if self._failure is not None:
            raise self._failure

    async def publish(
        self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
    ) -> Sequence[bool | None]:
        """Publish a batch; return for each message whether the broker accepted it.

        None: it is not known. No message is sent later; the caller decides what to do with it.

        Raises `ValueError` if a topic cannot be published to, or for a QoS other than 0 and 1.
        """
        if qos not in {0, 1}:
            raise ValueError("messages must be published at QoS 0 or 1")
        if self._session is None or not self._session.usable or (qos and self.blocked):
            return [False] * len(messages)
        return await self._session.publish(messages, qos=qos, timeout_s=timeout_s)

    def takes(self, message: Outgoing) -> bool:
        """Return whether the broker takes messages of this size; True while that is not known."""
        return not self.connected or self._session is None or self._session.takes(message)

    def part_bytes(self, topic: str) -> int:
        """Return the largest payload, for a topic, of what can be cut into parts."""
        return self._sizes.part_bytes(topic)

    @property
    def most_bytes(self) -> int:
        """Size of the largest message, with topic and headers, that the broker takes."""
        return self._sizes.most_bytes

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Acknowledge deliveries to the broker; unknown receipts are ignored.

        A delivery that is not acknowledged when the connection is lost is delivered again with a
        new receipt, if the broker keeps the session.
        """
        if self._session is not None:
            self._session.acknowledge(receipts)

    def read(self, *, on: bool) -> None:
        """Read what the broker sends, or leave it with the broker, on this and later connections.

        While nothing is read, nothing that was published at QoS 1 is known to be accepted.
        """
        self._reading = on
        if self._session is not None and self._session.usable:
            self._session.read(on=on)

    async def collect(self) -> None:
        """Deliver now what has arrived, if reading rests."""
        if self._session is not None and self._session.usable:
            await self._session.wire.collect()

    async def stop_receiving(self) -> None:
        """Stop deliveries, on this connection and on later ones."""
        self._receiving = False
        if self._session is not None:
            # A kept session must keep its subscriptions, to queue messages for the next start.
            kept = self._settings.session_expiry_s > 0
            self._session.stop_receiving(unsubscribe=bool(self._subscriptions) and not kept)

    async def close(self) -> None:
        """Disconnect within the deadline, so that `run` returns. A second call has no effect."""
        self._closing.set()
        await self._ended.wait()

    async def _keep_connected(self) -> None:
        rng = random.Random()  # noqa: S311  spreads reconnects, keeps no secret
        attempt = 0
        while True:
            # At once after any connection, however short: who took the session must not keep it.
            attempt = 1 if await self._one_connection() else attempt + 1
            await asyncio.sleep(backoff_s(self._settings, attempt=attempt, rng=rng))

    async def _one_connection(self) -> bool:
        """Connect once; return, when the connection has ended, whether messages flowed or could."""
        session = None
        try:
            async with asyncio.timeout(self._connect_timeout_s) as deadline:
                access = await asyncio.to_thread(read_access, self._settings)
                if self._announce and self._settings.version != "5":
                    await self._ask_for_limit(access)
                session = self._session = self._new_session(access)
                await self._connect(session, access, deadline)
        except (OSError, TransportError) as error:
            self._count_end(session)
            self._tell(False, reason_of(error), is_mute=is_mute(error))
            return session is not None and session.n_batches > 0
        used = session.usable
        if self._learn(session):
            session.end("tried")  # it takes less: whether it takes everything is not yet known
            return True
        try:
            if used:
                self._count_connection(session)
                session.read(on=self._reading)
                self._up.set()
                told = f"; subscription refused: {'; '.join(session.refused)}"
                self._tell(True, "connected" + told * bool(session.refused))
            await session.lost.wait()
            self._count_end(session)
        finally:
            self._up.clear()
            session.end("given up")
            if used:
                self._asked.ended_later()
            self._tell(False, session.reason, is_mute=session.loss in _MUTE)
        if session.failure is not None:
            self._failure = session.failure
            self._closing.set()
        return used or session.n_batches > 0

    def _tell(self, connected: bool, reason: str, *, is_mute: bool = False) -> None:  # noqa: FBT001
        """Say whether it is connected; `is_mute`: it ended as if the peer spoke no MQTT."""
        accepted = self._session is not None and self._session.accepted
        if is_mute and not accepted and not self.counts.n_connections:
            reason = doubting(reason, url=self._settings.url)
        self._problem = "" if connected else reason
        self._on_state(connected, reason)

    def _learn(self, session: Session) -> bool:
        """Learn from a connection that is open, or has ended; return whether to try more."""
        if session.loss is Loss.CLOSED and session.lost.is_set():
            if session.unanswered:
                self._asked.ended_at(session.unanswered)
            elif self._announce:  # the last will, or the first retained message
                self._manners.ended()
        elif session.usable and self._announce:
            return self._manners.taken()
        return False

    def _count_connection(self, session: Session) -> None:
        forgotten = self._settings.session_expiry_s > 0 and not session.resumed
        expected = self._has_session or self.counts.n_connections > 0
        self.counts.n_sessions_lost += forgotten and expected
        self.counts.n_connections += 1

    def _count_end(self, session: Session | None) -> None:
        """Count a connection that has ended, if there was one and the link has not closed it."""
        if session is not None and session.wire.was_made and not self._closing.is_set():
            self.counts.lost[session.loss] += 1

    async def _connect(self, session: Session, access: Access, deadline: asyncio.Timeout) -> None:
        """Connect a session; it is then usable, or was refused or lost with a reason."""
        try:
            await open_wire(
                access,
                session.wire,
                timeout_s=self._connect_timeout_s,
                close_timeout_s=self._close_timeout_s,
            )
            session.connect()
            n_before = -1
            deadline.reschedule(None)  # a broker may send what it kept before it decides
            while not session.decided.is_set():
                if session.n_batches == n_before and session.wire.reading:
                    raise TimeoutError  # noqa: TRY301  it ends as any other attempt
                n_before = session.n_batches
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._connect_timeout_s):
                        await session.decided.wait()
            if session.accepted and self._settings.version == "5":
                self._profile = session.profile
            await self._set_status(session, ONLINE)
        except BaseException:  # also if cancelled: no half-open connection may remain
            session.end("given up", Loss.NO_ANSWER)
            raise

    async def _ask_for_limit(self, access: Access) -> None:
        """Ask in MQTT 5, on a connection of its own, which packets the broker takes.

        Not where it keeps a session: a broker that gives clients their ids would end that one.
        """
        if self._settings.session_expiry_s:
            return
        settings = self._settings.model_copy(update={"version": "5"})
        receipts = Receipts()
        control = partial(
            PahoControl,
            settings=settings,
            client_id=f"{self._client_id}-size",
            access=access,
            subscriptions=(),
            will=None,
        )
        session = Session(
            settings,
            control=control,
            deliver=lambda _: None,
            receiving=False,
            memory=SessionMemory(
                receipts, ExactlyOnce(receipts), Quarantine(lambda *_: None), PacketSizes()
            ),
            counts=LinkCounts(),
            max_payload_bytes=self._max_payload_bytes,
        )
        try:
            await open_wire(
                access,
                session.wire,
                timeout_s=self._connect_timeout_s,
                close_timeout_s=self._close_timeout_s,
            )
            session.connect()
            async with asyncio.timeout(_ASKED_S):
                await session.decided.wait()
                if session.accepted:
                    self._profile = session.profile
                    self._sizes.asked = session.profile.max_packet_bytes
                    self._manners.announced(session.profile)
                if session.usable:
                    await session.disconnect()
        except (OSError, TransportError):  # it need not speak MQTT 5
            pass
        finally:
            session.end("asked")

    def _new_session(self, access: Access) -> Session:
        will = Outgoing(self._settings.status_topic, LOST, retain=True)
        control = partial(
            PahoControl,
            settings=self._settings,
            client_id=self._client_id,
            access=access,
            subscriptions=self._subscriptions if self._receiving else (),
            will=will if self._announce else None,
            manners=self._manners,
            asked=self._asked,
        )
        return Session(
            self._settings,
            control=control,
            deliver=self._deliver,
            receiving=self._receiving,
            memory=self._memory,
            counts=self.counts,
            max_payload_bytes=self._max_payload_bytes,
            rest_s=self._rest_s,
        )

    async def _set_status(self, session: Session, status: bytes) -> None:
        if self._announce and session.usable:
            message = Outgoing(self._settings.status_topic, status, retain=True)
            await session.publish([message], qos=1, timeout_s=self._close_timeout_s)
            if status == ONLINE and not self._manners.now.qos:
                # It acknowledges nothing, and may end the connection at what it does not take.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._close_timeout_s):
                        await session.until_read()

    async def _disconnect(self) -> None:
        if self._session is not None and self._session.usable:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._close_timeout_s):
                    await self._set_status(self._session, OFFLINE)
                    await self._session.disconnect()

"""A connection to a broker that comes back by itself, whatever library keeps its sessions."""

import asyncio
import contextlib
import itertools
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from anonymizer.errors import TransportError
from anonymizer.pipeline.ports import Deliver, Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport.connecting import Access, backoff_s, read_access, reason_of
from anonymizer.transport.mqtt_session import Control, Session

ONLINE, OFFLINE, LOST = b"online", b"offline", b"lost"
"""What stands, retained, on the status topic."""


class BrokerLink(ABC):
    """A connection to an MQTT broker that comes back by itself.

    Implements `anonymizer.pipeline.ports.Link`. `run` does the work and belongs to a task of
    the caller's; the rest may be called from any task of the same loop.

    Parameters
    ----------
    settings
        Of the broker.
    client_id
        Whom the broker takes us for; a second client of that name throws the first one out.
    deliver
        Takes the arrivals, about 5 ms of them at a time when they come without pause.
    subscriptions
        Topic filters, each with its QoS, 0 or 1.
    announce
        Whether to keep the status topic of the settings: `online`, `offline`, or `lost` as the
        last will.
    on_state
        Called with whether the broker is there and why, whenever that changes and at each
        attempt that fails.
    connect_timeout_s, close_timeout_s
        Deadlines of one attempt to connect, until messages flow, and of the good-bye.

    Notes
    -----
    With `session_expiry_s` the broker keeps the session while we are away, as it keeps the
    subscriptions: after `stop_receiving` or `close` it goes on collecting for the next start.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        client_id: str,
        deliver: Deliver,
        subscriptions: Sequence[tuple[str, int]] = (),
        announce: bool = False,
        on_state: Callable[[bool, str], None] = lambda *_: None,
        connect_timeout_s: float = 10.0,
        close_timeout_s: float = 5.0,
    ) -> None:
        if any(qos not in {0, 1} for _, qos in subscriptions):
            raise ValueError("subscriptions are at QoS 0 or 1")
        self._settings = settings
        self._client_id = client_id
        self._deliver = deliver
        self._subscriptions = tuple(subscriptions)
        self._announce = announce
        self._on_state = on_state
        self._connect_timeout_s = connect_timeout_s
        self._close_timeout_s = close_timeout_s
        self._session: Session | None = None
        self._failure: Exception | None = None
        self._receipts = itertools.count(1)
        self._receiving = True
        self._subscribed = False
        self._up = asyncio.Event()
        self._closing = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()

    @property
    def connected(self) -> bool:
        """Whether messages flow at this moment."""
        return self._session is not None and self._session.usable

    async def until_connected(self) -> None:
        """Wait until the broker is there and has taken the subscriptions."""
        await self._up.wait()

    async def run(self) -> None:
        """Keep the connection until `close`.

        Raises what `deliver` raised. The broker's failures are reported, never raised.
        """
        self._ended.clear()
        try:
            async with asyncio.TaskGroup() as group:
                keeping = group.create_task(self._keep_connected(), name="mqtt connection")
                await self._closing.wait()
                await self._say_goodbye()
                keeping.cancel()
        finally:
            self._ended.set()
        if self._failure is not None:
            raise self._failure

    async def publish(
        self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
    ) -> Sequence[bool]:
        """Publish a batch; return for each message whether the broker has it.

        A message that was refused is never sent later: the caller decides.

        Raises
        ------
        ValueError
            If a topic cannot be published to, or for a QoS other than 0 and 1.
        """
        if qos not in {0, 1}:
            raise ValueError("messages are published at QoS 0 or 1")
        if self._session is None or not self._session.usable:
            return [False] * len(messages)
        return await self._session.publish(messages, qos=qos, timeout_s=timeout_s)

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Tell the broker that these deliveries are settled; unknown receipts do nothing.

        What is not settled when the connection is lost comes again with a new receipt, if the
        broker keeps the session.
        """
        if self._session is not None:
            self._session.acknowledge(receipts)

    async def stop_receiving(self) -> None:
        """End the inflow: nothing is delivered any more, on this connection or a later one."""
        self._receiving = False
        if self._session is not None:
            # A session that outlives us must go on collecting what comes while we are away.
            lasting = self._settings.session_expiry_s > 0
            self._session.stop_receiving(unsubscribe=bool(self._subscriptions) and not lasting)

    async def close(self) -> None:
        """Say good-bye within the deadline; `run` returns. A second call does nothing more."""
        self._closing.set()
        await self._ended.wait()

    async def _keep_connected(self) -> None:
        rng = random.Random()  # noqa: S311  spreads reconnects, keeps no secret
        now = asyncio.get_running_loop().time
        attempt = 0
        while True:
            started_s = now()
            await self._one_connection()
            lasted = now() - started_s >= self._settings.reconnect_max_s
            attempt = 1 if lasted else attempt + 1
            await asyncio.sleep(backoff_s(self._settings, attempt=attempt, rng=rng))

    async def _one_connection(self) -> None:
        """Connect, and return when the connection has failed or ended."""
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                session = await self._connect()
        except (OSError, TransportError) as error:
            self._on_state(False, reason_of(error))
            return
        try:
            if session.usable:
                self._up.set()
                self._on_state(True, "connected")
            await session.lost.wait()
        finally:
            self._up.clear()
            session.end("given up")
            self._on_state(False, session.reason)
        if session.failure is not None:
            self._failure = session.failure
            self._closing.set()

    async def _connect(self) -> Session:
        """Return a session that is usable, or was refused or lost with its reason."""
        access = await asyncio.to_thread(read_access, self._settings)
        session = self._session = self._new_session(access)
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: session.wire,
                access.host,
                access.port,
                ssl=access.tls,
                ssl_handshake_timeout=self._connect_timeout_s if access.tls else None,
                ssl_shutdown_timeout=self._close_timeout_s if access.tls else None,
            )
            session.connect()
            await session.decided.wait()
            await self._set_status(session, ONLINE)
        except BaseException:  # cancelled, too: a half-open connection must not outlive us
            session.end("given up")
            raise
        self._subscribed |= session.usable
        return session

    def _new_session(self, access: Access) -> Session:
        def control(session: Session) -> Control:
            return self._control(
                session,
                access=access,
                subscriptions=self._subscriptions if self._receiving else (),
                # At first, the filters of a kept session may be those of older settings.
                renew=not self._subscribed,
                will_topic=self._settings.status_topic if self._announce else None,
            )

        return Session(
            self._settings,
            control=control,
            deliver=self._deliver,
            receiving=self._receiving,
            receipts=self._receipts,
        )

    @abstractmethod
    def _control(
        self,
        session: Session,
        *,
        access: Access,
        subscriptions: Sequence[tuple[str, int]],
        renew: bool,
        will_topic: str | None,
    ) -> Control:
        """Return who keeps this session.

        `renew` asks for the subscriptions even if the broker has kept the session; on
        `will_topic` the broker is to say `LOST`, retained, when the connection breaks.
        """

    async def _set_status(self, session: Session, status: bytes) -> None:
        if self._announce and session.usable:
            message = Outgoing(self._settings.status_topic, status, retain=True)
            await session.publish([message], qos=1, timeout_s=self._close_timeout_s)

    async def _say_goodbye(self) -> None:
        if self._session is not None and self._session.usable:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._close_timeout_s):
                    await self._set_status(self._session, OFFLINE)
                    await self._session.disconnect()

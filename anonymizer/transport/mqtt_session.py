"""An MQTT session: the messages of one connection to a broker, from acceptance to loss.

All state ends with the connection, and the link creates a new session. Receipts of the old one
settle nothing there. Messages that the old one could not publish are never sent by the new one,
because their failure has already been reported to the caller.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from anonymizer.pipeline.ports import Deliver, Delivery, Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport.connecting import reason_of
from anonymizer.transport.packets import (
    MalformedPacketError,
    PacketReader,
    Puback,
    Publish,
    encode_pubacks,
    encode_publish,
)
from anonymizer.transport.wire import Wire

MAX_PACKET_BYTES = 16 << 20
"""Largest packet accepted from a broker; announced to MQTT 5 brokers."""
_REST_S = 0.005
"""Pause after a read that brought messages, so that the next read brings many."""
_KEEP_ALIVE_CHECK_S = 0.5
_MAX_IN_FLIGHT = 1000
"""Most messages at QoS 1 that wait for the broker's acknowledgement at once."""
_MAX_UNSETTLED = 0xFFFF
"""Most deliveries at QoS 1 that wait for our acknowledgement: one for each packet identifier. It
is not the agreed Receive Maximum, because Mosquitto 2.0 was seen to exceed that in a burst."""
_MIDS = range(256, 65536)
"""Packet identifiers of messages; lower ones are left for subscriptions."""
_MESSAGES_PER_TURN = 256
"""Messages published before other tasks get a turn."""


class Control(Protocol):
    """Handles the packets that carry no data: opens, maintains and ends the session."""

    def connect(self) -> None:
        """Send CONNECT."""

    def take(self, packet: bytes) -> None:
        """Handle one packet; raise `MalformedPacketError` if it is malformed."""

    def keep_alive(self) -> None:
        """Send a ping when it is due; end the session if the answer is missing."""

    def unsubscribe(self) -> None:
        """Unsubscribe from all topics."""

    def disconnect(self) -> None:
        """Send DISCONNECT, then close the wire."""


class Session:
    """The messages of one connection.

    Parameters
    ----------
    settings
        Settings of the broker.
    control
        Makes the control of the session, which calls `accept`, `open` and `end`.
    deliver
        Receives the messages of one read as a batch.
    receiving
        Whether messages are delivered at all.
    receipts
        Iterator over numbers that were never used before.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        control: "Callable[[Session], Control]",
        deliver: Deliver,
        receiving: bool,
        receipts: Iterator[int],
    ) -> None:
        loop = asyncio.get_running_loop()
        self.decided = asyncio.Event()
        """Set when it is known whether messages can flow."""
        self.lost = asyncio.Event()
        """Set when the connection is gone or must not be used any more."""
        self.reason = ""
        """Why it is lost."""
        self.failure: Exception | None = None
        """The error of `deliver`, if that ended the session."""
        self.wire = Wire(on_bytes=self._on_bytes, on_lost=self._on_lost)
        self._opened = False
        self._version5 = settings.version == "5"
        self._deliver = deliver
        self._receiving = receiving
        self._receipts = receipts
        self._mid_of: dict[int, int] = {}
        self._reader = PacketReader(version5=self._version5, limit_bytes=MAX_PACKET_BYTES)
        self._in_flight: dict[int, asyncio.Future[bool]] = {}
        self._mids = itertools.cycle(_MIDS)
        self._accepted = False
        self._window = asyncio.Semaphore(0)
        self._max_outgoing_bytes = 0
        self._control = control(self)
        self._keep_alive_check = loop.call_soon(self._check_keep_alive)

    # Called by the control.

    def accept(self, *, receive_maximum: int, max_packet_bytes: int) -> None:
        """Record that the broker has accepted the connection, with its limits."""
        if self._accepted:
            raise MalformedPacketError("accepted twice")
        self._accepted = True
        self._window = asyncio.Semaphore(min(receive_maximum, _MAX_IN_FLIGHT))
        self._max_outgoing_bytes = max_packet_bytes

    def open(self) -> None:
        """Let messages flow."""
        self._opened = True
        self.decided.set()

    def end(self, reason: str) -> None:
        """Drop the connection. Only the first call and its reason count."""
        if self.lost.is_set():
            return
        self.reason = reason
        self.lost.set()
        self.decided.set()
        self._keep_alive_check.cancel()
        self._mid_of.clear()
        for mid in list(self._in_flight):
            self._settle(mid, accepted=False)
        self.wire.abort()

    # Called by the link.

    @property
    def usable(self) -> bool:
        """Whether messages can flow."""
        return self._opened and not self.lost.is_set()

    def connect(self) -> None:
        """Open the session; the wire must be connected."""
        self._control.connect()

    async def publish(
        self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
    ) -> list[bool]:
        """Publish a batch; see `anonymizer.pipeline.ports.Link.publish`.

        Waits while the peer reads slowly, so that the buffered data stays within a few hundred
        KiB plus one message.
        """
        results: list[bool | asyncio.Future[bool]] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                for i, message in enumerate(messages, start=1):
                    results.append(await self._send(message, qos=qos))
                    if i % _MESSAGES_PER_TURN == 0:
                        await asyncio.sleep(0)
                if waiting := [r for r in results if isinstance(r, asyncio.Future)]:
                    await asyncio.wait(waiting)
        sent = [r if isinstance(r, bool) else r.done() and r.result() for r in results]
        return sent + [False] * (len(messages) - len(sent))

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Acknowledge deliveries of this connection, each once; other receipts are ignored."""
        mids = [self._mid_of.pop(receipt) for receipt in receipts if receipt in self._mid_of]
        if mids:
            self.wire.write(encode_pubacks(mids))

    def stop_receiving(self, *, unsubscribe: bool) -> None:
        """Stop deliveries; messages that arrive from now on stay unsettled."""
        self._receiving = False
        if unsubscribe and self.usable:
            self._control.unsubscribe()

    async def disconnect(self) -> None:
        """Disconnect and wait until the connection is closed."""
        self._control.disconnect()
        await self.lost.wait()

    # Internals.

    async def _send(self, message: Outgoing, *, qos: int) -> bool | asyncio.Future[bool]:
        await self.wire.writable()
        if not qos:
            return self._write(message, mid=0)
        await self._window.acquire()
        mid = next(mid for mid in self._mids if mid not in self._in_flight)
        try:
            if self._write(message, mid=mid):
                self._in_flight[mid] = asyncio.get_running_loop().create_future()
                return self._in_flight[mid]
            return False
        finally:
            if mid not in self._in_flight:
                self._window.release()  # after a loss this wakes the next waiting message

    def _write(self, message: Outgoing, *, mid: int) -> bool:
        packet = encode_publish(message, mid=mid, version5=self._version5)
        # A broker drops the connection because of a packet above its limit.
        if self.lost.is_set() or len(packet) > self._max_outgoing_bytes:
            return False
        self.wire.write(packet)
        return True

    def _settle(self, mid: int, *, accepted: bool) -> None:
        acknowledged = self._in_flight.pop(mid, None)
        if acknowledged is not None:
            acknowledged.set_result(accepted)
            self._window.release()

    def _on_bytes(self, data: bytes) -> None:
        arrivals: list[Delivery] = []
        try:
            self._take(data, arrivals)
        except MalformedPacketError as error:
            self.end(f"malformed packet: {error}")
        if not arrivals:
            return
        self.wire.rest(_REST_S)
        try:
            self._deliver(arrivals)
        except Exception as error:  # noqa: BLE001  the loop would only log it; the link raises it
            self.failure = error
            self.end("the consumer failed")

    def _take(self, data: bytes, arrivals: list[Delivery]) -> None:
        for packet in self._reader.feed(data):
            if self.lost.is_set():
                break
            if isinstance(packet, Publish):
                if not self._accepted:
                    raise MalformedPacketError("a message before acceptance")
                if self._receiving:
                    arrivals.append(self._arrival(packet))
            elif isinstance(packet, Puback):
                self._settle(packet.mid, accepted=packet.accepted)
            else:
                self._control.take(packet)

    def _arrival(self, packet: Publish) -> Delivery:
        receipt = 0
        if packet.mid:
            if len(self._mid_of) >= _MAX_UNSETTLED:
                raise MalformedPacketError("more messages in flight than packet identifiers")
            receipt = next(self._receipts)
            self._mid_of[receipt] = packet.mid
        return Delivery(packet.topic, packet.payload, receipt, packet.retained)

    def _on_lost(self, error: Exception | None) -> None:
        self.end("connection closed" if error is None else reason_of(error))

    def _check_keep_alive(self) -> None:
        self._keep_alive_check = asyncio.get_running_loop().call_later(
            _KEEP_ALIVE_CHECK_S, self._check_keep_alive
        )
        self._control.keep_alive()

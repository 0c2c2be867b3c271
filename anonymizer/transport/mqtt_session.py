"""One connection to a broker: its messages in and out, from acceptance to loss.

A connection that is lost takes all its state with it. The link makes a new one; receipts of the
old one then settle nothing, and what it could not publish is never sent by the new one, because
the caller was already told that it failed.
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
"""The largest packet that is taken from a broker, and what MQTT 5 brokers are told."""
_REST_S = 0.005
"""Pause after a read that brought messages, so that the next one brings many."""
_UPKEEP_S = 0.5
_MAX_UNDER_WAY = 1000
"""Messages at QoS 1 that wait for the broker's acknowledgement at once."""
_MAX_UNSETTLED = 0xFFFF
"""Deliveries at QoS 1 that wait for us: as many as can be told apart. Not the Receive Maximum
that was agreed on, which Mosquitto 2.0 was seen to exceed in a burst."""
_MIDS = range(256, 65536)
"""Packet identifiers of messages; those below are left for subscriptions."""
_FAIR_SHARE = 256
"""Messages published before the rest of the program gets a turn."""


class Control(Protocol):
    """Whatever handles the packets that carry no data: opens, keeps and ends the session."""

    def connect(self) -> None:
        """Ask to be let in."""

    def take(self, packet: bytes) -> None:
        """Handle one packet; raise `MalformedPacketError` if that cannot be done."""

    def keep_alive(self) -> None:
        """Ping when it is time; end the session when the answer stays out."""

    def unsubscribe(self) -> None:
        """Ask for no more messages."""

    def disconnect(self) -> None:
        """Say good-bye and close the wire once that is sent."""


class Session:
    """The messages of one connection.

    Parameters
    ----------
    settings
        Of the broker.
    control
        Makes the keeper of the session, which reports back through `accept`, `open` and `end`.
    deliver
        Takes the arrivals of one read as a batch.
    receiving
        Whether arrivals are wanted at all.
    receipts
        Numbers that were never used before.
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
        """Set when it is known whether messages will flow."""
        self.lost = asyncio.Event()
        """Set when the connection is gone, or is not to be used any more."""
        self.reason = ""
        """Why it is lost."""
        self.failure: Exception | None = None
        """What `deliver` raised, if that ended the session."""
        self.wire = Wire(on_bytes=self._on_bytes, on_lost=self._on_lost)
        self._opened = False
        self._version5 = settings.version == "5"
        self._deliver = deliver
        self._receiving = receiving
        self._receipts = receipts
        self._mid_of: dict[int, int] = {}
        self._reader = PacketReader(version5=self._version5, limit_bytes=MAX_PACKET_BYTES)
        self._under_way: dict[int, asyncio.Future[bool]] = {}
        self._mids = itertools.cycle(_MIDS)
        self._accepted = False
        self._window = asyncio.Semaphore(0)
        self._max_outgoing_bytes = 0
        self._control = control(self)
        self._upkeep = loop.call_soon(self._keep_up)

    # What the control reports.

    def accept(self, *, receive_maximum: int, max_packet_bytes: int) -> None:
        """Take the broker's limits: it lets us in."""
        if self._accepted:
            raise MalformedPacketError("accepted twice")
        self._accepted = True
        self._window = asyncio.Semaphore(min(receive_maximum, _MAX_UNDER_WAY))
        self._max_outgoing_bytes = max_packet_bytes

    def open(self) -> None:
        """Let messages flow."""
        self._opened = True
        self.decided.set()

    def end(self, reason: str) -> None:
        """Drop the connection, unless that has happened: the first reason counts."""
        if self.lost.is_set():
            return
        self.reason = reason
        self.lost.set()
        self.decided.set()
        self._upkeep.cancel()
        self._mid_of.clear()
        for mid in list(self._under_way):
            self._settle(mid, accepted=False)
        self.wire.abort()

    # What the link asks for.

    @property
    def usable(self) -> bool:
        """Whether messages flow."""
        return self._opened and not self.lost.is_set()

    def connect(self) -> None:
        """Ask the broker to be let in; the wire stands."""
        self._control.connect()

    async def publish(
        self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
    ) -> list[bool]:
        """Publish; see `anonymizer.pipeline.ports.Link.publish`.

        Waits while the peer is slow to read, so that what is held here stays within a few
        hundred KiB (and one message).
        """
        results: list[bool | asyncio.Future[bool]] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                for i, message in enumerate(messages, start=1):
                    results.append(await self._send(message, qos=qos))
                    if i % _FAIR_SHARE == 0:
                        await asyncio.sleep(0)
                if waiting := [r for r in results if isinstance(r, asyncio.Future)]:
                    await asyncio.wait(waiting)
        sent = [r if isinstance(r, bool) else r.done() and r.result() for r in results]
        return sent + [False] * (len(messages) - len(sent))

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Settle deliveries of this connection, each once; others do nothing."""
        mids = [self._mid_of.pop(receipt) for receipt in receipts if receipt in self._mid_of]
        if mids:
            self.wire.write(encode_pubacks(mids))

    def stop_receiving(self, *, unsubscribe: bool) -> None:
        """Deliver no more; what arrives from now on is left unsettled."""
        self._receiving = False
        if unsubscribe and self.usable:
            self._control.unsubscribe()

    async def disconnect(self) -> None:
        """Say good-bye and wait until the connection is closed."""
        self._control.disconnect()
        await self.lost.wait()

    # The inside.

    async def _send(self, message: Outgoing, *, qos: int) -> bool | asyncio.Future[bool]:
        await self.wire.writable()
        if not qos:
            return self._write(message, mid=0)
        await self._window.acquire()
        mid = next(mid for mid in self._mids if mid not in self._under_way)
        try:
            if self._write(message, mid=mid):
                self._under_way[mid] = asyncio.get_running_loop().create_future()
                return self._under_way[mid]
            return False
        finally:
            if mid not in self._under_way:
                self._window.release()  # after a loss it wakes the next that waits

    def _write(self, message: Outgoing, *, mid: int) -> bool:
        packet = encode_publish(message, mid=mid, version5=self._version5)
        # For a packet above its limit the broker would drop the connection with all else.
        if self.lost.is_set() or len(packet) > self._max_outgoing_bytes:
            return False
        self.wire.write(packet)
        return True

    def _settle(self, mid: int, *, accepted: bool) -> None:
        acknowledged = self._under_way.pop(mid, None)
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
        except Exception as error:  # noqa: BLE001  the loop would log and forget it: the link raises it
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
                raise MalformedPacketError("more messages under way than have names")
            receipt = next(self._receipts)
            self._mid_of[receipt] = packet.mid
        return Delivery(packet.topic, packet.payload, receipt, packet.retained)

    def _on_lost(self, error: Exception | None) -> None:
        self.end("connection closed" if error is None else reason_of(error))

    def _keep_up(self) -> None:
        self._upkeep = asyncio.get_running_loop().call_later(_UPKEEP_S, self._keep_up)
        self._control.keep_alive()

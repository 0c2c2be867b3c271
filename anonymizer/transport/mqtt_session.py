"""An MQTT session: the messages of one connection to a broker, from acceptance to loss.

All state but a `SessionMemory` ends with the connection, and the link creates a new session.
Receipts of the old one settle nothing there, but for what comes once. Messages that the old one
could not publish are never sent by the new one: their failure has already been reported to the
caller.
"""

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from anonymizer.pipeline.packed_deliveries import Packed, PackedDeliveries
from anonymizer.pipeline.ports import ONCE, Deliver, Delivery, LinkCounts, Loss, Outgoing
from anonymizer.transport.broker_profile import BrokerProfile, Manners
from anonymizer.transport.connecting import reason_of
from anonymizer.transport.exactly_once import ExactlyOnce
from anonymizer.transport.packet_sizes import PacketSizes
from anonymizer.transport.packets import (
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBREC,
    MalformedPacketError,
    PacketReader,
    Puback,
    Publish,
    Publishes,
    Pubrel,
    Skipped,
    encode_acknowledgements,
    encode_publish,
)
from anonymizer.transport.quarantine import Quarantine
from anonymizer.transport.unsettled import Receipts, Unsettled
from anonymizer.transport.wire import READ_BYTES, Wire

if TYPE_CHECKING:
    from anonymizer.settings import BrokerSettings
    from anonymizer.transport.mqtt import PahoControl

MOST_PACKET_BYTES = 16 << 20
"""Largest packet of a broker that is held. It is not announced: an MQTT 5 broker would drop what is
larger, and nobody would count it."""
REST_S = 0.005
"""Pause after a read that brought messages, so that the next read brings many."""
_LARGE_BYTES = 4096
"""Messages that are larger on average are read without a pause. They cost little each, and a
broker keeps in memory what is not read."""
_CHECK_S = 0.25
"""How often a session checks whether the broker answers."""
_MAX_IN_FLIGHT = 1000
"""Most messages at QoS 1 that wait for the broker's acknowledgement at once."""
_MAX_UNSETTLED = 0xFFFF
"""Deliveries that wait for our acknowledgement and stop the reading: one for each packet
identifier. Mosquitto 2.0 ignores the agreed Receive Maximum in a burst; the rest waits in it."""
_MIDS = range(256, 65536)
"""Packet identifiers of messages; lower ones are left for subscriptions."""
_MESSAGES_PER_TURN = 256
"""Messages published before other tasks get a turn."""


class _Batch:
    """Messages that are published together, and what is known of each."""

    __slots__ = ("answered", "n_open", "results")

    def __init__(self, n: int) -> None:
        self.results: list[bool | None] = [None] * n
        self.n_open = 0
        """Sent at QoS 1, and without the broker's acknowledgement."""
        self.answered = asyncio.Event()
        """Set when the last of them is acknowledged."""

    def settle(self, i: int, accepted: bool | None) -> None:  # noqa: FBT001  as of the result
        self.results[i] = accepted
        self.n_open -= 1
        if not self.n_open:
            self.answered.set()


class _InFlight(NamedTuple):
    """A message at QoS 1 that waits for the broker's acknowledgement."""

    sent_s: float
    batch: _Batch
    i: int
    n_sent: int
    """Of `PacketSizes`, when it was sent."""


class _Ping(NamedTuple):
    """A ping that waits for its answer; fields as of `_InFlight`."""

    sent_s: float
    n_sent: int


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """What a link remembers over its connections."""

    receipts: Receipts
    once: ExactlyOnce
    quarantine: Quarantine
    sizes: PacketSizes


class Session:
    """The messages of one connection.

    Parameters
    ----------
    control
        Makes the control of the session, which calls `accept`, `open` and `end`.
    receiving
        Whether messages are delivered at all.
    max_payload_bytes
        See `PacketReader`.
    rest_s
        Pause after a read that brought messages.
    """

    def __init__(
        self,
        settings: "BrokerSettings",
        *,
        control: "Callable[[Session], PahoControl]",
        deliver: Deliver,
        receiving: bool,
        memory: SessionMemory,
        counts: LinkCounts,
        max_payload_bytes: int,
        rest_s: float = REST_S,
    ) -> None:
        self.decided = asyncio.Event()
        """Set when it is known whether messages can flow."""
        self.lost = asyncio.Event()
        """Set when the connection is gone or must not be used any more."""
        self.reason = ""
        """Why it is lost, in words."""
        self.loss = Loss.OTHER
        """Why it is lost."""
        self.refused: list[str] = []
        """Filters that the broker does not let this client subscribe to, each with its reason."""
        self.answers: dict[str, str] = {}
        """What the broker has said to each filter."""
        self.resumed = False
        """Whether the broker had kept the session of an earlier connection."""
        self.n_batches = 0  # delivered: a broker may send what it kept before it opens the session
        self.failure: Exception | None = None
        """The error of `deliver`, if that ended the session."""
        self.profile = BrokerProfile()
        """What the broker announces."""
        self._manners = Manners(retains=True, qos=1)
        self.wire = Wire(on_bytes=self._on_bytes, on_lost=self._on_lost)
        self._opened = False
        self._version5 = settings.version == "5"
        self._deliver = deliver
        self._receiving = receiving
        self._rest_s = rest_s
        self._wanted = True
        self._counts = counts
        self._unsettled = Unsettled(memory.receipts)
        self._once = memory.once
        self._reader = PacketReader(
            version5=self._version5,
            limit_bytes=MOST_PACKET_BYTES,
            max_payload_bytes=max_payload_bytes,
            quarantine=memory.quarantine,
        )
        self._in_flight: dict[int, _InFlight] = {}  # the oldest first
        self._mids = itertools.cycle(_MIDS)
        self._accepted = False
        self._window = asyncio.Semaphore(0)
        self._sizes = memory.sizes
        self._patience_s = float(settings.keepalive_s)
        self._ping_every_s = self._patience_s
        # Seconds that this process was awake: if it was frozen, the broker is not to blame.
        self._clock_s = self._heard_s = self._pinged_s = 0.0
        self._pings: deque[_Ping] = deque()
        self._answered = asyncio.Event()
        self._answered_s = 0.0  # when the newest ping was sent that has its answer
        self._checked_s = asyncio.get_running_loop().time()
        self._check: asyncio.Handle | None = None
        self._control = control(self)

    # Called by the control.

    def accept(self, profile: BrokerProfile, manners: Manners, *, resumed: bool) -> None:
        """Record that the broker has accepted the connection, with its limits.

        With a `keepalive_s` of 0 the broker wants no pings, and its silence means nothing.
        """
        if self._accepted:
            raise MalformedPacketError("accepted twice")
        self._accepted = True
        self.resumed = resumed
        if not resumed:
            self._once.forget()
        self.profile, self._manners = profile, manners
        if profile.keepalive_s is not None:
            self._ping_every_s = float(profile.keepalive_s)
        self._check_broker()
        self._window = asyncio.Semaphore(min(profile.receive_maximum, _MAX_IN_FLIGHT))
        self._sizes.announced(profile.max_packet_bytes)

    def open(self) -> None:
        """Let messages flow."""
        self._opened = True
        self.decided.set()

    def end(self, reason: str, loss: Loss = Loss.OTHER) -> None:
        """Drop the connection. Only the first call and its reason count."""
        if self.lost.is_set():
            return
        blamed = self._sizes.ended() if loss is Loss.CLOSED and self._accepted else 0
        if blamed:
            reason += f" at a message of {blamed:,} bytes, which may be too large for the broker"
        self.reason, self.loss = reason, loss
        self.lost.set()
        self.decided.set()
        self._answered.set()
        if self._check is not None:
            self._check.cancel()
        self._unsettled.clear()
        self._once.disconnect()
        for mid in list(self._in_flight):
            self._settle(mid, accepted=None)
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
    ) -> list[bool | None]:
        """Publish a batch; see `anonymizer.pipeline.ports.Link.publish`.

        Waits while the peer reads slowly, so that the buffered data stays within a few hundred
        KiB plus one message.
        """
        batch, qos = _Batch(len(messages)), min(qos, self._manners.qos)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                for begin in range(0, len(messages), _MESSAGES_PER_TURN):
                    if begin:
                        await asyncio.sleep(0)
                    await self._send(batch, messages, begin, qos=qos)
                if batch.n_open:
                    self.wire.end_rest()  # the answers of the broker must not wait for it
                    batch.answered.clear()
                    await batch.answered.wait()
        return list(batch.results)

    def takes(self, message: Outgoing) -> bool:
        """Return whether a message is within the largest packet of the broker."""
        n_bytes = len(encode_publish(message, mid=1, version5=self._version5))
        return n_bytes <= self._sizes.most_bytes

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Acknowledge deliveries of this connection, each once; other receipts are ignored.

        What comes once is settled whatever the connection, see `ExactlyOnce`.
        """
        given = np.fromiter(receipts, np.int64)
        mids = self._unsettled.settle(given)
        if len(mids):
            self.wire.write(encode_acknowledgements(PUBACK, mids))
        if self._once.n_unsettled:
            self._write_for(PUBREC, *self._once.settle(given[given > ONCE].tolist()))
        self._read_or_wait()

    def read(self, *, on: bool) -> None:
        """Read what the broker sends, or leave it with the broker."""
        self._wanted = on
        self._read_or_wait()

    def stop_receiving(self, *, unsubscribe: bool) -> None:
        """Stop deliveries; messages that arrive from now on stay unsettled."""
        self._receiving = False
        if unsubscribe and self.usable:
            self._control.unsubscribe()

    @property
    def accepted(self) -> bool:
        """Whether the broker has accepted the connection."""
        return self._accepted

    @property
    def unanswered(self) -> list[str]:
        """Filters that were asked for and have no answer yet."""
        return self._control.unanswered

    async def until_read(self) -> None:
        """Wait until the broker has read what was sent: it answers a ping, or is lost."""
        self._answered.clear()
        self._ping()
        await self._answered.wait()

    async def disconnect(self) -> None:
        """Disconnect and wait until the connection is closed."""
        self._control.disconnect()
        await self.lost.wait()

    # Internals.

    async def _send(
        self, batch: _Batch, messages: Sequence[Outgoing], begin: int, *, qos: int
    ) -> None:
        """Send the messages of one turn, from `begin` on."""
        for i in range(begin, min(begin + _MESSAGES_PER_TURN, len(messages))):
            if not self.wire.is_writable:
                await self.wire.writable()
            if not qos:
                batch.results[i] = self._write(messages[i], mid=0)
                continue
            await self._window.acquire()
            mid = next(self._mids)
            while mid in self._in_flight:
                mid = next(self._mids)
            try:
                batch.results[i] = self._write(messages[i], mid=mid)
                if batch.results[i]:
                    batch.results[i] = None  # until the broker answers
                    batch.n_open += 1
                    n_sent = self._sizes.n_sent
                    self._in_flight[mid] = _InFlight(self._clock_s, batch, i, n_sent)
                    self._read_or_wait()
            finally:
                if mid not in self._in_flight:
                    self._window.release()  # after a loss this wakes the next waiting message

    def _write(self, message: Outgoing, *, mid: int) -> bool | None:
        """Write a message; return False if it is too large, None if the connection is lost."""
        if message.retain and not self._manners.retains:
            message = message._replace(retain=False)
        packet = encode_publish(message, mid=mid, version5=self._version5)
        if self.lost.is_set():
            return None
        if len(packet) > self._sizes.most_bytes:  # it would cost the connection
            self._counts.n_too_large += 1
            return False
        self._sizes.sent(len(packet))
        self.wire.write(packet)
        return True

    def _write_for(self, kind: int, *mids: int) -> None:
        """Write acknowledgements of a kind for some messages of the broker."""
        if mids:
            self.wire.write(encode_acknowledgements(kind, mids))

    def _settle(self, mid: int, *, accepted: bool | None) -> None:
        message = self._in_flight.pop(mid, None)
        if message is not None:
            if accepted is not None:
                self._sizes.answered(message.n_sent)
            message.batch.settle(message.i, accepted)
            self._window.release()

    def _on_bytes(self, data: bytes) -> None:
        self._heard_s = self._clock_s
        arrivals: list[Sequence[Delivery]] = []
        try:
            self._take(data, arrivals)
        except MalformedPacketError as error:
            self.end(f"malformed packet: {error}", Loss.MALFORMED)
        if not arrivals:
            return
        self.n_batches += 1
        # After a full read more is there already.
        if len(data) < min(READ_BYTES, _LARGE_BYTES * sum(map(len, arrivals))):
            # What our own messages wait for must not wait for a long rest.
            self.wire.rest(min(self._rest_s, REST_S) if self._in_flight else self._rest_s)
        self._read_or_wait()
        try:
            for batch in arrivals:
                self._deliver(batch)
        except Exception as error:  # noqa: BLE001  the loop would only log it; the link raises it
            self.failure = error
            self.end("the consumer failed")

    def _take(self, data: bytes, arrivals: list[Sequence[Delivery]]) -> None:
        single: list[Delivery] = []  # the last batch, if it takes single messages
        for packet in self._reader.feed(data):
            if self.lost.is_set():
                break
            if isinstance(packet, Publish | Publishes):
                if not self._accepted:
                    raise MalformedPacketError("a message before acceptance")
                if not self._receiving:
                    continue
                if isinstance(packet, Publishes):
                    arrivals.append(self._arrivals(packet))
                    single = []
                elif (arrival := self._arrival(packet)) is not None:
                    if not single:
                        arrivals.append(single)
                    single.append(arrival)
            else:
                self._take_other(packet)

    def _take_other(self, packet: Puback | Pubrel | Skipped | bytes) -> None:
        if isinstance(packet, Puback):
            self._settle(packet.mid, accepted=packet.accepted)
        elif isinstance(packet, Pubrel):
            # Also of an identifier that is not known here: only so the broker can let it go.
            self._once.release(packet.mid)
            self._write_for(PUBCOMP, packet.mid)
        elif isinstance(packet, Skipped):
            self._counts.n_quarantined += 1
            if packet.mid:
                self._write_for(PUBREC if packet.once else PUBACK, packet.mid)
        else:
            if packet == PINGRESP and self._pings:
                self._answered_s, n_sent = self._pings.popleft()
                self._sizes.answered(n_sent)
                if not self._pings:
                    self._answered.set()
            self._control.take(packet)

    def _arrival(self, packet: Publish) -> Delivery | None:
        """Return a message to be delivered; None: at QoS 2 it has been delivered before."""
        if packet.once:
            known = self._once.arrive(packet.mid, packet.topic.encode(), packet.payload)
            if known == 0:
                self._write_for(PUBREC, packet.mid)
            if not known:
                return None
            receipt = known
        else:
            [receipt] = self._unsettled.add(np.array([packet.mid])).tolist() if packet.mid else [0]
        return Delivery(packet.topic, packet.payload, receipt, packet.retained)

    def _arrivals(self, packets: Publishes) -> PackedDeliveries:
        columns = Packed(packets.bounds, self._unsettled.add(packets.mid), packets.retained)
        return PackedDeliveries(packets.stream, columns)

    def _on_lost(self, error: Exception | None) -> None:
        self.end("connection closed" if error is None else reason_of(error), Loss.CLOSED)

    def _read_or_wait(self) -> None:
        """Stop reading while it is not wanted or too many deliveries are unsettled, or continue.

        While our own messages wait for an acknowledgement it must be read, whatever comes with it:
        input may be settled only after that.
        """
        n_unsettled = len(self._unsettled) + self._once.n_unsettled
        has_room = self._wanted and n_unsettled < _MAX_UNSETTLED
        self.wire.read(on=has_room or bool(self._in_flight))

    def _check_broker(self) -> None:
        """Ping the broker when it is time; end the session if it has not answered in time."""
        loop = asyncio.get_running_loop()
        self._check = loop.call_later(_CHECK_S, self._check_broker)
        now_s = loop.time()
        self._clock_s += min(now_s - self._checked_s, 2 * _CHECK_S)
        self._checked_s = now_s
        oldest = next(iter(self._in_flight.values()), None)
        if not self.wire.reading:
            self._heard_s = self._clock_s  # its answers may be among what is not read
        # A broker answers in order. What it sends first may be more than we read in a long time:
        # only an answer to a later ping shows that it left a message without acknowledgement.
        answered_s = self._answered_s if self._ping_every_s else self._clock_s
        if oldest is not None and answered_s - oldest.sent_s > self._patience_s:
            self.end("a message was not acknowledged in time", Loss.UNACKNOWLEDGED)
        elif self._ping_every_s and self._clock_s - self._heard_s > 2 * self._ping_every_s:
            self.end("no answer to a ping in time", Loss.NO_ANSWER)
        elif self._ping_every_s and (
            self._clock_s - self._pinged_s + _CHECK_S > self._ping_every_s
            or (self._sizes.is_waiting and not self._pings)
        ):
            self._ping()

    def _ping(self) -> None:
        self._pinged_s = self._clock_s
        self._pings.append(_Ping(self._clock_s, self._sizes.n_sent))
        self.wire.write(PINGREQ)

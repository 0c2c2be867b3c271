"""MQTT packets that carry data, PUBLISH and its acknowledgements, read and written in bulk.

A client library spends 10 to 30 µs on each of them (property tables, locks, log lines). The
fields that a gateway needs take about 1 µs. All other packets are rare: they are only separated
from the stream here and passed to the library as a whole.

References
----------
.. [1] OASIS, "MQTT Version 5.0", sections 2.1 and 3.3 to 3.7; "MQTT Version 3.1.1", likewise.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.kernels import inlined_kernel, kernel
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.discreet import discreet
from anonymizer.pipeline.ports import Headers, Outgoing
from anonymizer.transport.oversized import Oversized
from anonymizer.transport.quarantine import Quarantine

_PUBLISH, _PUBACK, _PUBREL = 3, 4, 6
_DUP = 0x08
_CONTENT_TYPE, _USER_PROPERTY = 0x03, 0x26
PUBACK, PUBREC, PUBCOMP = 0x4002, 0x5002, 0x7002
"""First bytes of our acknowledgements: at QoS 1, and at QoS 2 of the message and of its release."""
_LEFT_TO_THE_LIBRARY = frozenset({2, 9, 11, 13, 14})
"""CONNACK, SUBACK, UNSUBACK, PINGRESP, DISCONNECT: all other packets that a server may send to a
client that uses no extended authentication and does not publish at QoS 2."""
PINGREQ = b"\xc0\x00"
PINGRESP = b"\xd0\x00"
_BYTE = [bytes([byte]) for byte in range(256)]
MAX_PAYLOAD_BYTES = 262_144
"""Default of the largest payload that a consumer takes."""
_NOT_IN_A_TOPIC = re.compile(r"[+#\x00]")


class MalformedPacketError(ValueError):
    """The peer does not speak MQTT, or uses a part of it that was not negotiated."""


@discreet
class Publish(NamedTuple):
    """A message from the broker."""

    topic: str
    payload: bytes
    mid: int
    """The packet identifier; 0 at QoS 0, and only there."""
    retained: bool
    once: bool = False
    """Whether it came at QoS 2."""


class Pubrel(NamedTuple):
    """The broker releases the identifier of a message at QoS 2."""

    mid: int


class Skipped(NamedTuple):
    """A packet in quarantine: it is acknowledged as far as it can be, and nothing else."""

    mid: int
    """0: it has none that can be read."""
    once: bool


class Puback(NamedTuple):
    """The broker's answer to a message that was sent at QoS 1."""

    mid: int
    accepted: bool


_BULK_BYTES = 4096
"""Fewer bytes are read faster without the kernel."""
_MOST_ROWS = 4096
"""Most messages that the kernel reads at once."""


@discreet
class Publishes(NamedTuple):
    """Consecutive messages at QoS 0 and 1 from the broker, shape (n,), still packed."""

    stream: bytes
    """The bytes that contain them."""
    bounds: Int32Array
    """Start and end of the topic and of the payload, shape (n, 4)."""
    mid: IntArray
    retained: BoolArray
    """`mid`, `retained`: as of `Publish`."""


Packet: TypeAlias = Publishes | Publish | Puback | Pubrel | Skipped | bytes
"""What a broker sends; rare packets as plain bytes."""


class PacketReader:
    """Splits a stream of bytes into packets, however the bytes are chunked.

    Parameters
    ----------
    version5
        Whether the peer speaks MQTT 5, in which PUBLISH has properties.
    limit_bytes
        Largest packet held, which bounds the memory that a peer can use.
    max_payload_bytes
        What the consumer takes. A message above the limit comes with a payload that is one byte
        longer, see `Oversized`.
    quarantine
        Of the link: packets that are skipped. None: no packet is.
    """

    left_to_the_library = _LEFT_TO_THE_LIBRARY

    def __init__(
        self,
        *,
        version5: bool,
        limit_bytes: int,
        max_payload_bytes: int = MAX_PAYLOAD_BYTES,
        quarantine: Quarantine | None = None,
    ) -> None:
        self._version5 = version5
        self._limit_bytes = limit_bytes
        self._max_payload_bytes = max_payload_bytes
        self._quarantine = quarantine
        self._oversized: Oversized | None = None
        self._buffer = bytearray()
        self._n_needed = 2

    def feed(self, data: bytes) -> Iterator[Packet]:
        """Yield the packets that these bytes complete, in order.

        Messages come together where there are many.

        Raises
        ------
        MalformedPacketError
            If the peer breaks the protocol. The reader cannot be used afterwards.

        Notes
        -----
        About 1 µs a PUBLISH, 0.1 µs where there are many. A packet that arrives in many pieces
        costs one check per piece and is copied once when it is complete. One above the limit is
        not held, but costs a hash.
        """
        if self._oversized is not None:
            data = self._oversized.take(data)
            if not self._oversized.is_over:
                return
            oversized, self._oversized, self._n_needed = self._oversized, None, 2
            yield self._shortened(oversized)
        self._buffer += data
        if len(self._buffer) < self._n_needed:
            return
        stream = bytes(self._buffer)
        start = 0
        while True:
            if len(stream) - start > _BULK_BYTES and stream[start] >> 4 == _PUBLISH:
                packed, start = self._many(stream, start)
                if len(packed.mid):
                    yield packed
            body, end = self._frame(stream, start)
            if end - body > self._limit_bytes:
                if stream[start] >> 4 != _PUBLISH:
                    raise MalformedPacketError("a packet above the size limit")
                self._buffer.clear()
                self._oversized = Oversized(stream[start], end - body)
                yield from self.feed(stream[body:])
                return
            self._n_needed = end - start
            if end > len(stream):
                break
            yield self._read(stream, start, body, end)
            start = end
        del self._buffer[:start]

    def _many(self, stream: bytes, start: int) -> tuple[Publishes, int]:
        """Return the messages from `start` on, up to anything unusual, and where that is."""
        rows, start = _scan_publishes(
            np.frombuffer(stream, np.uint8), start, self._version5, self._limit_bytes
        )
        bounds = np.ascontiguousarray(rows[:, :4])
        return Publishes(stream, bounds, rows[:, 4].astype(np.int64), rows[:, 5] > 0), start

    def _frame(self, stream: bytes, start: int) -> tuple[int, int]:
        """Return the start and end of the body of the packet at `start`.

        If the end is beyond the stream, more bytes of the header or the body are needed.
        """
        length = shift = 0
        for at in range(start + 1, start + 5):
            if at >= len(stream):
                return at, at + 1
            length |= (stream[at] & 0x7F) << shift
            shift += 7
            if stream[at] < 0x80:
                return at + 1, at + 1 + length
        raise MalformedPacketError("a length of more than four bytes")

    def _shortened(self, oversized: Oversized) -> Publish | Skipped:
        """Return a message above the limit, with another payload."""
        head = bytes(oversized.head)
        try:
            topic, mid, _ = _head(head, oversized.flags, 0, len(head))
        except MalformedPacketError:
            skipped = self._skipped(oversized.flags, head, oversized.payload(0), oversized.n_bytes)
            if skipped is None:
                raise
            return skipped
        flags = oversized.flags
        payload = oversized.payload(self._max_payload_bytes + 1)
        return Publish(topic, payload, mid, bool(flags & 1), once=_qos(flags) == 2)

    def _read(self, stream: bytes, start: int, body: int, end: int) -> Packet:
        """Return a whole packet, or what is left of it if it is in quarantine."""
        try:
            return self._packet(stream, start, body, end)
        except MalformedPacketError:
            skipped = self._skipped(stream[start], stream[body:end], b"", end - body)
            if skipped is None:
                raise
            return skipped

    def _skipped(self, flags: int, body: bytes, rest: bytes, n_bytes: int) -> Skipped | None:
        """Return what is left of a broken packet in quarantine; None: it is not there.

        `rest` stands for what follows `body`, and `n_bytes` is the length of both.
        """
        if self._quarantine is None:
            return None
        at, mid = 0, 0
        if flags >> 4 == _PUBLISH:
            at = 2 + int.from_bytes(body[:2])
            if _qos(flags) in {1, 2} and at + 2 <= len(body):
                mid = int.from_bytes(body[at : at + 2])
        # The identifier may be another one when the broker delivers it again.
        parts = (bytes([flags & ~_DUP]), body[:at], body[at + 2 * bool(mid) :], rest)
        is_held = self._quarantine.holds(*parts, n_bytes=n_bytes)
        return Skipped(mid, once=_qos(flags) == 2) if is_held else None

    def _packet(self, stream: bytes, start: int, body: int, end: int) -> Packet:
        kind = stream[start] >> 4
        if kind == _PUBLISH:
            return self._publish(stream, stream[start], body, end)
        if kind == _PUBACK:
            if end - body < 2:
                raise MalformedPacketError("a PUBACK without identifier")
            return Puback(
                mid=int.from_bytes(stream[body : body + 2]),
                accepted=end - body == 2 or stream[body + 2] < 0x80,
            )
        if kind == _PUBREL:
            if end - body < 2:
                raise MalformedPacketError("a PUBREL without identifier")
            return Pubrel(int.from_bytes(stream[body : body + 2]))
        if kind not in self.left_to_the_library:
            raise MalformedPacketError("a packet that no server may send")
        return stream[start:end]

    def _publish(self, stream: bytes, flags: int, at: int, end: int) -> Publish:
        topic, mid, payload = _head(stream, flags, at, end)
        if self._version5:
            properties, payload = self._frame(stream, payload - 1)
            if payload > end or properties > end:
                raise MalformedPacketError("a PUBLISH with broken properties")
        return Publish(topic, stream[payload:end], mid, bool(flags & 1), once=_qos(flags) == 2)


def _qos(flags: int) -> int:
    return flags >> 1 & 3


def _head(stream: bytes, flags: int, at: int, end: int) -> tuple[str, int, int]:
    """Return topic and identifier of the PUBLISH with its body at `at`, and where they end."""
    qos = _qos(flags)
    if qos > 2:
        raise MalformedPacketError("a PUBLISH with a QoS that there is not")
    after_topic = at + 2 + int.from_bytes(stream[at : at + 2])
    after = after_topic + 2 * bool(qos)
    if after > end or after_topic == at + 2:
        raise MalformedPacketError("a PUBLISH without topic or identifier")
    mid = int.from_bytes(stream[after_topic:after])
    if qos and not mid:
        raise MalformedPacketError("a PUBLISH without topic or identifier")
    try:
        return stream[at + 2 : after_topic].decode(), mid, after
    except UnicodeDecodeError:
        raise MalformedPacketError("a topic that is not UTF-8") from None


@kernel
def _scan_publishes(
    stream: NDArray[np.uint8],
    start: int,
    version5: bool,  # noqa: FBT001  a kernel has no keyword-only arguments
    limit_bytes: int,
) -> tuple[Int32Array, int]:
    """Return the complete PUBLISH packets from `start` on, and where the first other thing begins.

    That may also be a message with a topic that is not ASCII, or one that is malformed: it is left
    to the careful reader. A row is the start and end of topic and payload, the packet identifier,
    and whether it is retained.
    """
    rows = np.empty((_MOST_ROWS, 6), np.int32)
    n, size = 0, len(stream)
    while n < _MOST_ROWS and start < size:
        flags = stream[start]
        qos = flags >> 1 & 3
        body, length = _length_at(stream, start + 1)
        if flags >> 4 != _PUBLISH or qos > 1 or body < 0 or length > limit_bytes:
            break
        end = body + length
        if end > size or body + 2 > end:
            break
        topic = body + 2
        after_topic = topic + (np.int64(stream[body]) << 8 | stream[body + 1])
        payload = after_topic + 2 * qos
        if payload > end or after_topic == topic:
            break
        mid = np.int64(stream[after_topic]) << 8 | stream[after_topic + 1] if qos else 0
        if qos and mid == 0:
            break
        if version5:
            after_length, n_properties = _length_at(stream, payload)
            payload = after_length + n_properties
            if after_length < 0 or payload > end:
                break
        is_ascii = True
        for i in range(topic, after_topic):
            is_ascii &= stream[i] < 0x80
        if not is_ascii:
            break
        rows[n, 0], rows[n, 1] = topic, after_topic
        rows[n, 2], rows[n, 3] = payload, end
        rows[n, 4], rows[n, 5] = mid, flags & 1
        n += 1
        start = end
    return rows[:n].copy(), start


@inlined_kernel
def _length_at(stream: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Return the end of an encoded length and the length; the end is -1 if it is not complete."""
    length = np.int64(0)
    for i in range(4):
        if at + i >= len(stream):
            break
        length |= np.int64(stream[at + i] & 0x7F) << (7 * i)
        if stream[at + i] < 0x80:
            return at + i + 1, int(length)
    return -1, 0


def encode_publish(message: Outgoing, *, mid: int, version5: bool) -> bytes:
    """Return a PUBLISH packet, at QoS 0 if `mid` is 0, else at QoS 1.

    Raises `ValueError` if the topic is empty, too long, not UTF-8 or has wildcards. The error does
    not contain the topic.
    """
    topic = _topic(message.topic)
    properties = _properties(message.headers) if version5 else b""
    head = topic + mid.to_bytes(2) + properties if mid else topic + properties
    flags = _PUBLISH << 4 | (2 if mid else 0) | message.retain
    length = _length(len(head) + len(message.payload))
    return b"".join([_BYTE[flags], length, head, message.payload])


@lru_cache(maxsize=64)
def _topic(name: str) -> bytes:
    """Return a topic with its length; most messages have one of a few topics."""
    topic = name.encode(errors="replace")
    if not 0 < len(topic) <= 0xFFFF or _NOT_IN_A_TOPIC.search(name) or topic.decode() != name:
        raise ValueError("cannot publish: the topic is empty, too long, not UTF-8 or a filter")
    return len(topic).to_bytes(2) + topic


def _properties(headers: Headers | None) -> bytes:
    """Return the properties of a PUBLISH packet, with their length."""
    if headers is None:
        return b"\x00"
    body = bytes([_CONTENT_TYPE]) + _text(headers.content_type)
    body += b"".join(bytes([_USER_PROPERTY]) + _text(n) + _text(v) for n, v in headers.user)
    return _length(len(body)) + body


def _text(text: str) -> bytes:
    encoded = text.encode()
    return len(encoded).to_bytes(2) + encoded


def encode_acknowledgements(kind: int, mids: Sequence[int] | IntArray) -> bytes:
    """Return packets of a kind, `PUBACK` for example, for these messages of the broker."""
    packets = np.empty((len(mids), 2), ">u2")
    packets[:, 0] = kind
    packets[:, 1] = mids
    return packets.tobytes()


def _length(length: int) -> bytes:
    """Return a length encoded in groups of seven bits, lowest first."""
    if length >= 1 << 28:
        raise ValueError("cannot publish: the payload is above the limit of MQTT, 256 MiB")
    digits = bytearray()
    while length >= 0x80:
        digits.append(length & 0x7F | 0x80)
        length >>= 7
    digits.append(length)
    return bytes(digits)

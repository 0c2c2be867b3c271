"""Raw messages on their way from a bridge to a source, and messages on their way out, as bytes.

Both are batches: columns of many messages. What is read back is checked, so that no bytes of others
can do more than raise a `ValueError`, which repeats none of them.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, NamedTuple, NoReturn

import msgspec
import numpy as np
from msgspec import Meta

from anonymizer.domain.arrays import IntArray
from anonymizer.domain.discreet import discreet
from anonymizer.pipeline.packed_deliveries import Packed, PackedDeliveries, in_groups
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.tick.inbox import Arrivals

RAW, STATEMENTS = b"R", b"Z"
"""First byte of an encoded `Raw` of positions or records, and of device-owned zones; other inputs
begin with another byte."""
_OUT = b"O"
_MOST_BYTES = 512 * 1024
"""Of the payloads in one value of what is published, unless one is larger: Kafka takes 1 MiB by
default."""

_Int = Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)]


@discreet
class Raw(NamedTuple):
    """Messages of a bridge for a source, and how far the bridge has come."""

    bridge: str
    """Name of the bridge, the same after a restart."""
    tick: int
    """The bridge has sent all that it received in the ticks up to this one; what it sends later
    belongs to later ticks. Tick t is [t, t + 1) * `tick.interval_s` of unix time."""
    last: bool
    """Whether the bridge has stopped on purpose and will send nothing more: do not wait for it."""
    arrivals: Sequence[Arrivals]
    """Batches in order of arrival, with the unix time at which each arrived. The receipts of their
    messages are not kept."""


class _Columns(msgspec.Struct, array_like=True, frozen=True):
    """A `Raw` as it is encoded; arrays as bytes, with the lowest byte of a number first."""

    bridge: Annotated[str, Meta(min_length=1, max_length=256)]
    tick: _Int
    last: bool
    at_s: bytes
    """Of each batch, float64."""
    n: bytes
    """Messages in each batch, uint32."""
    sizes: bytes
    """Bytes of the topic and of the payload of each message, uint32, shape (n, 2)."""
    retained: bytes
    """Of each message, 0 or 1."""
    stream: bytes
    """Topic and payload of each message, one after the other."""


class _Out(msgspec.Struct, array_like=True, frozen=True):
    topic: Annotated[str, Meta(min_length=1, max_length=65_535, pattern=r"\A[^+#\x00]+\Z")]
    payload: bytes
    retain: bool
    key: str = ""


_ENCODER = msgspec.msgpack.Encoder()
_COLUMNS = msgspec.msgpack.Decoder(_Columns)
_MESSAGES = msgspec.msgpack.Decoder(list[_Out])


def encode_raw(raw: Raw, *, of: bytes = RAW) -> bytes:
    """Return a `Raw` as bytes, little longer than its topics and payloads.

    `of`: what it is of: `RAW` or `STATEMENTS`.
    """
    batches = [PackedDeliveries.of(batch.deliveries) for batch in raw.arrivals]
    sizes, retained, streams = [], [], []
    for group, _ in in_groups(batches):
        dense = group.copied()
        sizes.append(np.diff(dense.columns.bounds)[:, ::2].astype("<u4").tobytes())
        retained.append(dense.columns.retained.tobytes())
        streams.append(dense.stream)
    return of + _ENCODER.encode(
        _Columns(
            raw.bridge,
            raw.tick,
            raw.last,
            np.array([batch.at_s for batch in raw.arrivals], "<f8").tobytes(),
            np.array([len(batch) for batch in batches], "<u4").tobytes(),
            b"".join(sizes),
            b"".join(retained),
            b"".join(streams),
        )
    )


def decode_raw(value: bytes, *, of: bytes = RAW) -> Raw:
    """Return the `Raw` that was encoded, of the same.

    Raises `ValueError` if the bytes are none.
    """
    if value[:1] != of:
        _refuse()
    try:
        columns = _COLUMNS.decode(memoryview(value)[1:])
        at_s = np.frombuffer(columns.at_s, "<f8")
        n = np.frombuffer(columns.n, "<u4").astype(np.int64)
        sizes = np.frombuffer(columns.sizes, "<u4").astype(np.int64).reshape(-1, 2)
        retained = np.frombuffer(columns.retained, np.uint8)
    except (ValueError, msgspec.MsgspecError):
        _refuse()
    if not (
        len(at_s) == len(n)
        and n.sum() == len(sizes) == len(retained)
        and np.isfinite(at_s).all()
        and (retained <= 1).all()
        and sizes.sum() == len(columns.stream) < 1 << 31
        and _topics_are_text(columns.stream, sizes)
    ):
        _refuse()
    cuts = np.concatenate([[0], np.cumsum(sizes.ravel())]).astype(np.int32)
    bounds = np.stack([cuts[:-1:2], cuts[1::2], cuts[1::2], cuts[2::2]], axis=1)
    receipt = np.zeros(len(bounds), np.int64)
    first = np.cumsum([0, *n.tolist()]).tolist()
    batches = [
        Packed(bounds[a:b], receipt[a:b], retained[a:b].astype(bool)) for a, b in pairwise(first)
    ]
    return Raw(
        columns.bridge,
        columns.tick,
        columns.last,
        [
            Arrivals(at, PackedDeliveries(columns.stream, batch))
            for at, batch in zip(at_s.tolist(), batches, strict=True)
        ],
    )


def _topics_are_text(stream: bytes, sizes: IntArray) -> bool:
    """Return whether each topic is UTF-8.

    That is so if all are together, and none begins within a character.
    """
    is_topic = np.repeat(np.arange(2 * len(sizes)) % 2 == 0, sizes.ravel())
    data = np.frombuffer(stream, np.uint8)
    first = np.cumsum(sizes.sum(axis=1)) - sizes.sum(axis=1)
    begins = data[first[sizes[:, 0] > 0]]
    try:
        data[is_topic].tobytes().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return not ((begins & 0xC0) == 0x80).any()


def in_parts(messages: Sequence[Outgoing]) -> Iterator[Sequence[Outgoing]]:
    """Yield messages in parts of few bytes: one value of `encode_out` each."""
    size = np.cumsum([len(message.payload) + len(message.topic) for message in messages])
    part = size // _MOST_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(messages)]
    yield from (messages[a:b] for a, b in pairwise(cuts) if b > a)


def encode_out(messages: Sequence[Outgoing]) -> bytes:
    """Return messages that are published as bytes."""
    columns = [_Out(each.topic, each.payload, each.retain, each.key) for each in messages]
    return _OUT + _ENCODER.encode(columns)


def decode_out(value: bytes) -> list[Outgoing]:
    """Return the messages to be published that were encoded.

    Raises `ValueError` if the bytes are none, or a topic cannot be published to.
    """
    if value[:1] != _OUT:
        _refuse()
    try:
        messages = _MESSAGES.decode(memoryview(value)[1:])
    except (ValueError, msgspec.MsgspecError):
        _refuse()
    return [Outgoing(each.topic, each.payload, each.retain, key=each.key) for each in messages]


def _refuse() -> NoReturn:
    """Raise without the error that led here: it may hold content."""
    raise ValueError("these bytes are no batch of messages") from None

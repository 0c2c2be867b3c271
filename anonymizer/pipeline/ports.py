"""Interface between the pipeline and a transport. It passes batches, not single messages.

A batch of many is *packed*: the messages still lie in the bytes in which they were received. Making
an object of a message takes ten times as long as finding its bounds. Under overload most messages
yield to newer ones of their topic, and only those that stay become objects.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias, overload

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, UInt8Array

ONCE = 1 << 62
"""Receipts above it are of messages that come once (QoS 2): unlike those at QoS 1, they are not
delivered again on another connection while they wait to be settled."""


class Delivery(NamedTuple):
    """One message that arrived."""

    topic: str
    payload: bytes
    receipt: int
    """For `Link.acknowledge`, once the message is settled; 0: nothing to acknowledge. See `ONCE`
    for those above it."""
    retained: bool = False
    """Whether the broker kept it from earlier; it is not a report of the present."""

    def __repr__(self) -> str:
        """Reveal neither device nor place."""
        return "Delivery(...)"


PART_BYTES = 60_000
"""Largest payload of what is cut into parts, unless the broker takes less: the broker file of
`deploy/` takes 70,000 bytes, AWS IoT Core 128 KiB."""
MAX_WAITING_BYTES = 256 * 1024 * 1024
"""Most bytes of messages that wait in one inbox, however few they are."""
_DELIVERY_BYTES = 256
"""Size of a delivery in memory without its topic and payload."""


class Headers(NamedTuple):
    """What a message says beside its payload, in MQTT 5."""

    content_type: str
    user: tuple[tuple[str, str], ...] = ()
    """Names and values of user properties, in their order."""


class Outgoing(NamedTuple):
    """One message to publish."""

    topic: str
    payload: bytes
    retain: bool = False
    headers: Headers | None = None
    key: str = ""
    """What the message is about, for transports that keep order by key: all with one key stay in
    order. Empty: of no matter."""


class Loss(Enum):
    """Why a connection ended."""

    TAKEN_OVER = "taken_over"
    """Another client connected with the same client id."""
    UNACKNOWLEDGED = "unacknowledged"
    """The broker left a message without acknowledgement."""
    REFUSED = "refused"
    """The broker refused the connection or a subscription."""
    MALFORMED = "malformed"
    """The broker sent what is not MQTT, or a part of it that was not negotiated."""
    NO_ANSWER = "no_answer"
    """The broker did not answer in time."""
    CLOSED = "closed"
    """The broker, or the network, ended it."""
    OTHER = "other"


@dataclass(slots=True)
class LinkCounts:
    """Counts of the connections of a link since the start."""

    n_connections: int = 0
    n_sessions_lost: int = 0
    """Connections at which the broker no longer had the session that it should have kept: what was
    sent while the link was away is lost."""
    n_too_large: int = 0
    """Attempts to publish a message that is above the largest packet of the broker."""
    n_quarantined: int = 0
    """Packets that were skipped, because they had ended connections again and again."""
    lost: dict[Loss, int] = field(default_factory=lambda: dict.fromkeys(Loss, 0))
    """Connections that ended, by cause, also before messages could flow; without those that the
    link closed."""


Deliver: TypeAlias = Callable[[Sequence[Delivery]], None]
"""Takes a batch of arrivals; called on the event loop, so it must not block."""


class Link(Protocol):
    """A connection to a broker, real or in memory.

    `stop_receiving` ends the inflow only: delivered messages can still be acknowledged, and
    others published. `close` ends the connection. If the broker is lost, the link reconnects by
    itself; until then publishing fails.
    """

    @property
    def connected(self) -> bool:
        """Whether the broker is connected at this moment."""

    async def publish(
        self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
    ) -> Sequence[bool | None]:
        """Publish a batch; return for each message whether it was published.

        QoS 0: it was handed to the connection. QoS 1: the broker acknowledged it. False: the broker
        does not have it, because there is no connection or because it refused the message. None:
        the connection was lost or the time ran out, and the broker may have it.
        """

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Acknowledge settled deliveries to the broker; unknown receipts are ignored."""

    async def stop_receiving(self) -> None:
        """End the inflow."""

    async def close(self) -> None:
        """Publish the final status and disconnect."""


class CuttingLink(Link, Protocol):
    """A link that knows which messages the broker takes, so that they can be cut to fit."""

    def takes(self, message: Outgoing) -> bool:
        """Return whether the broker takes messages of this size; True while that is not known."""

    def part_bytes(self, topic: str) -> int:
        """Return the largest payload, for a topic, of what can be cut into parts."""


ROW_BYTES = 4 * 4 + 8 + 1
"""Of the columns, for each message."""


class Packed(NamedTuple):
    """Columns of messages, shape (n,); see `PackedDeliveries`.

    Attributes
    ----------
    bounds
        Start and end of the topic and of the payload in the bytes, shape (n, 4).
    receipt, retained
        As of `Delivery`.
    """

    bounds: Int32Array
    receipt: IntArray
    retained: BoolArray


class PackedDeliveries(Sequence[Delivery]):
    """A sequence of deliveries that are made when they are read.

    Parameters
    ----------
    stream
        The bytes that contain them.
    columns
        Where, and what else is known of them.
    """

    __slots__ = ("columns", "stream")

    def __init__(self, stream: bytes, columns: Packed) -> None:
        self.stream = stream
        self.columns = columns

    @classmethod
    def of(cls, deliveries: Sequence[Delivery]) -> "PackedDeliveries":
        """Return any deliveries packed."""
        if isinstance(deliveries, cls):
            return deliveries
        parts = [
            part
            for delivery in deliveries
            for part in (delivery.topic.encode("utf-8", "surrogatepass"), delivery.payload)
        ]
        cuts = np.cumsum([0, *map(len, parts)])
        bounds = np.stack([cuts[:-1:2], cuts[1::2], cuts[1::2], cuts[2::2]], axis=1)
        columns = Packed(
            bounds.astype(np.int32),
            np.array([delivery.receipt for delivery in deliveries], np.int64),
            np.array([delivery.retained for delivery in deliveries], bool),
        )
        return cls(b"".join(parts), columns)

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.columns.receipt)

    def __iter__(self) -> Iterator[Delivery]:
        """Yield the messages, in order of arrival."""
        stream = self.stream
        columns = (column.tolist() for column in self.columns)
        for (topic, end, payload, stop), receipt, retained in zip(*columns, strict=True):
            name = stream[topic:end].decode("utf-8", "surrogatepass")
            yield Delivery(name, stream[payload:stop], receipt, retained)

    @overload
    def __getitem__(self, index: int) -> Delivery: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Delivery]: ...
    def __getitem__(self, index: int | slice) -> Delivery | Sequence[Delivery]:
        """Return a message, or a list of them."""
        return list(self)[index]

    def __repr__(self) -> str:
        """Reveal neither device nor place."""
        return f"PackedDeliveries({len(self)})"

    def only(self, rows: IntArray) -> "PackedDeliveries":
        """Return some of the messages, in bytes of their own."""
        is_dense = len(self.stream) <= 2 * waiting_bytes(self)
        if len(rows) == len(self) and is_dense:
            return self
        return self.copied(rows)

    def copied(self, rows: IntArray | slice = slice(None)) -> "PackedDeliveries":
        """Return some of the messages: topic, payload, topic, ... and no byte in between."""
        bounds, receipt, retained = self.columns
        stream, bounds = _copied(np.frombuffer(self.stream, np.uint8), bounds[rows])
        return PackedDeliveries(stream.tobytes(), Packed(bounds, receipt[rows], retained[rows]))


def in_groups(
    batches: Sequence[Sequence[Delivery]], *, n_bytes: int = 1 << 20
) -> Iterator[tuple[PackedDeliveries, IntArray]]:
    """Yield the batches in a few large groups, and the index of the batch of each message.

    A group has little more than `n_bytes`: what is done for each group hardly counts then.
    """
    group: list[PackedDeliveries] = []
    first = size = 0
    for i, batch in enumerate(batches, start=1):
        group.append(PackedDeliveries.of(batch))
        size += len(group[-1].stream)
        if size >= n_bytes or i == len(batches):
            yield _joined(group), np.repeat(np.arange(first, i), [len(each) for each in group])
            group, first, size = [], i, 0


def _joined(batches: Sequence[PackedDeliveries]) -> PackedDeliveries:
    """Return several batches as one."""
    if len(batches) == 1:
        return batches[0]
    starts = np.cumsum([0, *(len(batch.stream) for batch in batches[:-1])]).tolist()
    columns = Packed(
        np.concatenate(
            [
                batch.columns.bounds + np.int32(start)
                for batch, start in zip(batches, starts, strict=True)
            ]
        ),
        np.concatenate([batch.columns.receipt for batch in batches]),
        np.concatenate([batch.columns.retained for batch in batches]),
    )
    return PackedDeliveries(b"".join([batch.stream for batch in batches]), columns)


def receipts_of(deliveries: Sequence[Delivery]) -> list[int]:
    """Return the receipts of the messages that have one."""
    if isinstance(deliveries, PackedDeliveries):
        receipt = deliveries.columns.receipt
        numbers: list[int] = receipt[receipt > 0].tolist()
        return numbers
    return [delivery.receipt for delivery in deliveries if delivery.receipt]


def waiting_bytes(deliveries: Sequence[Delivery]) -> int:
    """Return the memory that a batch takes, in bytes."""
    if not isinstance(deliveries, PackedDeliveries):
        return sum(_DELIVERY_BYTES + len(each.topic) + len(each.payload) for each in deliveries)
    if not len(deliveries):
        return 0
    bounds = deliveries.columns.bounds
    return int(bounds[-1, 3] - bounds[0, 0]) + ROW_BYTES * len(bounds)


@kernel
def _copied(stream: UInt8Array, bounds: Int32Array) -> tuple[UInt8Array, Int32Array]:
    """Return new bytes that hold these messages and nothing else, and the bounds there."""
    n_bytes = 0
    for row in range(len(bounds)):
        n_bytes += bounds[row, 1] - bounds[row, 0] + bounds[row, 3] - bounds[row, 2]
    out = np.empty(n_bytes, np.uint8)
    new = np.empty_like(bounds)
    at = 0
    for row in range(len(bounds)):
        for part in range(0, 4, 2):
            new[row, part] = at
            for i in range(bounds[row, part], bounds[row, part + 1]):
                out[at] = stream[i]
                at += 1
            new[row, part + 1] = at
    return out, new

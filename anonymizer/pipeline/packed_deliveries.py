"""Batches of arrivals that still lie in the bytes in which they were received.

Making an object of a message takes ten times as long as finding its bounds. Under overload most
messages yield to newer ones of their topic, and only those that stay become objects.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

import numpy as np

from anonymizer.algorithms.kernels import kernel, meanwhile
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, UInt8Array
from anonymizer.pipeline.ports import Delivery

MAX_WAITING_BYTES = 256 * 1024 * 1024
"""Most bytes of messages that wait in one inbox, however few they are."""
_DELIVERY_BYTES = 256
"""Size of a delivery in memory without its topic and payload."""
ROW_BYTES = 4 * 4 + 8 + 1
"""Of the columns, for each message."""


class Packed(NamedTuple):
    """Columns of messages, shape (n,); see `PackedDeliveries`."""

    bounds: Int32Array
    """Start and end of the topic and of the payload in the bytes, shape (n, 4)."""
    receipt: IntArray
    retained: BoolArray
    """`receipt`, `retained`: as of `Delivery`."""


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


def _joined_parts(stream: UInt8Array, bounds: Int32Array) -> tuple[UInt8Array, Int32Array]:
    """Return what `_copied` does, by copies of whole parts."""
    content, spans = stream.tobytes(), bounds.reshape(-1, 2)
    out = b"".join([content[start:end] for start, end in spans.tolist()])
    ends = np.cumsum(spans[:, 1] - spans[:, 0], dtype=np.int32)
    starts = np.concatenate([np.zeros(1, np.int32), ends[:-1]])[: len(ends)]
    new = np.stack([starts, ends], axis=1).reshape(bounds.shape)
    return np.frombuffer(out, np.uint8), new


@meanwhile(_joined_parts)
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

"""How far Kafka's partitions are settled: what a gateway may commit."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import IntArray
from anonymizer.transport.unsettled import Receipts, Unsettled

_OFFSET_BITS = 46
"""Of an offset; the rest of 63 bits numbers the partitions."""


class Part(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int


class Offsets:
    """The messages that were read and are not settled yet, by partition.

    Notes
    -----
    The same receipts as those of MQTT's deliveries, where the packet identifier is a partition and
    an offset. A partition may be committed up to its first message that waits, whatever was settled
    behind it. What was read and is then forgotten is read again by whoever has the partition next,
    and its receipts settle nothing any more.
    """

    def __init__(self) -> None:
        self._unsettled = Unsettled(Receipts())
        self._parts: list[Part] = []
        self._number_of: dict[tuple[str, int], int] = {}
        self._next: dict[int, int] = {}

    def __len__(self) -> int:
        """Return how many messages wait."""
        return len(self._unsettled)

    def number(self, topic: str, partition: int) -> int:
        """Return the number of a partition, always the same."""
        found = self._number_of.get((topic, partition))
        if found is None:
            found = self._number_of[topic, partition] = len(self._parts)
            self._parts.append(Part(topic, partition))
        return found

    def part(self, number: int) -> Part:
        """Return the partition with a number."""
        return self._parts[number]

    def add(self, number: IntArray, offset: IntArray) -> IntArray:
        """Return the receipts of messages, in order of arrival.

        `number`, `offset`: of the partition of each, and its place there, both shape (n,).
        """
        for each in np.unique(number).tolist():
            self._next[each] = int(offset[number == each].max()) + 1
        return self._unsettled.add((number << _OFFSET_BITS) + offset + 1)

    def settle(self, receipts: Iterable[int]) -> None:
        """Settle messages; unknown receipts are ignored."""
        self._unsettled.settle(receipts)

    def settled(self) -> Mapping[Part, int]:
        """Return the offset up to which, exclusive, each partition is settled."""
        _, code = self._unsettled.waiting()
        found = dict(self._next)
        # In order of arrival, which is that of the offsets: the first of each waits longest.
        numbers, first = np.unique((code - 1) >> _OFFSET_BITS, return_index=True)
        offset = (code[first] - 1) & ((1 << _OFFSET_BITS) - 1)
        found.update(zip(numbers.tolist(), offset.tolist(), strict=True))
        return {self._parts[number]: offset for number, offset in found.items()}

    def n_waiting(self, parts: Iterable[Part]) -> int:
        """Return how many messages of some partitions wait."""
        return len(self._receipts_of(parts))

    def forget(self, parts: Iterable[Part]) -> None:
        """Forget partitions that are another client's now."""
        parts = list(parts)
        self._unsettled.settle(self._receipts_of(parts))
        for part in parts:
            self._next.pop(self.number(*part), None)

    def _receipts_of(self, parts: Iterable[Part]) -> IntArray:
        receipt, code = self._unsettled.waiting()
        numbers = [self.number(*part) for part in parts]
        return receipt[np.isin((code - 1) >> _OFFSET_BITS, numbers)]

"""The inbox of the records flow: a bounded queue of messages that wait for the store."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymizer.pipeline.packed_deliveries import MAX_WAITING_BYTES, PackedDeliveries, waiting_bytes
from anonymizer.pipeline.ports import ONCE, Delivery

MAX_BATCH = 5_000
"""Most messages in one transaction, so that other tasks get a turn."""
_TOPICS = 100
"""A topic has few messages in a full inbox if it has less than this fraction of the limit."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Arrived:
    """Messages taken from the inbox."""

    batches: Sequence[Sequence[Delivery]]
    refused: Counter[int] = field(default_factory=Counter)


class RecordInbox:
    """A bounded queue of messages.

    When it is full, the newest messages at QoS 0 are refused. As many again are accepted from
    topics of which few messages wait, so that no vehicle crowds out the others. Messages at QoS 1
    are never refused: the broker sends at most Receive Maximum of them before they are
    acknowledged, which happens when they are in the store. It sends them again on the next
    connection, so those of the previous one must not wait beside them: see `set_aside`. Those at
    QoS 2 it does not send again, so they stay.

    `limit` and `max_bytes` bound what waits, apart from messages of topics with less than a
    hundredth of it. `streams_of` returns the indices of the streams that read a topic.
    """

    def __init__(
        self,
        limit: int,
        *,
        streams_of: Callable[[str], Sequence[int]],
        max_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self._share = max(1, limit // _TOPICS)
        self._streams_of = streams_of
        self._n_of: Counter[str] | None = None  # waiting messages by topic, once it is full
        self._batches: deque[Sequence[Delivery]] = deque()
        self._n = 0
        self._aside: list[Sequence[Delivery]] = []
        self._refused: Counter[int] = Counter()
        self._closed = False
        self._ready = asyncio.Event()

    @property
    def n_waiting(self) -> int:
        """Number of messages that have not been taken out yet; refused ones for each stream."""
        return self._n + self._refused.total()

    def put(self, deliveries: Sequence[Delivery]) -> None:
        """Add a batch of messages; refuse those at QoS 0 that do not fit."""
        n_bytes = self._n_bytes + waiting_bytes(deliveries)
        fits = self._n + len(deliveries) <= self._limit and n_bytes <= self._max_bytes
        # Nothing is refused at QoS 1, so topics need not be counted: a backlog stays packed.
        if fits or (self._n_of is None and _all_at_qos_1(deliveries)):
            self._append(deliveries)
        else:
            self._append(self._what_fits(deliveries))
        self._ready.set()

    def _append(self, deliveries: Sequence[Delivery]) -> None:
        for first in range(0, len(deliveries), MAX_BATCH):
            some = deliveries
            if len(deliveries) > MAX_BATCH:
                some = deliveries[first : first + MAX_BATCH]
            self._batches.append(some)
            self._n += len(some)
            self._n_bytes += waiting_bytes(some)

    def _what_fits(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        if self._n_of is None:
            self._n_of = Counter(waiting.topic for batch in self._batches for waiting in batch)
        n_of, fitting = self._n_of, list[Delivery]()
        n, n_bytes = self._n, self._n_bytes
        for delivery in deliveries:
            after = n_bytes + waiting_bytes((delivery,))
            fits = n < self._limit and after <= self._max_bytes
            fits_twice = n < 2 * self._limit and after <= 2 * self._max_bytes
            few = fits_twice and n_of[delivery.topic] < self._share
            if delivery.receipt or fits or few:
                fitting.append(delivery)
                n, n_bytes = n + 1, after
                n_of[delivery.topic] += 1
            else:
                self._refused.update(self._streams_of(delivery.topic))
        return fitting

    def set_aside(self) -> None:
        """Keep the messages at QoS 1 out of the batches: the connection is lost."""
        batches, self._n_of = list(self._batches), None
        self._batches.clear()
        self._n = self._n_bytes = 0
        for batch in batches:
            self._append(_that_come_again(batch, again=False))
        # If there are some already, the latest come from a connection that ended before it was of
        # use. The broker has them still.
        self._aside = self._aside or [
            kept for batch in batches if (kept := _that_come_again(batch, again=True))
        ]

    def reconnected(self, *, resumed: bool) -> None:
        """Forget the messages set aside if the broker sends them again, else take them back."""
        aside, self._aside = self._aside, []
        if not resumed:
            for batch in aside:
                self.put(batch)

    def close(self) -> None:
        """Close the inbox: no more messages will come, and nobody waits any longer."""
        self._closed = True
        self._ready.set()

    async def take(self) -> Arrived | None:
        """Return the next batch as soon as there is one; None: closed and empty."""
        while not self._batches and not self._refused:
            if self._closed:
                return None
            self._ready.clear()  # it is also set if what waited was set aside
            await self._ready.wait()
        batches: list[Sequence[Delivery]] = []
        n = 0
        while self._batches and n + len(self._batches[0]) <= MAX_BATCH:
            batches.append(self._batches.popleft())
            n += len(batches[-1])
        arrived = Arrived(batches, self._refused)
        self._n -= n
        self._n_bytes -= sum(map(waiting_bytes, batches))
        self._refused, self._n_of = Counter(), None
        return arrived


def _all_at_qos_1(deliveries: Sequence[Delivery]) -> bool:
    """Return whether all messages of a batch are at QoS 1."""
    if isinstance(deliveries, PackedDeliveries):
        return bool(deliveries.columns.receipt.all())
    return all(delivery.receipt for delivery in deliveries)


def _that_come_again(deliveries: Sequence[Delivery], *, again: bool) -> Sequence[Delivery]:
    """Return the messages of a batch that come again after a lost connection, or the others."""
    if isinstance(deliveries, PackedDeliveries):
        receipt = deliveries.columns.receipt
        rows = np.flatnonzero(((receipt > 0) & (receipt < ONCE)) == again)
        return deliveries.only(rows)
    return [delivery for delivery in deliveries if (0 < delivery.receipt < ONCE) == again]

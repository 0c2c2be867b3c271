"""The inbox of the records flow: a bounded queue of messages that wait for the store."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from anonymizer.pipeline.ports import MAX_WAITING_BYTES, Delivery, size_bytes

MAX_BATCH = 5_000
"""Most messages in one transaction, so that other tasks get a turn."""
_TOPICS = 100
"""A topic has few messages in a full inbox if it has less than this fraction of the limit."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Arrived:
    """A batch of messages taken from the inbox.

    Attributes
    ----------
    deliveries
        Messages in order of arrival.
    refused
        Number of messages refused since the last batch, by the index of their stream.
    """

    deliveries: Sequence[Delivery]
    refused: Counter[int] = field(default_factory=Counter)


class RecordInbox:
    """A bounded queue of messages.

    When it is full, the newest messages at QoS 0 are refused. As many again are accepted from
    topics of which few messages wait, so that no vehicle crowds out the others. Messages at QoS 1
    are never refused: the broker sends at most Receive Maximum of them before they are
    acknowledged, which happens when they are in the store. It sends them again on the next
    connection, so those of the previous one must not wait beside them: see `set_aside`.

    Parameters
    ----------
    limit
        Most messages that wait, apart from those of topics with less than a hundredth of it.
    stream_of
        Returns the index of a topic's stream, for counting refused messages.
    max_bytes
        Most bytes that wait, with the same exception; see `size_bytes`.
    """

    def __init__(
        self,
        limit: int,
        *,
        stream_of: Callable[[str], int],
        max_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self._share = max(1, limit // _TOPICS)
        self._stream_of = stream_of
        self._n_of: Counter[str] | None = None  # waiting messages by topic, once it is full
        self._deliveries: list[Delivery] = []
        self._aside: list[Delivery] = []
        self._refused: Counter[int] = Counter()
        self._closed = False
        self._ready = asyncio.Event()

    @property
    def n_waiting(self) -> int:
        """Number of messages that have not been taken out yet."""
        return len(self._deliveries) + self._refused.total()

    def put(self, deliveries: Sequence[Delivery]) -> None:
        """Add a batch of messages; refuse those at QoS 0 that do not fit."""
        n_bytes = self._n_bytes + size_bytes(deliveries)
        if len(self._deliveries) + len(deliveries) <= self._limit and n_bytes <= self._max_bytes:
            self._deliveries += deliveries
            self._n_bytes = n_bytes
        else:
            self._put_what_fits(deliveries)
        self._ready.set()

    def _put_what_fits(self, deliveries: Sequence[Delivery]) -> None:
        n_of = self._n_of
        if n_of is None:
            n_of = self._n_of = Counter(waiting.topic for waiting in self._deliveries)
        for delivery in deliveries:
            n, n_bytes = len(self._deliveries), self._n_bytes + size_bytes((delivery,))
            fits = n < self._limit and n_bytes <= self._max_bytes
            fits_twice = n < 2 * self._limit and n_bytes <= 2 * self._max_bytes
            few = fits_twice and n_of[delivery.topic] < self._share
            if delivery.receipt or fits or few:
                self._deliveries.append(delivery)
                self._n_bytes = n_bytes
                n_of[delivery.topic] += 1
            else:
                self._refused[self._stream_of(delivery.topic)] += 1

    def set_aside(self) -> None:
        """Keep the messages at QoS 1 out of the batches: the connection is lost."""
        deliveries, self._n_of = self._deliveries, None
        self._deliveries = [delivery for delivery in deliveries if not delivery.receipt]
        # If there are some already, the latest come from a connection that ended before it was of
        # use. The broker has them still.
        self._aside = self._aside or [delivery for delivery in deliveries if delivery.receipt]
        self._n_bytes = size_bytes(self._deliveries)

    def reconnected(self, *, resumed: bool) -> None:
        """Forget the messages set aside if the broker sends them again, else take them back."""
        aside, self._aside = self._aside, []
        if aside and not resumed:
            self.put(aside)

    def close(self) -> None:
        """Close the inbox: no more messages will come, and nobody waits any longer."""
        self._closed = True
        self._ready.set()

    async def take(self) -> Arrived | None:
        """Return the next batch as soon as there is one; None: closed and empty."""
        while not self._deliveries and not self._refused:
            if self._closed:
                return None
            self._ready.clear()  # it is also set if what waited was set aside
            await self._ready.wait()
        arrived = Arrived(self._deliveries[:MAX_BATCH], self._refused)
        self._deliveries = self._deliveries[MAX_BATCH:]
        self._n_bytes -= size_bytes(arrived.deliveries)
        self._refused, self._n_of = Counter(), None
        return arrived

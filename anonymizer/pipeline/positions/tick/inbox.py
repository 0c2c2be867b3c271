"""Inbox: arrivals that wait for the next tick; under overload only the newest of each device."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.newest_messages import newest_of_each_topic
from anonymizer.pipeline.packed_deliveries import (
    MAX_WAITING_BYTES,
    PackedDeliveries,
    receipts_of,
    waiting_bytes,
)
from anonymizer.pipeline.ports import Delivery


class Arrivals(NamedTuple):
    """A batch of deliveries, and its arrival time by the monotonic clock."""

    at_s: float
    deliveries: Sequence[Delivery]


class Inbox:
    """A bounded queue of messages, in order of arrival.

    It is overloaded when more messages or bytes wait than the limits, or when `hurry` has been
    called because the tick is late. Until the next `take`, messages then yield to newer ones of
    their topic, and are settled as overload.

    Parameters
    ----------
    limit
        Most messages that wait. If a limit is reached and most messages are the newest of their
        topics, the oldest quarter yields too, so that the cost remains O(log n) per message.
    ledger
        Where arrivals and overload are counted.
    is_shared
        Whether the messages of a topic may come from several devices. They do not replace each
        other. None: those of no topic do.
    max_bytes
        Most bytes that wait, see `waiting_bytes`.
    is_awaited
        Whether whoever sends waits for room (`has_room`). Then nothing has to yield because a tick
        is late.

    Notes
    -----
    Nothing yields that a tick would publish unless a limit is reached: a tick publishes the newest
    position of each device.
    """

    def __init__(
        self,
        limit: int,
        ledger: Ledger,
        *,
        is_shared: Callable[[str], bool] | None = None,
        max_bytes: int = MAX_WAITING_BYTES,
        is_awaited: bool = False,
    ) -> None:
        self._limit = limit
        self.is_awaited = is_awaited
        self._max_bytes = max_bytes
        self._ledger = ledger
        self._is_shared = is_shared
        self._batches: list[Arrivals] = []
        self.is_overloaded = False
        """Whether messages yield to newer ones."""
        self.n_waiting = 0
        self.n_bytes = 0

    @property
    def has_room(self) -> bool:
        """Whether less than half of the bytes that may wait are there."""
        return 2 * self.n_bytes < self._max_bytes

    def put(self, deliveries: Sequence[Delivery], *, at_s: float) -> list[int]:
        """Take in a batch; return the receipts to be acknowledged now.

        Under overload these are all: a message that waits for its acknowledgement would take the
        place of a newer one in the connection. Else there are none.
        """
        self._ledger.receive(len(deliveries))
        self._batches.append(Arrivals(at_s, deliveries))
        self.n_waiting += len(deliveries)
        self.n_bytes += waiting_bytes(deliveries)
        receipts = receipts_of(deliveries) if self.is_overloaded else []
        if self.n_waiting > self._limit or self.n_bytes > self._max_bytes:
            receipts += self._hurry()
            self._keep_newest(
                self._limit - self._limit // 4, max_bytes=self._max_bytes - self._max_bytes // 4
            )
        return receipts

    def refuse(self, deliveries: Sequence[Delivery]) -> list[int]:
        """Settle a batch as overload, without taking it in; return its receipts."""
        self._ledger.receive(len(deliveries))
        self._ledger.settle(Outcome.SUPPRESSED__OVERLOAD, len(deliveries))
        return receipts_of(deliveries)

    def hurry(self) -> list[int]:
        """Keep only the newest messages until the next `take`; return receipts as `put` does."""
        return [] if self.is_awaited else self._hurry()

    def _hurry(self) -> list[int]:
        if self.is_overloaded:
            return []
        self.is_overloaded = True
        return [receipt for batch in self._batches for receipt in receipts_of(batch.deliveries)]

    def take(self) -> list[Arrivals]:
        """Return all waiting messages, oldest first."""
        if self.is_overloaded:
            self._keep_newest(self._limit, max_bytes=self._max_bytes)
        batches, self._batches = self._batches, []
        self.is_overloaded = False
        self.n_waiting = self.n_bytes = 0
        return batches

    def _keep_newest(self, most: int, *, max_bytes: int) -> None:
        if not self._batches:
            return
        left = newest_of_each_topic(
            [PackedDeliveries.of(batch.deliveries) for batch in self._batches],
            is_shared=self._is_shared,
            most=most,
            max_bytes=max_bytes,
        )
        self._batches = [
            Arrivals(batch.at_s, rest)
            for batch, rest in zip(self._batches, left, strict=True)
            if len(rest)
        ]
        n_before = self.n_waiting
        self.n_waiting = sum(map(len, left))
        self.n_bytes = sum(map(waiting_bytes, left))
        self._ledger.settle(Outcome.SUPPRESSED__OVERLOAD, n_before - self.n_waiting)

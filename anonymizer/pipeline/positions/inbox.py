"""Inbox: a bounded queue of arrivals that wait for the next tick."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.ports import Delivery


class Arrivals(NamedTuple):
    """A batch of deliveries, and its arrival time by the monotonic clock."""

    at_s: float
    deliveries: Sequence[Delivery]


class Inbox:
    """A bounded queue of batches of messages.

    Parameters
    ----------
    limit
        Most messages kept; beyond it the oldest are dropped and settled as overload, because the
        newest positions are the most useful.
    ledger
        Where arrivals and overload are counted.
    """

    def __init__(self, limit: int, ledger: Ledger) -> None:
        self._limit = limit
        self._ledger = ledger
        self._batches: deque[Arrivals] = deque()
        self._dropped_receipts: list[int] = []
        self.n_waiting = 0

    def limit(self, n_messages: int) -> None:
        """Use this limit from the next message on."""
        self._limit = n_messages

    def put(self, deliveries: Sequence[Delivery], *, at_s: float) -> None:
        """Take in a batch; drop the oldest messages beyond the limit."""
        self._ledger.receive(len(deliveries))
        self._batches.append(Arrivals(at_s, deliveries))
        self.n_waiting += len(deliveries)
        while self.n_waiting > self._limit:
            oldest = self._batches.popleft()
            n = min(self.n_waiting - self._limit, len(oldest.deliveries))
            self._dropped_receipts += [d.receipt for d in oldest.deliveries[:n] if d.receipt]
            self._ledger.settle(Outcome.SUPPRESSED__OVERLOAD, n)
            self.n_waiting -= n
            if n < len(oldest.deliveries):
                self._batches.appendleft(Arrivals(oldest.at_s, oldest.deliveries[n:]))

    def take(self) -> tuple[list[Arrivals], list[int]]:
        """Return all waiting batches, oldest first, and the receipts of dropped messages."""
        batches, self._batches = list(self._batches), deque()
        receipts, self._dropped_receipts = self._dropped_receipts, []
        self.n_waiting = 0
        return batches, receipts

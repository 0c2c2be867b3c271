"""Inbox: arrivals that wait for the next tick; under overload only the newest of each device."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import count, groupby
from typing import NamedTuple

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.ports import MAX_WAITING_BYTES, Delivery, size_bytes


class Arrivals(NamedTuple):
    """A batch of deliveries, and its arrival time by the monotonic clock."""

    at_s: float
    deliveries: Sequence[Delivery]


class Inbox:
    """A bounded queue of messages, in order of arrival.

    It is overloaded when more messages or bytes wait than the limits, or when `hurry` has been
    called because the tick is late. Until the next `take` it then keeps only the newest message of
    each topic, and beyond the limits the newest ones of all. The others are settled as overload.

    Parameters
    ----------
    limit
        Most messages kept.
    ledger
        Where arrivals and overload are counted.
    is_shared
        Whether the messages of a topic may come from several devices. They do not replace each
        other.
    max_bytes
        Most bytes kept, see `size_bytes`.

    Notes
    -----
    Nothing is lost by this that a tick would publish: it publishes the newest position of each
    device. O(1) per message.
    """

    def __init__(
        self,
        limit: int,
        ledger: Ledger,
        *,
        is_shared: Callable[[str], bool] = lambda _: False,
        max_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self._ledger = ledger
        self._is_shared = is_shared
        self._batches: list[Arrivals] = []
        self._newest: OrderedDict[str | int, tuple[float, Delivery]] | None = None
        self._keys = count()
        self.n_waiting = 0

    @property
    def is_overloaded(self) -> bool:
        """Whether messages yield to newer ones."""
        return self._newest is not None

    def limit(self, n_messages: int) -> None:
        """Use this limit from the next message on."""
        self._limit = n_messages

    def put(self, deliveries: Sequence[Delivery], *, at_s: float) -> list[int]:
        """Take in a batch; return the receipts to be acknowledged now.

        Under overload these are all: a message that waits for its acknowledgement would take the
        place of a newer one in the connection. Else there are none.
        """
        self._ledger.receive(len(deliveries))
        if self._newest is not None:
            return self._keep_newest(Arrivals(at_s, deliveries))
        self._batches.append(Arrivals(at_s, deliveries))
        self.n_waiting += len(deliveries)
        self._n_bytes += size_bytes(deliveries)
        is_full = self.n_waiting > self._limit or self._n_bytes > self._max_bytes
        return self.hurry() if is_full else []

    def hurry(self) -> list[int]:
        """Keep only the newest messages until the next `take`; return receipts as `put` does."""
        if self._newest is not None:
            return []
        self._newest = OrderedDict()
        self._n_bytes = 0
        batches, self._batches = self._batches, []
        return [receipt for batch in batches for receipt in self._keep_newest(batch)]

    def take(self) -> list[Arrivals]:
        """Return all waiting messages, oldest first."""
        batches, self._batches = self._batches, []
        if self._newest is not None:
            batches = [
                Arrivals(at_s, [delivery for _, delivery in same])
                for at_s, same in groupby(self._newest.values(), key=lambda kept: kept[0])
            ]
        self._newest = None
        self.n_waiting = self._n_bytes = 0
        return batches

    def _keep_newest(self, batch: Arrivals) -> list[int]:
        newest = self._newest
        assert newest is not None  # noqa: S101  it is only called under overload
        at_s, deliveries = batch
        n_before = len(newest)
        for delivery in deliveries:
            key = next(self._keys) if self._is_shared(delivery.topic) else delivery.topic
            replaced = newest.get(key)
            if replaced is not None and delivery.retained:
                continue  # it may be older than the one that waits
            if replaced is not None:
                self._n_bytes -= size_bytes(replaced[1:])
            newest[key] = at_s, delivery
            newest.move_to_end(key)
            self._n_bytes += size_bytes((delivery,))
        while len(newest) > self._limit or self._n_bytes > self._max_bytes:
            _, (_, oldest) = newest.popitem(last=False)
            self._n_bytes -= size_bytes((oldest,))
        self.n_waiting = len(newest)
        n_yielded = n_before + len(deliveries) - self.n_waiting
        self._ledger.settle(Outcome.SUPPRESSED__OVERLOAD, n_yielded)
        return [delivery.receipt for delivery in deliveries if delivery.receipt]

"""Where parts wait for the store, bounded."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from anonymizer.pipeline.ports import Delivery

AT_ONCE = 5_000
"""Messages of one transaction at most: the rest of the program wants a turn, too."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Arrived:
    """What came since the last look.

    Attributes
    ----------
    deliveries
        In order of arrival.
    refused
        Messages for which there was no room, by the number of their stream.
    """

    deliveries: Sequence[Delivery]
    refused: Counter[int] = field(default_factory=Counter)


class RecordInbox:
    """A bounded queue of messages.

    Messages at QoS 1 are never refused: the broker sends no more of them than the Receive Maximum
    before they are acknowledged, which is when the store has them. The newest at QoS 0 are.

    Parameters
    ----------
    limit
        Messages that wait at most.
    stream_of
        The number of a topic's stream, to count what is refused.
    """

    def __init__(self, limit: int, *, stream_of: Callable[[str], int]) -> None:
        self._limit = limit
        self._stream_of = stream_of
        self._deliveries: list[Delivery] = []
        self._refused: Counter[int] = Counter()
        self._closed = False
        self._something = asyncio.Event()

    @property
    def n_waiting(self) -> int:
        """Messages that were not taken out yet."""
        return len(self._deliveries) + self._refused.total()

    def put(self, deliveries: Sequence[Delivery]) -> None:
        """Take in a batch."""
        if len(self._deliveries) + len(deliveries) <= self._limit:
            self._deliveries += deliveries
        else:
            for delivery in deliveries:
                if delivery.receipt or len(self._deliveries) < self._limit:
                    self._deliveries.append(delivery)
                else:
                    self._refused[self._stream_of(delivery.topic)] += 1
        self._something.set()

    def close(self) -> None:
        """Let nobody wait any more: nothing will come."""
        self._closed = True
        self._something.set()

    async def take(self) -> Arrived | None:
        """Return some of what waits as soon as there is something; None: closed, and empty."""
        await self._something.wait()
        if not self._deliveries and not self._refused:
            return None
        arrived = Arrived(self._deliveries[:AT_ONCE], self._refused)
        self._deliveries = self._deliveries[AT_ONCE:]
        self._refused = Counter()
        if not self._deliveries and not self._closed:
            self._something.clear()
        return arrived

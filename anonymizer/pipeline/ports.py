"""Interface between the pipeline and a transport. It passes batches, not single messages."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias


class Delivery(NamedTuple):
    """One message that arrived."""

    topic: str
    payload: bytes
    receipt: int
    """For `Link.acknowledge`, once the message is settled; 0: nothing to acknowledge."""
    retained: bool = False
    """Whether the broker kept it from earlier; it is not a report of the present."""

    def __repr__(self) -> str:
        """Reveal neither device nor place."""
        return "Delivery(...)"


class Outgoing(NamedTuple):
    """One message to publish."""

    topic: str
    payload: bytes
    retain: bool = False


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
    ) -> Sequence[bool]:
        """Publish a batch; return for each message whether it was published.

        QoS 0: it was handed to the connection. QoS 1: the broker acknowledged it. False means that
        the connection is down, or that the acknowledgement did not arrive in time; the broker may
        still have received it.
        """

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Acknowledge settled deliveries to the broker; unknown receipts are ignored."""

    async def stop_receiving(self) -> None:
        """End the inflow."""

    async def close(self) -> None:
        """Publish the final status and disconnect."""

"""What the pipeline asks of a transport. Batches cross this border, single messages do not."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias


class Delivery(NamedTuple):
    """One message that arrived."""

    topic: str
    payload: bytes
    receipt: int
    """Hand this to `Link.acknowledge` when the message is settled; 0: nothing to acknowledge."""
    retained: bool = False
    """The broker kept it from earlier: it says nothing of now."""

    def __repr__(self) -> str:
        """Say nothing of who or where."""
        return "Delivery(...)"


class Outgoing(NamedTuple):
    """One message to publish."""

    topic: str
    payload: bytes
    retain: bool = False


Deliver: TypeAlias = Callable[[Sequence[Delivery]], None]
"""Takes a batch of arrivals; called on the event loop, must not block."""


class Link(Protocol):
    """A connection to a broker, real or in memory.

    The three ends: `stop_receiving` ends the inflow alone (what was delivered can still be
    acknowledged and published); `close` ends the rest; losing the broker ends neither: the
    link reconnects by itself, and what is published meanwhile is refused.
    """

    @property
    def connected(self) -> bool:
        """Whether the broker is there at this moment."""

    async def publish(
        self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
    ) -> Sequence[bool]:
        """Publish a batch; return for each message whether the broker has it.

        QoS 0: handed to the connection. QoS 1: acknowledged by the broker. False means that the
        connection is down or the acknowledgement did not come in time (the broker may have it
        all the same).
        """

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Tell the broker that these deliveries are settled; unknown receipts do nothing."""

    async def stop_receiving(self) -> None:
        """End the inflow."""

    async def close(self) -> None:
        """Say good-bye and disconnect."""

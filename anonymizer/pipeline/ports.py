"""Interface between the pipeline and a transport. It passes batches, not single messages."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from anonymizer.domain.discreet import discreet

ONCE = 1 << 62
"""Receipts above it are of messages that come once (QoS 2): unlike those at QoS 1, they are not
delivered again on another connection while they wait to be settled."""


@discreet
class Delivery(NamedTuple):
    """One message that arrived."""

    topic: str
    payload: bytes
    receipt: int
    """For `Link.acknowledge`, once the message is settled; 0: nothing to acknowledge. See `ONCE`
    for those above it."""
    retained: bool = False
    """Whether the broker kept it from earlier; it is not a report of the present."""


PART_BYTES = 60_000
"""Largest payload of what is cut into parts, unless the broker takes less: the broker file of
`deploy/` takes 70,000 bytes, AWS IoT Core 128 KiB."""


class Headers(NamedTuple):
    """What a message says beside its payload, in MQTT 5."""

    content_type: str
    user: tuple[tuple[str, str], ...] = ()
    """Names and values of user properties, in their order."""


class Outgoing(NamedTuple):
    """One message to publish."""

    topic: str
    payload: bytes
    retain: bool = False
    headers: Headers | None = None
    key: str = ""
    """What the message is about, for transports that keep order by key: all with one key stay in
    order. Empty: of no matter."""


class Loss(Enum):
    """Why a connection ended."""

    TAKEN_OVER = "taken_over"
    """Another client connected with the same client id."""
    UNACKNOWLEDGED = "unacknowledged"
    """The broker left a message without acknowledgement."""
    REFUSED = "refused"
    """The broker refused the connection or a subscription."""
    MALFORMED = "malformed"
    """The broker sent what is not MQTT, or a part of it that was not negotiated."""
    NO_ANSWER = "no_answer"
    """The broker did not answer in time."""
    CLOSED = "closed"
    """The broker, or the network, ended it."""
    OTHER = "other"


@dataclass(slots=True)
class LinkCounts:
    """Counts of the connections of a link since the start."""

    n_connections: int = 0
    n_sessions_lost: int = 0
    """Connections at which the broker no longer had the session that it should have kept: what was
    sent while the link was away is lost."""
    n_too_large: int = 0
    """Attempts to publish a message that is above the largest packet of the broker."""
    n_quarantined: int = 0
    """Packets that were skipped, because they had ended connections again and again."""
    lost: dict[Loss, int] = field(default_factory=lambda: dict.fromkeys(Loss, 0))
    """Connections that ended, by cause, also before messages could flow; without those that the
    link closed."""


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
    ) -> Sequence[bool | None]:
        """Publish a batch; return for each message whether it was published.

        QoS 0: it was handed to the connection. QoS 1: the broker acknowledged it. False: the broker
        does not have it, because there is no connection or because it refused the message. None:
        the connection was lost or the time ran out, and the broker may have it.
        """

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Acknowledge settled deliveries to the broker; unknown receipts are ignored."""

    async def stop_receiving(self) -> None:
        """End the inflow."""

    async def close(self) -> None:
        """Publish the final status and disconnect."""


class LinkInFront:
    """A link in front of another one, to which it passes on all but what it publishes."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def connected(self) -> bool:
        """Whether the broker is connected at this moment."""
        return self._link.connected

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Acknowledge settled deliveries to the broker."""
        self._link.acknowledge(receipts)

    async def stop_receiving(self) -> None:
        """End the inflow."""
        await self._link.stop_receiving()

    async def close(self) -> None:
        """Publish the final status and disconnect."""
        await self._link.close()


class CuttingLink(Link, Protocol):
    """A link that knows which messages the broker takes, so that they can be cut to fit."""

    def takes(self, message: Outgoing) -> bool:
        """Return whether the broker takes messages of this size; True while that is not known."""

    def part_bytes(self, topic: str) -> int:
        """Return the largest payload, for a topic, of what can be cut into parts."""

"""Messages at QoS 2 that the broker has not released: each comes to the consumer once.

We subscribe at QoS 0 and 1, but some brokers hand a message on with the QoS of its sender.

Unlike at QoS 1, the broker may deliver a message again on the next connection although the consumer
still has it, or has settled it. Its identifier is therefore remembered until the broker releases
it, over all connections of a link.

References
----------
.. [1] OASIS, "MQTT Version 5.0", sections 4.3.3 and 4.4; "MQTT Version 3.1.1", likewise.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from anonymizer.pipeline.ports import ONCE
from anonymizer.transport.unsettled import Receipts


@dataclass(slots=True)
class _Held:
    """A message that is not released."""

    digest: bytes
    receipt: int
    """0: settled."""
    is_here: bool = True
    """Whether it has come on the present connection."""


class ExactlyOnce:
    """The messages at QoS 2 of a link.

    Parameters
    ----------
    receipts
        Those of the link. What comes once has them above `ONCE`.

    Notes
    -----
    A broker that was restored from an older state may use an identifier for another message. So
    only an equal message is a repetition; the standard looks at the identifier alone.
    """

    def __init__(self, receipts: Receipts) -> None:
        self._receipts = receipts
        self._held: dict[int, _Held] = {}
        self._mid_of: dict[int, int] = {}
        """Packet identifier by receipt, of what is not settled."""

    @property
    def n_unsettled(self) -> int:
        """Number of messages that the consumer has not settled."""
        return len(self._mid_of)

    def disconnect(self) -> None:
        """End a connection: what is not released comes again on the next one."""
        for held in self._held.values():
            held.is_here = False

    def forget(self) -> None:
        """Forget all identifiers: the broker has not kept the session, so nothing comes again."""
        self._held.clear()
        self._mid_of.clear()

    def abandon(self) -> None:
        """Have what is not settled delivered again: the consumer has lost it."""
        for mid in self._mid_of.values():
            del self._held[mid]
        self._mid_of.clear()

    def arrive(self, mid: int, topic: bytes, payload: bytes) -> int | None:
        """Return the receipt of a message; 0: it is settled already; None: it waits for that."""
        digest = hashlib.blake2b(b"\0".join([topic, payload]), digest_size=16).digest()
        held = self._held.get(mid)
        if held is not None and held.digest == digest:
            held.is_here = True
            return None if held.receipt else 0
        if held is not None:
            self._mid_of.pop(held.receipt, None)
        receipt = ONCE + int(self._receipts.take(1)[0])
        self._held[mid] = _Held(digest, receipt)
        self._mid_of[receipt] = mid
        return receipt

    def settle(self, receipts: Iterable[int]) -> list[int]:
        """Settle messages; return the identifiers to be acknowledged on this connection.

        What has not come on it is acknowledged when it does.
        """
        mids = []
        for receipt in receipts:
            mid = self._mid_of.pop(receipt, None)
            if mid is not None:
                self._held[mid].receipt = 0
                if self._held[mid].is_here:
                    mids.append(mid)
        return mids

    def release(self, mid: int) -> None:
        """Forget an identifier: the broker does not deliver this message again."""
        held = self._held.pop(mid, None)
        if held is not None:
            self._mid_of.pop(held.receipt, None)

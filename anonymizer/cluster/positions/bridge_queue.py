"""Messages of a bridge that wait to be sent to Kafka, divided among the stages that take them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import IntArray
from anonymizer.domain.discreet import discreet
from anonymizer.pipeline.packed_deliveries import PackedDeliveries, receipts_of, waiting_bytes
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.inbox import Arrivals


@discreet
class Load(NamedTuple):
    """What is sent to a stage at once.

    `receipts`: of the messages that are to be acknowledged when Kafka has them; `n_bytes`: the
    memory that they take.
    """

    arrivals: list[Arrivals]
    receipts: list[int]
    n_messages: int
    n_bytes: int


class BridgeQueue:
    """Batches in order of arrival, by the number of the stage that takes them.

    Payloads longer than `max_payload_bytes` are cut one byte behind this: enough to be refused by
    the stage as too large. `parts_of` returns the stage of each message. None: all stages take
    each.
    """

    def __init__(
        self,
        n_parts: int,
        *,
        max_payload_bytes: int,
        parts_of: Callable[[PackedDeliveries, int], IntArray] | None,
    ) -> None:
        self._max_payload_bytes = max_payload_bytes
        self._parts_of = parts_of
        self.n_stages = n_parts
        self._arrivals: list[list[Arrivals]] = [[] for _ in range(n_parts)]
        self.n_messages = [0] * n_parts
        """Messages that wait for each stage."""
        self.n_bytes = [0] * n_parts
        """Memory that they take."""
        self.n_receipts = [0] * n_parts
        """Those of them that are to be acknowledged."""

    def put(self, deliveries: Sequence[Delivery], *, at_s: float) -> None:
        """Take in a batch that arrived at a unix time. The bytes that contain it are not kept."""
        packed = PackedDeliveries.of(deliveries)
        bounds = packed.columns.bounds
        end = np.minimum(bounds[:, 3], bounds[:, 2] + self._max_payload_bytes + 1)
        cut = np.column_stack([bounds[:, :3], end]).astype(np.int32)
        packed = PackedDeliveries(packed.stream, packed.columns._replace(bounds=cut))
        n_parts, part_of = len(self._arrivals), None
        if self._parts_of is not None:
            part_of = self._parts_of(packed, n_parts)
        for part in range(n_parts) if part_of is None else np.unique(part_of).tolist():
            its_own = packed.copied(
                slice(None) if part_of is None else np.flatnonzero(part_of == part)
            )
            self._arrivals[part].append(Arrivals(at_s, its_own))
            self.n_messages[part] += len(its_own)
            self.n_receipts[part] += int(np.count_nonzero(its_own.columns.receipt))
            self.n_bytes[part] += waiting_bytes(its_own)

    def take(self, part: int) -> Load:
        """Return what waits for a stage, and forget it."""
        arrivals, self._arrivals[part] = self._arrivals[part], []
        receipts = [receipt for batch in arrivals for receipt in receipts_of(batch.deliveries)]
        load = Load(arrivals, receipts, self.n_messages[part], self.n_bytes[part])
        self.n_messages[part] = self.n_bytes[part] = self.n_receipts[part] = 0
        return load

"""Messages of a bridge, divided among the sources."""

from zlib import crc32

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.cluster.positions.bridge_queue import BridgeQueue
from anonymizer.domain.arrays import IntArray
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery

MOST_BYTES = 3
DELIVERY = st.builds(
    Delivery, st.text("aäß/", min_size=1, max_size=3), st.binary(max_size=6), st.integers(0, 3)
)


def by_topic(messages: PackedDeliveries, n_parts: int) -> IntArray:
    return np.array([crc32(each.topic.encode()) % n_parts for each in messages], np.int64)


def test_what_is_for_all_stages_goes_to_each_of_them() -> None:
    queue = BridgeQueue(3, max_payload_bytes=MOST_BYTES, parts_of=None)
    said = [Delivery("a", b"12345", 1), Delivery("b", b"1", 2)]
    queue.put(said, at_s=0.0)
    for part in range(3):
        load = queue.take(part)
        [batch] = load.arrivals
        assert list(batch.deliveries) == [said[0]._replace(payload=b"1234"), said[1]]
        assert (load.receipts, load.n_messages) == ([1, 2], 2)


@given(batches=st.lists(st.lists(DELIVERY, max_size=5), max_size=4), n=st.integers(1, 4))
def test_every_message_goes_to_the_source_of_its_topic_in_order(
    *, batches: list[list[Delivery]], n: int
) -> None:
    queue = BridgeQueue(n, max_payload_bytes=MOST_BYTES, parts_of=by_topic)
    for i, batch in enumerate(batches):
        queue.put(batch if i % 2 else PackedDeliveries.of(batch), at_s=float(i))
    for source in range(n):
        expected = [
            (float(i), delivery._replace(payload=delivery.payload[: MOST_BYTES + 1]))
            for i, batch in enumerate(batches)
            for delivery in batch
            if crc32(delivery.topic.encode()) % n == source
        ]
        n_messages, n_bytes = queue.n_messages[source], queue.n_bytes[source]
        load = queue.take(source)
        got = [(batch.at_s, each) for batch in load.arrivals for each in batch.deliveries]
        assert got == expected
        assert load.receipts == [each.receipt for _, each in expected if each.receipt]
        assert len(expected) == load.n_messages == n_messages
        assert (load.n_bytes > 0) == bool(expected)
        assert load.n_bytes == n_bytes
        assert queue.take(source) == ([], [], 0, 0)

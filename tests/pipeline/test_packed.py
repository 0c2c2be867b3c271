"""Packed deliveries beside the deliveries themselves."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.newest_messages import newest_of_each_topic
from anonymizer.pipeline.packed_deliveries import PackedDeliveries, receipts_of
from anonymizer.pipeline.ports import Delivery

TOPIC = st.sampled_from(["a", "b", "a/b", "straße", "\ud800"])
DELIVERIES = st.lists(
    st.builds(Delivery, TOPIC, st.binary(max_size=5), st.integers(0, 3), st.booleans()), max_size=9
)


@given(DELIVERIES, st.data())
def test_packed_deliveries_are_the_same(deliveries: list[Delivery], data: st.DataObject) -> None:
    packed = PackedDeliveries.of(deliveries)
    assert list(packed) == deliveries
    assert [packed[i] for i in range(len(packed))] == deliveries
    assert packed[1:3] == deliveries[1:3]
    assert receipts_of(packed) == receipts_of(deliveries)
    assert PackedDeliveries.of(packed) is packed
    rows = data.draw(
        st.lists(st.sampled_from(range(len(packed))), unique=True).map(sorted)
        if deliveries
        else st.just([])
    )
    assert list(packed.only(np.array(rows, np.int64))) == [deliveries[i] for i in rows]


@given(
    batches=st.lists(DELIVERIES, min_size=1, max_size=4),
    most=st.integers(1, 9),
    shared=st.booleans(),
)
def test_a_message_yields_to_a_newer_live_one_of_its_topic(
    *, batches: list[list[Delivery]], most: int, shared: bool
) -> None:
    def is_shared(topic: str) -> bool:
        return topic == "b"

    left = newest_of_each_topic(
        [PackedDeliveries.of(batch) for batch in batches],
        is_shared=is_shared if shared else None,
        most=most,
        max_bytes=1_000_000,
    )
    everything = [delivery for batch in batches for delivery in batch]
    expected = []
    for i, one in enumerate(everything):
        same = [j for j, other in enumerate(everything) if other.topic == one.topic]
        live = [j for j in same if not everything[j].retained]
        winner = live[-1] if live else same[0]
        if i == winner or (shared and is_shared(one.topic)):
            expected.append(one)
    assert [delivery for batch in left for delivery in batch] == expected[-most:]

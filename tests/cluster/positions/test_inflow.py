"""What a bridge sends to Kafka: few large messages, and none that the broker waits for is late."""

import numpy as np
import pytest

from anonymizer.cluster.bridge_metrics import Passed
from anonymizer.cluster.inflow import Inflow
from anonymizer.cluster.positions.bridge_queue import BridgeQueue
from anonymizer.cluster.positions.raw_batches import decode_raw
from anonymizer.cluster.topics import Topic
from anonymizer.pipeline.ports import Delivery

N_PARTS, N_DEVICES, MOST_RECEIPTS = 2, 3_000, 1_000
AT_S = 100.5


class Sent:
    """Takes what an inflow sends; Kafka has it at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def send(self, _topic: str, _key: bytes, value: bytes, *, at_s: float, stored: object) -> None:
        assert at_s == AT_S
        self.sizes.append(sum(len(each.deliveries) for each in decode_raw(value).arrivals))
        assert callable(stored)
        stored()


@pytest.mark.parametrize("has_receipts", [False, True])
def test_only_what_the_broker_waits_for_is_sent_before_the_tick_ends(*, has_receipts: bool) -> None:
    sent, acknowledged = Sent(), list[int]()
    inflow = Inflow(
        bridge="one",
        kind="source",
        topic=Topic("sources", N_PARTS),
        queue=BridgeQueue(
            N_PARTS, max_payload_bytes=1000, parts_of=lambda some, n: np.arange(len(some)) % n
        ),
        acknowledge=acknowledged.extend,
        most_receipts=MOST_RECEIPTS,
        now=lambda: AT_S,
        interval_s=1.0,
        passed=Passed(),
        changed=lambda: None,
    )
    inflow.sender = sent
    for i in range(0, N_DEVICES, 100):
        numbers = range(i, i + 100)
        inflow.deliver([Delivery(f"in/{j}", b"{}", (j + 1) * has_receipts) for j in numbers])
        waiting = i + 100 - len(acknowledged)
        assert waiting < MOST_RECEIPTS + 100 or not has_receipts
    assert bool(sent.sizes) == has_receipts
    inflow.state_tick()
    assert sum(sent.sizes) == N_DEVICES
    assert sorted(acknowledged) == ([*range(1, N_DEVICES + 1)] if has_receipts else [])
    if not has_receipts:
        assert len(sent.sizes) == N_PARTS, "a message for each stage"

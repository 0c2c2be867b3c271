"""A broker's limit is learnt from a few lost connections, and no message is thrown at it thrice."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.ports import PART_BYTES, Outgoing
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import mosquitto
from anonymizer.transport.packet_sizes import ALWAYS_TAKEN, PacketSizes
from tests.brokers import QuickBrokerSettings
from tests.end_to_end import DEADLINE_S

sizes_of_messages = st.lists(st.integers(1, 200_000), min_size=1, max_size=8)


@given(
    st.integers(ALWAYS_TAKEN, 150_000),
    sizes_of_messages,
    st.integers(0, 2**32),
)
def test_a_limit_that_is_not_announced_costs_few_connections_and_no_message_three(
    limit: int, wanted: list[int], seed: int
) -> None:
    """Messages of any sizes are tried again and again, in any order; one is cut anew each time."""
    sizes, rng = PacketSizes(), random.Random(seed)  # noqa: S311  an order, no secret
    cost: Counter[int] = Counter()
    for _ in range(40):
        part = sizes.part_bytes("topic")
        for n_bytes in rng.sample([*wanted, part], len(wanted) + 1):
            if n_bytes > sizes.most_bytes:
                continue
            sizes.sent(n_bytes)
            if n_bytes > limit:
                assert sizes.ended() >= n_bytes
                cost[n_bytes] += 1
                break
            if rng.random() < 0.5:
                sizes.answered(sizes.n_sent)
    assert max(cost.values(), default=0) <= 2
    assert cost.total() <= 12
    # In the end everything that can be cut goes through.
    for _ in range(10):
        part = sizes.part_bytes("topic")
        if part <= limit:
            break
        sizes.sent(part)
        sizes.ended()
    assert ALWAYS_TAKEN - 50 <= part <= max(limit, ALWAYS_TAKEN)


def test_what_the_broker_has_answered_is_never_blamed() -> None:
    sizes = PacketSizes()
    sizes.sent(9000)
    sizes.answered(sizes.n_sent)
    for _ in range(5):
        sizes.sent(9000)
        assert sizes.ended() == 0
    assert sizes.most_bytes > 10**6


def test_an_innocent_message_that_is_taken_in_the_end_is_free_again() -> None:
    sizes = PacketSizes()
    for _ in range(2):
        sizes.sent(9000)
        assert sizes.ended() == 9000
    assert 512 <= sizes.most_bytes < 9000
    sizes.sent(sizes.most_bytes)
    sizes.answered(sizes.n_sent)
    assert sizes.most_bytes < 9000
    sizes = PacketSizes()
    sizes.sent(9000)
    assert sizes.ended() == 9000
    sizes.sent(9000)
    sizes.answered(sizes.n_sent)
    sizes.sent(9500)
    assert sizes.ended() == 9500
    assert sizes.most_bytes > 10**6


def test_an_announced_limit_holds_without_trying() -> None:
    sizes = PacketSizes()
    sizes.announced(3000)
    assert sizes.most_bytes == 3000
    assert 2900 < sizes.part_bytes("anonymizer/network/parts/17") < 3000
    assert sizes.part_bytes("a") > sizes.part_bytes("a" * 100)
    sizes.announced(None)
    assert sizes.part_bytes("a") == PART_BYTES


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_a_real_broker_ends_few_connections(tmp_path: Path, qos: int, version: str) -> None:
    """Mosquitto says its limit in MQTT 5; in 3.1.1 it ends the connection."""
    broker = mosquitto(tmp_path, "max_packet_size 3000")
    await broker.start()
    settings = QuickBrokerSettings.model_validate({"url": broker.url, "version": version})
    link = MqttLink(settings, client_id="sizes", deliver=lambda _: None)
    taken: Counter[int] = Counter()
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        group.create_task(link.run(), name="link")
        for n_bytes in [2000, 9000, 5000, 2500, 70_000] * 8:
            await link.until_connected()
            [answer] = await link.publish(
                [Outgoing("t", bytes(n_bytes))], qos=qos, timeout_s=DEADLINE_S
            )
            taken[n_bytes] += bool(answer)
            # Until the broker has read it.
            await link.publish([Outgoing("t", b"")], qos=1, timeout_s=DEADLINE_S)
        assert 2500 < link.most_bytes <= 5000
        await link.until_connected()
        await link.close()
    await broker.stop()
    assert link.counts.n_connections <= (1 if version == "5" else 6)
    if qos:
        assert taken[2000] == taken[2500] == 8
        assert taken[9000] == taken[5000] == taken[70_000] == 0
    assert link.counts.n_too_large > 10

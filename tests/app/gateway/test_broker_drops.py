"""Messages that the broker drops: with its count, everything that was sent is accounted for."""

import json
import re
import signal
import time
from pathlib import Path

from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import mosquitto
from tests.app.gateway.recording import publish, serving_records
from tests.app.gateway.records import compiled
from tests.end_to_end import DEADLINE_S, Gateway, eventually, quick, serving
from tests.pipeline.records.made import traffic
from tests.transport.support import running as connected

__all__ = ["compiled"]

DROPS = {"drops_topic": "$SYS/broker/publish/messages/dropped"}
QUEUE = 60
ANSWERS = 2
"""To a ping, and to the gateway's status: it publishes nothing else at QoS 1."""
LIMITS = (
    "sys_interval 1",
    "max_inflight_messages 20",
    f"max_queued_messages {QUEUE}",
    "max_queued_bytes 1000000",
)


def others(since_s: float) -> float:
    """Return a bound on the packets of its own that the broker has dropped since then.

    It sends one message in each second of its clock, and the first of these seconds may have been
    short. With so full a queue it drops its answers to the gateway, too (seen in Mosquitto 2.0.11).
    """
    return time.monotonic() - since_s + 1 + ANSWERS


async def value(gateway: Gateway, name: str) -> int:
    """Return the sum of a metric over its labels; 0 if it is not there yet."""
    text = (await gateway.get("/metrics")).text
    found = re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)
    return sum(int(float(each)) for each in found)


async def test_what_a_frozen_gateway_does_not_read_is_received_or_counted_by_the_broker(
    tmp_path: Path,
) -> None:
    n, size = 3_000, 20_000
    broker = mosquitto(tmp_path, *LIMITS)
    await broker.start()
    tables = quick(broker.url, broker=DROPS, public_network={"enabled": False})
    async with serving(tmp_path, tables) as gateway:
        await gateway.until_ready()
        await gateway.freeze()
        since_s = time.monotonic()
        payload = json.dumps({"filler": "x" * size}).encode()
        sender = MqttLink(
            BrokerSettings(url=broker.url), client_id="sender", deliver=lambda _: None
        )
        async with connected(sender):
            messages = [Outgoing(f"positions/{i}", payload) for i in range(n)]
            # At QoS 1 the broker has seen them all; for the gateway they are at QoS 0.
            assert all(await sender.publish(messages, qos=1, timeout_s=DEADLINE_S))
        gateway.signal(signal.SIGCONT)

        async def counted() -> tuple[int, int]:
            return (await gateway.accounts()).received, await value(
                gateway, "anonymizer_broker_dropped_total"
            )

        received, dropped = await eventually(counted, lambda now: sum(now) >= n)
        assert received + dropped <= n + others(since_s)
        assert dropped > 0
        assert (await gateway.until_settled(received)).settled == received
    await broker.stop()


async def test_records_beyond_the_queue_of_an_absent_gateway_are_counted_by_the_broker(
    tmp_path: Path,
) -> None:
    parts = list(traffic(n_vehicles=60, n_windows=1, seed=1))
    broker = mosquitto(tmp_path, *LIMITS)
    await broker.start()
    since_s = time.monotonic()
    async with serving_records(tmp_path, broker.url, broker=DROPS) as gateway:
        gateway.signal(signal.SIGTERM)
        assert await gateway.program.ended() == 0
    await publish(broker.url, parts)
    async with serving_records(tmp_path, broker.url, broker=DROPS) as gateway:

        async def counted() -> tuple[int, int]:
            return await value(gateway, "anonymizer_record_parts_received_total"), await value(
                gateway, "anonymizer_broker_dropped_total"
            )

        received, dropped = await eventually(counted, lambda now: sum(now) >= len(parts))
        assert received + dropped <= len(parts) + others(since_s)
        assert QUEUE <= received < len(parts)
        assert await value(gateway, "anonymizer_record_parts_imbalance") == 0
    await broker.stop()

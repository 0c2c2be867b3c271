"""A gateway that was slower than its devices does not publish where they were."""

import signal
import time
from pathlib import Path

from anonymizer.networks import load_network
from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.test_day import payload_at
from tests.end_to_end import DEADLINE_S, eventually, quick, serving, witness
from tests.transport.support import running as connected

NETWORK = load_network("grid:20x20")
THEN, NOW = 21, 378
"""Nodes far from each other: where some devices were, and where others are."""
INPUTS = {"positions": 0, "others": 1}
"""QoS by topic: the broker has a queue for each QoS."""
N_DEVICES = 30
MAX_BACKLOG_S = 2.0
"""Within which a message comes through on a busy machine."""


def at(node: int) -> list[Outgoing]:
    """Return reports of devices at a node, which state no time."""
    return [
        Outgoing(f"{topic}/{topic}-{node}-{i}", payload_at(node))
        for topic in INPUTS
        for i in range(N_DEVICES)
    ]


async def test_what_waited_too_long_in_the_broker_is_suppressed_and_counted(
    broker: LocalBroker, tmp_path: Path
) -> None:
    tables = quick(
        broker.url,
        broker={"max_backlog_s": MAX_BACKLOG_S},
        inputs=[{"topic": f"{topic}/{{device}}", "qos": qos} for topic, qos in INPUTS.items()],
    )
    sender = MqttLink(BrokerSettings(url=broker.url), client_id="all", deliver=lambda _: None)
    async with (
        witness(broker.url) as watching,
        serving(tmp_path, tables) as gateway,
        connected(sender),
    ):
        await gateway.until_ready()
        await gateway.freeze()
        assert all(await sender.publish(at(THEN), qos=1, timeout_s=DEADLINE_S))
        frozen_s = time.monotonic()
        await eventually(now, lambda now_s: now_s > frozen_s + 2 * MAX_BACKLOG_S)
        gateway.signal(signal.SIGCONT)
        n_sent = 2 * N_DEVICES

        async def published() -> list[int]:
            nonlocal n_sent
            assert all(await sender.publish(at(NOW), qos=1, timeout_s=DEADLINE_S))
            n_sent += 2 * N_DEVICES
            return [node for one in watching.on("cloaked/positions") for node in one["region"]]

        nodes = await eventually(published, bool)
        accounts = await gateway.until(lambda seen: seen.received == n_sent and not seen.held)
    assert THEN not in nodes
    assert accounts.outcomes["suppressed/overload"] >= 2 * N_DEVICES
    assert accounts.settled == n_sent
    assert not accounts.imbalance


async def now() -> float:
    return time.monotonic()

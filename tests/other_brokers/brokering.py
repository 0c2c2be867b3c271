"""The gateway with aedes and Moquette: `make test-cluster`, where Node and Java are installed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from anonymizer.pipeline.ports import ONCE, Loss
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.ordeal import VERSION_OF
from tests.app.gateway.poison import assert_it_costs_nobody_else
from tests.app.gateway.records import compiled
from tests.end_to_end import client
from tests.other_brokers.brokers import aedes, moquette
from tests.transport.support import DEADLINE_S, Inbox, running, settings

__all__ = ["compiled"]
VERSION = "3.1.1"
"""Of MQTT: neither speaks another."""


@pytest.fixture(params=["aedes", "moquette"])
async def other(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LocalBroker]:
    started = aedes() if request.param == "aedes" else moquette(tmp_path / "moquette")
    await started.start()
    yield started
    await started.stop()


async def test_bad_messages_cost_nobody_else(other: LocalBroker, tmp_path: Path) -> None:
    await assert_it_costs_nobody_else(tmp_path, other.url, version=VERSION)


async def test_what_was_not_settled_comes_again_at_qos_1_and_not_at_qos_2(
    other: LocalBroker,
) -> None:
    inbox = Inbox()
    link = MqttLink(
        settings(other.url, version=VERSION, session_expiry_s=600),
        client_id="link",
        deliver=inbox.deliver,
        subscriptions=[("in/#", 1)],
        on_state=inbox.on_state,
    )
    version = VERSION_OF[VERSION]
    async with (
        running(link),
        client(other.url, "device", protocol=version, timeout=DEADLINE_S) as device,
    ):
        for i in range(6):
            await device.publish(f"in/{i}", b"%d" % i, qos=1 + i % 2)
        await inbox.receives(6)
        once = {d.payload for d in inbox.deliveries if d.receipt > ONCE}
        link.acknowledge([d.receipt for d in inbox.deliveries if d.payload in {b"0", b"1"}])
        assert link._session is not None
        link._session.wire.abort()  # it may not have sent the acknowledgements
        await inbox.until(lambda: link.counts.n_connections >= 2)
        await device.publish("in/6", b"6", qos=1)
        await inbox.until(lambda: {b"2", b"4", b"6"} <= set(inbox.payloads[6:]))
        link.acknowledge([d.receipt for d in inbox.deliveries])
    assert once in (set(), {b"1", b"3", b"5"})  # some brokers lower the QoS, as they should
    assert not once & set(inbox.payloads[6:])
    assert not any(link.counts.lost[loss] for loss in Loss if loss is not Loss.CLOSED)

"""The gateway with aedes, Moquette and HiveMQ: `make test-cluster`, where Node and Java are."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from anonymizer.pipeline.ports import ONCE, Loss
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import LocalBroker
from anonymizer.transport.refused_topics import refused_topics
from tests.app.gateway.ordeal import VERSION_OF
from tests.app.gateway.poison import assert_it_costs_nobody_else
from tests.app.gateway.records import compiled
from tests.end_to_end import DEADLINE_S, client
from tests.other_brokers.brokers import NANOMQ, aedes, hivemq, moquette, nanomq
from tests.transport.support import Inbox, running, settings

__all__ = ["compiled"]
VERSIONS = {"aedes": "3.1.1", "moquette": "3.1.1", "hivemq": "5"}
"""Of MQTT: the first two speak no other."""
if NANOMQ:
    VERSIONS["nanomq"] = "5"


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return VERSIONS[request.param]


@pytest.fixture
async def other(
    request: pytest.FixtureRequest, version: str, tmp_path: Path
) -> AsyncIterator[LocalBroker]:
    name = request.node.callspec.params["version"]
    assert VERSIONS[name] == version
    folder = tmp_path / name
    made: dict[str, Callable[[], LocalBroker]] = {
        "aedes": aedes, "moquette": lambda: moquette(folder), "hivemq": lambda: hivemq(folder),
        "nanomq": lambda: nanomq(folder),
    }  # fmt: skip
    started = made[name]()
    await started.start()
    yield started
    await started.stop()


async def test_bad_messages_cost_nobody_else(
    other: LocalBroker, version: str, tmp_path: Path
) -> None:
    await assert_it_costs_nobody_else(tmp_path, other.url, version=version)


@pytest.mark.parametrize("version", ["hivemq"], indirect=True)
async def test_a_broker_that_waits_for_each_batch_sends_the_unsettled_one_again(
    other: LocalBroker, version: str
) -> None:
    inbox = Inbox()
    link = MqttLink(
        settings(other.url, version=version, session_expiry_s=600),
        client_id="link",
        deliver=inbox.deliver,
        subscriptions=[("in/#", 1)],
        on_state=inbox.on_state,
    )
    async with (
        running(link),
        client(other.url, "device", protocol=VERSION_OF[version], timeout=DEADLINE_S) as device,
    ):
        for i in range(6):
            await device.publish(f"in/{i}", b"%d" % i, qos=1)
        await inbox.receives(1)  # the others wait until it is settled
        assert link._session is not None
        link._session.wire.abort()
        await inbox.until(lambda: inbox.payloads[:2] == [b"0", b"0"])
        n_settled = 0
        while len(set(inbox.payloads)) < 6:
            await inbox.until(lambda: len(inbox.deliveries) > n_settled)  # noqa: B023  awaited here
            n_settled = len(inbox.deliveries)
            link.acknowledge([d.receipt for d in inbox.deliveries])
    assert inbox.payloads[1:] == [b"%d" % i for i in range(6)]


@pytest.mark.parametrize(
    "version", ["aedes", "moquette", *(["nanomq"] if NANOMQ else [])], indirect=True
)
async def test_what_was_not_settled_comes_again_at_qos_1_and_not_at_qos_2(
    other: LocalBroker, version: str
) -> None:
    inbox = Inbox()
    link = MqttLink(
        settings(other.url, version=version, session_expiry_s=600),
        client_id="link",
        deliver=inbox.deliver,
        subscriptions=[("in/#", 1)],
        on_state=inbox.on_state,
    )
    async with (
        running(link),
        client(other.url, "device", protocol=VERSION_OF[version], timeout=DEADLINE_S) as device,
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


@pytest.mark.parametrize("version", ["hivemq"], indirect=True)
async def test_a_broker_that_passes_unreleased_messages_on_is_asked_without_one_for_readers(
    other: LocalBroker, version: str
) -> None:
    inbox = Inbox()
    reader = MqttLink(
        settings(other.url, version=version),
        client_id="reader",
        deliver=inbox.deliver,
        subscriptions=[("out/#", 1)],
        on_state=inbox.on_state,
    )
    async with running(reader), client(other.url, "other", protocol=VERSION_OF[version]) as sender:
        topics = ["out/a", f"out/{'long' * 40}"]
        assert await refused_topics(settings(other.url), topics, client_id="asks") == {}
        await sender.publish("out/a", b"after", qos=1)
        await inbox.receives(1)
    assert inbox.payloads == [b"after"]

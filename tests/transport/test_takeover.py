"""A second client with the id of the link, on Mosquitto."""

import asyncio
import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiomqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from anonymizer.pipeline.ports import Loss
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import LocalBroker
from tests.end_to_end import DEADLINE_S, client
from tests.transport.peers import served
from tests.transport.support import Inbox, running, settings


def lasting(url: str, inbox: Inbox, **changes: object) -> MqttLink:
    return MqttLink(
        settings(url, session_expiry_s=3600, **changes),
        client_id="link",
        deliver=inbox.deliver,
        subscriptions=[("in", 1)],
        on_state=inbox.on_state,
    )


@asynccontextmanager
async def intruder(broker: LocalBroker, *, clean: bool) -> AsyncIterator[aiomqtt.Client]:
    """Connect as the link, which will soon throw this client out again."""
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = 0 if clean else 3600
    with suppress(aiomqtt.MqttError):
        async with client(broker.url, "link", clean_start=clean, properties=properties) as other:
            yield other


def n_lost(link: MqttLink) -> int:
    """Return the number of lost connections; before 2.0.15 Mosquitto does not tell the cause."""
    return link.counts.lost[Loss.TAKEN_OVER] + link.counts.lost[Loss.CLOSED]


def connected_times(link: MqttLink, n: int) -> bool:
    return link.counts.n_connections == n


async def test_a_takeover_is_counted_and_its_changes_of_the_subscriptions_do_not_last(
    broker: LocalBroker,
) -> None:
    inbox = Inbox()
    link = lasting(broker.url, inbox)
    async with running(link), client(broker.url, "device") as device:
        async with intruder(broker, clean=False) as other:
            await other.unsubscribe("in")
            await inbox.until(lambda: link.counts.n_connections > 1)
        # It may have been thrown out before it was answered.
        await inbox.until(lambda: link.counts.n_connections > 1)
        async with asyncio.timeout(DEADLINE_S):
            await link.until_connected()
        await device.publish("in", b"after", qos=1)
        await inbox.receives(1)
        assert inbox.payloads == [b"after"]
        assert n_lost(link) == 1
        assert link.counts.n_sessions_lost == 0


async def test_a_session_that_another_client_ended_is_counted_as_lost(broker: LocalBroker) -> None:
    inbox = Inbox()
    link = lasting(broker.url, inbox)
    async with running(link):
        async with intruder(broker, clean=True):
            await inbox.until(lambda: link.counts.n_connections > 1)
        assert link.counts.n_sessions_lost == 1


async def test_in_mqtt_3_the_loss_of_the_session_shows_what_the_broker_does_not_say(
    broker: LocalBroker,
) -> None:
    inbox = Inbox()
    link = lasting(broker.url, inbox, version="3.1.1")
    async with running(link):
        async with intruder(broker, clean=True):
            await inbox.until(lambda: link.counts.n_connections > 1)
        assert (link.counts.lost[Loss.CLOSED], link.counts.n_sessions_lost) == (1, 1)


async def test_a_link_returns_as_quickly_from_the_tenth_takeover_as_from_the_first(
    broker: LocalBroker,
) -> None:
    inbox = Inbox()
    link = lasting(broker.url, inbox, longest_wait_s=6)
    async with running(link):
        for n in range(2, 12):
            async with intruder(broker, clean=False):
                await inbox.until(functools.partial(connected_times, link, n))
        assert n_lost(link) == 10


@pytest.mark.parametrize("expiry_s", [0, 3600])
async def test_a_link_that_closes_has_lost_no_connection(
    broker: LocalBroker, expiry_s: int
) -> None:
    link = MqttLink(
        settings(broker.url, session_expiry_s=expiry_s), client_id="link", deliver=lambda _: None
    )
    async with running(link):
        pass
    assert not any(link.counts.lost.values())
    assert (link.counts.n_connections, link.counts.n_sessions_lost) == (1, 0)


async def test_a_broker_that_tells_of_a_takeover_is_believed() -> None:
    inbox = Inbox()
    async with served(inbox=inbox) as (link, server):
        assert server.writer is not None
        server.writer.write(b"\xe0\x02\x8e\x00")
        await inbox.until(lambda: link.counts.n_connections == 2)
        assert link.counts.lost == dict.fromkeys(Loss, 0) | {Loss.TAKEN_OVER: 1}

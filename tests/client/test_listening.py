"""The client with a real broker."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import pytest

from anonymizer import client
from anonymizer.client.network import read_network
from anonymizer.domain.network_version import network_version
from anonymizer.errors import InputError, SettingsError, TransportError
from anonymizer.networks import load_network
from anonymizer.networks.publication import parts
from anonymizer.transport.local_brokers import LocalBroker
from tests.brokers import PASSWORD, USER
from tests.client.live import CITY, N_DEVICES, publish, retain
from tests.client.paper import message, snapshot
from tests.end_to_end import DEADLINE_S

pytestmark = pytest.mark.filterwarnings("error")
NODES = CITY.node_id[:3].tolist()
VERSION = network_version(CITY)


def run(sending: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> None:
    """Run a coroutine in the loop of another thread, until it has ended."""
    asyncio.run_coroutine_threadsafe(sending, loop).result()


async def test_a_late_subscriber_gets_the_network_and_all_devices(broker: LocalBroker) -> None:
    await retain(broker.url)
    found = await asyncio.to_thread(client.listen, broker.url, seconds=0.01, timeout_s=DEADLINE_S)
    assert found.network.version == VERSION
    assert found.devices() == N_DEVICES
    # The heat map over all cells has all devices.
    heat = found.heat_map(found.network.grid(300))
    assert heat["devices"].sum() == pytest.approx(N_DEVICES)


async def test_a_subscription_follows_what_is_published(broker: LocalBroker) -> None:
    await retain(broker.url, snapshot=snapshot(1.0))

    def follow(loop: asyncio.AbstractEventLoop) -> list[int]:
        def say(names: str, time: float) -> None:
            body = message(names, NODES, time, time + 30, network=VERSION)
            run(publish(broker.url, "cloaked/positions", body), loop)

        with client.subscribe(broker.url, timeout_s=DEADLINE_S) as stream:
            say("ab", 10)
            counts = [stream.wait(2, timeout_s=DEADLINE_S).devices()]
            say("cde", 20)
            counts.append(stream.wait(5, timeout_s=DEADLINE_S).devices())
        return [*counts, len(stream.releases()), stream.connected]

    assert await asyncio.to_thread(follow, asyncio.get_running_loop()) == [2, 5, 5, False]


async def test_a_gateway_that_gets_another_network_is_followed(broker: LocalBroker) -> None:
    await retain(broker.url)
    other = load_network("grid:5x5")
    version = network_version(other)

    def follow(loop: asyncio.AbstractEventLoop) -> client.Releases:
        with client.subscribe(broker.url, timeout_s=DEADLINE_S) as stream:
            assert stream.wait(N_DEVICES, timeout_s=DEADLINE_S).network.version == VERSION
            groups = message("xy", other.node_id[:2].tolist(), 2e9, 2e9 + 30, network=version)
            run(retain(broker.url, other, snapshot=snapshot(2e9, groups)), loop)
            while True:
                found = stream.wait(2, timeout_s=DEADLINE_S)
                if found.network.version == version and len(found):
                    return found

    found = await asyncio.to_thread(follow, asyncio.get_running_loop())
    assert found.devices() == 2
    # With a network of one's own, this is an error.
    with pytest.raises(InputError, match="anonymizer network export"):
        await asyncio.to_thread(
            client.listen, broker.url, seconds=0.01, timeout_s=DEADLINE_S, network=CITY
        )
    own = read_network(other)
    given = await asyncio.to_thread(
        client.listen, broker.url, seconds=0, timeout_s=DEADLINE_S, network=own
    )
    assert given.network is own


async def test_the_old_network_counts_until_the_new_one_has_come(broker: LocalBroker) -> None:
    await retain(broker.url, snapshot=snapshot(1.0))
    about, _ = parts(load_network("grid:5x5"), most_bytes=20_000)
    new = message("xy", [0, 1], 2e9, 2e9 + 30, network=about.network)
    old = message("abc", NODES, 2e9, 2e9 + 30, network=VERSION)

    def follow(loop: asyncio.AbstractEventLoop) -> client.Releases:
        with client.subscribe(broker.url, timeout_s=DEADLINE_S) as stream:
            assert stream.wait(0, timeout_s=DEADLINE_S).network.version == VERSION
            for topic, payload in (
                ("anonymizer/network", about.encoded()),
                ("cloaked/positions", new),
                ("cloaked/positions", old),
            ):
                run(publish(broker.url, topic, payload), loop)
            return stream.wait(5, timeout_s=DEADLINE_S)

    found = await asyncio.to_thread(follow, asyncio.get_running_loop())
    assert found.network.version == VERSION
    assert found.devices() == 3


async def test_what_was_over_long_ago_is_not_kept(broker: LocalBroker) -> None:
    await retain(broker.url, snapshot=snapshot(1.0))

    def follow(loop: asyncio.AbstractEventLoop) -> client.Releases:
        with client.subscribe(broker.url, keep_s=100, timeout_s=DEADLINE_S) as stream:
            for time in range(0, 1000, 50):
                body = message("ab", NODES, time, time + 50, network=VERSION)
                run(publish(broker.url, "cloaked/positions", body), loop)
            body = message("xyz", NODES, 1000, 1050, network=VERSION)
            run(publish(broker.url, "cloaked/positions", body), loop)
            return stream.wait(3, timeout_s=DEADLINE_S)

    found = await asyncio.to_thread(follow, asyncio.get_running_loop())
    assert found.first >= 700
    assert found.devices() == 3


async def test_trips_are_read_from_the_broker(broker: LocalBroker) -> None:
    await retain(broker.url, snapshot=snapshot(1.0))
    ends = {"origin": {"first": 0, "last": 1}, "destination": {"first": 2, "last": 3}}
    body = {"v": 1, "window_s": 3600, "network": VERSION, "k": 10, "n_cells": 16}

    def follow(loop: asyncio.AbstractEventLoop) -> list[int]:
        def say(time: int, *devices: int, **fields: object) -> None:
            told = [{**ends, "start": [0, 7200], "devices": n, "roads": []} for n in devices]
            payload = json.dumps({**body, "time": time, "trips": told, **fields}).encode()
            run(publish(broker.url, "cloaked/trips", payload), loop)

        with client.subscribe(broker.url, timeout_s=DEADLINE_S) as stream:
            stream.wait(0, timeout_s=DEADLINE_S)
            with pytest.raises(InputError, match="no window of trips"):
                stream.trips()
            say(7200, 20, 10)
            say(10_800, 30)
            say(14_400, 40, network="of another gateway")
            run(
                publish(broker.url, "cloaked/positions", message("ab", NODES, 20_000, 20_030)), loop
            )
            stream.wait(2, timeout_s=DEADLINE_S)
            found = stream.trips()
        return [len(found), len(found.windows), len(found.table())]

    assert await asyncio.to_thread(follow, asyncio.get_running_loop()) == [60, 2, 3]


async def test_a_broker_without_a_gateway_is_an_error_that_says_so(broker: LocalBroker) -> None:
    def wait() -> None:
        with client.subscribe(broker.url, timeout_s=DEADLINE_S) as stream:
            stream.wait(0, timeout_s=0.1)

    with pytest.raises(TransportError, match="no network has been published: pass"):
        await asyncio.to_thread(wait)
    with pytest.raises(TransportError, match=broker.url):
        await asyncio.to_thread(client.listen, broker.url, seconds=0.01, timeout_s=0.2)


async def test_a_gateway_that_publishes_nobody_is_an_error_that_says_so(
    broker: LocalBroker,
) -> None:
    await retain(broker.url, snapshot=snapshot(1.0))

    def wait() -> None:
        with client.subscribe(broker.url, timeout_s=DEADLINE_S) as stream:
            stream.wait(0, timeout_s=DEADLINE_S)  # the network has come
            stream.wait(timeout_s=0.1)

    with pytest.raises(TransportError, match="0 devices have been published"):
        await asyncio.to_thread(wait)


async def test_a_message_of_another_version_is_an_error(broker: LocalBroker) -> None:
    await retain(broker.url, snapshot=message("ab", NODES, v=2))
    with pytest.raises(InputError, match="version 2 of the contract"):
        await asyncio.to_thread(client.listen, broker.url, seconds=0.01, timeout_s=DEADLINE_S)


async def test_the_password_is_used_and_never_shown(password_broker: LocalBroker) -> None:
    topics = ("allowed/#",)
    good = client.subscribe(
        password_broker.url,
        topics=topics,
        username=USER,
        password=PASSWORD,
        network=CITY,
        timeout_s=DEADLINE_S,
    )

    def use(stream: client.Subscription) -> bool:
        with stream:
            return stream.connected

    assert await asyncio.to_thread(use, good)
    wrong = PASSWORD[::-1]

    def error(timeout_s: float) -> str:
        bad = client.subscribe(
            password_broker.url, username=USER, password=wrong, timeout_s=timeout_s
        )
        with pytest.raises(TransportError) as caught:
            use(bad)
        return str(caught.value)

    says = await asyncio.to_thread(error, 0.3)
    if "refused" not in says:  # a busy machine takes longer
        says = await asyncio.to_thread(error, DEADLINE_S)
    assert "refused" in says
    assert wrong not in says


def test_a_broker_that_is_not_there_is_an_error() -> None:
    with pytest.raises(TransportError, match=r"mqtt://127.0.0.1:1: "):
        client.listen("mqtt://127.0.0.1:1", seconds=1, timeout_s=0.3)


@pytest.mark.parametrize(
    ("url", "options", "says"),
    [
        ("http://localhost", {}, "url: must be mqtt://"),
        ("mqtt://example.org", {}, "allow_plaintext"),
        ("mqtt://localhost", {"pasword": "secret"}, "pasword"),
    ],
)
def test_a_wrong_setting_is_named(url: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says) as caught:
        client.subscribe(url, **options)
    assert "secret" not in str(caught.value)


def test_a_subscription_that_was_never_entered_can_be_closed() -> None:
    client.subscribe("mqtt://localhost").close()

"""What bridges publish, and brokers that end the connection at what a client may not publish."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest

from anonymizer.cluster import outflow
from anonymizer.cluster.bridge_metrics import Passed
from anonymizer.cluster.outflow import Outflow
from anonymizer.cluster.positions.raw_batches import encode_out
from anonymizer.outputs.cloud_events import EventHeaders
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.settings import BrokerSettings, Settings
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import LocalBroker
from tests.brokers import QuickBrokerSettings
from tests.cluster.processes import wait_until

DENIED = "out/denied"
GROUP = {"v": 1, "until": 9.0, "group": "G", "k": 2, "region": [1], "pseudonyms": ["a", "b"]}


@asynccontextmanager
async def strict(broker: LocalBroker) -> AsyncIterator[str]:
    """Yield the URL of a broker that ends the connection of who publishes what is denied."""
    host, _, port = broker.url.removeprefix("mqtt://").partition(":")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection(host, int(port))

        async def answer() -> None:
            while some := await back.read(1 << 16):
                writer.write(some)

        answering = asyncio.create_task(answer())
        with suppress(ConnectionError):
            while some := await reader.read(1 << 16):
                allowed, is_denied, _ = some.partition(DENIED.encode())
                forth.write(b"" if is_denied else allowed)
                if is_denied:
                    break
        answering.cancel()
        writer.close()
        forth.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_message_at_which_the_broker_ends_the_connection_is_given_up_and_no_other(
    broker: LocalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outflow, "_REFUSED_S", 0.1)
    received: list[Delivery] = []
    reader = MqttLink(
        BrokerSettings(url=broker.url),
        client_id="reader",
        subscriptions=[("out/#", 1)],
        deliver=received.extend,
    )
    passed = Passed()
    messages = [Outgoing("out/a", b"%d" % i) for i in range(6)]
    messages.insert(3, Outgoing(DENIED, b"-"))
    async with strict(broker) as url, asyncio.TaskGroup() as group:
        settings = QuickBrokerSettings(url=url, longest_wait_s=0.02)
        writer = MqttLink(settings, client_id="writer", deliver=lambda _: None)
        for link in (reader, writer):
            group.create_task(link.run())
        await reader.until_connected()
        async with asyncio.timeout(120):
            await Outflow(Settings(), writer, passed).publish([encode_out(messages)])
            everything = lambda: len({each.payload for each in received}) == 6  # noqa: E731
            await asyncio.to_thread(wait_until, everything, "all that is allowed")
        for link in (reader, writer):
            await link.close()
    assert passed.n_refused["not_taken"] == 1
    assert passed.n_published == 6


async def test_a_bridge_publishes_the_events_that_one_process_publishes(
    broker: LocalBroker,
) -> None:
    asked = {"output": {"forms": ["cloudevents"], "topic": "out/groups"}}
    settings = Settings.model_validate(asked)
    headers = EventHeaders(settings)
    messages = [Outgoing("out/groups", msgspec.json.encode(GROUP | {"time": i})) for i in range(3)]
    messages.append(Outgoing("out/cells", b"{}", retain=True))
    events = headers.of(messages)
    assert [each.headers is not None for each in events] == [True, True, True, False]
    expected = [(each.topic, each.payload) for each in events]
    received: list[Delivery] = []
    links = [
        MqttLink(BrokerSettings(url=broker.url), client_id=name, subscriptions=[("out/#", 1)],
                 deliver=received.extend if name == "reader" else lambda _: None)
        for name in ("reader", "writer")
    ]  # fmt: skip
    reader, writer = links
    async with asyncio.TaskGroup() as group:
        for link in links:
            group.create_task(link.run())
        await reader.until_connected()
        async with asyncio.timeout(120):
            await Outflow(settings, writer, Passed()).publish([encode_out(messages)])
            everything = lambda: len(received) == len(expected)  # noqa: E731
            await asyncio.to_thread(wait_until, everything, "all events")
        for link in links:
            await link.close()
    assert [(each.topic, each.payload) for each in received] == expected
    assert sum(each.headers is not None for each in headers.of(messages)) == 3

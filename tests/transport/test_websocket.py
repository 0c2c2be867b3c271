"""MQTT over WebSocket at a real Mosquitto: plain, and with TLS and client certificates."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink
from anonymizer.transport.connecting import read_access
from anonymizer.transport.local_brokers import LocalBroker, free_port, mosquitto
from tests.brokers import Certificates
from tests.end_to_end import DEADLINE_S
from tests.transport.support import Inbox, running, settings


class WebSocketBroker:
    """A Mosquitto with a listener for WebSocket beside its own."""

    def __init__(self, broker: LocalBroker, url: str) -> None:
        self.broker = broker
        self.url = url


@pytest.fixture
async def plain(tmp_path: Path) -> AsyncIterator[WebSocketBroker]:
    port = free_port()
    lines = (f"listener {port} 127.0.0.1", "protocol websockets")
    broker = mosquitto(tmp_path, *lines, "allow_anonymous true")
    await broker.start()
    yield WebSocketBroker(broker, f"ws://127.0.0.1:{port}")
    await broker.stop()


@pytest.fixture
async def encrypted(tmp_path: Path, certificates: Certificates) -> AsyncIterator[WebSocketBroker]:
    port = free_port()
    lines = (
        f"listener {port} 127.0.0.1",
        "protocol websockets",
        f"cafile {certificates.ca}",
        f"certfile {certificates.server}",
        f"keyfile {certificates.server_key}",
        "require_certificate true",
    )
    broker = mosquitto(tmp_path, *lines)
    await broker.start()
    yield WebSocketBroker(broker, f"wss://localhost:{port}")
    await broker.stop()


def link(inbox: Inbox, name: str, told: BrokerSettings, *topics: tuple[str, int]) -> MqttLink:
    return MqttLink(
        told,
        client_id=name,
        deliver=inbox.deliver,
        subscriptions=topics,
        on_state=inbox.on_state,
    )


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize("qos", [0, 1])
async def test_messages_of_every_size_arrive_in_order(
    plain: WebSocketBroker, version: str, qos: int
) -> None:
    inbox, told = Inbox(), settings(plain.url, version=version)
    sizes = [1, 125, 126, 4000] * 50
    messages = [Outgoing(f"a/{i % 7}", bytes([i % 256]) * n) for i, n in enumerate(sizes)]
    receiver = link(inbox, "receiver", told, ("a/+", qos))
    sender = link(Inbox(), "sender", told)
    async with running(receiver), running(sender):
        taken = await sender.publish(messages, qos=qos, timeout_s=DEADLINE_S)
        assert taken == [True] * len(messages)
        await inbox.receives(len(messages))
        receiver.acknowledge([delivery.receipt for delivery in inbox.deliveries])
    assert [(d.topic, d.payload) for d in inbox.deliveries] == [m[:2] for m in messages]
    assert sum(receiver.counts.lost.values()) == 0


async def test_large_messages_leave_whole(plain: WebSocketBroker) -> None:
    # Heard without a WebSocket: the one of Mosquitto 2.0.11 stalls when it sends 60 kB at once,
    # to other clients too.
    inbox, messages = Inbox(), [Outgoing("a", bytes(n)) for n in (65_535, 65_536, 300_000, 1)]
    sender = link(Inbox(), "sender", settings(plain.url))
    async with (
        running(link(inbox, "receiver", settings(plain.broker.url), ("a", 1))),
        running(sender),
    ):
        taken = await sender.publish(messages, qos=1, timeout_s=DEADLINE_S)
        assert taken == [True] * len(messages)
        await inbox.receives(len(messages))
    assert [len(payload) for payload in inbox.payloads] == [65_535, 65_536, 300_000, 1]


async def test_it_returns_after_the_broker_was_away(plain: WebSocketBroker) -> None:
    inbox = Inbox()
    receiver = link(inbox, "receiver", settings(plain.url), ("a", 0))
    async with running(receiver):
        await plain.broker.kill()
        await inbox.until(lambda: inbox.states[-1][0] is False)
        await plain.broker.start()
        async with asyncio.timeout(DEADLINE_S):
            await receiver.until_connected()
        assert await receiver.publish([Outgoing("a", b"x")], qos=1, timeout_s=DEADLINE_S) == [True]
        await inbox.receives(1)


async def test_a_client_certificate_is_presented_over_tls(
    encrypted: WebSocketBroker, certificates: Certificates
) -> None:
    files = {
        "ca_file": certificates.ca,
        "cert_file": certificates.client,
        "key_file": certificates.client_key,
    }
    inbox = Inbox()
    client = link(inbox, "a", settings(encrypted.url, **files), ("a", 1))
    async with running(client):
        assert await client.publish([Outgoing("a", b"x")], qos=1, timeout_s=DEADLINE_S) == [True]
        await inbox.receives(1)
    for wrong in ({"ca_file": certificates.ca}, files | {"ca_file": certificates.other_ca}):
        inbox = Inbox()
        async with running(link(inbox, "b", settings(encrypted.url, **wrong)), connected=False):
            await inbox.until(lambda: bool(inbox.states))  # noqa: B023  awaited here
        assert not any(up for up, _ in inbox.states)


async def test_a_server_without_mqtt_is_refused_with_its_reason() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    inbox = Inbox()
    async with running(link(inbox, "a", settings(f"ws://127.0.0.1:{port}")), connected=False):
        await inbox.loses("no WebSocket: ")
    server.close()
    await server.wait_closed()
    assert any("404" in reason for _, reason in inbox.states)


@pytest.mark.parametrize("junk", [b"\x81\x02hi", b"\xff" * 40, b"\x82\x7f" + b"\xff" * 8])
async def test_no_frame_makes_it_do_more_than_reconnect(junk: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = ServerProtocol(subprotocols=[Subprotocol("mqtt")])
        protocol.receive_data(await reader.readuntil(b"\r\n\r\n"))
        [request] = protocol.events_received()
        assert isinstance(request, Request)
        protocol.send_response(protocol.accept(request))
        writer.write(b"".join(protocol.data_to_send()) + junk)
        await writer.drain()
        await reader.read(1 << 16)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    inbox = Inbox()
    async with running(link(inbox, "a", settings(f"ws://127.0.0.1:{port}")), connected=False):
        await inbox.until(lambda: len(inbox.states) >= 2)
    server.close()
    assert inbox.deliveries == []
    assert not any(up for up, _ in inbox.states)


@pytest.mark.parametrize(
    ("url", "port", "address"),
    [
        ("ws://localhost", 80, "ws://localhost/mqtt"),
        ("wss://broker.example", 443, "wss://broker.example/mqtt"),
        ("wss://broker.example:8084/a/b", 8084, "wss://broker.example:8084/a/b"),
        ("mqtt://localhost", 1883, None),
    ],
)
def test_the_url_names_port_and_path(url: str, port: int, address: str | None) -> None:
    access = read_access(BrokerSettings(url=url))
    assert (access.port, access.websocket) == (port, address)
    assert (access.tls is not None) == url.startswith("wss")

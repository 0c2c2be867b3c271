"""Servers that speak MQTT by hand, for tests of what Mosquitto does not do on request."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

from anonymizer.transport import MqttLink
from anonymizer.transport.packets import PINGREQ, PINGRESP, Packet, PacketReader, Publish
from anonymizer.transport.quarantine import OnQuarantined
from tests.end_to_end import DEADLINE_S
from tests.transport.support import Inbox, running, settings

Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

ACCEPTED = b"\x20\x03\x00\x00\x00"
"""CONNACK of MQTT 5."""


@contextlib.asynccontextmanager
async def peer(serve: Serve) -> AsyncIterator[str]:
    """Run a server for raw connections; yield its address."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def read_packet(reader: asyncio.StreamReader) -> bytes:
    """Read one short packet of a client."""
    header = await reader.readexactly(2)
    return header + await reader.readexactly(header[1])


class _FromClient(PacketReader):
    """Splits what a client sends, pings included."""

    def _packet(self, stream: bytes, start: int, body: int, end: int) -> Packet:
        if stream[start:end] == PINGREQ:
            return PINGREQ
        if stream[start] >> 4 in {4, 5, 7}:  # PUBACK, PUBREC, PUBCOMP
            return stream[start:end]
        return super()._packet(stream, start, body, end)


class Server:
    """Accepts clients with given limits, and passes published messages to the test."""

    def __init__(self, properties: bytes) -> None:
        self.published: asyncio.Queue[Publish] = asyncio.Queue()
        self.writer: asyncio.StreamWriter | None = None
        self.n_connections = 0
        self.acknowledged: list[bytes] = []
        """The acknowledgements of the client, at QoS 1 and 2."""
        self.holds_pings = False
        self.held_pings: asyncio.Queue[bytes] = asyncio.Queue()
        self._properties = properties
        self._changed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_packet(reader)
        body = b"\x00\x00" + bytes([len(self._properties)]) + self._properties
        writer.write(b"\x20" + bytes([len(body)]) + body)
        self.writer = writer
        self.n_connections += 1
        packets = _FromClient(version5=True, limit_bytes=1 << 20)
        while data := await reader.read(65536):
            for packet in packets.feed(data):
                if isinstance(packet, Publish):
                    self.published.put_nowait(packet)
                elif packet == PINGREQ and self.holds_pings:
                    self.held_pings.put_nowait(packet)
                elif packet == PINGREQ:
                    writer.write(PINGRESP)
                elif isinstance(packet, bytes):
                    self.acknowledged.append(packet)
                    self._changed.set()

    async def until_acknowledged(self, n: int) -> None:
        """Wait for so many acknowledgements."""
        async with asyncio.timeout(DEADLINE_S):
            while len(self.acknowledged) < n:
                self._changed.clear()
                await self._changed.wait()

    async def answer(self, n: int, *, code: int = 0) -> list[bytes]:
        """Acknowledge this many messages and return their payloads."""
        assert self.writer is not None
        payloads = []
        async with asyncio.timeout(DEADLINE_S):
            for _ in range(n):
                message = await self.published.get()
                payloads.append(message.payload)
                self.writer.write(b"\x40\x03" + message.mid.to_bytes(2) + bytes([code]))
        return payloads


@contextlib.asynccontextmanager
async def served(
    properties: bytes = b"",
    *,
    inbox: Inbox | None = None,
    on_quarantined: OnQuarantined = lambda *_: None,
    **changes: object,
) -> AsyncIterator[tuple[MqttLink, Server]]:
    """Run a server and a link to it; `changes` are settings, which are not validated."""
    server, inbox = Server(properties), inbox or Inbox()
    async with peer(server.serve) as url:
        link = MqttLink(
            settings(url).model_copy(update=changes),
            client_id="link",
            deliver=inbox.deliver,
            on_state=inbox.on_state,
            on_quarantined=on_quarantined,
        )
        async with running(link):
            yield link, server

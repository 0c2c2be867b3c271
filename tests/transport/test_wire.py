"""The wire without a connection: before it is made, and after it is lost."""

import asyncio

from anonymizer.transport.wire import Wire


async def test_without_a_connection_bytes_are_dropped_and_no_writer_waits() -> None:
    received: list[bytes] = []
    lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    wire = Wire(on_bytes=received.append, on_lost=lost.set_result)
    wire.write(b"before")
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    async with server, asyncio.timeout(10):
        port = server.sockets[0].getsockname()[1]
        await asyncio.get_running_loop().create_connection(lambda: wire, "127.0.0.1", port)
        assert await lost is None  # the server closes at once
        await wire.writable()
    wire.write(b"after")
    wire.rest(0.001)
    wire.close()
    wire.abort()
    assert received == []


async def test_what_arrives_during_a_rest_is_collected_at_once() -> None:
    received: list[bytes] = []
    wire = Wire(on_bytes=received.append, on_lost=lambda _: None)
    peer: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda _, writer: peer.set_result(writer), "127.0.0.1", 0)
    async with server, asyncio.timeout(60):
        port = server.sockets[0].getsockname()[1]
        await asyncio.get_running_loop().create_connection(lambda: wire, "127.0.0.1", port)
        writer = await peer
        await wire.collect()  # it does not rest, so there is nothing to end
        wire.rest(1e6)
        wire.rest(1e6)
        writer.write(b"waits")
        await writer.drain()
        while not received:  # the system may need a moment; a collection is never too many
            wire.rest(1e6)
            await wire.collect()
        assert received == [b"waits"]
        writer.close()
        wire.close()

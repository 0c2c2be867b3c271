"""The wire without a connection: before it is made, and after it is lost."""

import asyncio

from anonymizer.transport.wire import READ_BYTES, Wire


async def test_without_a_connection_bytes_are_dropped_and_no_writer_waits() -> None:
    received: list[bytes] = []
    lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    wire = Wire(on_bytes=received.append, on_lost=lost.set_result)
    wire.write(b"before")
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    async with server, asyncio.timeout(60):
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


class _Plenty(asyncio.Transport):
    """Has several full reads for a wire, one a turn, while the wire reads."""

    def __init__(self, wire: Wire, *, sizes: list[int]) -> None:
        super().__init__()
        self._wire = wire
        self._sizes = sizes
        self._reads = False

    def resume_reading(self) -> None:
        if not self._reads:
            self._reads = True
            asyncio.get_running_loop().call_soon(self._read)

    def pause_reading(self) -> None:
        self._reads = False

    def is_closing(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def _read(self) -> None:
        if self._reads and self._sizes:
            asyncio.get_running_loop().call_soon(self._read)
            self._wire.data_received(bytes(self._sizes.pop(0)))


async def test_a_collection_reads_on_while_reads_are_full() -> None:
    received: list[int] = []
    wire = Wire(on_bytes=lambda data: received.append(len(data)), on_lost=lambda _: None)
    sizes = [READ_BYTES, READ_BYTES, READ_BYTES, 5]
    wire.connection_made(_Plenty(wire, sizes=list(sizes)))
    wire.rest(1e6)
    await wire.collect()
    assert received == sizes

"""No client that sends half a request, or reads no answer, can take the place of others."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from prometheus_client import CollectorRegistry

from anonymizer.settings import HttpSettings
from anonymizer.web import HttpServer, create_application
from anonymizer.web.connections import LIMITS, Limits
from anonymizer.web.server import MAX_REQUESTS, PROBES
from tests.end_to_end import DEADLINE_S

HALF_HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
HALF_BODY = b"POST /swallow HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nfour"
HUGE = bytes(16_000_000)


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


class Site:
    """Health and metrics, a route that takes a body, a huge answer, and one without end."""

    def __init__(self, limits: Limits) -> None:
        self.begun = asyncio.Semaphore(0)
        self.ended = asyncio.Event()
        application = create_application(CollectorRegistry(), alive=list, ready=list)
        self._add_routes(application)
        self.server = HttpServer(application, HttpSettings(port=0), limits=limits)
        self._open = AsyncExitStack()

    def _add_routes(self, application: FastAPI) -> None:
        @application.post("/swallow")
        async def swallow(request: Request) -> int:
            return len(await request.body())

        @application.get("/huge")
        async def huge() -> Response:
            self.begun.release()
            return Response(HUGE)

        @application.get("/frames")
        async def frames() -> StreamingResponse:
            async def some() -> AsyncIterator[bytes]:
                self.begun.release()
                try:
                    while True:
                        yield bytes(20_000)
                        await asyncio.sleep(0.005)
                finally:
                    self.ended.set()

            return StreamingResponse(some())

        @application.get("/endless")
        async def endless() -> None:
            self.begun.release()
            await asyncio.Event().wait()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        async with asyncio.timeout(DEADLINE_S), self.server.serving(), self._open:
            yield

    async def send(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection, and send this on it."""
        parts = urlsplit(self.server.url)
        end = socket.socket()
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)  # leaves the rest to the server
        end.connect((parts.hostname, parts.port))
        reader, writer = await asyncio.open_connection(sock=end)
        self._open.callback(writer.close)
        writer.write(data)
        await writer.drain()
        return reader, writer

    async def status(self, path: str) -> int:
        async with httpx.AsyncClient(base_url=self.server.url, timeout=DEADLINE_S) as client:
            return (await client.get(path)).status_code


@asynccontextmanager
async def site(limits: Limits = LIMITS) -> AsyncIterator[Site]:
    made = Site(limits)
    async with made.serving():
        yield made


async def until_closed(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(65_536):
            pass
    except ConnectionResetError:
        pass


@pytest.mark.parametrize("sent", [b"", HALF_HEAD, HALF_BODY])
async def test_hundreds_of_half_sent_requests_keep_no_probe_from_its_answer(sent: bytes) -> None:
    async with site() as at:
        for _ in range(400):
            await at.send(sent)
        for path in PROBES:
            assert await at.status(path) == 200


async def test_clients_that_read_no_answer_keep_no_probe_from_its_answer() -> None:
    async with site(Limits(connections=20)) as at:
        for _ in range(25):
            await at.send(get("/huge"))
            await at.begun.acquire()
        for path in PROBES:
            assert await at.status(path) == 200


async def test_requests_beyond_the_limit_are_refused_but_probes_are_not() -> None:
    async with site() as at:
        for _ in range(MAX_REQUESTS):
            await at.send(get("/endless"))
        for _ in range(MAX_REQUESTS):
            await at.begun.acquire()
        assert await at.status("/endless") == 503
        for path in PROBES:
            assert await at.status(path) == 200


async def test_the_connection_that_has_waited_longest_makes_room() -> None:
    async with site(Limits(connections=3)) as at:
        at_work = await at.send(get("/endless"))
        await at.begun.acquire()
        first, second = await at.send(HALF_HEAD), await at.send(HALF_HEAD)
        await at.send(HALF_HEAD)
        await until_closed(first[0])
        second[1].write(b"\r\n")
        assert (await second[0].readline()).startswith(b"HTTP/1.1 200 ")
        assert not at_work[0].at_eof()


@pytest.mark.parametrize("sent", [b"", HALF_HEAD, HALF_BODY, get("/healthz")])
async def test_a_request_that_does_not_end_in_time_ends_its_connection(sent: bytes) -> None:
    async with site(Limits(request_s=0.2)) as at:
        await until_closed((await at.send(sent))[0])


async def test_a_head_that_comes_byte_by_byte_has_no_more_time_than_another() -> None:
    async with site(Limits(request_s=0.3)) as at:
        reader, writer = await at.send(HALF_HEAD)

        async def dribble() -> None:
            while True:
                writer.write(b"x")
                await asyncio.sleep(0.01)

        slowly = asyncio.create_task(dribble())
        await until_closed(reader)
        slowly.cancel()


async def test_an_answer_that_takes_longer_than_a_request_may_is_given() -> None:
    async with site(Limits(request_s=0.1)) as at:
        reader, writer = await at.send(get("/endless"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.4)
        assert not writer.is_closing()


async def test_a_client_that_reads_nothing_is_given_up_and_a_slow_one_is_served() -> None:
    async with site(Limits(read_s=5.0)) as at:  # a busy machine stands still for seconds
        idle, _ = await at.send(get("/huge"))
        slow, _ = await at.send(get("/huge"))
        n = 0
        while n < len(HUGE):
            part = await slow.read(100_000)
            assert part, "the slow one was given up"
            n += len(part)
            await asyncio.sleep(0.005)
        await asyncio.sleep(10.0)
        # What the kernel held of the other answer can be read; the rest was given up.
        n = 0
        try:
            while part := await idle.read(1_000_000):
                n += len(part)
        except ConnectionResetError:
            pass
        assert n < len(HUGE)


async def test_a_viewer_that_never_reads_loses_its_place_in_time() -> None:
    """Frames come one by one, and the buffers of the system must not pass for a reader."""
    async with site(Limits(read_s=2.0)) as at:
        await at.send(get("/frames"))
        await at.begun.acquire()
        await at.ended.wait()

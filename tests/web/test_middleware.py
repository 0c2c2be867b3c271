"""What a stranger can make the HTTP side take in is bounded."""

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI, Request

from anonymizer.settings import HttpSettings
from anonymizer.web import HttpServer
from anonymizer.web.middleware import MOST_BYTES


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """Serve an application that reads whatever it is sent, and counts it."""
    application = FastAPI()

    @application.post("/")
    async def swallow(request: Request) -> int:
        return len(await request.body())

    server = HttpServer(application, HttpSettings(port=0))
    async with asyncio.timeout(60), server.serving():
        yield server.url


async def test_a_body_above_the_limit_is_refused_and_one_at_it_is_not(url: str) -> None:
    async with httpx.AsyncClient() as client:
        assert (await client.post(url, content=b"x" * (MOST_BYTES + 1))).status_code == 413
        assert (await client.post(url, content=b"x" * MOST_BYTES)).json() == MOST_BYTES


async def test_a_body_of_a_length_that_is_not_said_is_refused(url: str) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"x"

    async with httpx.AsyncClient() as client:
        assert (await client.post(url, content=parts())).status_code == 411


async def test_a_head_without_end_is_refused(url: str) -> None:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: gateway\r\nX: " + b"x" * 20_000)
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 400 ")
    writer.close()
    await writer.wait_closed()


async def test_no_answer_says_which_server_gave_it(url: str) -> None:
    async with httpx.AsyncClient() as client:
        assert "server" not in (await client.get(url)).headers

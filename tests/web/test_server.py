import asyncio
import signal
import socket

import httpx
import pytest
from fastapi import FastAPI

from anonymizer.errors import SettingsError
from anonymizer.settings import HttpSettings
from anonymizer.web import HttpServer
from anonymizer.web.server import url_of


def greeting() -> FastAPI:
    application = FastAPI()

    @application.get("/")
    async def hello() -> str:
        return "hello"

    return application


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_it_serves_on_a_free_port_while_its_block_runs_and_not_after(host: str) -> None:
    server = HttpServer(greeting(), HttpSettings(host=host, port=0))
    async with asyncio.timeout(10), httpx.AsyncClient() as client:
        async with server.serving():
            assert (await client.get(server.url)).json() == "hello"
        with pytest.raises(httpx.ConnectError):
            await client.get(server.url)


async def test_it_leaves_the_signals_to_the_gateway() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    server = HttpServer(greeting(), HttpSettings(port=0))
    async with asyncio.timeout(10), server.serving(), httpx.AsyncClient() as client:
        await client.get(server.url)
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_an_address_that_is_taken_is_refused_in_one_line_that_names_the_keys() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError) as caught:
            HttpServer(greeting(), HttpSettings(port=port))
    assert str(caught.value) == "http.host, http.port: cannot listen: Address already in use"


def test_a_host_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^http\.host, http\.port: cannot listen: "):
        HttpServer(greeting(), HttpSettings(host="no such host", port=0))


def test_the_url_of_an_ipv6_address_has_its_brackets() -> None:
    assert url_of("::1", 8080) == "http://[::1]:8080"
    assert url_of("127.0.0.1", 80) == "http://127.0.0.1:80"

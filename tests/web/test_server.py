import asyncio
import signal
import socket
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI, Request
from pydantic import ValidationError

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
    async with asyncio.timeout(60), httpx.AsyncClient(timeout=60) as client:
        async with server.serving():
            assert (await client.get(server.url)).json() == "hello"
        with pytest.raises(httpx.ConnectError):
            await client.get(server.url)


async def test_it_leaves_the_signals_to_the_gateway() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    server = HttpServer(greeting(), HttpSettings(port=0))
    async with asyncio.timeout(60), server.serving(), httpx.AsyncClient(timeout=60) as client:
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


async def whom_it_hears(settings: HttpSettings, **headers: str) -> str:
    """Return the client address that a handler sees."""
    application = FastAPI()

    @application.get("/")
    async def client(request: Request) -> str:
        return request.client.host if request.client else ""

    server = HttpServer(application, settings)
    async with asyncio.timeout(60), server.serving(), httpx.AsyncClient(timeout=60) as http:
        answer = await http.get(server.url, headers=headers)
        return str(answer.json())


@pytest.mark.parametrize(
    ("proxies", "client"),
    [
        ((), "127.0.0.1"),
        (("10.0.0.0/8",), "127.0.0.1"),
        (("127.0.0.1",), "198.51.100.7"),
        (("127.0.0.0/8", "198.51.100.7"), "203.0.113.5"),
    ],
)
async def test_only_a_configured_proxy_is_believed_about_the_client(
    proxies: tuple[str, ...], client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # what uvicorn would believe by itself
    settings = HttpSettings(port=0, trusted_proxies=proxies)
    forwarded = {"X-Forwarded-For": "203.0.113.5, 198.51.100.7"}
    assert await whom_it_hears(settings, **forwarded) == client


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200),
        ("[::1]:8080", 200),
        ("10.1.2.3", 200),
        ("LocalHost:1", 200),
        ("gateway.example", 200),
        ("gateway.example.:8080", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:8080", 421),
        ("", 421),
    ],
)
async def test_a_request_for_another_host_is_refused(host: str, status: int) -> None:
    server = HttpServer(greeting(), HttpSettings(port=0, allowed_hosts=("Gateway.example",)))
    async with asyncio.timeout(60), server.serving(), httpx.AsyncClient(timeout=60) as client:
        assert (await client.get(server.url, headers={"Host": host})).status_code == status


async def test_any_host_is_accepted_on_request_and_a_missing_one_always() -> None:
    server = HttpServer(greeting(), HttpSettings(port=0, allowed_hosts=("*",)))
    async with asyncio.timeout(60), server.serving(), httpx.AsyncClient(timeout=60) as client:
        answer = await client.get(server.url, headers={"Host": "evil.example"})
        assert answer.status_code == 200
    server = HttpServer(greeting(), HttpSettings(port=0))
    parts = urlsplit(server.url)
    async with asyncio.timeout(60), server.serving():
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        assert b" 200 " in await reader.readline()
        writer.close()


@pytest.mark.parametrize(
    "given",
    [
        {"trusted_proxies": ["proxy.example"]},
        {"trusted_proxies": ["10.0.0.1/8"]},
        {"trusted_proxies": ["*"]},
        {"allowed_hosts": ["gateway:8080"]},
        {"allowed_hosts": ["http://gateway"]},
        {"allowed_hosts": [""]},
    ],
)
def test_a_proxy_is_an_address_and_a_host_is_a_name(given: dict[str, list[str]]) -> None:
    with pytest.raises(ValidationError):
        HttpSettings.model_validate(given)

"""What a stranger can make the HTTP side take in is bounded."""

import asyncio
import socket
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Request
from prometheus_client import CollectorRegistry

from anonymizer.settings import HttpSettings
from anonymizer.web import HttpServer, create_application
from anonymizer.web.auth import address_of
from anonymizer.web.middleware import MOST_BYTES
from anonymizer.web.network_file import network_router
from anonymizer.web.server import WRONG_TOKENS_PER_MINUTE

TOKEN = "open sesame"  # noqa: S105  of no importance


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
    async with httpx.AsyncClient(timeout=60) as client:
        assert (await client.post(url, content=b"x" * (MOST_BYTES + 1))).status_code == 413
        assert (await client.post(url, content=b"x" * MOST_BYTES)).json() == MOST_BYTES


async def test_a_body_of_a_length_that_is_not_said_is_refused(url: str) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"x"

    async with httpx.AsyncClient(timeout=60) as client:
        assert (await client.post(url, content=parts())).status_code == 411


async def answer_to(url: str, *sent: bytes) -> tuple[int, dict[str, str]]:
    """Return status and headers of the answer to these bytes on one connection."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        for data in sent:
            writer.write(data)
            await writer.drain()
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        return int(first.split()[1]), {name.lower(): value for name, value in headers.items()}
    finally:
        writer.close()


FIRST = b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"], ids=["incomplete", "complete"])
@pytest.mark.parametrize("filler", [b"x", b" "])
@pytest.mark.parametrize("n_bytes", [16_385, 20_000, 200_000, 2_000_000])
async def test_a_head_above_the_limit_is_refused_whether_complete_or_not(
    n_bytes: int, filler: bytes, end: bytes, url: str
) -> None:
    head = FIRST + b"X: "
    head += filler * (n_bytes - len(head) - len(end)) + end
    status, headers = await answer_to(url, head)
    assert (status, headers["connection"]) == (431, "close")
    assert "default-src 'none'" in headers["content-security-policy"]


async def test_who_is_still_sending_when_refused_can_read_why(url: str) -> None:
    parts = urlsplit(url)

    def ask() -> bytes:
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # so that sending waits
            one.connect((parts.hostname, parts.port))
            one.sendall(FIRST + b"X: " + b"x" * 600_000)  # it raises if the connection is reset
            return one.recv(100)

    assert (await asyncio.to_thread(ask)).startswith(b"HTTP/1.1 431 ")


async def test_a_head_at_the_limit_is_read_in_one_piece_and_in_several(url: str) -> None:
    head = FIRST + b"X: "
    head += b"x" * (16_384 - len(head) - 4) + b"\r\n\r\n"
    assert (await answer_to(url, head))[0] == 404
    assert (await answer_to(url, head[:9000], head[9000:]))[0] == 404
    late = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000\r\n\r\n"
    assert (await answer_to(url, late + b"x" * 60_000))[0] == 200, "the body is none of the head"


async def test_the_second_head_of_a_connection_is_bounded_like_the_first(url: str) -> None:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(FIRST + b"\r\n" + FIRST + b"X: " + b"x" * 20_000 + b"\r\n\r\n")
    answers = await reader.read()
    assert answers.startswith(b"HTTP/1.1 404 ")
    assert b"HTTP/1.1 431 " in answers
    writer.close()
    await writer.wait_closed()


async def test_every_answer_has_the_security_headers_errors_too() -> None:
    application = create_application(CollectorRegistry(), alive=list, ready=list, token=TOKEN)
    application.add_api_route("/breaks", _breaks)
    server = HttpServer(application, HttpSettings(port=0, allowed_hosts=("gateway",)))
    get = b"GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n"
    asked = {
        200: get % (b"/healthz", b"gateway", b""),
        404: get % (b"/nowhere", b"gateway", b""),
        405: b"PUT /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n",
        411: b"POST / HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: chunked\r\n\r\n",
        413: b"POST / HTTP/1.1\r\nHost: gateway\r\nContent-Length: 99999\r\n\r\n",
        421: get % (b"/", b"elsewhere", b""),
        431: get % (b"/", b"gateway", b"X: " + b"x" * 20_000 + b"\r\n"),
        400: b"\x16\x03\x01 no HTTP\r\n\r\n",
        500: get % (b"/breaks", b"gateway", b""),
        501: b"POST / HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: gzip\r\n\r\n",
    }
    async with asyncio.timeout(60), server.serving():
        for wanted, request in asked.items():
            status, headers = await answer_to(server.url, request)
            assert status == wanted
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["referrer-policy"] == "no-referrer"


async def _breaks() -> None:
    raise RuntimeError("of this test")


class Clock:
    """Stands still until it is set."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


async def test_wrong_tokens_are_limited_by_address_on_every_route() -> None:
    clock = Clock()
    registry = CollectorRegistry()
    application = create_application(
        registry, alive=list, ready=list, exact=registry, token=TOKEN, more=[_network()]
    )
    settings = HttpSettings(port=0, trusted_proxies=("127.0.0.1",))
    server = HttpServer(application, settings, monotonic=clock)
    right, wrong = ({"Authorization": f"Bearer {each}"} for each in (TOKEN, "guess"))
    at = {"X-Forwarded-For": "192.0.2.7"}
    async with (
        asyncio.timeout(60),
        server.serving(),
        httpx.AsyncClient(base_url=server.url) as client,
    ):

        async def asked(path: str, headers: dict[str, str]) -> int:
            return (await client.get(path, headers=headers)).status_code

        for _ in range(3 * WRONG_TOKENS_PER_MINUTE):
            assert await asked("/api/network", right | at) == 200, "right ones are not counted"
            assert await asked("/api/network", at) == 401, "none at all is no guess"
        for i in range(WRONG_TOKENS_PER_MINUTE):
            assert await asked(("/metrics", "/api/network")[i % 2], wrong | at) == 401
        for path in ("/metrics", "/api/network", "/healthz"):
            assert await asked(path, wrong | at) == (200 if path == "/healthz" else 429)
            assert await asked(path, right | at) == 200, "right ones are never limited"
        answer = await client.get("/metrics", headers=wrong | at)
        assert answer.headers["retry-after"] == "3"
        assert await asked("/metrics", at) == 200, "who shows no token is not concerned"
        assert await asked("/metrics", right | {"X-Forwarded-For": "192.0.2.8"}) == 200
        clock.now_s = 3.0
        assert await asked("/api/network", wrong | at) == 401


def _network() -> APIRouter:
    return network_router(lambda: b"{}", token=TOKEN)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:1:2:3", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("a name", "a name"),
    ],
)
def test_an_ipv6_network_of_64_bits_counts_as_one_address(host: str, address: str) -> None:
    assert address_of({"client": (host, 1)} if host else {"client": None}) == address


async def test_no_answer_says_which_server_gave_it(url: str) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        assert "server" not in (await client.get(url)).headers

"""ASGI middleware: which requests are accepted; and the security headers of all responses."""

import math
from collections.abc import Container, Iterable
from http import HTTPStatus
from ipaddress import ip_address

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anonymizer.web.auth import RateLimit, address_of

MOST_BYTES = 65_536


class BodyLimit:
    """Rejects requests whose body is above the limit or does not state its length.

    Notes
    -----
    The server reads no more than the stated length, so checking that length is enough.
    """

    def __init__(self, app: ASGIApp, *, most_bytes: int = MOST_BYTES) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        refusal = self._refusal(dict(scope.get("headers", ())))
        if scope["type"] == "http" and refusal is not None:
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, headers: dict[bytes, bytes]) -> PlainTextResponse | None:
        close = {"Connection": "close"}  # the body, if sent nevertheless, is not read
        if b"transfer-encoding" in headers:
            return PlainTextResponse("the request must state the length of its body", 411, close)
        if int(headers.get(b"content-length", b"0")) > self._most_bytes:
            return PlainTextResponse("the body is too large", 413, close)
        return None


class HostCheck:
    """Rejects requests that address the server by a name that is not its own.

    A page of another site can make a browser send requests here by resolving the site's name to
    this address (DNS rebinding). Such requests have that name in their `Host` header. They never
    have an address there, so any address is accepted.

    `names`: names of the server besides `localhost`; `*` stands for any name.
    """

    def __init__(self, app: ASGIApp, *, names: Iterable[str]) -> None:
        self._app = app
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and not self._accepts(dict(scope["headers"]).get(b"host")):
            answer = PlainTextResponse("this host name is not in http.allowed_hosts", 421)
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _accepts(self, header: bytes | None) -> bool:
        if header is None or "*" in self._names:  # no browser leaves the header out
            return True
        name = host_name(header.decode("latin-1"))
        return name in self._names or _is_address(name)


def host_name(header: str) -> str:
    """Return the name or address in a `Host` header, without its port and in lower case."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].rstrip(".").lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class RequestLimit:
    """Rejects requests while too many others are in progress.

    `exempt`: paths whose requests are always accepted and do not count.
    """

    def __init__(self, app: ASGIApp, *, most: int, exempt: Container[str]) -> None:
        self._app = app
        self._most = most
        self._exempt = exempt
        self._n = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["path"] in self._exempt:
            await self._app(scope, receive, send)
        elif self._n >= self._most:
            answer = PlainTextResponse(
                "too many requests are in progress", 503, {"Retry-After": "10"}
            )
            await answer(scope, receive, send)
        else:
            self._n += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._n -= 1


class GuessLimit:
    """Answers 429 to further wrong tokens from an address that has shown too many of them.

    Parameters
    ----------
    limit
        Of wrong tokens from an address.

    Notes
    -----
    Who shows the right token is answered, whoever else shares the address: a token is too long to
    be guessed, and the limit only saves the work.
    """

    def __init__(self, app: ASGIApp, *, limit: RateLimit) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or b"authorization" not in dict(scope["headers"]):
            await self._app(scope, receive, send)
            return
        address = address_of(scope)
        wait_s = self._limit.wait_s(address)
        is_refused = False

        async def watched(message: Message) -> None:
            nonlocal is_refused
            if message.get("status") == HTTPStatus.UNAUTHORIZED:
                is_refused = wait_s > 0
                if not is_refused:
                    self._limit.count(address)
            if not is_refused:
                await send(message)

        await self._app(scope, receive, watched)
        if is_refused:
            headers = {"Retry-After": str(math.ceil(wait_s))}
            answer = PlainTextResponse("too many wrong tokens from this address", 429, headers)
            await answer(scope, receive, send)


SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "geolocation=(), camera=(), microphone=(), payment=(), usb=()",
}
"""Of every response: nothing from other hosts, nothing inline, no framing."""

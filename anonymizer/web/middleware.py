"""ASGI middleware: a limit for the size of request bodies, and security headers for responses."""

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 65_536


class BodyLimit:
    """Rejects requests whose body is above the limit or does not state its length.

    Parameters
    ----------
    app
        The application that receives the other requests.
    most_bytes
        The largest body that is accepted.

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


_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "geolocation=(), camera=(), microphone=(), payment=(), usb=()",
}


def content_security_policy(tiles_from: str | None = None) -> str:
    """Return the policy: nothing from other hosts, nothing inline, no framing.

    Parameters
    ----------
    tiles_from
        One further origin from which images may be loaded. None: there is none.
    """
    pictures = " ".join(filter(None, ("'self' data:", tiles_from)))
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            f"img-src {pictures}",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


class SecurityHeaders:
    """Adds the headers to every response, without buffering, so that streams keep streaming."""

    def __init__(self, app: ASGIApp, *, tiles_from: str | None = None) -> None:
        self._app = app
        self._headers = _HEADERS | {"Content-Security-Policy": content_security_policy(tiles_from)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)

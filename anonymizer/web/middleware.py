"""No request may send more than any question needs.

What every answer tells a browser that it must not do.
"""

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 65_536


class BodyLimit:
    """Refuses requests whose body is above the limit, or of a length that is not announced.

    Parameters
    ----------
    app
        What it stands before.
    most_bytes
        The largest body that is let through.

    Notes
    -----
    That no more comes than was announced is the server's business, which reads by that length.
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
        close = {"Connection": "close"}  # what it sends all the same is not read
        if b"transfer-encoding" in headers:
            return PlainTextResponse("the length of the body must be said", 411, close)
        if int(headers.get(b"content-length", b"0")) > self._most_bytes:
            return PlainTextResponse("the body is too large", 413, close)
        return None


_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "geolocation=(), camera=(), microphone=(), payment=(), usb=()",
}


def content_security_policy(tiles_from: str | None = None) -> str:
    """Return the policy: nothing from outside, nothing inline, in nobody's frame.

    Parameters
    ----------
    tiles_from
        The one origin that pictures may come from beside our own. None: there is none.
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
    """Adds the headers to every answer; nothing is buffered, so that streams stay streams."""

    def __init__(self, app: ASGIApp, *, tiles_from: str | None = None) -> None:
        self._app = app
        self._headers = _ALWAYS | {"Content-Security-Policy": content_security_policy(tiles_from)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)

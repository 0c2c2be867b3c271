"""No request may send more than any question needs."""

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

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

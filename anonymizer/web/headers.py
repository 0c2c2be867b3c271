"""What every answer tells a browser that it must not do."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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

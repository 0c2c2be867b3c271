"""An HTTP server that lives in the caller's event loop and leaves the signals alone."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from fastapi import FastAPI

from anonymizer.errors import SettingsError
from anonymizer.settings import HttpSettings
from anonymizer.web.middleware import BodyLimit

_GRACE_S = 1
"""For requests that are under way when the gateway goes."""
_MOST_CONNECTIONS = 256
"""Onlookers of the map keep one each; further ones are told 503."""
_MOST_HEAD_BYTES = 16_384
"""Of the request line and the headers."""
_IDLE_S = 5
"""Between two requests on one connection."""


class _QuietServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave SIGTERM to the gateway, which drains before it goes."""
        yield


class HttpServer:
    """Serves an application at the configured address.

    Attributes
    ----------
    url
        Where it listens, with the port that was really taken.
    """

    def __init__(self, application: FastAPI, settings: HttpSettings) -> None:
        self._socket = _listen(settings)
        self.url = url_of(settings.host, self._socket.getsockname()[1])
        self._server = _QuietServer(
            uvicorn.Config(
                BodyLimit(application),
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=_GRACE_S,
                http="h11",  # the one that bounds the head
                limit_concurrency=_MOST_CONNECTIONS,
                h11_max_incomplete_event_size=_MOST_HEAD_BYTES,
                timeout_keep_alive=_IDLE_S,
                server_header=False,
            )
        )

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve while the block runs."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._server.serve(sockets=[self._socket]), name="http")
            try:
                yield
            finally:
                self._server.should_exit = True


def url_of(host: str, port: int) -> str:
    """Return the address of a server; an IPv6 host needs brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listen(settings: HttpSettings) -> socket.socket:
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        reason = error.strerror or "unusable address"
        if error.errno and not isinstance(error, socket.gaierror):
            reason = os.strerror(error.errno)  # the words of create_server repeat the address
        raise SettingsError(f"http.host, http.port: cannot listen: {reason}") from None

"""An HTTP server that lives in the caller's event loop and leaves the signals alone.

Health and metrics over HTTP, and what else is to be served.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from fastapi import APIRouter, FastAPI, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from pydantic import BaseModel, Field

from anonymizer import __version__
from anonymizer.errors import SettingsError
from anonymizer.settings import HttpSettings
from anonymizer.web.middleware import BodyLimit, SecurityHeaders

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


class Health(BaseModel):
    """How the gateway is; `problems` is empty when all is well."""

    status: str = Field(examples=["ok"])
    problems: list[str] = Field(examples=[["broker: not connected"]])


def create_application(
    registry: CollectorRegistry,
    *,
    alive: Callable[[], list[str]],
    ready: Callable[[], list[str]],
    more: Sequence[APIRouter] = (),
    tiles_from: str | None = None,
) -> FastAPI:
    """Return the application.

    Parameters
    ----------
    registry
        What `/metrics` exports.
    alive, ready
        What stands against being alive (restart it) and ready (send it traffic), in a few
        words each; empty when nothing does.
    more
        Further routes.
    tiles_from
        The one origin outside that a page may take pictures from. None: there is none.
    """
    application = FastAPI(title="anonymizer", version=__version__, docs_url=None, redoc_url=None)
    application.add_middleware(SecurityHeaders, tiles_from=tiles_from)
    for router in more:
        application.include_router(router)

    # Coroutines all, so that they run on the loop, between ticks: from a thread, a scrape would
    # see the counts of half a tick.

    def report(problems: list[str], response: Response) -> Health:
        response.status_code = 503 if problems else 200
        return Health(status="failing" if problems else "ok", problems=problems)

    @application.get("/healthz", responses={503: {"model": Health}})
    async def healthz(response: Response) -> Health:
        """Whether the gateway works at all."""
        return report(alive(), response)

    @application.get("/readyz", responses={503: {"model": Health}})
    async def readyz(response: Response) -> Health:
        """Whether the gateway can take traffic now."""
        return report(ready(), response)

    @application.get("/metrics", response_class=Response)
    async def metrics(request: Request) -> Response:
        """Prometheus metrics, in the format the scraper asks for."""
        encoder, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encoder(registry), media_type=content_type)

    return application

"""HTTP server of the gateway: health, metrics and further routes.

It runs in the event loop of the caller and does not handle signals.
"""

import asyncio
import math
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from pydantic import BaseModel, Field
from starlette.types import Receive, Scope, Send

from anonymizer import __version__
from anonymizer.errors import SettingsError
from anonymizer.settings import HttpSettings
from anonymizer.web.auth import RateLimit, bearer, is_operator
from anonymizer.web.connections import LIMITS, Limits, protocol
from anonymizer.web.middleware import (
    SECURITY_HEADERS,
    BodyLimit,
    GuessLimit,
    HostCheck,
    RequestLimit,
)

_GRACE_S = 1
"""Time for requests in progress when the gateway stops."""
MAX_REQUESTS = 256
"""Requests in progress; each viewer of the map is one. Further requests are answered with 503."""
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that are answered whatever the number of requests in progress."""
WRONG_TOKENS_PER_MINUTE = 20
"""Requests with a wrong token from one address; further requests that show one get 429."""
_METRICS_S = 1.0
"""How long metrics are not computed again: a flood of scrapes must not delay a tick."""
_IDLE_S = 5
"""Longest time between two requests on one connection."""


_OPENMETRICS = "application/openmetrics-text"


class _QuietServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave SIGTERM to the gateway, which drains before it stops."""
        yield


class HttpServer:
    """Serves an application at the configured address.

    Parameters
    ----------
    application
        The application, until `show` is called with another one.
    settings
        Address, and the clients that are accepted.
    """

    def __init__(
        self,
        application: FastAPI,
        settings: HttpSettings,
        *,
        limits: Limits = LIMITS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application = application
        guesses = RateLimit(WRONG_TOKENS_PER_MINUTE, monotonic=monotonic)
        guarded = GuessLimit(self._answer, limit=guesses)
        limited = RequestLimit(guarded, most=MAX_REQUESTS, exempt=PROBES)
        named = HostCheck(limited, names=(settings.host, *settings.allowed_hosts))
        self._socket = _listen(settings)
        self.url = url_of(settings.host, self._socket.getsockname()[1])
        """Address of the server, with the actual port."""
        self._server = _QuietServer(
            uvicorn.Config(
                BodyLimit(named),
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=_GRACE_S,
                http=protocol(limits),
                ws="none",
                proxy_headers=bool(settings.trusted_proxies),
                forwarded_allow_ips=list(settings.trusted_proxies),
                timeout_keep_alive=_IDLE_S,
                server_header=False,
                # Of the server, not of the application: an answer to no request has them, too.
                headers=list(SECURITY_HEADERS.items()),
            )
        )

    def show(self, application: FastAPI) -> None:
        """Answer requests with another application from now on."""
        self._application = application

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)

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
            reason = os.strerror(error.errno)  # the text of create_server repeats the address
        raise SettingsError(f"http.host, http.port: cannot listen: {reason}") from None


class Health(BaseModel):
    """State of the gateway; `problems` is empty if there are none."""

    status: str = Field(examples=["ok"])
    problems: list[str] = Field(examples=[["broker: not connected"]])
    notes: list[str] = Field(default=[], examples=[["positions: nothing has arrived yet"]])
    """What may be as it should be."""


def create_application(
    registry: CollectorRegistry,
    *,
    alive: Callable[[], list[str]],
    ready: Callable[[], list[str]],
    notes: Callable[[], list[str]] = list,
    exact: CollectorRegistry | None = None,
    token: str | None = None,
    acknowledge: Callable[[], None] | None = None,
    more: Sequence[APIRouter] = (),
    monotonic: Callable[[], float] = time.monotonic,
) -> FastAPI:
    """Return the application.

    Parameters
    ----------
    registry
        Metrics that `/metrics` exports to anybody.
    exact, token
        Metrics that it exports to requests with this bearer token; None: there are none.
    alive, ready
        Return the reasons why the gateway is not alive (restart it) or not ready (send it no
        traffic), a few words each; empty if there are none.
    notes
        Returns what else `/readyz` tells, which is no reason.
    acknowledge
        Called when the bearer of the token has seen the losses that `ready` names. None: it names
        none.
    """
    application = FastAPI(title="anonymizer", version=__version__, docs_url=None, redoc_url=None)
    for router in more:
        application.include_router(router)

    # All routes are coroutines, so that they run on the loop between ticks: a scrape from a thread
    # would see the counts of half a tick.

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
        return report(ready(), response).model_copy(update={"notes": notes()})

    if acknowledge is not None and token is not None:

        @application.post("/acknowledge", status_code=204, dependencies=[Depends(bearer(token))])
        async def acknowledged() -> None:
            """Say that an operator has seen the loss that `/readyz` names."""
            acknowledge()

    computed: dict[tuple[str, bool], tuple[bytes, float]] = {}

    @application.get("/metrics", response_class=Response)
    async def metrics(request: Request) -> Response:
        """Prometheus metrics of the last second, as text or in the OpenMetrics format.

        Counts of positions and records are exact for the bearer of the token alone.
        """
        chosen = registry
        if exact is not None and is_operator(request, token):
            chosen = exact
        # Two formats alone, whatever versions a scraper lists, so that it cannot evade the cache.
        wanted = _OPENMETRICS if _OPENMETRICS in request.headers.get("accept", "") else ""
        encoder, content_type = choose_encoder(wanted)
        key = wanted, chosen is exact
        content, at_s = computed.get(key, (b"", -math.inf))
        if monotonic() - at_s >= _METRICS_S:
            content = encoder(chosen)
            computed[key] = content, monotonic()
        return Response(content, media_type=content_type)

    return application

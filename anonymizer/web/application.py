"""Health and metrics over HTTP, and what else is to be served."""

from collections.abc import Callable, Sequence

from fastapi import APIRouter, FastAPI, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from pydantic import BaseModel, Field

from anonymizer import __version__
from anonymizer.web.headers import SecurityHeaders


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

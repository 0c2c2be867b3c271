"""Routes of the live map: the page with its static files, the road network and the frames.

Frames are sent as server-sent events, which pass through proxies. The page reads them with `fetch`,
because an `EventSource` cannot send a token. Static files are served from memory, so a request
cannot escape from their folder. Nothing is loaded from other hosts.
"""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Sequence
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from math import ceil
from typing import Annotated, Any, Literal, Protocol

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from anonymizer.web.auth import address_of, bearer
from anonymizer.web.network_outline import Bounds, Outline

_TYPE_OF = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    "": "text/plain; charset=utf-8",
}
_MIN_COMPRESSED_BYTES = 1400
"""Smaller content fits into one packet anyway."""


class Asset:
    """Content that does not change while the gateway runs, compressed once, with an ETag."""

    def __init__(self, content: bytes, media_type: str = "application/octet-stream") -> None:
        self._content = content
        compressible = len(content) > _MIN_COMPRESSED_BYTES
        self._compressed = gzip.compress(content, 6, mtime=0) if compressible else None
        self._media_type = media_type
        self._etag = f'"{blake2b(content, digest_size=12).hexdigest()}"'

    def answer(self, request: Request) -> Response:
        """Return the content, compressed if the client accepts that, or 304 if it is unchanged."""
        headers = {"ETag": self._etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == self._etag:
            return Response(status_code=304, headers=headers)
        content = self._content
        if self._compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            content = self._compressed
            headers["Content-Encoding"] = "gzip"
        return Response(content, media_type=self._media_type, headers=headers)


def read_assets() -> dict[str, Asset]:
    """Return the files of the live map by their path below `static/`."""
    return dict(_assets_in(files("anonymizer.web") / "static", ""))


def _assets_in(folder: Traversable, path: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for entry in folder.iterdir():
        name = f"{path}{entry.name}"
        if entry.is_dir():
            found += _assets_in(entry, f"{name}/")
        else:
            suffix = f".{entry.name.rpartition('.')[2]}" if "." in entry.name else ""
            found.append((name, Asset(entry.read_bytes(), _TYPE_OF[suffix])))
    return found


Latitude = Annotated[float, Query(ge=-90, le=90)]
Longitude = Annotated[float, Query(ge=-180, le=180)]


Shown = Literal["public", "truth", "density"]
"""What is seen beside what is published: nothing, or for auditors true positions or their density.
"""


class FrameSource(Protocol):
    """Source of the frames that the live map shows."""

    @property
    def modes(self) -> Sequence[str]:
        """Modes of cloaking that can be shown; the published one comes first."""

    @property
    def raw(self) -> bool:
        """Whether true positions may be shown."""

    @property
    def is_full(self) -> bool:
        """Whether the largest number of viewers is reached."""

    def has_enough(self, address: str) -> bool:
        """Return whether the largest number of viewers at an address is reached."""

    def frames(self, mode: str, *, shown: Shown, address: str) -> AsyncIterator[bytes]:
        """Yield server-sent events, always the newest one, until the gateway stops."""


class KOfDensity(BaseModel):
    """The k of densities below a number (None: of all others), and the k that ADKA publishes."""

    below: int | None
    k: int
    published: int


class LastWindow(BaseModel):
    """The newest published window of a stream of records, times in unix seconds.

    Attributes
    ----------
    stream
        Its name.
    title, promise
        What its model is called, and what each row promises, as a sentence.
    start, end
        Of the window; None: none has been published yet, and there are no classes.
    n_records, n_published, n_classes
        Its records, those in classes, and its classes.
    classes
        The first of them, as they were published.
    """

    stream: str
    title: str
    promise: str
    start: float | None = None
    end: float | None = None
    n_records: int = 0
    n_published: int = 0
    n_classes: int = 0
    classes: list[dict[str, Any]] = []


class About(BaseModel):
    """Description of the map that the page loads first."""

    modes: list[str]
    raw: bool
    demo: bool
    bounds: Bounds
    n_nodes: int
    roads: Literal["whole", "by bounds"]
    streets: bool
    records: bool
    rule: list[KOfDensity]
    first_s: int


class Notice(BaseModel):
    """What everybody may know who comes upon the map: who runs it, and how to take no part.

    Attributes
    ----------
    run_by, opt_out
        In the operator's own words; empty: nothing is said.
    devices_may
        Whether devices can state that they take no part.
    demo
        Whether the devices are simulated.
    """

    run_by: str = ""
    opt_out: str = ""
    devices_may: bool = False
    demo: bool = False


def map_router(
    source: FrameSource,
    outline: Outline,
    *,
    rule: Callable[[], Sequence[KOfDensity]] = list,
    first_s: float = 0.0,
    notice: Notice | None = None,
    token: str | None = None,
    streets: bool = False,
    windows: Callable[[], Sequence[LastWindow]] | None = None,
) -> APIRouter:
    """Return the routes of the map.

    Parameters
    ----------
    source
        Source of the frames.
    outline
        The road network.
    rule
        Returns how density decides k at present.
    first_s
        About how long it takes until the first regions are published.
    notice
        Who runs the gateway. None: nothing is known, and the devices are real.
    token
        Required for all data; the page and its notice are for everybody. None: not required.
    streets
        Whether traffic by street can be shown.
    windows
        Returns what was published last of each stream of records. None: there are none.
    """
    told = notice or Notice()

    def about() -> About:
        return About(
            modes=list(source.modes),
            raw=source.raw,
            demo=told.demo,
            bounds=outline.bounds,
            n_nodes=len(outline.nodes) // 8,
            roads="whole" if outline.is_small else "by bounds",
            streets=streets,
            records=windows is not None,
            rule=list(rule()),
            first_s=ceil(first_s),
        )

    router = APIRouter(include_in_schema=False)
    router.include_router(_page_routes(told))
    authorized = [Depends(bearer(token))]
    router.include_router(_network_routes(about, outline), dependencies=authorized)
    router.include_router(_frame_routes(source), dependencies=authorized)
    if windows is not None:
        router.include_router(_record_routes(windows), dependencies=authorized)
    return router


def _page_routes(notice: Notice) -> APIRouter:
    """Return the routes of the page, its static files and its notice."""
    router, assets = APIRouter(), read_assets()

    @router.get("/")
    async def page(request: Request) -> Response:
        return assets["index.html"].answer(request)

    @router.get("/map/notice")
    async def who_runs_it() -> Notice:
        return notice

    @router.get("/map/static/{path:path}")
    async def static(path: str, request: Request) -> Response:
        if path not in assets:
            raise HTTPException(404)
        return assets[path].answer(request)

    return router


def _network_routes(about: Callable[[], About], outline: Outline) -> APIRouter:
    """Return the routes of the description and of the road network, which does not change."""
    router, nodes = APIRouter(), Asset(outline.nodes)
    whole = Asset(outline.roads()) if outline.is_small else None

    @router.get("/map/about")
    async def description() -> About:
        return about()

    @router.get("/map/nodes")
    async def all_nodes(request: Request) -> Response:
        return nodes.answer(request)

    @router.get("/map/roads")
    async def roads(
        request: Request, south: Latitude, west: Longitude, north: Latitude, east: Longitude
    ) -> Response:
        if whole is not None:
            return whole.answer(request)
        bounds = Bounds(south, west, north, east)
        content = await asyncio.to_thread(outline.roads, bounds)
        return Response(content, media_type="application/octet-stream")

    return router


def _frame_routes(source: FrameSource) -> APIRouter:
    """Return the route of the frames."""
    router = APIRouter()

    @router.get("/map/events")
    async def events(
        request: Request,
        mode: str,
        shown: Shown = "public",
    ) -> StreamingResponse:
        if mode not in source.modes or (shown != "public" and not source.raw):
            raise HTTPException(404)
        if source.is_full:
            raise HTTPException(503, "too many viewers", headers={"Retry-After": "10"})
        address = address_of(request.scope)
        if source.has_enough(address):
            raise HTTPException(
                429, "too many viewers at this address", headers={"Retry-After": "10"}
            )
        return StreamingResponse(
            source.frames(mode, shown=shown, address=address),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    return router


def _record_routes(windows: Callable[[], Sequence[LastWindow]]) -> APIRouter:
    """Return the route of the newest published windows."""
    router = APIRouter()

    @router.get("/map/records")
    async def records() -> Sequence[LastWindow]:
        return await asyncio.to_thread(windows)

    return router

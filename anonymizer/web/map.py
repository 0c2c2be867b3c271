"""The live map: one page, and what it asks for. Nothing here comes from anywhere else.

The stream is server-sent events, so that a proxy lets it pass, read with `fetch`, so that it can
carry a token (an `EventSource` cannot).

Files that are served as they are, from memory: there is no path to climb out of.
"""

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Literal, Protocol

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from anonymizer.web.auth import bearer
from anonymizer.web.network_outline import Bounds, Outline

_TYPE_OF = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    "": "text/plain; charset=utf-8",
}
_WORTH_PACKING = 1400
"""Bytes; less fits into one packet anyway."""


class Asset:
    """Something that does not change while the gateway runs.

    Parameters
    ----------
    content
        As it is.
    media_type
        What it is.
    """

    def __init__(self, content: bytes, media_type: str = "application/octet-stream") -> None:
        self._content = content
        self._packed = gzip.compress(content, 6, mtime=0) if len(content) > _WORTH_PACKING else None
        self._media_type = media_type
        self._etag = f'"{blake2b(content, digest_size=12).hexdigest()}"'

    def answer(self, request: Request) -> Response:
        """Return it, packed where the browser can unpack it, or say that nothing has changed."""
        headers = {"ETag": self._etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == self._etag:
            return Response(status_code=304, headers=headers)
        content = self._content
        if self._packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            content = self._packed
            headers["Content-Encoding"] = "gzip"
        return Response(content, media_type=self._media_type, headers=headers)


def read_assets() -> dict[str, Asset]:
    """Return the files of the live map by their path below `static/`."""
    return dict(_below(files("anonymizer.web") / "static", ""))


def _below(folder: Traversable, path: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for entry in folder.iterdir():
        name = f"{path}{entry.name}"
        if entry.is_dir():
            found += _below(entry, f"{name}/")
        else:
            suffix = f".{entry.name.rpartition('.')[2]}" if "." in entry.name else ""
            found.append((name, Asset(entry.read_bytes(), _TYPE_OF[suffix])))
    return found


Latitude = Annotated[float, Query(ge=-90, le=90)]
Longitude = Annotated[float, Query(ge=-180, le=180)]


class Exhibition(Protocol):
    """What there is to see."""

    @property
    def modes(self) -> Sequence[str]:
        """Ways of cloaking that can be looked at, the one that is published first."""

    @property
    def raw(self) -> bool:
        """Whether true positions may be looked at."""

    @property
    def is_full(self) -> bool:
        """Whether there are as many onlookers as there may be."""

    def frames(self, mode: str, *, raw: bool) -> AsyncIterator[bytes]:
        """Yield server-sent events, the newest each time, until the gateway goes."""


class Tiles(BaseModel):
    """Pictures to draw below the roads, from somewhere else."""

    url: str
    attribution: str


class About(BaseModel):
    """What the page needs to know before it can begin."""

    modes: list[str]
    raw: bool
    demo: bool
    bounds: Bounds
    n_nodes: int
    roads: Literal["whole", "by bounds"]
    tiles: Tiles | None


def map_router(
    exhibition: Exhibition,
    outline: Outline,
    *,
    token: str | None = None,
    tiles: Tiles | None = None,
    demo: bool = False,
) -> APIRouter:
    """Return the routes of the map.

    Parameters
    ----------
    exhibition
        Where the frames come from.
    outline
        The road network.
    token
        Needed for all but the page itself, which tells nothing. None: it is not.
    tiles
        None: no request leaves for anywhere else.
    demo
        Whether the devices are made up, which the page then says.
    """
    about = About(
        modes=list(exhibition.modes),
        raw=exhibition.raw,
        demo=demo,
        bounds=outline.bounds,
        n_nodes=len(outline.nodes) // 8,
        roads="whole" if outline.is_small else "by bounds",
        tiles=tiles,
    )
    router = APIRouter(include_in_schema=False)
    router.include_router(_page())
    known = [Depends(bearer(token))]
    router.include_router(_drawing(about, outline), dependencies=known)
    router.include_router(_stream(exhibition), dependencies=known)
    return router


def _page() -> APIRouter:
    """Return the routes to the page itself."""
    router, assets = APIRouter(), read_assets()

    @router.get("/")
    async def page(request: Request) -> Response:
        return assets["index.html"].answer(request)

    @router.get("/map/static/{path:path}")
    async def static(path: str, request: Request) -> Response:
        if path not in assets:
            raise HTTPException(404)
        return assets[path].answer(request)

    return router


def _drawing(about: About, outline: Outline) -> APIRouter:
    """Return the routes to what stays the same."""
    router, nodes = APIRouter(), Asset(outline.nodes)
    whole = Asset(outline.roads()) if outline.is_small else None

    @router.get("/map/about")
    async def what_there_is() -> About:
        return about

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


def _stream(exhibition: Exhibition) -> APIRouter:
    """Return the route to what changes."""
    router = APIRouter()

    @router.get("/map/events")
    async def events(mode: str, raw: bool = False) -> StreamingResponse:  # noqa: FBT001, FBT002  a query parameter
        if mode not in exhibition.modes or (raw and not exhibition.raw):
            raise HTTPException(404)
        if exhibition.is_full:
            raise HTTPException(503, "too many onlookers", headers={"Retry-After": "10"})
        return StreamingResponse(
            exhibition.frames(mode, raw=raw),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    return router

"""Routes of GeoJSON files, for maps and notebooks: the road network, and what outputs make."""

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response

from anonymizer.web.auth import bearer
from anonymizer.web.map import Asset

PATH = "/api/network"
_GEOJSON = "application/geo+json"


def network_router(make: Callable[[], bytes], *, token: str | None = None) -> APIRouter:
    """Return the route of the network.

    Parameters
    ----------
    make
        Returns the file; called in a thread, for the first request.
    token
        Required if it is not None.
    """
    router = APIRouter(dependencies=[Depends(bearer(token))])
    made: list[Asset] = []
    making = asyncio.Lock()

    @router.get(PATH, response_class=Response, responses={200: {"content": {_GEOJSON: {}}}})
    async def network(request: Request) -> Response:
        """Nodes and roads of the network that regions name, as a GeoJSON FeatureCollection."""
        async with making:
            if not made:
                made.append(await asyncio.to_thread(lambda: Asset(make(), _GEOJSON)))
        return made[0].answer(request)

    return router


def file_router(
    path: str,
    newest: Callable[[], bytes | None],
    *,
    what: str,
    when: str = "",
    token: str | None = None,
) -> APIRouter:
    """Return the route of a file that is made anew, window by window.

    Parameters
    ----------
    newest
        Returns the last one, None if there is none yet.
    what
        What it tells, for the description of the API.
    when
        When the first one is there, for who asks before.
    token
        Required if it is not None.
    """
    router = APIRouter(dependencies=[Depends(bearer(token))])
    made: list[tuple[bytes, Asset]] = []
    answers: dict[int | str, dict[str, Any]] = {200: {"content": {_GEOJSON: {}}}}

    @router.get(path, response_class=Response, responses=answers, description=what)
    async def file(request: Request) -> Response:
        content = newest()
        if content is None:
            raise HTTPException(404, f"nothing whole has ended since the start{when}")
        if not made or made[0][0] is not content:
            made[:] = [(content, await asyncio.to_thread(Asset, content, _GEOJSON))]
        return made[0][1].answer(request)

    return router

"""Routes of GeoJSON files, for maps and notebooks: the road network, and the traffic on it."""

import asyncio
from collections.abc import Callable

from fastapi import APIRouter, Depends, HTTPException, Request, Response

from anonymizer.web.auth import bearer
from anonymizer.web.map import Asset

PATH = "/api/network"
STREETS_PATH = "/api/streets"
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


def streets_router(newest: Callable[[], bytes | None], *, token: str | None = None) -> APIRouter:
    """Return the route of traffic by street.

    Parameters
    ----------
    newest
        Returns the file of the last hour, None if there is none yet.
    token
        Required if it is not None.
    """
    router = APIRouter(dependencies=[Depends(bearer(token))])
    made: list[tuple[bytes, Asset]] = []

    @router.get(STREETS_PATH, response_class=Response, responses={200: {"content": {_GEOJSON: {}}}})
    async def streets(request: Request) -> Response:
        """Devices and speeds on streets in the hour that ended last, as a FeatureCollection."""
        content = newest()
        if content is None:
            raise HTTPException(404, "no whole hour has ended since the start")
        if not made or made[0][0] is not content:
            made[:] = [(content, await asyncio.to_thread(Asset, content, _GEOJSON))]
        return made[0][1].answer(request)

    return router

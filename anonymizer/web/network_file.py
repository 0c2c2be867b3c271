"""Route of the road network as one GeoJSON file, for maps and notebooks."""

import asyncio
from collections.abc import Callable

from fastapi import APIRouter, Depends, Request, Response

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

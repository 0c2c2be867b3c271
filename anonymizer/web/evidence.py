"""Findings of the gateway's attacks on its own traffic, over HTTP, for the operator alone."""

from collections.abc import Callable

from fastapi import APIRouter, Depends, HTTPException, Response

from anonymizer.web.auth import bearer


def evidence_router(
    page: Callable[[], str | None], *, ask: Callable[[], None], token: str
) -> APIRouter:
    """Return the routes of evidence.

    Parameters
    ----------
    page
        Returns the newest evidence as HTML; None: there is none yet.
    ask
        Has the newest traffic attacked.
    token
        Only its bearer is answered.
    """
    router = APIRouter(dependencies=[Depends(bearer(token))])

    @router.get("/evidence", response_class=Response, responses={404: {}})
    async def evidence() -> Response:
        """Return what the last attacks on a sample of traffic found, as a page."""
        html = page()
        if html is None:
            raise HTTPException(404, "no sample of traffic has been attacked yet")
        return Response(html, media_type="text/html; charset=utf-8")

    @router.post("/evidence", status_code=202)
    async def attack() -> None:
        """Attack the newest traffic now."""
        ask()

    return router

"""The toll API: k-anonymous classes of trucks that left motorways, from what was published."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import date
from hashlib import blake2b
from re import fullmatch
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import BaseModel, BeforeValidator

from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.queries import Queries, Refusal
from anonymizer.pipeline.records.store_port import ReleaseStore
from anonymizer.web.answers import MOST_K, MOST_ROWS, Lang, release_list, toll_answer
from anonymizer.web.auth import RateLimit, bearer
from anonymizer.web.schemas import Problem, ReleaseList, TollAnswer

_WANTED = {
    "start_date": "start_date must be a day, written YYYY-MM-DD.",
    "end_date": "end_date must be a day, written YYYY-MM-DD.",
    "k": f"k must be a whole number from 2 to {MOST_K}.",
    "lang": "lang must be zh or en.",
    "limit": f"limit must be a whole number from 1 to {MOST_ROWS}.",
    "offset": "offset must be a whole number from 0 to 1000000000.",
}
_TOO_FAR = 1_000_000_000


def _day(said: object) -> object:
    """Refuse what pydantic would take for a date as well, such as a number."""
    if isinstance(said, str) and not fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", said):
        raise ValueError("not written YYYY-MM-DD")
    return said


Day = Annotated[date | None, BeforeValidator(_day)]
StartDate = Annotated[
    Day,
    Query(
        description="First local day of event time, YYYY-MM-DD, included. Without it: as far back"
        " as there are releases.",
        examples=["2023-01-02"],
    ),
]
EndDate = Annotated[
    Day,
    Query(
        description="Last local day of event time, YYYY-MM-DD, included; not before start_date."
        " Without it: up to the newest release.",
        examples=["2023-01-04"],
    ),
]
K = Annotated[
    int | None,
    Query(
        description="Fewest distinct trucks of a class. Without it: the least that there is. A"
        " larger k gives fewer and vaguer classes; one below that of the releases is refused"
        " with 409.",
        ge=2,
        le=MOST_K,
        examples=[5],
    ),
]
InLanguage = Annotated[
    Lang, Query(description="Language of the texts: zh (Chinese) or en (English).", examples=["en"])
]
Limit = Annotated[int, Query(description="Rows at the most.", ge=1, le=MOST_ROWS, examples=[100])]
Offset = Annotated[
    int, Query(description="Rows to leave out first.", ge=0, le=_TOO_FAR, examples=[0])
]
_PAGED: dict[str, Any] = {
    "ETag": {
        "description": "Changes with the answer; send it as If-None-Match.",
        "schema": {"type": "string"},
    },
    "X-Total-Count": {"description": "Rows on all pages.", "schema": {"type": "integer"}},
    "Link": {
        "description": 'Address of the next page, `<...>; rel="next"`, where there is one.',
        "schema": {"type": "string"},
    },
}


class _PlainRoute(APIRoute):
    """Says in one sentence what is wrong with a request."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        names = [parameter.alias for parameter in self.dependant.query_params]

        async def plainly(request: Request) -> Response:
            asked = [name for name, _ in request.query_params.multi_items()]
            # A name that is misspelt would otherwise be answered with more than was asked for.
            if len(set(asked)) < len(asked) or not set(asked) <= set(names):
                raise HTTPException(422, f"The parameters are {', '.join(names)}, each once.")
            try:
                return await handle(request)
            except RequestValidationError as error:
                name = str(error.errors()[0]["loc"][-1])
                raise HTTPException(422, _WANTED[name]) from None

        return plainly


def toll_router(
    queries: Queries | None,
    store: ReleaseStore,
    streams: Sequence[Stream],
    *,
    token: str | None,
    limit: RateLimit,
) -> APIRouter:
    """Return the routes.

    Parameters
    ----------
    queries
        Of the toll stream. None: there is none, and releases are listed alone.
    store, streams
        Where releases are, and whose are listed.
    token
        That requests must show. None: none.
    limit
        Of requests.
    """
    # The scheme is there for the document: `bearer` checks, in constant time.
    scheme = HTTPBearer(auto_error=False, description="The token of this gateway.")
    router = APIRouter(
        prefix="/api",
        route_class=_PlainRoute,
        dependencies=[
            Depends(limit.check),
            Depends(bearer(token)),
            *([Depends(scheme)] if token else []),
        ],
    )
    refusals = _refusals(needs_token=token is not None)
    alone = asyncio.Lock()
    if queries is not None:
        _add_analytics(router, queries, refusals, alone)
    _add_releases(router, store, streams, refusals)
    return router


def _add_analytics(
    router: APIRouter, queries: Queries, refusals: dict[int | str, Any], alone: asyncio.Lock
) -> None:
    too_fine: dict[int | str, Any] = {
        409: {"model": Problem, "description": "k is below that of the releases."}
    }

    @router.get(
        "/analytics/truck/exit-hourly-flow-k-anonymized",
        operation_id="exit_hourly_flow_k_anonymized",
        summary="Trucks that left motorways, by region and part of the day, k-anonymous",
        response_model=TollAnswer,
        responses=refusals | too_fine,
    )
    async def exit_hourly_flow(
        request: Request,
        *,
        start_date: StartDate = None,
        end_date: EndDate = None,
        k: K = None,
        lang: InLanguage = "zh",
        limit: Limit = MOST_ROWS,
        offset: Offset = 0,
    ) -> Response:
        """How many trucks left the motorways, where and when, and what toll they paid on average.

        Every class is of at least k different trucks. Use it for questions on the flow of trucks
        or their tolls by region and time of day. It cannot say anything of a single truck, nor of
        exact times or sections. Each day was anonymized once; larger k and longer times join and
        add up what was published then, so that no two answers can be subtracted to fewer than k
        trucks. An answer without rows means that nothing was published of these days.
        """
        asked = (queries, start_date, end_date, k)
        async with alone:  # many at once would take the processor from the gateway
            page = await asyncio.to_thread(
                toll_answer, *asked, lang=lang, limit=limit, offset=offset
            )
        if isinstance(page, Refusal):
            raise HTTPException(409 if page.too_fine else 422, page.sentence)
        return _answered(request, page.body, n_rows=page.n_rows, until=offset + limit)


def _add_releases(
    router: APIRouter,
    store: ReleaseStore,
    streams: Sequence[Stream],
    refusals: dict[int | str, Any],
) -> None:
    @router.get(
        "/releases",
        operation_id="list_releases",
        summary="What was published: one entry a stream and window, newest first",
        response_model=ReleaseList,
        responses=refusals,
    )
    async def releases(request: Request, *, limit: Limit = 100, offset: Offset = 0) -> Response:
        """Which windows of which streams were anonymized and published, and what that cost.

        Use it to find out which days there are before asking for them.
        """
        body = await asyncio.to_thread(release_list, store, streams, limit=limit, offset=offset)
        return _answered(request, body, n_rows=body.total, until=offset + limit)


def _answered(request: Request, body: BaseModel, *, n_rows: int, until: int) -> Response:
    """Return an answer, or that it is what the client has."""
    content = body.model_dump_json().encode()
    etag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"ETag": etag, "X-Total-Count": str(n_rows), "Cache-Control": "private, no-cache"}
    if until < n_rows:
        after = request.url.include_query_params(offset=until)
        headers["Link"] = f'<{after.path}?{after.query}>; rel="next"'
    known = {tag.strip().removeprefix("W/") for tag in _tags(request).split(",")}
    if etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type="application/json", headers=headers)


def _tags(request: Request) -> str:
    return request.headers.get("if-none-match", "")


def _refusals(*, needs_token: bool) -> dict[int | str, Any]:
    """Return what OpenAPI says of answers that are none."""
    refusals: dict[int | str, Any] = {
        200: {"headers": _PAGED},
        304: {"description": "The answer is still the one that If-None-Match names."},
        422: {"model": Problem, "description": "The request is none; `detail` says why."},
        429: {
            "model": Problem,
            "description": "Too many requests; Retry-After says how many seconds to wait.",
        },
    }
    if needs_token:
        refusals[401] = {"model": Problem, "description": "A bearer token is needed."}
    return refusals

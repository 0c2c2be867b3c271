"""Routes of the toll API: k-anonymous classes of trucks that left motorways."""

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
from anonymizer.web.schemas import ReleaseList, TollAnswer, Unanswered

RULES = {
    "start_date": "start_date must be a day, written YYYY-MM-DD.",
    "end_date": "end_date must be a day, written YYYY-MM-DD.",
    "k": f"k must be a whole number from 2 to {MOST_K}.",
    "lang": "lang must be zh or en.",
    "limit": f"limit must be a whole number from 1 to {MOST_ROWS}.",
    "offset": "offset must be a whole number from 0 to 1000000000.",
}
"""Sentences about parameters that break their rules."""
_MAX_OFFSET = 1_000_000_000


def _day(text: object) -> object:
    """Reject other texts that pydantic would accept as a date, such as a number."""
    if isinstance(text, str) and not fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError("not written YYYY-MM-DD")
    return text


Day = Annotated[date | None, BeforeValidator(_day)]
StartDate = Annotated[
    Day,
    Query(
        description="First local day of event time, YYYY-MM-DD, included. Default: the day of the"
        " oldest release.",
        examples=["2023-01-02"],
    ),
]
EndDate = Annotated[
    Day,
    Query(
        description="Last local day of event time, YYYY-MM-DD, included; not before start_date."
        " Default: the day of the newest release.",
        examples=["2023-01-04"],
    ),
]
K = Annotated[
    int | None,
    Query(
        description="Least number of distinct trucks in a class. Default: the k of the releases. A"
        " larger k gives fewer and coarser classes; a smaller k is refused with 409.",
        ge=2,
        le=MOST_K,
        examples=[5],
    ),
]
InLanguage = Annotated[
    Lang, Query(description="Language of the texts: zh (Chinese) or en (English).", examples=["en"])
]
Limit = Annotated[
    int, Query(description="Largest number of rows.", ge=1, le=MOST_ROWS, examples=[100])
]
Offset = Annotated[
    int, Query(description="Number of rows to skip.", ge=0, le=_MAX_OFFSET, examples=[0])
]
_PAGED: dict[str, Any] = {
    "ETag": {
        "description": "Changes with the answer; send it as If-None-Match.",
        "schema": {"type": "string"},
    },
    "X-Total-Count": {"description": "Rows on all pages.", "schema": {"type": "integer"}},
    "Link": {
        "description": 'Address of the next page, `<...>; rel="next"`, if there is one.',
        "schema": {"type": "string"},
    },
}


def known_are(names: Sequence[str]) -> str:
    """Return the sentence about a parameter that does not exist."""
    return f"The parameters are {', '.join(names)}, each once."


class _PlainRoute(APIRoute):
    """Route that explains in one sentence what is wrong with a request."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        names = [parameter.alias for parameter in self.dependant.query_params]

        async def checked(request: Request) -> Response:
            given = [name for name, _ in request.query_params.multi_items()]
            # A misspelt name would otherwise widen the request without notice.
            if len(set(given)) < len(given) or not set(given) <= set(names):
                raise HTTPException(422, known_are(names))
            try:
                return await handle(request)
            except RequestValidationError as error:
                name = str(error.errors()[0]["loc"][-1])
                raise HTTPException(422, RULES[name]) from None

        return checked


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
        Queries of the toll stream. None: there is none, and releases are only listed.
    store, streams
        The store, and the streams whose releases are listed.
    token
        Token that requests must present. None: none is required.
    """
    # The scheme only documents the token in OpenAPI; `bearer` checks it, in constant time.
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
    k_too_small: dict[int | str, Any] = {
        409: {"model": Unanswered, "description": "k is below the k of the releases."}
    }

    @router.get(
        "/analytics/truck/exit-hourly-flow-k-anonymized",
        operation_id="exit_hourly_flow_k_anonymized",
        summary="k-anonymous counts of trucks that left motorways, by region and part of the day",
        response_model=TollAnswer,
        responses=refusals | k_too_small,
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
        """Count the trucks that left motorways by region and time, with their mean toll.

        Every class contains at least k different trucks. Use it for questions about the flow of
        trucks or their tolls by region and time of day. It cannot answer questions about single
        trucks, exact times or exact sections. Each day was anonymized once; for a larger k or a
        longer time, published classes are joined and added up, so that the difference of two
        answers never describes fewer than k trucks. If there are no rows, nothing was published
        for these days.
        """
        query = (queries, start_date, end_date, k)
        async with alone:  # several at once would take the processor from the gateway
            page = await asyncio.to_thread(
                toll_answer, *query, lang=lang, limit=limit, offset=offset
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
        summary="Published releases: one entry for each stream and window, newest first",
        response_model=ReleaseList,
        responses=refusals,
    )
    async def releases(request: Request, *, limit: Limit = 100, offset: Offset = 0) -> Response:
        """List the published windows of all streams, with their numbers of suppressed records.

        Use it to find out which days are available.
        """
        body = await asyncio.to_thread(release_list, store, streams, limit=limit, offset=offset)
        return _answered(request, body, n_rows=body.total, until=offset + limit)


def _answered(request: Request, body: BaseModel, *, n_rows: int, until: int) -> Response:
    """Return an answer, or 304 if the client already has it."""
    content = body.model_dump_json().encode()
    etag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"ETag": etag, "X-Total-Count": str(n_rows), "Cache-Control": "private, no-cache"}
    if until < n_rows:
        after = request.url.include_query_params(offset=until)
        headers["Link"] = f'<{after.path}?{after.query}>; rel="next"'
    tags = request.headers.get("if-none-match", "")
    known = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
    if etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type="application/json", headers=headers)


def _refusals(*, needs_token: bool) -> dict[int | str, Any]:
    """Return the OpenAPI descriptions of the responses without an answer."""
    refusals: dict[int | str, Any] = {
        200: {"headers": _PAGED},
        304: {"description": "The answer has not changed since the one in If-None-Match."},
        422: {"model": Unanswered, "description": "The request is invalid; `detail` says why."},
        429: {
            "model": Unanswered,
            "description": "Too many requests; Retry-After says how many seconds to wait.",
        },
    }
    if needs_token:
        refusals[401] = {"model": Unanswered, "description": "A bearer token is needed."}
    return refusals

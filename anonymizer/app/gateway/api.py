"""Query API on releases, over HTTP and as tools for a language model (MCP)."""

import json
import time
from collections.abc import Sequence

from fastapi import APIRouter

from anonymizer.algorithms.models.registry import LABELLED, MODELS
from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.errors import SettingsError
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.queries import Queries
from anonymizer.settings import Settings, StreamSettings
from anonymizer.store import ReleaseReader
from anonymizer.web.answers import SHOWN
from anonymizer.web.auth import RateLimit
from anonymizer.web.map import LastWindow
from anonymizer.web.token import read_token
from anonymizer.web.toll import toll_router

_CLASSES_SHOWN = 12
_REQUESTS_PER_MINUTE = 300
"""Of one address; an IPv6 network of 64 bits counts as one."""


def toll_queries(settings: Settings, streams: Sequence[Stream]) -> Queries | None:
    """Return the queries of the first stream with the fields of the API; None if there is none."""
    for stream in streams:
        if _answers(stream.settings):
            return Queries(stream, ReleaseReader(settings.store.path))
    return None


def api_routes(settings: Settings, streams: Sequence[Stream]) -> APIRouter:
    """Return the routes of the API.

    Raises `SettingsError` if the token file cannot be used.
    """
    return toll_router(
        toll_queries(settings, streams),
        ReleaseReader(settings.store.path),
        streams,
        token=read_token(settings.http),
        limit=RateLimit(_REQUESTS_PER_MINUTE, monotonic=time.monotonic),
    )


def last_windows(settings: Settings, streams: Sequence[Stream]) -> list[LastWindow]:
    """Return the newest published window of each stream, with its first classes."""
    store, found = ReleaseReader(settings.store.path), []
    for stream in streams:
        declared, promise = stream.settings, stream.settings.promise
        model = MODELS[declared.model]
        window = LastWindow(
            stream=declared.name,
            title=model.title,
            promise=model.explained.format(k=promise.k, d=promise.d, l=promise.l),
        )
        for newest in store.newest([declared.name], limit=1, offset=0):
            window.start, window.end = newest.start, newest.end
            window.n_records, window.n_published = newest.n_records, newest.n_published
            window.n_classes = newest.n_classes
            classes = store.classes(newest, limit=_CLASSES_SHOWN)
            window.classes = [json.loads(each) for each in classes]
        found.append(window)
    return found


async def serve_tools(settings: Settings) -> None:
    """Serve the toll queries as MCP tools on standard input and output, until the input ends.

    Raises `SettingsError` if there is no toll stream, or no store yet.
    """
    streams = declared_streams(settings)
    queries = toll_queries(settings, streams)
    if queries is None:
        raise SettingsError(f"streams: none is of model {LABELLED}, with the toll API's fields")
    queries.store.count([queries.stream.settings.name])
    from anonymizer.web.mcp_tools import tool_server  # noqa: PLC0415  an extra

    await tool_server(queries).run_stdio_async()


def _answers(settings: StreamSettings) -> bool:
    names = [a.name for a in settings.attributes if a.role != "sensitive"]
    return MODELS[settings.model].has_labels and sorted(names) == sorted(SHOWN)

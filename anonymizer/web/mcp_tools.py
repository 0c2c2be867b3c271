"""MCP server: the queries of the toll API as tools for language models; read-only."""

import asyncio
from collections.abc import Callable
from typing import Any, Self

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from mcp_types import ToolAnnotations
from pydantic import ValidationError, create_model, model_validator

from anonymizer import __version__
from anonymizer.pipeline.records.queries import Queries, Refusal
from anonymizer.web.answers import Lang, release_list, toll_answer
from anonymizer.web.schemas import ReleaseList, TollAnswer
from anonymizer.web.toll import (
    RULES,
    EndDate,
    InLanguage,
    K,
    Limit,
    Offset,
    StartDate,
    known_are,
)

_READ_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_DEFAULT_ROWS = 200
"""Fewer than over HTTP, because a model reads all of them."""


def tool_server(queries: Queries) -> MCPServer:
    """Return the MCP server; it answers from published releases alone."""

    async def exit_hourly_flow_k_anonymized(
        *,
        start_date: StartDate = None,
        end_date: EndDate = None,
        k: K = None,
        lang: InLanguage = "en",
        limit: Limit = _DEFAULT_ROWS,
        offset: Offset = 0,
    ) -> TollAnswer:
        """Count the trucks that left motorways, with their mean toll in yuan.

        Each row describes at least k different trucks, by region (common prefix of section ids)
        and part of the local day. Over several days, truck_count counts truck-days. Call
        `list_releases` to find out which days are available.
        """
        language: Lang = lang
        page = await asyncio.to_thread(
            toll_answer,
            queries,
            start_date,
            end_date,
            k,
            lang=language,
            limit=limit,
            offset=offset,
        )
        if isinstance(page, Refusal):
            raise ToolError(page.sentence)
        return page.body

    async def list_releases(limit: Limit = _DEFAULT_ROWS, offset: Offset = 0) -> ReleaseList:
        """List the days (windows) that were published, newest first, with suppressed records."""
        return await asyncio.to_thread(
            release_list, queries.store, [queries.stream], limit=limit, offset=offset
        )

    return MCPServer(
        "anonymizer",
        version=__version__,
        instructions="k-anonymous statistics of trucks that left motorways. No figure describes"
        " fewer than k trucks, and neither does the difference of any two answers.",
        tools=[_tool(exit_hourly_flow_k_anonymized), _tool(list_releases)],
    )


class _Strict(ArgModelBase, extra="forbid", hide_input_in_errors=True):
    """Arguments that are refused where HTTP refuses them, with the same sentences."""

    @model_validator(mode="wrap")
    @classmethod
    def _checked(cls, given: Any, validate: Callable[[Any], Self]) -> Self:  # noqa: ANN401  any JSON
        try:
            return validate(given)
        except ValidationError as error:
            name, names = str(error.errors()[0]["loc"][0]), [*cls.model_fields]
            said = RULES[name] if name in names else known_are(names)
            raise ValueError(said) from None


def _tool(query: Callable[..., Any]) -> Tool:
    """Return a query as a tool."""
    tool = Tool.from_function(query, annotations=_READ_ONLY)
    loose = tool.fn_metadata.arg_model
    tool.fn_metadata.arg_model = create_model(loose.__name__, __base__=(_Strict, loose))
    tool.parameters = tool.fn_metadata.arg_model.model_json_schema(by_alias=True)
    return tool

"""The questions of the toll API as tools of a language model (MCP). They read, and nothing else."""

import asyncio

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from anonymizer import __version__
from anonymizer.pipeline.records.queries import Queries, Refusal
from anonymizer.web.answers import Lang, release_list, toll_answer
from anonymizer.web.schemas import ReleaseList, TollAnswer
from anonymizer.web.toll import EndDate, InLanguage, K, Limit, Offset, StartDate

_READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_FEW = 200
"""Rows at once unless asked for more: a model reads all of them."""


def tool_server(queries: Queries) -> MCPServer:
    """Return the server of the tools; what it serves was published already."""
    server = MCPServer(
        "anonymizer",
        version=__version__,
        instructions="k-anonymous statistics of trucks that left motorways. Nothing here is of"
        " fewer than k trucks, and no two answers can be subtracted to fewer.",
    )

    @server.tool(annotations=_READS)
    async def exit_hourly_flow_k_anonymized(
        *,
        start_date: StartDate = None,
        end_date: EndDate = None,
        k: K = None,
        lang: InLanguage = "en",
        limit: Limit = _FEW,
        offset: Offset = 0,
    ) -> TollAnswer:
        """How many trucks left the motorways, where and when, and their mean toll in yuan.

        Each row is of at least k different trucks, by region (common prefix of section ids) and
        part of the local day. Over several days truck_count counts truck-days. Ask
        `list_releases` which days there are.
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

    @server.tool(annotations=_READS)
    async def list_releases(limit: Limit = _FEW, offset: Offset = 0) -> ReleaseList:
        """Which days (windows) were anonymized and published, newest first, and what that cost."""
        return await asyncio.to_thread(
            release_list, queries.store, [queries.stream], limit=limit, offset=offset
        )

    return server

"""A ToolSource for the server that a run names."""

from typing import Protocol

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import EnvironmentProblem
from gta_bench.packages import require_packages
from gta_bench.serving.agentlego import AgentLegoTools
from gta_bench.serving.choice import SERVER_PACKAGES, TOKEN_VARIABLE, ServerAddress
from gta_bench.serving.client import HttpTools, RemoteTools
from gta_bench.serving.exchange import Exchange, Patience
from gta_bench.tools.source import ToolSource


class RemoteSource(ToolSource, Protocol):
    """Tools of a server, for use within one event loop."""

    async def connect(self) -> None:
        """Learn which tools there are."""
        ...

    async def release(self, workspace: Workspace) -> None:
        """Nothing more is done in that workspace."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...


async def connect(
    server: ServerAddress, token: str | None, patience: Patience | None = None
) -> RemoteSource:
    """The tools of a server, ready to be called; close them with `aclose`."""
    if token is None and server.protocol != "agentlego":
        raise EnvironmentProblem(
            f"{TOKEN_VARIABLE} is not set; `gta tools serve` says which token it takes."
        )
    source = _source(server, Exchange.to(server.url, token, patience))
    try:
        await source.connect()
    except BaseException:
        await source.aclose()
        raise
    return source


def _source(server: ServerAddress, exchange: Exchange) -> RemoteSource:
    if server.protocol == "agentlego":
        return AgentLegoTools(exchange)
    if server.protocol == "http":
        return HttpTools(exchange)
    return _mcp_tools(exchange)


def _mcp_tools(exchange: Exchange) -> RemoteTools:
    require_packages("--tools mcp+http", *SERVER_PACKAGES, extra="serve")
    from gta_bench.serving.mcp_client import McpTools

    return McpTools(exchange)

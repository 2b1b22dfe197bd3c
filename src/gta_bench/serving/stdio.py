"""The tools for one client that started this process, in one workspace."""

from gta_bench.confine.workspace import Workspace
from gta_bench.serving.calling import Caller
from gta_bench.serving.limits import Limits
from gta_bench.serving.mcp_face import McpFace
from gta_bench.serving.spaces import Space
from gta_bench.serving.tokens import Run, new_token
from gta_bench.tools.source import ToolSource


async def serve_stdio(source: ToolSource, workspace: Workspace) -> None:
    """Serve MCP on standard input and output until the client leaves."""
    run = Run("stdio", new_token())
    space = Space("stdio", run, run.workspace_token("stdio"), workspace)
    await McpFace(Caller(source, Limits()), space=space).over_stdio()

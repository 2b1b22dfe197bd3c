"""The tools of a task as a tool server of verifiers, from a tape or a server of gta-bench.

verifiers runs this module as a program, once for each rollout.
"""

import inspect
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import verifiers.v1 as vf
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel, Field

from gta_bench.agents.contract import reply_text
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import NoReferenceReply, ToolError, ToolUnavailable
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.tools import ToolSpec
from gta_bench.redaction import Redactor
from gta_bench.serving.choice import TOKEN_VARIABLE, parse_tools
from gta_bench.serving.client import connect
from gta_bench.settings import read_key
from gta_bench.tape.source import TapedTools, TapeUnit
from gta_bench.tape.storage import Tape
from gta_bench.tools.offering import list_offered_tools
from gta_bench.tools.source import ToolSource

TYPES: Mapping[str, type] = {"int": int, "float": float, "bool": bool}


class GTAData(vf.TaskData):
    """One task; `record` is the whole of it, which no model is shown. `root` has its files."""

    record: AtomicTask
    root: str


class ToolCall(BaseModel):
    """A call that reached the tools, in order; `error` if it gave no result."""

    name: str
    error: str | None = None


class GTAState(vf.State):
    """The calls of a rollout, which the reward looks at."""

    calls: list[ToolCall] = Field(default_factory=list)


class GTAToolsConfig(vf.ToolsetConfig):
    """Where replies come from: a tape's folder, or the address of `gta tools serve`."""

    tape: str | None = None
    server: str | None = None


class GTATools(vf.Toolset[GTAToolsConfig, GTAState]):
    """The tools that a task offers, under their own names."""

    TOOL_PREFIX = None

    async def setup_task(self, task: GTAData) -> None:
        """Copy the task's files into a workspace and open the tools."""
        files = {item.path: Path(task.root) / item.source for item in task.record.attachments}
        self._workspace = Workspace.create(Path(tempfile.mkdtemp()), files, follow_links=True)
        self._source = await self._open(task.record)
        self._offered = list_offered_tools(dict(task.record.offered), self._source.specs())
        self._calls: list[ToolCall] = []

    async def _open(self, task: AtomicTask) -> ToolSource:
        if self.config.tape is not None:
            unit = TapeUnit("atomic", task.id, 1)
            return TapedTools(Tape.open(Path(self.config.tape)), unit, "replay", Redactor({}))
        address = parse_tools(self.config.server or "")
        if address is None:
            raise ValueError("`server` must be the address that `gta tools serve` printed")
        source = await connect(address, read_key(TOKEN_VARIABLE))
        self._exit_stack.push_async_callback(source.aclose)
        return source

    def register(self, mcp: MCPServer) -> None:
        """Offer each tool with the parameters of its definition."""
        for spec in self._offered:
            call = self._with_state(self._make_function(spec))
            mcp.add_tool(call, name=spec.name, description=spec.description or None)

    def _make_function(self, spec: ToolSpec) -> Callable[..., Awaitable[str]]:
        async def call(**arguments: Any) -> str:
            given = {name: value for name, value in arguments.items() if value is not None}
            error = None
            try:
                result = await self._source.call(self._workspace, spec.name, given)
                return reply_text(result.parts)
            except (ToolError, ToolUnavailable) as exc:
                # The reference's own call counts even where the reference has no reply to it.
                if not isinstance(exc, NoReferenceReply):
                    error = str(exc)
                return str(exc)
            finally:
                self._calls.append(ToolCall(name=spec.name, error=error))
                self.state.calls = list(self._calls)

        parameters = [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=Annotated[
                    TYPES.get(one.type, str) | (None if one.optional else TYPES.get(one.type, str)),
                    Field(description=one.description),
                ],
                default=one.default if one.optional else inspect.Parameter.empty,
            )
            for one in spec.inputs
            if one.name is not None
        ]
        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            parameters, return_annotation=str
        )
        return call


if __name__ == "__main__":
    # Under its real name, so that its classes are those of the task's channel.
    from gta_bench_verifiers.tools import GTATools as Tools

    Tools.run()

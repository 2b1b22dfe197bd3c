"""What every harness is given, and what is kept of its work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from gta_bench.agents.arguments import checked_call
from gta_bench.agents.calling import TaskWork, call_tool
from gta_bench.agents.history import files_text
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.harnesses.prompts import render
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import Trace
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.tools.source import ToolSource


class RecordedTools:
    """A unit's tools as a harness meets them: those on offer alone, each call kept as a step.

    `broken` is what kept a tool from answering, such as a server that was lost. Whatever a harness
    makes of that, the attempt has no result; it counts, as a harness can spoil its own folders.
    """

    def __init__(self, source: ToolSource, offered: Sequence[ToolSpec], work: TaskWork) -> None:
        self.work = work
        self.broken: Exception | None = None
        self._source = source
        self._offered = tuple(offered)

    def specs(self) -> dict[str, ToolSpec]:
        """The tools on offer."""
        return {spec.name: spec for spec in self._offered}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call a tool; a call that cannot be one is refused in the words that agents hear."""
        step = checked_call(name, dict(arguments), self._offered)
        if step.error is not None:
            self.work.steps.append(step)
            raise ToolError(step.error.message)
        try:
            return await call_tool(self.work, step, self._source, workspace)
        except Exception as exc:
            if not isinstance(exc, ToolError | ToolUnavailable):
                self.broken = self.broken or exc
            raise


@dataclass(frozen=True, slots=True)
class Assignment:
    """One task for a harness, with the files and tools that it works with.

    `asks_model` says whether the run names a model that the harness is to use.
    """

    task: AtomicTask | WorkflowTask
    workspace: Workspace
    tools: RecordedTools
    asks_model: bool

    @property
    def prompt(self) -> str:
        """The request, the files, and where results belong."""
        files = files_text(self.task.attachments)
        request = self.task.request if files is None else f"{files}\n\n{self.task.request}"
        return render("task.md", request=request)


@dataclass(frozen=True, slots=True)
class HarnessOutcome:
    """What a harness came to: its answer, and what went wrong with it, if anything.

    `problem` is the system's own failure; `printed` is for whoever reads the log. `steps` are those
    that a harness reports itself; they count where it called none of our tools. `fault` is what
    leaves the attempt without a result although the harness came to its end.
    """

    answer: str
    problem: str | None = None
    printed: str = ""
    steps: Trace = ()
    fault: Exception | None = None

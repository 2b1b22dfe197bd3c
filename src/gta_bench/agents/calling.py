"""A tool called for a system, and what is kept of the call; needs no evaluation engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

from pydantic import JsonValue

from gta_bench.agents.history import HistoryTurn, reply_text
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import InjectedFault, NotOnTape, ToolError, ToolUnavailable
from gta_bench.records.calls import CallRecord, ToolResult
from gta_bench.records.dialogue import CallTurn, ReplyTurn, ToolCall
from gta_bench.records.steps import CallStep, PredictedStep, ReplyStep, StepError, Trace
from gta_bench.tools.catalog import own_category
from gta_bench.tools.source import ToolSource

TOOL_ERROR = "TOOL_ERROR"
UNAVAILABLE = "UNAVAILABLE"


class Called(NamedTuple):
    """What came of a call: `result`, or the `problem` that is also the error of the `step`."""

    step: CallStep
    record: CallRecord
    result: ToolResult | None = None
    problem: ToolError | ToolUnavailable | None = None

    @property
    def steps(self) -> tuple[CallStep, ReplyStep]:
        """The call and its reply, which is empty where the call failed."""
        return self.step, ReplyStep(parts=() if self.result is None else self.result.parts)

    @property
    def told(self) -> str:
        """The result as text, files by their paths; or why there is none."""
        return str(self.problem) if self.result is None else reply_text(self.result.parts)


@dataclass
class TaskWork:
    """What a system has done so far on one task, kept call by call."""

    turns: list[HistoryTurn]
    steps: list[PredictedStep] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)

    @property
    def trace(self) -> Trace:
        """The steps in the form in which they are scored."""
        return tuple(self.steps)


async def make_call(step: CallStep, source: ToolSource, workspace: Workspace) -> Called:
    """Call the tool; what it cannot do is in what came of it, a bug of ours is raised."""
    start = perf_counter()
    try:
        result = await source.call(workspace, step.name, _object(step.arguments))
    except (ToolError, ToolUnavailable) as exc:
        kind = UNAVAILABLE if isinstance(exc, ToolUnavailable) else TOOL_ERROR
        error = StepError(type=kind, message=str(exc))
        failed = step.model_copy(update={"error": error})
        return Called(failed, _failed(step.name, exc, perf_counter() - start), problem=exc)
    return Called(step, _done(result), result=result)


async def call_tool(
    work: TaskWork, step: CallStep, source: ToolSource, workspace: Workspace
) -> ToolResult:
    """Call a tool for a system; what came of it is in the work, whether or not it is raised."""
    called = await make_call(step, source, workspace)
    parts = () if called.result is None else called.result.parts
    replies = [ReplyTurn(tool=step.name, type=part.type, content=part.content) for part in parts]
    if called.result is None:
        replies = [ReplyTurn(tool=step.name, type="text", content=called.told)]
    made = ToolCall(name=step.name, arguments=_object(step.arguments))
    work.steps += called.steps
    work.turns += [CallTurn(call=made), *replies]
    work.calls.append(called.record)
    if called.result is None:
        assert called.problem is not None
        raise called.problem
    return called.result


def _object(arguments: JsonValue) -> Mapping[str, JsonValue]:
    assert isinstance(arguments, dict), "a call without error has an object as arguments"
    return arguments


def _failed(tool: str, problem: ToolError | ToolUnavailable, seconds: float) -> CallRecord:
    nearest = problem.nearest if isinstance(problem, NotOnTape) else None
    return CallRecord(
        tool=tool,
        status="unavailable" if isinstance(problem, ToolUnavailable) else "error",
        seconds=seconds,
        category=own_category(tool),
        message=f"{problem}" if nearest is None else f"{problem} Nearest recorded call: {nearest}.",
        taped=None if nearest is None else "missing",
        control="fault" if isinstance(problem, InjectedFault) else None,
    )


def _done(result: ToolResult) -> CallRecord:
    return CallRecord(
        tool=result.tool,
        status="done",
        seconds=result.seconds,
        tool_version=result.tool_version,
        backend=result.backend,
        jail=result.jail,
        taped=result.taped,
        control=result.control,
        category=own_category(result.tool),
    )

"""An agent at work: it decides, a tool answers, until it answers the user or its turns are up."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

from pydantic import JsonValue

from gta_bench.agents.contract import Decide
from gta_bench.agents.history import History, HistoryTurn, RefusedTurn
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import InjectedFault, NotOnTape, ToolError, ToolUnavailable
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.calls import CallRecord
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, ToolCall, UserTurn
from gta_bench.records.results import ToolResult
from gta_bench.records.run import LoopLimits
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyStep,
    StepError,
    ThoughtStep,
    Trace,
)
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.tools.catalog import own_category
from gta_bench.tools.source import ToolSource

TOOL_ERROR = "TOOL_ERROR"
UNAVAILABLE = "UNAVAILABLE"


@dataclass
class Work:
    """What an agent has done so far on one task."""

    turns: list[HistoryTurn]
    steps: list[PredictedStep] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)

    @property
    def trace(self) -> Trace:
        """The steps in the form in which they are scored."""
        return tuple(self.steps)


async def work_on(
    task: AtomicTask | WorkflowTask,
    decide: Decide,
    source: ToolSource,
    workspace: Workspace,
    *,
    tools: Sequence[ToolSpec],
    limits: LoopLimits,
    before: Work | None = None,
) -> Work:
    """Loop until the agent answers or its turns are up; what it does wrong is in the trace.

    `before` is work that the agent goes on with; its last turn is what it is asked now.
    """
    work = before or Work([UserTurn(content=task.request)])
    for turn in range(1, limits.max_turns + 1):
        history = History(
            task=task.id,
            attachments=task.attachments,
            turns=tuple(work.turns),
            mode="end-to-end",
            last=turn == limits.max_turns,
        )
        decision = await decide(history, tools)
        if decision.thought:
            work.steps.append(ThoughtStep(content=decision.thought))
        reply = decision.output.completion if decision.output is not None else ""
        match decision.step:
            case AnswerStep():
                work.steps.append(decision.step)
                work.turns.append(AnswerTurn(content=decision.step.content))
                break
            case MalformedStep():
                _refuse(work, decision.step, reply, decision.step.reason)
            case CallStep(error=StepError(message=message)):
                _refuse(work, decision.step, reply, message)
            case CallStep():
                with suppress(ToolError, ToolUnavailable):
                    await call_tool(work, decision.step, source, workspace, reply=reply)
    return work


def _refuse(work: Work, step: MalformedStep | CallStep, reply: str, told: str) -> None:
    """A reply that no tool was called for: the agent is told why."""
    work.steps.append(step)
    work.turns.append(RefusedTurn(reply=reply, told=told))


async def call_tool(
    work: Work, step: CallStep, source: ToolSource, workspace: Workspace, *, reply: str = ""
) -> ToolResult:
    """Call a tool for the agent; what came of it is in the work, whether or not it is raised."""
    arguments = _object(step.arguments)
    start = perf_counter()
    turn = CallTurn(call=ToolCall(name=step.name, arguments=arguments), content=reply or None)
    try:
        result = await source.call(workspace, step.name, arguments)
    except (ToolError, ToolUnavailable) as exc:
        kind = UNAVAILABLE if isinstance(exc, ToolUnavailable) else TOOL_ERROR
        error = StepError(type=kind, message=str(exc))
        work.steps += [step.model_copy(update={"error": error}), ReplyStep()]
        work.turns += [turn, ReplyTurn(tool=step.name, type="text", content=str(exc))]
        work.calls.append(_failed(step.name, exc, perf_counter() - start))
        raise
    work.steps += [step, ReplyStep(parts=result.parts)]
    replies = [
        ReplyTurn(tool=step.name, type=part.type, content=part.content) for part in result.parts
    ]
    work.turns += [turn, *replies]
    work.calls.append(_done(result))
    return result


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

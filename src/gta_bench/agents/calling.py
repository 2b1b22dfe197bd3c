"""A tool call of a system: checked against the tools on offer, made, and recorded.

Nothing here imports the evaluation engine, so parsers and training environments load fast.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

from pydantic import JsonValue

from gta_bench.agents.contract import HistoryTurn, RefusedTurn, reply_text
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import (
    CallRefused,
    InjectedFault,
    NotOnTape,
    RefusalCause,
    ToolError,
    ToolUnavailable,
)
from gta_bench.records.calls import CallRecord, ToolResult
from gta_bench.records.dialogue import CallTurn, ReplyTurn, ToolCall
from gta_bench.records.steps import CallStep, PredictedStep, ReplyStep, StepError, Trace
from gta_bench.records.tools import ToolSpec
from gta_bench.tools.catalog import own_category
from gta_bench.tools.offering import check_call, check_object
from gta_bench.tools.source import ToolSource

ARGS_ERROR = "ARGS_ERROR"
API_ERROR = "API_ERROR"
TOOL_ERROR = "TOOL_ERROR"
UNAVAILABLE = "UNAVAILABLE"
REFUSALS: Mapping[RefusalCause, str] = {"tool": API_ERROR, "arguments": ARGS_ERROR}
# Far above any sensible call, far below the nesting that records and logs reject.
MAX_DEPTH = 60
TOO_DEEP = "(nested too deep)"

_SURROGATES = re.compile("[\ud800-\udfff]")
_OPENING, _CLOSING = "<think>", "</think>"


def clean_text(text: str) -> str:
    """Return the text with lone surrogates replaced, because UTF-8 files cannot contain them."""
    return _SURROGATES.sub("\ufffd", text)


def remove_thinking(text: str) -> str:
    """Return the reply without a reasoning model's leading `<think>` block, closed or not.

    If the chat template writes the opening tag, the reply has only the closing one.
    """
    before, closing, after = text.partition(_CLOSING)
    thought = before.strip()
    if closing and (thought.startswith(_OPENING) or _OPENING not in thought):
        text = after
    return "" if text.lstrip().startswith(_OPENING) else text


def read_call(name: str, arguments: object, tools: Sequence[ToolSpec]) -> CallStep:
    """Return a call of a reply with converted arguments, or with the error of `check_call`."""
    given = make_recordable(arguments)
    try:
        typed = check_call({tool.name: tool for tool in deduplicate_tools(tools)}, name, given)
    except CallRefused as exc:
        return reject_call(name, given, REFUSALS[exc.cause], str(exc))
    return CallStep(name=name, arguments=typed)


def reject_call(name: str, arguments: object, error: str, message: str) -> CallStep:
    """Return the step of a call that cannot be made, with the reason."""
    return CallStep(
        name=clean_text(name),
        arguments=make_recordable(arguments),
        error=StepError(type=error, message=clean_text(message)),
    )


def find_tool(name: str, tools: Sequence[ToolSpec]) -> ToolSpec | None:
    """Return the first tool of that name."""
    return next((tool for tool in tools if tool.name == name), None)


def deduplicate_tools(tools: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Return each tool once, the first of a name; task 47 lists one twice, which APIs reject."""
    return [tool for n, tool in enumerate(tools) if find_tool(tool.name, tools[:n]) is None]


def make_recordable(value: object, depth: int = 0) -> JsonValue:
    """Return the value as JSON that survives writing and reading; models also send NaN."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, str):
        return clean_text(value)
    if depth >= MAX_DEPTH:
        return TOO_DEEP
    if isinstance(value, Mapping):
        items = value.items()
        return {clean_text(str(key)): make_recordable(item, depth + 1) for key, item in items}
    if isinstance(value, list | tuple):
        return [make_recordable(item, depth + 1) for item in value]
    return clean_text(str(value))


class Called(NamedTuple):
    """The outcome of a call: `result`, or the `problem` that is also the error of the `step`."""

    step: CallStep
    record: CallRecord
    result: ToolResult | None = None
    problem: ToolError | ToolUnavailable | None = None

    @property
    def steps(self) -> tuple[CallStep, ReplyStep]:
        """The call and its reply; the reply is empty if the call failed."""
        return self.step, ReplyStep(parts=() if self.result is None else self.result.parts)

    @property
    def text(self) -> str:
        """The result as text, with files as paths; or the error message."""
        return str(self.problem) if self.result is None else reply_text(self.result.parts)


@dataclass
class TaskWork:
    """Everything a system has done so far on one task, updated after each call."""

    turns: list[HistoryTurn]
    steps: list[PredictedStep] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)

    @property
    def trace(self) -> Trace:
        """The steps as they are scored."""
        return tuple(self.steps)


async def make_call(step: CallStep, source: ToolSource, workspace: Workspace) -> Called | CallStep:
    """Call the tool; a failure of the tool is part of the outcome, a bug of ours is raised.

    A call that is refused, here or by the source, is returned as a step with the reason.
    """
    if step.error is not None:
        return step
    start = perf_counter()
    try:
        arguments = check_object(step.name, step.arguments)
        result = await source.call(workspace, step.name, arguments)
    except CallRefused as exc:
        return reject_call(step.name, step.arguments, REFUSALS[exc.cause], str(exc))
    except (ToolError, ToolUnavailable) as exc:
        kind = UNAVAILABLE if isinstance(exc, ToolUnavailable) else TOOL_ERROR
        error = StepError(type=kind, message=str(exc))
        failed = step.model_copy(update={"error": error})
        return Called(failed, _record_failure(step.name, exc, perf_counter() - start), problem=exc)
    record = CallRecord(
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
    return Called(step, record, result=result)


async def call_tool(
    work: TaskWork, step: CallStep, source: ToolSource, workspace: Workspace
) -> ToolResult:
    """Call a tool and add the outcome to the work; raises the problem of a failed call."""
    called = await make_call(step, source, workspace)
    if isinstance(called, CallStep):
        assert called.error is not None, "a call that was not made has an error"
        work.steps.append(called)
        work.turns.append(RefusedTurn(reply="", feedback=called.error.message))
        raise ToolError(called.error.message)
    work.steps += called.steps
    made = ToolCall(name=step.name, arguments=check_object(step.name, step.arguments))
    work.turns.append(CallTurn(call=made))
    work.calls.append(called.record)
    if called.result is None:
        work.turns.append(ReplyTurn(tool=step.name, type="text", content=called.text))
        assert called.problem is not None
        raise called.problem
    work.turns += [
        ReplyTurn(tool=step.name, type=part.type, content=part.content)
        for part in called.result.parts
    ]
    return called.result


class RecordedTools:
    """The tools that a harness is offered, each call recorded as a step.

    `broken` is the exception that kept a tool from replying, such as a lost server. Whatever the
    harness does after that, the attempt has no result. It counts as an attempt, because a harness
    can damage its own folders.
    """

    def __init__(self, source: ToolSource, offered: Sequence[ToolSpec], work: TaskWork) -> None:
        self.work = work
        self.broken: Exception | None = None
        self._source = source
        self._offered = tuple(offered)

    def specs(self) -> dict[str, ToolSpec]:
        """Return the tools on offer."""
        return {spec.name: spec for spec in self._offered}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call a tool; a wrong call is rejected with the same message that agents get."""
        step = read_call(name, dict(arguments), self._offered)
        try:
            return await call_tool(self.work, step, self._source, workspace)
        except Exception as exc:
            if not isinstance(exc, ToolError | ToolUnavailable):
                self.broken = self.broken or exc
            raise


def _record_failure(tool: str, problem: ToolError | ToolUnavailable, seconds: float) -> CallRecord:
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

"""A Python agent in this process, with its model behind Inspect's agent bridge.

`pkg.mod:function` takes an AgentTask and returns its answer; it may be async. Every OpenAI or
Anthropic client that it creates uses the run's model under the model name `inspect`.

The function may instead return an agent in the form of the original benchmark: an object with
`chat(query, memory, resources) -> (steps, memory)` and, for step mode,
`next_step(history, resources, stop) -> step`. Such an agent gets its tools and files as resources:
`{"type": "tool", "name": …}`, and `{"type": "file", "filetype": …, "path": …}` with a path that it
can open. Its steps name files by the same paths, which become relative before they are scored.
"""

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import anyio
from inspect_ai.agent import agent_bridge
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, get_model
from inspect_ai.util import LimitExceededError, apply_limits, cost_limit
from pydantic import JsonValue

from gta_bench.agents.contract import History, HistoryTurn, make_step_histories, reply_text
from gta_bench.agents.provider import watch_faults
from gta_bench.errors import ToolError, ToolUnavailable, UsageError
from gta_bench.harnesses.choice import CellLimits, Harness
from gta_bench.harnesses.contract import Assignment, HarnessOutcome, assign_blame
from gta_bench.own_code import run_in_thread
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, UserTurn
from gta_bench.records.files import Attachment
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    read_step,
    read_trace,
)
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.serving.wire import input_schema

SHOWN = 2000
ROLES = {"system": ChatMessageSystem, "assistant": ChatMessageAssistant, "user": ChatMessageUser}
Awaited = TypeVar("Awaited")
ToolCaller = Callable[[str, Mapping[str, JsonValue]], Awaitable[str]]


@runtime_checkable
class ChatAgent(Protocol):
    """An agent of the original benchmark, end to end."""

    def chat(self, query: str, memory: Any, resources: Any) -> tuple[Any, Any]:
        """Return the steps of one turn, and the agent's memory."""


@runtime_checkable
class StepAgent(Protocol):
    """An agent of the original benchmark, step by step."""

    def next_step(self, history: Any, resources: Any, stop: bool) -> Any:
        """Return one step after the history; with `stop` it should answer without a tool."""


@dataclass(frozen=True)
class AgentTool:
    """A tool in the form that most agent libraries accept; a call returns the result as text."""

    name: str
    description: str
    schema: dict[str, JsonValue]
    _call: ToolCaller = field(repr=False)

    async def __call__(self, arguments: Mapping[str, JsonValue]) -> str:
        """Call the tool and return its result, or its error, as text; both are recorded."""
        return await self._call(self.name, arguments)


@dataclass(frozen=True)
class AgentTask:
    """The task of an agent: the prompt, its files, a folder, and tools.

    >>> async def answer(task: AgentTask) -> str:
    ...     return await task.tool("Calculator")({"expression": "6 * 7"})
    """

    id: str
    prompt: str
    files: tuple[str, ...]
    folder: Path
    tools: tuple[AgentTool, ...]
    _loop: asyncio.AbstractEventLoop = field(repr=False)

    def tool(self, name: str) -> AgentTool:
        """Return the tool of that name."""
        return next(tool for tool in self.tools if tool.name == name)

    def call(self, name: str, arguments: Mapping[str, JsonValue]) -> str:
        """Call a tool from a thread, for agents that are not async."""
        return self._wait(self.tool(name)(arguments))

    def ask(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Ask the run's model from a thread, for agents that are not async."""
        chat = [
            ROLES.get(message["role"], ChatMessageUser)(content=message["content"])
            for message in messages
        ]

        async def generate() -> str:
            return (await get_model().generate([*chat])).completion

        return self._wait(generate())

    def _wait(self, work: Awaitable[str]) -> str:
        future: Future[str] = asyncio.run_coroutine_threadsafe(cast(Any, work), self._loop)
        return future.result()


def load_function(target: str) -> Callable[[AgentTask], Any]:
    """Return the function that `pkg.mod:function` names."""
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        raise UsageError(f"--agent-bridge {target!r} does not have the form pkg.mod:function.")
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError, SystemExit) as exc:
        raise UsageError(f"--agent-bridge: cannot load {target!r}: {exc}.") from exc
    if not callable(function):
        raise UsageError(f"--agent-bridge: {target!r} is not a function that takes an AgentTask.")
    return cast(Callable[[AgentTask], Any], function)


@dataclass
class _Enforced:
    """Why an agent was stopped; empty if it was not."""

    reason: str = ""


@contextmanager
def _enforce(limits: CellLimits) -> Iterator[_Enforced]:
    """Stop the block when it exceeds its time or cost."""
    enforced = _Enforced()
    with (
        apply_limits([cost_limit(limits.cost_usd)], catch_errors=True) as bounds,
        anyio.move_on_after(limits.seconds) as clock,
    ):
        yield enforced
    if clock.cancelled_caught:
        enforced.reason = f"The agent was stopped: {limits.describe('timeout')}."
    elif bounds.limit_error is not None:
        enforced.reason = f"The agent was stopped: {limits.describe('cost')}."


async def work_in_process(harness: Harness, given: Assignment) -> HarnessOutcome:
    """Let the agent work within its time and cost; its exceptions are its own failure."""
    function = load_function(harness.target)
    with watch_faults(get_model().api) as fault:
        with _enforce(harness.limits) as enforced:
            outcome = await _try_agent(function, given)
        if enforced.reason:
            return HarnessOutcome("", enforced.reason)
        return await assign_blame(outcome, fault)


async def _try_agent(function: Callable[[AgentTask], Any], given: Assignment) -> HarnessOutcome:
    """Run foreign code in this process; whatever it raises is its own failure.

    An exception that keeps its tools from working is not lost: `RecordedTools.broken` has it.
    """
    folder = given.workspace.root

    async def call(name: str, arguments: Mapping[str, JsonValue]) -> str:
        portable = {key: _make_relative(value, folder) for key, value in arguments.items()}
        try:
            return reply_text((await given.tools.call(given.workspace, name, portable)).parts)
        except (ToolError, ToolUnavailable) as exc:
            return str(exc)

    task = _make_task(given.task, given.prompt, folder, given.tools.specs().values(), call)
    try:
        async with agent_bridge(web_search=False, code_execution=False):
            return await _run_agent(function, task, given)
    except BaseException as exc:
        if _is_from_outside(exc):
            raise
        return HarnessOutcome("", _describe(exc), _format(exc))


def _make_task(
    task: AtomicTask | WorkflowTask,
    prompt: str,
    folder: Path,
    tools: Iterable[ToolSpec],
    call: ToolCaller,
) -> AgentTask:
    return AgentTask(
        id=task.id,
        prompt=prompt,
        files=tuple(item.path for item in task.attachments),
        folder=folder,
        tools=tuple(
            AgentTool(spec.name, spec.description, input_schema(spec), call) for spec in tools
        ),
        _loop=asyncio.get_running_loop(),
    )


def _is_from_outside(exc: BaseException) -> bool:
    """Whether the exception ends the task from outside: a limit, or a cancellation."""
    current = asyncio.current_task()
    canceled = current is not None and current.cancelling() > 0
    return isinstance(exc, LimitExceededError) or (
        isinstance(exc, asyncio.CancelledError) and canceled
    )


def _describe(exc: BaseException) -> str:
    return f"The agent failed: {type(exc).__name__}: {exc}"


def _format(exc: BaseException) -> str:
    return "".join(traceback.format_exception(exc))[-SHOWN:]


async def _run_agent(
    function: Callable[[AgentTask], Any], task: AgentTask, given: Assignment
) -> HarnessOutcome:
    made = await run_in_thread(partial(function, task))
    if isinstance(made, ChatAgent):
        names = (tool.name for tool in task.tools)
        resources = _describe_resources(names, given.task.attachments, task.folder)
        # The original pipeline sends only the user's request; a Workflow task also says where to
        # put results.
        query = given.task.request if isinstance(given.task, AtomicTask) else task.prompt
        work = partial(made.chat, query=query, memory=None, resources=resources)
        steps, _ = await run_in_thread(work)
        trace = [_make_portable(step, task.folder) for step in read_trace(steps)]
        # The last answer, and the steps before it, which may be calls of the agent's own tools.
        answers = [step.content for step in trace if isinstance(step, AnswerStep)]
        before = tuple(step for step in trace if not isinstance(step, AnswerStep))
        return HarnessOutcome(answers[-1] if answers else "", steps=before)
    answer = await made if inspect.isawaitable(made) else made
    bare = object.__repr__(answer)  # the address of an object is not an answer
    if isinstance(answer, StepAgent) or str(answer) == bare:
        raise TypeError(
            "--mode end-to-end needs an agent that returns a text, or an object with "
            "`chat(query, memory, resources)`."
        )
    return HarnessOutcome("" if answer is None else str(answer))


async def work_in_steps(
    harness: Harness, entry: AtomicTask, tools: Sequence[ToolSpec], folder: Path
) -> HarnessOutcome:
    """Ask the agent's `next_step` for one step per assistant turn of the reference."""

    async def call(name: str, arguments: Mapping[str, JsonValue]) -> str:
        return f"{name} was not called: step mode calls no tool."

    histories = make_step_histories(entry)
    task = _make_task(entry, entry.request, folder, tools, call)
    resources = _describe_resources((tool.name for tool in tools), entry.attachments, folder)
    steps: list[PredictedStep] = []
    function = load_function(harness.target)
    with watch_faults(get_model().api) as fault:
        with _enforce(harness.limits) as enforced:
            async with agent_bridge(web_search=False, code_execution=False):
                agent = await _guard(partial(_make_step_agent, function, task))
                if isinstance(agent, MalformedStep):
                    steps += [agent] * len(histories)
                else:
                    for history in histories:
                        ask = partial(_ask_step, agent, history, resources, folder)
                        steps.append(_make_portable(await _guard(ask), folder))
        outcome = await assign_blame(HarnessOutcome(""), fault)
    if missing := len(histories) - len(steps):
        assert enforced.reason
        steps += [MalformedStep(content="", reason=enforced.reason)] * missing
    return replace(outcome, steps=tuple(steps))


def _make_step_agent(function: Callable[[AgentTask], Any], task: AgentTask) -> StepAgent:
    made = function(task)
    if not isinstance(made, StepAgent):
        raise TypeError(
            "--mode step needs an agent that gives single steps: an object with "
            "`next_step(history, resources, stop)`."
        )
    return made


def _ask_step(agent: StepAgent, history: History, resources: Any, folder: Path) -> PredictedStep:
    """Return the agent's step after turns of the reference, which get no thoughts."""
    paths = {item.path: str(folder / item.path) for item in history.attachments}
    messages = [_upstream_message(turn, paths) for turn in history.turns]
    return read_step(agent.next_step(messages, resources, stop=history.last))


async def _guard(ask: Callable[[], Awaited]) -> Awaited | MalformedStep:
    """Return what foreign code returns; an exception of it is its own failure."""
    try:
        return await run_in_thread(ask)
    except BaseException as exc:
        if _is_from_outside(exc):
            raise
        return MalformedStep(content=_format(exc), reason=_describe(exc))


def _describe_resources(
    tools: Iterable[str], files: Iterable[Attachment], folder: Path
) -> list[dict[str, Any]]:
    """Return tools, then files, as the original loader passes them to an agent."""
    return [
        *({"type": "tool", "name": name} for name in tools),
        *(
            {"type": "file", "filetype": item.type, "path": str(folder / item.path)}
            for item in files
        ),
    ]


def _make_portable(step: PredictedStep, folder: Path) -> PredictedStep:
    """Return a step with relative paths for the files in the task's folder."""
    if not isinstance(step, CallStep) or not isinstance(step.arguments, dict):
        return step
    given = {name: _make_relative(value, folder) for name, value in step.arguments.items()}
    return step.model_copy(update={"arguments": given})


def _make_relative(value: JsonValue, folder: Path) -> JsonValue:
    """Return a path below the folder as a relative one; other values stay as they are."""
    if not isinstance(value, str):
        return value
    for root in (folder, folder.resolve()):
        value = value.removeprefix(f"{root}/")
    return value


def _upstream_message(turn: HistoryTurn, paths: Mapping[str, str]) -> dict[str, Any]:
    """Return a turn of the reference in the form of the dataset."""
    if isinstance(turn, UserTurn):
        return {"role": "user", "content": turn.content}
    if isinstance(turn, CallTurn):
        arguments = {
            name: paths.get(value, value) if isinstance(value, str) else value
            for name, value in turn.call.arguments.items()
        }
        function = {"name": turn.call.name, "arguments": arguments}
        call = {"type": "function", "function": function}
        return {"role": "assistant", "tool_calls": [call]}
    if isinstance(turn, AnswerTurn):
        return {"role": "assistant", "content": turn.content}
    assert isinstance(turn, ReplyTurn), "a reference has no refused turns"
    content = {"type": turn.type, "content": turn.content}
    return {"role": "tool", "name": turn.tool, "content": content}

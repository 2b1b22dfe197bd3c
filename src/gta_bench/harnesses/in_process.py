"""A Python agent in this process, its model behind Inspect's agent bridge.

`pkg.mod:function` takes an AgentTask and gives its answer, with `async` or without; every OpenAI or
Anthropic client that it makes asks the run's model where the model is called `inspect`. What it
returns may instead be an object of upstream's contract: `chat(query, memory, resources) -> (steps,
memory)` and, for step mode, `next_step(history, resources, stop) -> step`.
"""

import asyncio
import inspect
import logging
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
from inspect_ai.agent import agent_bridge
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    get_model,
)
from inspect_ai.util import LimitExceededError, apply_limits, cost_limit
from pydantic import JsonValue

from gta_bench.agents.history import step_histories
from gta_bench.errors import ToolError, ToolUnavailable, UsageError
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.contract import Assignment, HarnessOutcome
from gta_bench.harnesses.faults import blaming
from gta_bench.harnesses.named import told
from gta_bench.harnesses.upstream_agent import (
    ChatAgent,
    StepAgent,
    describe_resources,
    make_portable,
    portable_value,
    write_history,
)
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.steps import AnswerStep, MalformedStep, PredictedStep
from gta_bench.records.tools import ToolSpec
from gta_bench.records.upstream import read_step, read_trace
from gta_bench.serving.wire import input_schema

logger = logging.getLogger(__name__)

_Message = Mapping[str, str]
SHOWN = 2000
Awaited = TypeVar("Awaited")


@dataclass(frozen=True)
class AgentTool:
    """A tool as most agent libraries take one; calling it gives the text of the result."""

    name: str
    description: str
    schema: dict[str, JsonValue]
    _call: Callable[[str, Mapping[str, JsonValue]], Awaitable[str]] = field(repr=False)

    async def __call__(self, arguments: Mapping[str, JsonValue]) -> str:
        """The result as text; what the tool refuses comes as text, too, and is recorded."""
        return await self._call(self.name, arguments)


@dataclass(frozen=True)
class AgentTask:
    """What an agent is given: the prompt, its files, a folder, and tools."""

    id: str
    prompt: str
    files: tuple[str, ...]
    folder: Path
    tools: tuple[AgentTool, ...]
    _loop: asyncio.AbstractEventLoop = field(repr=False)

    def tool(self, name: str) -> AgentTool:
        """The tool of that name."""
        return next(tool for tool in self.tools if tool.name == name)

    def call(self, name: str, arguments: Mapping[str, JsonValue]) -> str:
        """Call a tool from a thread, as agents without `async` do."""
        return self._wait(self.tool(name)(arguments))

    def ask(self, messages: Sequence[_Message]) -> str:
        """Ask the run's model from a thread, as agents without `async` do."""

        async def asked() -> str:
            return (await get_model().generate([_message(one) for one in messages])).completion

        return self._wait(asked())

    def _wait(self, work: Awaitable[str]) -> str:
        future: Future[str] = asyncio.run_coroutine_threadsafe(cast(Any, work), self._loop)
        return future.result()


def load_function(target: str) -> Callable[[AgentTask], Any]:
    """The function that `pkg.mod:function` names."""
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        raise UsageError(f"--agent-bridge {target!r} is not of the form pkg.mod:function.")
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError, SystemExit) as exc:
        raise UsageError(f"--agent-bridge: cannot load {target!r}: {exc}.") from exc
    if not callable(function):
        raise UsageError(f"--agent-bridge: {target!r} is not a function that takes an AgentTask.")
    return cast(Callable[[AgentTask], Any], function)


async def work_in_process(harness: Harness, given: Assignment) -> HarnessOutcome:
    """Let the agent work within its time and cost; an exception of its own is its failure."""
    limits, function = harness.limits, load_function(harness.target)
    async with blaming() as blame:
        with (
            apply_limits([cost_limit(limits.cost_usd)], catch_errors=True) as bounds,
            anyio.move_on_after(limits.seconds) as clock,
        ):
            outcome = await _tried(function, given)
        if clock.cancelled_caught:
            return HarnessOutcome("", f"The agent was stopped: {limits.words('timeout')}.")
        if bounds.limit_error is not None:
            return HarnessOutcome("", f"The agent was stopped: {limits.words('cost')}.")
        return await blame.judge(outcome)


async def _tried(function: Callable[[AgentTask], Any], given: Assignment) -> HarnessOutcome:
    """The guard for foreign code in this process: whatever it raises is its own failure.

    What keeps its tools from working is not lost: `RecordedTools.broken` has it.
    """
    try:
        async with agent_bridge(web_search=False, code_execution=False):
            return await _outcome(function, _task(given), given)
    except BaseException as exc:
        if is_from_outside(exc):
            raise
        return HarnessOutcome("", f"The agent failed: {_first_line(exc)}", _where(exc))


def is_from_outside(exc: BaseException) -> bool:
    """Whether it ends the task from outside: a limit, or somebody who cancels it."""
    current = asyncio.current_task()
    cancelled = current is not None and current.cancelling() > 0
    return isinstance(exc, LimitExceededError) or (
        isinstance(exc, asyncio.CancelledError) and cancelled
    )


def _first_line(exc: BaseException) -> str:
    return f"{type(exc).__name__}: {exc}"


def _where(exc: BaseException) -> str:
    return "".join(traceback.format_exception(exc))[-SHOWN:]


async def _in_thread(work: Callable[[], Awaited]) -> Awaited:
    """What foreign code gives that may take its time.

    The thread is its own: the event loop's pool has few, which our tools need, and one of them that
    never ended would keep the process from ending.
    """
    context = copy_context()
    ended: Future[tuple[Awaited | None, BaseException | None]] = Future()
    ended.set_running_or_notify_cancel()

    def run() -> None:
        try:
            ended.set_result((context.run(work), None))
        except BaseException as exc:
            logger.debug("an agent raised", exc_info=True)
            ended.set_result((None, exc))

    threading.Thread(target=run, name="gta-agent", daemon=True).start()
    value, raised = await asyncio.wrap_future(ended)
    if raised is not None:
        raise raised
    return cast(Awaited, value)


async def _outcome(
    function: Callable[[AgentTask], Any], task: AgentTask, given: Assignment
) -> HarnessOutcome:
    made = await _in_thread(partial(function, task))
    if isinstance(made, ChatAgent):
        attached, folder = given.task.attachments, task.folder
        resources = describe_resources((tool.name for tool in task.tools), attached, folder)
        # The original pipeline asks the user's words alone; a Workflow task also says where
        # results belong.
        query = given.task.request if isinstance(given.task, AtomicTask) else task.prompt
        work = partial(made.chat, query=query, memory=None, resources=resources)
        steps, _ = await _in_thread(work)
        return _upstream_outcome(make_portable(step, folder) for step in read_trace(steps))
    answer = await made if inspect.isawaitable(made) else made
    bare = object.__repr__(answer)  # the address of an object, which is nobody's answer
    if isinstance(answer, StepAgent) or str(answer) == bare:
        raise TypeError(
            "--mode end-to-end asks an agent for its answer: it must give a text, or an object "
            "with `chat(query, memory, resources)`."
        )
    return HarnessOutcome("" if answer is None else str(answer))


def _upstream_outcome(steps: Iterable[PredictedStep]) -> HarnessOutcome:
    """The last answer, and the steps before it, which may be calls of the agent's own tools."""
    trace = tuple(steps)
    answers = [step.content for step in trace if isinstance(step, AnswerStep)]
    before = tuple(step for step in trace if not isinstance(step, AnswerStep))
    return HarnessOutcome(answers[-1] if answers else "", steps=before)


async def work_in_steps(
    harness: Harness, entry: AtomicTask, tools: Sequence[ToolSpec], folder: Path
) -> HarnessOutcome:
    """A step of the agent for every assistant turn of the reference, by its `next_step`."""
    asked = step_histories(entry)
    steps: list[PredictedStep] = []
    limits, function = harness.limits, load_function(harness.target)
    async with blaming() as blame:
        with (
            apply_limits([cost_limit(limits.cost_usd)], catch_errors=True) as bounds,
            anyio.move_on_after(limits.seconds) as clock,
        ):
            async with agent_bridge(web_search=False, code_execution=False):
                made = partial(_step_agent, function, _step_task(entry, tools, folder))
                agent = await _guarded(made)
                if isinstance(agent, MalformedStep):
                    steps += [agent] * len(asked)
                else:
                    await _ask_steps(agent, entry, tools, folder, steps)
        outcome = await blame.judge(HarnessOutcome(""))
    if missing := len(asked) - len(steps):
        assert clock.cancelled_caught or bounds.limit_error is not None
        words = limits.words("timeout" if clock.cancelled_caught else "cost")
        steps += [MalformedStep(content="", reason=f"The agent was stopped: {words}.")] * missing
    return replace(outcome, steps=tuple(steps))


async def _ask_steps(
    agent: StepAgent,
    entry: AtomicTask,
    tools: Sequence[ToolSpec],
    folder: Path,
    steps: list[PredictedStep],
) -> None:
    """Add the agent's step after every prefix of the reference."""
    resources = describe_resources((tool.name for tool in tools), entry.attachments, folder)
    for history in step_histories(entry):
        told_so_far = write_history(history.turns, entry.attachments, folder)  # type: ignore[arg-type]
        ask = partial(_read_step, agent, told_so_far, resources, last=history.last)
        steps.append(make_portable(await _guarded(ask), folder))


def _step_agent(function: Callable[[AgentTask], Any], task: AgentTask) -> StepAgent:
    made = function(task)
    if not isinstance(made, StepAgent):
        raise TypeError(
            "--mode step asks an agent for single steps: it must give an object with "
            "`next_step(history, resources, stop)`."
        )
    return made


def _read_step(agent: StepAgent, history: Any, resources: Any, *, last: bool) -> PredictedStep:
    return read_step(agent.next_step(history, resources, stop=last))


async def _guarded(ask: Callable[[], Awaited]) -> Awaited | MalformedStep:
    """What foreign code gives; what it raises is its own failure."""
    try:
        return await _in_thread(ask)
    except BaseException as exc:
        if is_from_outside(exc):
            raise
        return MalformedStep(content=_where(exc), reason=f"The agent failed: {_first_line(exc)}")


def _step_task(entry: AtomicTask, tools: Sequence[ToolSpec], folder: Path) -> AgentTask:
    async def call(name: str, arguments: Mapping[str, JsonValue]) -> str:
        return f"{name} was not called: step mode calls no tool."

    return AgentTask(
        id=entry.id,
        prompt=entry.request,
        files=tuple(item.path for item in entry.attachments),
        folder=folder,
        tools=tuple(
            AgentTool(spec.name, spec.description, input_schema(spec), call) for spec in tools
        ),
        _loop=asyncio.get_running_loop(),
    )


def _task(given: Assignment) -> AgentTask:
    async def call(name: str, arguments: Mapping[str, JsonValue]) -> str:
        folder = given.workspace.root
        portable = {key: portable_value(value, folder) for key, value in arguments.items()}
        try:
            return told(await given.tools.call(given.workspace, name, portable))
        except (ToolError, ToolUnavailable) as exc:
            return str(exc)

    return AgentTask(
        id=given.task.id,
        prompt=given.prompt,
        files=tuple(item.path for item in given.task.attachments),
        folder=given.workspace.root,
        tools=tuple(
            AgentTool(spec.name, spec.description, input_schema(spec), call)
            for spec in given.tools.specs().values()
        ),
        _loop=asyncio.get_running_loop(),
    )


def _message(message: _Message) -> ChatMessage:
    if message["role"] == "system":
        return ChatMessageSystem(content=message["content"])
    if message["role"] == "assistant":
        return ChatMessageAssistant(content=message["content"])
    return ChatMessageUser(content=message["content"])

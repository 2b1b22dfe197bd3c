"""The agent loop and its dialogue: the agent decides, tools reply, until it answers the user.

The dialogue consists of Inspect's own messages. Replies stay as the provider sent them: reasoning
with signatures, every call with its id. Each message notes the steps that were read from it, so the
trace is the steps of all messages in order: a call, its reply, the next call of the same model
reply, its reply. Traces and turns are read from a dialogue only here.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentReasoning,
)
from inspect_ai.tool import ToolCall, ToolCallError
from pydantic import TypeAdapter

from gta_bench.agents.calling import Called, make_call
from gta_bench.agents.contract import Decide, Decision, History, HistoryTurn, RefusedTurn
from gta_bench.agents.replies import FINAL
from gta_bench.confine.workspace import Workspace
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.calls import CallRecord
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, UserTurn
from gta_bench.records.dialogue import ToolCall as CallOfTurn
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
from gta_bench.records.units import StopKind
from gta_bench.records.workflow import WorkflowTask
from gta_bench.tools.source import ToolSource

TOO_MANY = "TOO_MANY_CALLS"
# Keys of a message's metadata, which no provider gets: the steps that were read from the message,
# and a mark for feedback about the agent's own reply.
STEPS: Final = "gta_steps"
IS_FEEDBACK: Final = "gta_told"  # stored name

MessageT = TypeVar("MessageT", ChatMessageAssistant, ChatMessageTool)

_MESSAGES = TypeAdapter[list[ChatMessage]](list[ChatMessage])
_STEPS = TypeAdapter[list[PredictedStep]](list[PredictedStep])


@dataclass
class Dialogue:
    """All messages on one task so far, starting with the request, and the records of its calls."""

    messages: list[ChatMessage]
    calls: list[CallRecord] = field(default_factory=list)
    stops: list[StopKind] = field(default_factory=list)

    @property
    def trace(self) -> Trace:
        """The steps as they are scored."""
        return tuple(step for message in self.messages for step in read_steps(message))

    @property
    def turns(self) -> tuple[HistoryTurn, ...]:
        """The dialogue as text protocols show it."""
        return tuple(_read_turns(self.messages))

    def ask(self, request: str) -> None:
        """Add a request of the user; it is appended to feedback that the agent got last."""
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ChatMessageUser):
            self.messages[-1] = last.model_copy(update={"content": f"{last.text}\n\n{request}"})
        else:
            self.messages.append(ChatMessageUser(content=request))

    def add_reply(self, decision: Decision) -> list[ToolCall]:
        """Add a reply unchanged and return its calls, which all need a result."""
        steps: list[PredictedStep] = []
        if decision.thought:
            steps.append(ThoughtStep(content=decision.thought))
        if not isinstance(decision.step, CallStep):
            steps.append(decision.step)
        message = self._make_message(decision)
        self.messages.append(note_steps(message, steps))
        return message.tool_calls or []

    def add_result(self, call: ToolCall, outcome: Called | CallStep) -> None:
        """Answer a call by its id, with its outcome or with the reason why it was not made."""
        steps: list[PredictedStep]
        if isinstance(outcome, CallStep):
            assert outcome.error is not None
            steps, text, failed = [outcome], outcome.error.message, True
        else:
            steps, text, failed = [*outcome.steps], outcome.text, outcome.result is None
            self.calls.append(outcome.record)
        result = ChatMessageTool(
            content=text,
            tool_call_id=call.id,
            function=call.function,
            error=ToolCallError("unknown", text) if failed else None,
        )
        self.messages.append(note_steps(result, steps))

    def add_feedback(self, feedback: str) -> None:
        """Tell the agent what is wrong with its reply."""
        self.messages.append(ChatMessageUser(content=feedback, metadata={IS_FEEDBACK: True}))

    def _make_message(self, decision: Decision) -> ChatMessageAssistant:
        """Return the provider's message; calls from text or from a script get ids of ours."""
        step = decision.step
        if decision.output is None:
            content = [] if isinstance(step, CallStep) else step.content
            message = ChatMessageAssistant(content=content)
        else:
            message = decision.output.message
        if len(message.tool_calls or ()) == len(decision.calls):
            return message
        first = 1 + sum(isinstance(one, ChatMessageTool) for one in self.messages)
        calls = [
            ToolCall(
                id=make_call_id(number),
                function=call.name,
                arguments=call.arguments if isinstance(call.arguments, dict) else {},
            )
            for number, call in enumerate(decision.calls, start=first)
        ]
        return message.model_copy(update={"tool_calls": calls or None})


async def work_on(
    task: AtomicTask | WorkflowTask,
    decide: Decide,
    source: ToolSource,
    workspace: Workspace,
    *,
    tools: Sequence[ToolSpec],
    limits: LoopLimits,
    before: Dialogue | None = None,
) -> Dialogue:
    """Loop until the agent answers or has no turns left; its mistakes are in the trace.

    `before` is a dialogue to continue; its last message is the next request to the agent.
    """
    dialogue = before or Dialogue([ChatMessageUser(content=task.request)])
    for turn in range(1, limits.max_turns + 1):
        history = History(
            task=task.id,
            attachments=task.attachments,
            turns=dialogue.turns,
            messages=tuple(dialogue.messages),
            mode="end-to-end",
            last=turn == limits.max_turns,
        )
        decision = await decide(history, tools)
        if decision.stop is not None:
            dialogue.stops.append(decision.stop)
        if decision.stop == "context":
            break  # there is no reply
        calls = dialogue.add_reply(decision)
        if isinstance(decision.step, AnswerStep) or decision.stop in FINAL:
            break
        if isinstance(decision.step, MalformedStep):
            dialogue.add_feedback(decision.step.reason)
        for call, step in zip(calls, _limit_calls(decision, limits.max_calls), strict=True):
            # One after the other, in order: a call may need a file that the previous one wrote.
            dialogue.add_result(call, await make_call(step, source, workspace))
    return dialogue


def _limit_calls(decision: Decision, most: int) -> list[CallStep]:
    """Return the calls of a reply, with an error in those beyond the limit."""
    message = f"Only the first {most} calls of a reply are made; make this one again."
    beyond = {"error": StepError(type=TOO_MANY, message=message)}
    calls = decision.calls
    return [*calls[:most], *(step.model_copy(update=beyond) for step in calls[most:])]


def make_call_id(number: int) -> str:
    """Return an id that every provider accepts; Mistral requires nine letters and digits."""
    return f"gta{number:06d}"


def note_steps(message: MessageT, steps: Sequence[PredictedStep]) -> MessageT:
    """Return the message, with the same id, and a note of the steps that it represents."""
    note = {**(message.metadata or {}), STEPS: _STEPS.dump_python(list(steps), mode="json")}
    return message.model_copy(update={"metadata": note})


def read_steps(message: ChatMessage) -> list[PredictedStep]:
    """Return the steps that a message represents."""
    return _STEPS.validate_python((message.metadata or {}).get(STEPS, []))


def dump_messages(messages: Sequence[ChatMessage]) -> tuple[dict[str, Any], ...]:
    """Return messages in the form that a unit stores."""
    return tuple(_MESSAGES.dump_python(list(messages), mode="json"))


def load_messages(kept: Iterable[dict[str, Any]], *, model: str) -> list[ChatMessage]:
    """Read stored messages, to continue them in another sample of the same model.

    Inspect looks up Claude's redacted thinking by its data in the sample that it came in, and by
    its signature in other samples.
    """
    messages = _MESSAGES.validate_python(list(kept))
    if not model.startswith("anthropic/"):
        return messages
    return [
        message.model_copy(update={"content": _make_portable(message.content)})
        if isinstance(message, ChatMessageAssistant)
        else message
        for message in messages
    ]


def _make_portable(content: str | list[Content]) -> str | list[Content]:
    if isinstance(content, str):
        return content
    return [
        part.model_copy(update={"signature": part.reasoning})
        if isinstance(part, ContentReasoning) and part.redacted and part.summary is None
        else part
        for part in content
    ]


def _read_turns(messages: Iterable[ChatMessage]) -> Iterator[HistoryTurn]:
    said = ""
    for message in messages:
        if isinstance(message, ChatMessageAssistant):
            said = message.text
            answers = (step for step in read_steps(message) if isinstance(step, AnswerStep))
            yield from (AnswerTurn(content=step.content) for step in answers)
        elif isinstance(message, ChatMessageTool):
            yield from _read_call_turns(said, message)
        elif (message.metadata or {}).get(IS_FEEDBACK):
            yield RefusedTurn(reply=said, feedback=message.text)
        else:
            yield UserTurn(content=message.text)


def _read_call_turns(said: str, message: ChatMessageTool) -> Iterator[HistoryTurn]:
    call, *replies = read_steps(message)
    assert isinstance(call, CallStep)
    if not replies:
        yield RefusedTurn(reply=said, feedback=message.text)
        return
    assert isinstance(call.arguments, dict)
    made = CallOfTurn(name=call.name, arguments=call.arguments)
    yield CallTurn(call=made, content=said or None)
    if call.error is not None:
        yield ReplyTurn(tool=call.name, type="text", content=message.text)
    parts = [part for one in replies if isinstance(one, ReplyStep) for part in one.parts]
    for part in parts:
        yield ReplyTurn(tool=call.name, type=part.type, content=part.content)

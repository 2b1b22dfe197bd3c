"""A dialogue as Inspect's own messages, and the one place where trace and turns are read from it.

Replies stand as the provider gave them: reasoning with signatures, every call with its id. Each
message notes the steps that were read from it, so that the trace is the steps of all messages in
their order: a call, its reply, the next call of the same reply, its reply.
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

from gta_bench.agents.calling import Called
from gta_bench.agents.contract import Decision
from gta_bench.agents.history import HistoryTurn, RefusedTurn
from gta_bench.records.calls import CallRecord
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, UserTurn
from gta_bench.records.dialogue import ToolCall as CallOfTurn
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyStep,
    ThoughtStep,
    Trace,
)
from gta_bench.records.units import StopKind

# Keys of a message's metadata, which no provider is sent: the steps that it stands for, and that
# it tells the agent what was wrong with its reply.
STEPS: Final = "gta_steps"
TOLD: Final = "gta_told"

MessageT = TypeVar("MessageT", ChatMessageAssistant, ChatMessageTool)

_MESSAGES = TypeAdapter[list[ChatMessage]](list[ChatMessage])
_STEPS = TypeAdapter[list[PredictedStep]](list[PredictedStep])


@dataclass
class Dialogue:
    """What was said on one task so far, from the request on, and what its calls came to."""

    messages: list[ChatMessage]
    calls: list[CallRecord] = field(default_factory=list)
    stops: list[StopKind] = field(default_factory=list)

    @property
    def trace(self) -> Trace:
        """The steps in the form in which they are scored."""
        return tuple(step for message in self.messages for step in noted_steps(message))

    @property
    def turns(self) -> tuple[HistoryTurn, ...]:
        """The dialogue in the form in which text protocols show it."""
        return tuple(_turns(self.messages))

    def ask(self, words: str) -> None:
        """What the user asks now; what the agent was told last goes before it."""
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ChatMessageUser):
            self.messages[-1] = last.model_copy(update={"content": f"{last.text}\n\n{words}"})
        else:
            self.messages.append(ChatMessageUser(content=words))

    def add_reply(self, decision: Decision) -> list[ToolCall]:
        """Add a reply as it came; returns its calls, which all need a result."""
        steps: list[PredictedStep] = []
        if decision.thought:
            steps.append(ThoughtStep(content=decision.thought))
        if not isinstance(decision.step, CallStep):
            steps.append(decision.step)
        message = self._message(decision)
        self.messages.append(note_steps(message, steps))
        return message.tool_calls or []

    def add_result(self, call: ToolCall, outcome: Called | CallStep) -> None:
        """Answer a call by its id: with what came of it, or with why it was not made."""
        steps: list[PredictedStep]
        if isinstance(outcome, CallStep):
            assert outcome.error is not None
            steps, told = [outcome], outcome.error.message
        else:
            steps, told = [*outcome.steps], outcome.told
            self.calls.append(outcome.record)
        failed = isinstance(outcome, CallStep) or outcome.result is None
        result = ChatMessageTool(
            content=told,
            tool_call_id=call.id,
            function=call.function,
            error=ToolCallError("unknown", told) if failed else None,
        )
        self.messages.append(note_steps(result, steps))

    def tell(self, words: str) -> None:
        """Tell the agent what is wrong with its reply."""
        self.messages.append(note_told(ChatMessageUser(content=words)))

    def _message(self, decision: Decision) -> ChatMessageAssistant:
        """The provider's message; calls that were read from text or scripted get ids of ours."""
        if decision.output is None:
            message = ChatMessageAssistant(content=_words(decision.step))
        else:
            message = decision.output.message
        if len(message.tool_calls or ()) == len(decision.calls):
            return message
        first = 1 + sum(isinstance(one, ChatMessageTool) for one in self.messages)
        calls = [_made(step, number) for number, step in enumerate(decision.calls, start=first)]
        return message.model_copy(update={"tool_calls": calls or None})


def call_id(number: int) -> str:
    """An id that every provider takes; Mistral wants nine letters and digits."""
    return f"gta{number:06d}"


def note_steps(message: MessageT, steps: Sequence[PredictedStep]) -> MessageT:
    """The message with the steps that it stands for; its id stays."""
    note = {**(message.metadata or {}), STEPS: _STEPS.dump_python(list(steps), mode="json")}
    return message.model_copy(update={"metadata": note})


def note_told(message: ChatMessageUser) -> ChatMessageUser:
    """The message as one that tells the agent what was wrong with its reply."""
    return message.model_copy(update={"metadata": {TOLD: True}})


def noted_steps(message: ChatMessage) -> list[PredictedStep]:
    """The steps that a message stands for."""
    return _STEPS.validate_python((message.metadata or {}).get(STEPS, []))


def dump_messages(messages: Sequence[ChatMessage]) -> tuple[dict[str, Any], ...]:
    """Messages in the form in which a unit keeps them."""
    return tuple(_MESSAGES.dump_python(list(messages), mode="json"))


def load_messages(kept: Iterable[dict[str, Any]], *, model: str) -> list[ChatMessage]:
    """Kept messages, for another sample of the same model.

    Inspect finds redacted thinking of Claude by its data in the sample that it came in, and by its
    signature in others.
    """
    messages = _MESSAGES.validate_python(list(kept))
    if not model.startswith("anthropic/"):
        return messages
    return [
        message.model_copy(update={"content": _portable(message.content)})
        if isinstance(message, ChatMessageAssistant)
        else message
        for message in messages
    ]


def _portable(content: str | list[Content]) -> str | list[Content]:
    if isinstance(content, str):
        return content
    return [
        part.model_copy(update={"signature": part.reasoning})
        if isinstance(part, ContentReasoning) and part.redacted and part.summary is None
        else part
        for part in content
    ]


def _words(step: AnswerStep | CallStep | MalformedStep) -> str | list[Content]:
    return [] if isinstance(step, CallStep) else step.content


def _made(step: CallStep, number: int) -> ToolCall:
    arguments = step.arguments if isinstance(step.arguments, dict) else {}
    return ToolCall(id=call_id(number), function=step.name, arguments=arguments)


def _turns(messages: Iterable[ChatMessage]) -> Iterator[HistoryTurn]:
    said = ""
    for message in messages:
        if isinstance(message, ChatMessageAssistant):
            said = message.text
            answers = (step for step in noted_steps(message) if isinstance(step, AnswerStep))
            yield from (AnswerTurn(content=step.content) for step in answers)
        elif isinstance(message, ChatMessageTool):
            yield from _call_turns(said, message)
        elif (message.metadata or {}).get(TOLD):
            yield RefusedTurn(reply=said, told=message.text)
        else:
            yield UserTurn(content=message.text)


def _call_turns(said: str, message: ChatMessageTool) -> Iterator[HistoryTurn]:
    call, *replies = noted_steps(message)
    assert isinstance(call, CallStep)
    if not replies:
        yield RefusedTurn(reply=said, told=message.text)
        return
    assert isinstance(call.arguments, dict)
    made = CallOfTurn(name=call.name, arguments=call.arguments)
    yield CallTurn(call=made, content=said or None)
    parts = [part for one in replies if isinstance(one, ReplyStep) for part in one.parts]
    if call.error is not None:
        yield ReplyTurn(tool=call.name, type="text", content=message.text)
    for part in parts:
        yield ReplyTurn(tool=call.name, type=part.type, content=part.content)

"""Spans of OpenTelemetry's GenAI conventions, made from the stored trace of a unit.

A unit is one trace: the agent's work, with its model calls and tool calls below it. Ids follow from
the unit, so an export that is repeated gives the same spans.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import zip_longest
from typing import Final, Literal, NamedTuple

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSample
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ModelUsage

from gta_bench.agents.loop import load_messages, read_steps
from gta_bench.exports.gen_ai_messages import (
    dump,
    format_messages,
    format_output,
    format_text,
    format_tools,
    name_finish,
)
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.calls import CallRecord
from gta_bench.records.run import RunManifest
from gta_bench.records.steps import AnswerStep, CallStep, ReplyStep, Trace
from gta_bench.records.workflow import WorkflowTask
from gta_bench.runs.logs import count_sent, model_events
from gta_bench.runs.samples import TASK, UnitData, read_task, read_unit_data

AttributeValue = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, AttributeValue]
# The conventions' names of providers, by Inspect's; others keep their name.
PROVIDERS: Final[Mapping[str, str]] = {
    "google": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "azureai": "azure.ai.inference",
    "mistral": "mistral_ai",
    "grok": "x_ai",
}
# The name that the conventions give to errors without a type.
OTHER: Final = "_OTHER"
NO_MODEL: Final = "none/none"


@dataclass(frozen=True, kw_only=True)
class GenAiSpan:
    """One span; times are nanoseconds since 1970.

    `error` is None unless it failed; it is empty if the message is not exported.
    """

    name: str
    kind: Literal["internal", "client"]
    trace: bytes
    id: bytes
    parent: bytes | None
    start: int
    end: int
    attributes: Attributes
    error: str | None = None


class UnitSpans(NamedTuple):
    """The spans of a unit, the agent's first."""

    task: str
    epoch: int
    spans: tuple[GenAiSpan, ...]

    @property
    def root(self) -> GenAiSpan:
        """The span of the whole unit, which scores belong to."""
        return self.spans[0]


class _Made(NamedTuple):
    """A tool call of the trace: its step, the reply, its id, and the id of the model's message.

    A call that was refused before it reached a tool has no record.
    """

    step: CallStep
    reply: str
    refused: bool
    id: str | None = None
    message: str | None = None


class _Ids:
    """The ids of a trace and its spans."""

    def __init__(self, *parts: str) -> None:
        self._base = "\0".join(parts)
        self.trace = sha256(self._base.encode()).digest()[:16]

    def span(self, name: str) -> bytes:
        """Return the id of the span with this name inside the trace."""
        return sha256(f"{self._base}\0{name}".encode()).digest()[:8]


def make_spans(sample: EvalSample, run: str, manifest: RunManifest, *, content: bool) -> UnitSpans:
    """Return the spans of a unit; prompts, replies, arguments and results only with `content`.

    `run` is a short name of the run, so that backends do not mix its dialogues with others.
    """
    data = read_unit_data(sample.store.items())
    task, epoch = str(sample.id), sample.epoch
    ids = _Ids(manifest.created.isoformat(), task, str(epoch), sample.uuid or "")
    events = sorted(
        (event for event in model_events(sample) if event.role is None),
        key=lambda event: event.timestamp,
    )
    began = _find_start(sample, events, manifest.created)
    root = GenAiSpan(
        name=f"invoke_agent {_agent(manifest)}",
        kind="internal",
        trace=ids.trace,
        id=ids.span("agent"),
        parent=None,
        start=_nanoseconds(began),
        end=_nanoseconds(_read_time(sample.completed_at) or began),
        attributes=_describe_unit(sample, data, run, manifest, content=content),
        error=None if sample.error is None else _shown(sample.error.message, content=content),
    )
    chats = [
        _make_chat(event, number, root, ids, content=content)
        for number, event in enumerate(events, 1)
    ]
    tools: list[GenAiSpan] = []
    if manifest.spec.mode != "step":  # step by step, calls are predicted and not made
        tools = list(_make_tools(data, events, chats, root, ids, content=content))
    below = sorted([*chats, *tools], key=lambda span: (span.start, span.end))
    end = max([root.end, *(span.end for span in below)])
    return UnitSpans(task, epoch, (replace(root, end=end), *below))


def _agent(manifest: RunManifest) -> str:
    system = manifest.spec.system
    return system.harness or system.agent


def _describe_unit(
    sample: EvalSample, data: UnitData, run: str, manifest: RunManifest, *, content: bool
) -> Attributes:
    spec = manifest.spec
    found: dict[str, AttributeValue] = {
        "gen_ai.operation.name": "invoke_agent",
        **_name_model(spec.system.model),
        "gen_ai.agent.name": _agent(manifest),
        "gen_ai.conversation.id": f"{run}/{sample.id}.{sample.epoch}",
        "gta.run": run,
        "gta.dataset": spec.dataset,
        "gta.mode": spec.mode,
        "gta.task": str(sample.id),
        "gta.epoch": sample.epoch,
    }
    if spec.system.harness_version:
        found["gen_ai.agent.version"] = spec.system.harness_version
    if sample.error is not None:
        found["error.type"] = OTHER
    if content:
        found |= _describe_dialogue(_read_request(sample, manifest), data.steps or ())
    return found


def _describe_dialogue(request: str, trace: Trace) -> Attributes:
    """Return request and answer, also by OpenInference's names.

    Lists of traces in MLflow and Phoenix show those as text, and the conventions' as JSON or not.
    """
    found = {"gen_ai.input.messages": format_text("user", request), "input.value": request}
    answers = [one.content for one in trace if isinstance(one, AnswerStep)]
    if answers:
        found["gen_ai.output.messages"] = format_text("assistant", answers[-1])
        found["output.value"] = answers[-1]
    return found


def _read_request(sample: EvalSample, manifest: RunManifest) -> str:
    """Return the user's request; empty if the unit failed before its task was recorded."""
    if TASK not in sample.metadata:
        return ""
    if manifest.spec.dataset == "workflow":
        return read_task(sample.metadata, WorkflowTask).request
    return read_task(sample.metadata, AtomicTask).request


def _make_chat(
    event: ModelEvent, number: int, root: GenAiSpan, ids: _Ids, *, content: bool
) -> GenAiSpan:
    """Return the span of a model call."""
    named, output, config = _name_model(event.model), event.output, event.config
    found: dict[str, AttributeValue] = {"gen_ai.operation.name": "chat", **named}
    for name in ("temperature", "max_tokens", "seed", "top_p", "top_k"):
        if (value := getattr(config, name)) is not None:
            found[f"gen_ai.request.{name}"] = value
    if output.model:
        found["gen_ai.response.model"] = output.model
    if output.choices:
        reasons = [name_finish(choice.stop_reason) for choice in output.choices]
        found["gen_ai.response.finish_reasons"] = reasons
    if output.usage is not None:
        found |= _describe_usage(output.usage)
    if event.error is not None:
        found["error.type"] = OTHER
    if content:
        found["gen_ai.input.messages"] = format_messages(event.input)
        found["gen_ai.output.messages"] = format_output(output)
        if event.tools:
            found["gen_ai.tool.definitions"] = format_tools(event.tools)
    took = timedelta(seconds=event.working_time or 0.0)
    return GenAiSpan(
        name=f"chat {named['gen_ai.request.model']}",
        kind="client",
        trace=root.trace,
        id=ids.span(f"chat {number}"),
        parent=root.id,
        start=_nanoseconds(event.timestamp),
        end=_nanoseconds(event.completed or event.timestamp + took),
        attributes=found,
        error=None if event.error is None else _shown(event.error, content=content),
    )


def _make_tools(
    data: UnitData,
    events: Sequence[ModelEvent],
    chats: Sequence[GenAiSpan],
    root: GenAiSpan,
    ids: _Ids,
    *,
    content: bool,
) -> Iterator[GenAiSpan]:
    """Yield the spans of tool calls.

    A trace has how long each call took, not when it began: calls are made one after the other, once
    the reply that asks for them is there.
    """
    anchors = _Anchors(events, chats)
    records, now = list(data.calls), root.start
    for number, made in enumerate(_list_calls(data), 1):
        known = records and not made.refused and records[0].tool == made.step.name
        record = records.pop(0) if known else None
        asked = anchors.find(made)
        now = max(now, asked) if asked is not None else now
        end = now + round(1e9 * record.seconds) if record is not None else now
        error = made.step.error
        yield GenAiSpan(
            name=f"execute_tool {made.step.name}",
            kind="internal",
            trace=root.trace,
            id=ids.span(f"tool {number}"),
            parent=root.id,
            start=now,
            end=end,
            attributes=_describe_call(made, record, content=content),
            error=None if error is None else _shown(error.message, content=content),
        )
        now = end


class _Anchors:
    """Finds the end of the model call that asked for a tool call."""

    def __init__(self, events: Sequence[ModelEvent], chats: Sequence[GenAiSpan]) -> None:
        self._by_message: dict[str, int] = {}
        self._by_tool: list[tuple[str, int]] = []
        for event, chat in zip(events, chats, strict=True):
            for choice in event.output.choices[:1]:
                if choice.message.id is not None:
                    self._by_message[choice.message.id] = chat.end
                names = (call.function for call in choice.message.tool_calls or ())
                self._by_tool += [(name, chat.end) for name in names]

    def find(self, made: _Made) -> int | None:
        """Return that time; calls without a message are matched by their tool, in order."""
        if made.message in self._by_message:
            return self._by_message[made.message]
        # A harness calls our tools by a longer name, such as mcp__gta__OCR.
        for place, (name, end) in enumerate(self._by_tool):
            if name.endswith(made.step.name):
                del self._by_tool[: place + 1]
                return end
        return None


def _list_calls(data: UnitData) -> Iterator[_Made]:
    """Yield the calls of the dialogue, or of the trace if there is no dialogue."""
    if not data.messages:
        yield from _list_trace_calls(data.steps or ())
        return
    asked: str | None = None
    for message in load_messages(data.messages, model=NO_MODEL):
        if isinstance(message, ChatMessageAssistant):
            asked = message.id
        elif isinstance(message, ChatMessageTool):
            step, *replies = read_steps(message)
            if isinstance(step, CallStep):
                yield _Made(step, message.text, not replies, message.tool_call_id, asked)


def _list_trace_calls(trace: Trace) -> Iterator[_Made]:
    for step, after in zip_longest(trace, trace[1:]):
        if isinstance(step, CallStep):
            reply = after if isinstance(after, ReplyStep) else None
            parts = reply.parts if reply is not None else ()
            yield _Made(step, "\n".join(part.content for part in parts), reply is None)


def _describe_call(made: _Made, record: CallRecord | None, *, content: bool) -> Attributes:
    found: dict[str, AttributeValue] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": made.step.name,
        "gen_ai.tool.type": "function",
    }
    if made.id is not None:
        found["gen_ai.tool.call.id"] = made.id
    if made.step.error is not None:
        found["error.type"] = made.step.error.type
    if record is not None:
        found |= {"gta.backend": record.backend, "gta.tool_version": record.tool_version}
    if content:
        found["gen_ai.tool.call.arguments"] = dump(made.step.arguments)
        found["gen_ai.tool.call.result"] = made.reply
    return found


def _shown(message: str, *, content: bool) -> str:
    """Return the first line of an error; nothing without `content`, because it may quote that."""
    return message.partition("\n")[0] if content else ""


def _describe_usage(usage: ModelUsage) -> Attributes:
    """Return tokens; the conventions count cached ones as input, too."""
    read, write = usage.input_tokens_cache_read, usage.input_tokens_cache_write
    found: dict[str, AttributeValue] = {
        "gen_ai.usage.input_tokens": count_sent(usage),
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    if read is not None:
        found["gen_ai.usage.cache_read.input_tokens"] = read
    if write is not None:
        found["gen_ai.usage.cache_write.input_tokens"] = write
    return found


def _name_model(name: str) -> dict[str, AttributeValue]:
    """Return provider and model, which Inspect has in one name."""
    provider, _, model = name.partition("/")
    return {
        "gen_ai.provider.name": PROVIDERS.get(provider, provider),
        "gen_ai.request.model": model or provider,
    }


def _find_start(sample: EvalSample, events: Sequence[ModelEvent], created: datetime) -> datetime:
    found = _read_time(sample.started_at)
    if found is not None:
        return found
    return events[0].timestamp if events else created


def _read_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _nanoseconds(when: datetime) -> int:
    """Return the time exactly: a float has too few digits."""
    since = (when if when.tzinfo else when.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000

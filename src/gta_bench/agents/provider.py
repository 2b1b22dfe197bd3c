"""What providers say that Inspect drops or misreads, put into its output where it is lost."""

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    Content,
    ContentReasoning,
    ContentText,
    ModelAPI,
    ModelCall,
    ModelOutput,
)
from inspect_ai.tool import ToolCall
from pydantic_core import PydanticSerializationError

from gta_bench.agents.replies import clean_text
from gta_bench.errors import EnvironmentProblem

# What the server said last to whoever is asking.
_BODY: ContextVar[bytes] = ContextVar("gta_body", default=b"")
# The last fault of whoever wants to know of it; see `watch_faults`.
_FAULT: ContextVar["LastFault | None"] = ContextVar("gta_fault", default=None)
# Where an output keeps the provider's own word for why the reply ended.
RAW_STOP: Final = "raw_stop_reason"
REASONING_FIELD: Final = "reasoning_content"
# As Inspect says it of what it cannot parse.
UNREADABLE: Final = (
    "Error parsing the following tool call arguments:\n\n{}\n\n"
    "Error details: they must be a JSON object"
)
# What Inspect puts where a provider gave nothing.
NO_CONTENT: Final = "(no content)"
# vLLM, llama.cpp, SGLang and others; Inspect knows the words of the providers it names.
_OVERFLOW: Final = re.compile(
    r"maximum context length|exceed_context_size_error|context size has been exceeded"
    r"|exceeds the (available|maximum|model'?s) context|longer than the (model'?s )?context"
    r"|context_length_exceeded",
    re.IGNORECASE,
)
# A limit for the reply that no request leaves room for is a setting, not a long dialogue.
_REPLY_TOO_LARGE: Final = re.compile(r"max_(completion_)?tokens\W.{0,40}too large", re.IGNORECASE)
_TEMPLATE: Final = re.compile(
    r"roles must alternate|unexpected role|role not supported|chat template|jinja|raise_exception",
    re.IGNORECASE,
)


@dataclass
class LastFault:
    """What the newest request came to: the provider's fault, or None where it was answered."""

    raised: Exception | None = None


@contextmanager
def watch_faults(api: ModelAPI) -> Iterator[LastFault]:
    """What is asked of the provider inside the block leaves its last fault here.

    Inspect keeps the words of a fault, and not its status.
    """
    watch_provider(api)
    fault = LastFault()
    token = _FAULT.set(fault)
    try:
        yield fault
    finally:
        _FAULT.reset(token)


def _note_fault(raised: Exception | None) -> None:
    fault = _FAULT.get()
    if fault is not None:
        fault.raised = raised


def watch_provider(api: ModelAPI) -> None:
    """Make a provider's outputs complete, once for each."""
    generate = api.generate
    if vars(api).get("generate") is not None:
        return

    async def complete(
        input: list[ChatMessage], **options: Any
    ) -> ModelOutput | Exception | tuple[ModelOutput | Exception, ModelCall]:
        _BODY.set(b"")
        _note_fault(None)
        try:
            result = await generate(input=input, **options)
        except Exception as exc:
            _note_fault(exc)
            told = _told(exc, input, api)
            if told is None:
                raise
            return told
        output, call = result if isinstance(result, tuple) else (result, None)
        if isinstance(output, Exception) and is_overflow(str(output), input):
            output = _no_room(api.model_name)
        elif isinstance(output, ModelOutput) and call is not None and output.choices:
            _complete(output, call.response)
        if isinstance(output, ModelOutput):
            output = _writable(output)
        _note_fault(output if isinstance(output, Exception) else None)
        return output if call is None else (output, call)

    vars(api)["generate"] = complete
    # The vendors' packages say it at every reply; the unit's cause names an odd server once.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    # The vendors' packages try again by themselves; Inspect finds their connections here, too.
    connections = getattr(getattr(api, "client", None), "_client", None)
    hooks = getattr(connections, "event_hooks", None)
    if isinstance(hooks, dict):
        hooks["response"].append(_look_at)


def _told(
    raised: Exception, input: Sequence[ChatMessage], api: ModelAPI
) -> ModelOutput | Exception | None:
    """What a failed request comes to; an exception that is returned is not tried again."""
    said = str(raised)
    if is_overflow(said, input):
        return _no_room(api.model_name)
    if is_template_error(said):
        return raised  # the same history would be refused again
    if (sent := _odd_calls()) is not None:
        raise odd_server(sent, api.base_url or api.model_name) from raised
    return None


async def _look_at(response: Any) -> None:
    if response.headers.get("content-type", "").startswith("application/json"):
        _BODY.set(await response.aread())
    if response.status_code >= 500:
        said = (await response.aread()).decode(errors="replace")
        if _OVERFLOW.search(said) or is_template_error(said):
            response.headers["x-should-retry"] = "false"


def is_overflow(said: str, input: Sequence[ChatMessage]) -> bool:
    """Whether a server's words mean that the dialogue outgrew the model's window."""
    begun = any(message.role == "assistant" for message in input)
    return bool(_OVERFLOW.search(said)) and (begun or not _REPLY_TOO_LARGE.search(said))


def is_template_error(said: str) -> bool:
    """Whether a server's chat template refused the history; llama.cpp says so with status 500."""
    return bool(_TEMPLATE.search(said))


def _no_room(model: str) -> ModelOutput:
    return ModelOutput.from_content(model, "", stop_reason="model_length")


def _writable(output: ModelOutput) -> ModelOutput:
    """The output without half characters, which neither a log nor the next request can hold."""
    try:
        output.model_dump_json()
    except PydanticSerializationError:
        return ModelOutput.model_validate(_clean(output.model_dump()))
    return output


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list | tuple) else value


def _complete(output: ModelOutput, response: object) -> None:
    if not isinstance(response, Mapping):
        return
    if output.stop_reason == "unknown":
        output.metadata = {**(output.metadata or {}), RAW_STOP: _raw_stop(response)}
    message = output.message
    _mark_unreadable(message.tool_calls or [], _raw_calls(response))
    if message.tool_calls and _first(response).get("message", {}).get(REASONING_FIELD) == "":
        message.content = [empty_reasoning(), *_without_reasoning(message)]
    if response.get("object") == "response":
        _complete_response(output, response)


def _mark_unreadable(calls: Sequence[ToolCall], raw: Sequence[Mapping[str, Any]]) -> None:
    """Mark arguments that are no object: Inspect takes them for the first parameter's value."""
    if len(calls) != len(raw):
        return
    for call, sent in zip(calls, raw, strict=True):
        given = sent.get("arguments")
        words = given.strip() if isinstance(given, str) else ""
        if call.parse_error is None and words not in ("", "null") and not words.startswith("{"):
            call.arguments, call.parse_error = {}, UNREADABLE.format(words)


def odd_server(sent: str, where: str) -> EnvironmentProblem:
    """What is told where nobody can work with a server's own reply."""
    return EnvironmentProblem(
        f"The server sent {sent} ({where}). Use another version or tool-call parser of it, or "
        "--agent react, which needs text alone."
    )


def _odd_calls() -> str | None:
    """What is odd about the calls that Inspect could not read; None where nothing is."""
    try:
        response = json.loads(_BODY.get())
    except ValueError:
        return None
    for sent in _raw_calls(response) if isinstance(response, Mapping) else ():
        if not isinstance(given := sent.get("arguments") or "", str):
            return f"the arguments of a tool call as {type(given).__name__} and not as a text"
        if not isinstance(sent.get("id"), str):
            return f"a tool call whose id is {json.dumps(sent.get('id'))}"
    return None


def _raw_calls(response: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The calls of a reply of OpenAI's protocols as they were sent."""
    if response.get("object") == "response":
        items = response.get("output") or []
        return [item for item in items if item.get("type") == "function_call"]
    calls = (_first(response).get("message") or {}).get("tool_calls") or []
    return [
        {"id": call.get("id"), **(call.get("function") or {})}
        for call in calls
        if call.get("type") == "function"
    ]


def _complete_response(output: ModelOutput, response: Mapping[str, Any]) -> None:
    """What Inspect leaves out of an output of OpenAI's responses."""
    if _raw_stop(response) == "max_output_tokens":
        output.choices[0].stop_reason = "max_tokens"  # whether or not there are calls
    message = output.message
    parts = message.content
    if (
        isinstance(parts, list)
        and parts
        and not (message.tool_calls or _without_reasoning(message))
    ):
        # Reasoning that nothing follows, of a reply that was cut off while it thought, is refused.
        message.content = [*parts, ContentText(text=NO_CONTENT)]


def empty_reasoning() -> ContentReasoning:
    """Reasoning of no words, which DeepSeek and Kimi want back with every call."""
    return ContentReasoning(reasoning="", internal=REASONING_FIELD)


def _without_reasoning(message: ChatMessageAssistant) -> list[Content]:
    if isinstance(message.content, str):
        return [ContentText(text=message.content)] if message.content else []
    return [part for part in message.content if not isinstance(part, ContentReasoning)]


def _raw_stop(response: Mapping[str, Any]) -> str:
    first = _first(response)
    found = (
        first.get("finish_reason")
        or first.get("finishReason")
        or response.get("stop_reason")
        or (response.get("incomplete_details") or {}).get("reason")
        or response.get("status")
    )
    return str(found or "")


def _first(response: Mapping[str, Any]) -> Mapping[str, Any]:
    found = response.get("choices") or response.get("candidates") or [{}]
    return found[0] if isinstance(found[0], Mapping) else {}

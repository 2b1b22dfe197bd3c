"""Differences between providers that Inspect does not cover.

`watch_provider` puts into Inspect's output what providers send and Inspect drops or misreads.
`find_prefix` says what a provider requires of reference calls that its model did not make.

The private attribute `_client` of vendors' clients is read only here. Private names of Inspect are
in `runs/log_layout.py`.
"""

import json
import re
import warnings
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    Content,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelCall,
    ModelOutput,
)
from inspect_ai.tool import ToolCall
from pydantic_core import PydanticSerializationError

from gta_bench.agents.calling import clean_text
from gta_bench.errors import EnvironmentProblem

# The body of the server's last JSON response, for the request that is being made.
_BODY: ContextVar[bytes] = ContextVar("gta_body", default=b"")
# The metadata key of an output for the provider's own stop reason.
RAW_STOP: Final = "raw_stop_reason"
REASONING_FIELD: Final = "reasoning_content"
# The message that Inspect gives for arguments that it cannot parse.
UNREADABLE: Final = (
    "Error parsing the following tool call arguments:\n\n{}\n\n"
    "Error details: they must be a JSON object"
)
# Inspect's placeholder for an empty reply.
NO_CONTENT: Final = "(no content)"
# Messages of vLLM, llama.cpp, SGLang and others; Inspect recognizes those of its own providers.
_OVERFLOW: Final = re.compile(
    r"maximum context length|exceed_context_size_error|context size has been exceeded"
    r"|exceeds the (available|maximum|model'?s) context|longer than the (model'?s )?context"
    r"|context_length_exceeded",
    re.IGNORECASE,
)
# A reply limit that no request leaves room for is a wrong setting, not a long dialogue.
_REPLY_TOO_LARGE: Final = re.compile(r"max_(completion_)?tokens\W.{0,40}too large", re.IGNORECASE)
_TEMPLATE: Final = re.compile(
    r"roles must alternate|unexpected role|role not supported|chat template|jinja|raise_exception",
    re.IGNORECASE,
)


# The signature that Google documents for calls that the model did not make.
_NO_SIGNATURE: Final = b64encode(b"skip_thought_signature_validator").decode()
_SIGNED: Final = re.compile(r"gemini-([3-9]|\d\d)")
_WANTS_REASONING: Final = re.compile(r"deepseek|kimi")
_CLAUDE: Final = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d)(?!\d))?")


class Prefix(NamedTuple):
    """What is added to the reference's calls; the manifest has the `note`."""

    note: str
    reasoning: ContentReasoning | None = None
    thinking_off: bool = False


def find_prefix(model: str, config: GenerateConfig) -> Prefix | None:
    """Return what a provider requires of calls without reasoning; None for most providers.

    Step mode shows the model calls that it did not make, so they have no reasoning of its own.
    `model` is Inspect's name, such as `google/gemini-3-pro`.
    """
    provider, _, name = model.lower().partition("/")
    if provider == "google" and _SIGNED.search(name):
        return Prefix(
            "step mode: the reference's calls carry Google's documented placeholder for a thought "
            "signature (skip_thought_signature_validator).",
            reasoning=ContentReasoning(reasoning=_NO_SIGNATURE, redacted=True),
        )
    if provider == "anthropic" and _thinks_by_budget(name, config):
        return Prefix(
            "step mode: thinking was off in requests that show calls of the reference, because "
            "Anthropic refuses calls without their thinking blocks there.",
            thinking_off=True,
        )
    if _WANTS_REASONING.search(model.lower()):
        return Prefix(
            "step mode: the reference's calls carry an empty reasoning_content.",
            reasoning=make_empty_reasoning(),
        )
    return None


def disable_thinking(model: Model) -> Model:
    """Return the same model with thinking off; a request cannot unset the model's budget."""
    off = {"reasoning_tokens": None, "reasoning_effort": "none"}
    return Model(model.api, model.config.model_copy(update=off), model.model_args)


def _thinks_by_budget(name: str, config: GenerateConfig) -> bool:
    """Whether Inspect gives Claude a token budget for thinking; from 4.6 on, effort adapts."""
    found = _CLAUDE.search(name)
    version = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    by_effort = config.reasoning_effort not in (None, "none")
    if by_effort and version >= (4, 6):
        return False
    return version >= (3, 7) and (config.reasoning_tokens is not None or by_effort)


@dataclass
class LastFault:
    """The provider's exception for the newest request; None if the request was answered."""

    raised: Exception | None = None


_FAULT: ContextVar[LastFault] = ContextVar("gta_fault")


@contextmanager
def watch_faults(api: ModelAPI) -> Iterator[LastFault]:
    """Note the last fault of the requests made inside the block.

    Inspect keeps the message of a fault, but not its status.
    """
    watch_provider(api)
    fault = LastFault()
    token = _FAULT.set(fault)
    try:
        yield fault
    finally:
        _FAULT.reset(token)


def watch_provider(api: ModelAPI) -> None:
    """Make the outputs of a provider complete; a second call for the same API does nothing."""
    generate = api.generate
    if vars(api).get("generate") is not None:
        return

    async def complete(
        input: list[ChatMessage], **options: Any
    ) -> ModelOutput | Exception | tuple[ModelOutput | Exception, ModelCall]:
        _BODY.set(b"")
        fault = _FAULT.get(LastFault())
        fault.raised = None
        try:
            result = await generate(input=input, **options)
        except Exception as exc:
            fault.raised = exc
            replaced = _replace_failure(exc, input, api)
            if replaced is None:
                raise
            return replaced
        output, call = result if isinstance(result, tuple) else (result, None)
        if isinstance(output, Exception) and is_overflow(str(output), input):
            output = _make_overflow(api.model_name)
        elif isinstance(output, ModelOutput) and call is not None and output.choices:
            _complete(output, call.response)
        if isinstance(output, ModelOutput):
            output = _make_writable(output)
        fault.raised = output if isinstance(output, Exception) else None
        return output if call is None else (output, call)

    vars(api)["generate"] = complete
    # The vendors' packages warn at every reply; the cause of the unit names an odd server once.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    # The vendors' packages retry on their own, which only a response hook can prevent.
    connections = getattr(getattr(api, "client", None), "_client", None)
    hooks = getattr(connections, "event_hooks", None)
    if isinstance(hooks, dict):
        hooks["response"].append(_inspect_response)


def _replace_failure(
    raised: Exception, input: Sequence[ChatMessage], api: ModelAPI
) -> ModelOutput | Exception | None:
    """Return what replaces a failed request; Inspect does not retry a returned exception."""
    said = str(raised)
    if is_overflow(said, input):
        return _make_overflow(api.model_name)
    if is_template_error(said):
        return raised  # the same history would be rejected again
    if (sent := _describe_odd_calls()) is not None:
        raise explain_odd_server(sent, api.base_url or api.model_name) from raised
    return None


async def _inspect_response(response: Any) -> None:
    if response.headers.get("content-type", "").startswith("application/json"):
        _BODY.set(await response.aread())
    if response.status_code >= 500:
        said = (await response.aread()).decode(errors="replace")
        if _OVERFLOW.search(said) or is_template_error(said):
            response.headers["x-should-retry"] = "false"


def is_overflow(said: str, input: Sequence[ChatMessage]) -> bool:
    """Whether a server's message means that the dialogue exceeds the context window."""
    begun = any(message.role == "assistant" for message in input)
    return bool(_OVERFLOW.search(said)) and (begun or not _REPLY_TOO_LARGE.search(said))


def is_template_error(said: str) -> bool:
    """Whether a server's chat template rejected the history; llama.cpp does so with status 500."""
    return bool(_TEMPLATE.search(said))


def _make_overflow(model: str) -> ModelOutput:
    return ModelOutput.from_content(model, "", stop_reason="model_length")


def _make_writable(output: ModelOutput) -> ModelOutput:
    """Return the output without lone surrogates, which break logs and the next request."""
    try:
        output.model_dump_json()
    except PydanticSerializationError:
        text = json.dumps(output.model_dump(), ensure_ascii=False, default=str)
        return ModelOutput.model_validate_json(clean_text(text))
    return output


def _complete(output: ModelOutput, response: object) -> None:
    if not isinstance(response, Mapping):
        return
    if output.stop_reason == "unknown":
        output.metadata = {**(output.metadata or {}), RAW_STOP: _raw_stop(response)}
    message = output.message
    _mark_unreadable(message.tool_calls or [], _raw_calls(response))
    if message.tool_calls and _first(response).get("message", {}).get(REASONING_FIELD) == "":
        message.content = [make_empty_reasoning(), *_without_reasoning(message)]
    if response.get("object") == "response":
        _complete_response(output, response)


def _mark_unreadable(calls: Sequence[ToolCall], raw: Sequence[Mapping[str, Any]]) -> None:
    """Mark arguments that are not an object; Inspect takes them as the first parameter."""
    if len(calls) != len(raw):
        return
    for call, sent in zip(calls, raw, strict=True):
        given = sent.get("arguments")
        text = given.strip() if isinstance(given, str) else ""
        if call.parse_error is None and text not in ("", "null") and not text.startswith("{"):
            call.arguments, call.parse_error = {}, UNREADABLE.format(text)


def explain_odd_server(sent: str, where: str) -> EnvironmentProblem:
    """Return the error for a server whose replies no agent can use."""
    return EnvironmentProblem(
        f"The server sent {sent} ({where}). Use another version of the server, another tool-call "
        "parser, or --agent react, which needs only text."
    )


def _describe_odd_calls() -> str | None:
    """Say what is wrong with the calls that Inspect could not read; None if nothing is."""
    try:
        response = json.loads(_BODY.get())
    except ValueError:
        return None
    for sent in _raw_calls(response) if isinstance(response, Mapping) else ():
        if not isinstance(given := sent.get("arguments") or "", str):
            return f"the arguments of a tool call as {type(given).__name__} instead of a string"
        if not isinstance(sent.get("id"), str):
            return f"a tool call whose id is {json.dumps(sent.get('id'))}"
    return None


def _raw_calls(response: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the calls of a reply in one of OpenAI's protocols as they were sent."""
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
    """Add what Inspect drops from a reply of OpenAI's responses API."""
    if _raw_stop(response) == "max_output_tokens":
        output.choices[0].stop_reason = "max_tokens"  # whether or not there are calls
    message = output.message
    thought_only = not (message.tool_calls or _without_reasoning(message))
    if thought_only and isinstance(message.content, list) and message.content:
        # The API rejects reasoning that nothing follows, as in a reply that was cut off there.
        message.content = [*message.content, ContentText(text=NO_CONTENT)]


def make_empty_reasoning() -> ContentReasoning:
    """Return empty reasoning, which DeepSeek and Kimi require with every call."""
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

"""Asking a model: the messages that every agent sends, and how a reply ended.

Every way in which a reply can end, other than the ordinary one, is a branch of its own.
"""

from collections.abc import Mapping, Sequence
from mimetypes import guess_type
from typing import Final

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
)
from inspect_ai.tool import ToolInfo
from inspect_ai.util import materialize_media

from gta_bench.agents import provider
from gta_bench.agents.calling import clean_text, remove_thinking
from gta_bench.agents.contract import Decision, History, Setup, files_text
from gta_bench.errors import (
    EnvironmentProblem,
    RequestRefused,
    UsageError,
    describe_fault,
    find_status,
)
from gta_bench.records.steps import MalformedStep
from gta_bench.records.units import StopKind

# HTTP statuses with which a provider rejects the content of a request.
_REFUSED = (400, 413, 422)
# The feedback that a model gets about such a reply; the trace has the same text.
FEEDBACK: Final[Mapping[StopKind, str]] = {
    "cut off": "the reply was cut off at its token limit; reply again, in fewer words",
    "refused": "the reply was refused or filtered",
    "context": "the dialogue does not fit into the model's context window",
    "empty": "the reply is empty",
    "malformed call": "the tool call could not be read; make it again",
    "call as text": "the reply ends with a tool call as text; call tools by the interface for it",
}
# After these, the model is not asked again.
FINAL: Final[frozenset[StopKind]] = frozenset({"context", "refused"})
# Stop reasons of providers that Inspect has no name for.
_MALFORMED: Final = ("MALFORMED_", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS")
_WINDOW_FULL: Final = "model_context_window_exceeded"


def pick_model(setup: Setup) -> Model:
    """Return the model of the setup, or else the one that Inspect is evaluating."""
    return setup.model if setup.model is not None else get_model()


async def ask_model(
    setup: Setup, messages: list[ChatMessage], tools: Sequence[ToolInfo] = ()
) -> ModelOutput:
    """Return the model's output; if the provider aborts the reply, ask once more.

    A dialogue that exceeds the context window is an output as well. If there is no output at all,
    this raises an error that names the server, and the unit has no score.
    """
    model, config = pick_model(setup), setup.config or GenerateConfig()
    output = await _generate(model, messages, tools, config)
    if is_aborted(output):
        output = await _generate(model, messages, tools, config)
    if is_aborted(output):
        raise EnvironmentProblem(
            f"The provider aborted the reply twice (stop reason {_raw_stop(output)!r}). "
            "Run the same command again to repeat this unit."
        )
    return output


async def _generate(
    model: Model, messages: list[ChatMessage], tools: Sequence[ToolInfo], config: GenerateConfig
) -> ModelOutput:
    provider.watch_provider(model.api)
    where = model.api.base_url or model.name
    try:
        output = await model.generate(messages, tools=list(tools), config=config)
    except Exception as exc:
        explained = _explain(exc, where, messages)
        if explained is None:
            raise
        raise explained from exc
    if output.empty:
        raise EnvironmentProblem(
            f"The model sent a reply without choices ({where}). "
            "Run the same command again to repeat this unit."
        )
    return output


def _explain(
    raised: Exception, where: str, messages: Sequence[ChatMessage]
) -> EnvironmentProblem | None:
    """Return the error to report for a failed request; None if the exception says enough."""
    fault = describe_fault(raised)
    if provider.is_template_error(fault):
        return RequestRefused(
            f"The server's chat template rejects the dialogue: {fault} ({where}). Start the "
            "server with the model's own template for tools, or use --agent react."
        )
    if find_status(raised) in _REFUSED:
        if (twice := _find_duplicate_id(messages)) is not None:
            sent = f"several calls in one reply with the same id {twice!r}, and now rejects them"
            return provider.explain_odd_server(sent, where)
        return RequestRefused(
            f"The provider rejected a request that gta-bench sent: {fault} ({where}). If the error "
            "names an option of the model, correct that option; otherwise this is a bug in "
            "gta-bench: please report it with the log."
        )
    if type(raised).__name__ == "RetryError":  # has no message of its own
        return EnvironmentProblem(f"The model did not reply: {fault} ({where})")
    return None


def _find_duplicate_id(messages: Sequence[ChatMessage]) -> str | None:
    for message in messages:
        calls = message.tool_calls or [] if isinstance(message, ChatMessageAssistant) else []
        ids = [call.id for call in calls]
        if len(set(ids)) < len(ids):
            return next(id for id in ids if ids.count(id) > 1)
    return None


def make_user_message(text: str, images: Sequence[ContentImage]) -> ChatMessageUser:
    """Return a user message, with the images if the model should see them."""
    content: list[Content] = [ContentText(text=text), *images]
    return ChatMessageUser(content=content if images else text)


def make_opening_message(
    history: History, request: str, images: Sequence[ContentImage]
) -> ChatMessageUser:
    """Return files and request as one message: some chat templates reject two in a row."""
    parts = (files_text(history.attachments), request)
    return make_user_message("\n\n".join(filter(None, parts)), images)


async def attach_images(history: History, setup: Setup) -> list[ContentImage]:
    """Return the task's images as data URIs; none if the model gets only their paths.

    Inspect sends only images that it gets as data, and a path of the host must not reach a log.
    """
    if setup.images == "path":
        return []
    if setup.image_source is None:
        raise UsageError("images='attached' needs `image_source`, which returns a file's path.")
    images = []
    for item in history.attachments:
        kind, _ = guess_type(item.path)
        if kind.startswith("image/") if kind else item.type == "image":
            images.append(ContentImage(image=await materialize_media(setup.image_source(item))))
    return images


def read_answer(output: ModelOutput) -> str:
    """Return the text for the user, without reasoning and without Inspect's placeholder."""
    text = remove_thinking(clean_text(output.completion)).strip()
    return "" if text == provider.NO_CONTENT else text


def read_stop(output: ModelOutput) -> StopKind | None:
    """Return how the reply ended; None for a complete answer or complete calls."""
    reason, calls = output.stop_reason, output.message.tool_calls
    if reason == "model_length":
        return "context"
    if reason == "content_filter" or _is_refusal(output):
        return "refused"
    if reason == "max_tokens":
        return "context" if _is_blank(output) else "cut off"
    if calls:
        return None
    unknown = _read_unknown_stop(output) if reason == "unknown" else None
    return unknown or (None if read_answer(output) else "empty")


def is_aborted(output: ModelOutput) -> bool:
    """Whether the provider ended the reply early, for a reason that is not the model's fault."""
    unknown = output.stop_reason == "unknown" and not output.message.tool_calls
    return unknown and bool(_raw_stop(output)) and _read_unknown_stop(output) is None


def make_stop_decision(output: ModelOutput, stop: StopKind) -> Decision:
    """Return the decision of a reply that has neither an answer nor a call."""
    # The text that comes with an overflow is from the provider or the engine, not the model.
    said = "" if stop == "context" else clean_text(output.completion)
    return Decision(MalformedStep(content=said, reason=FEEDBACK[stop]), output, stop=stop)


def _read_unknown_stop(output: ModelOutput) -> StopKind | None:
    raw = _raw_stop(output)
    if raw == _WINDOW_FULL:
        return "cut off"
    return "malformed call" if raw.upper().startswith(_MALFORMED) else None


def _raw_stop(output: ModelOutput) -> str:
    return str((output.metadata or {}).get(provider.RAW_STOP, ""))


def _is_refusal(output: ModelOutput) -> bool:
    parts = output.message.content
    return not isinstance(parts, str) and any(
        isinstance(part, ContentText) and bool(part.refusal) for part in parts
    )


def _is_blank(output: ModelOutput) -> bool:
    """Whether a server answered an overflow with an empty reply of zero tokens."""
    written = None if output.usage is None else output.usage.output_tokens
    return written == 0 and not output.message.tool_calls and not read_answer(output)

"""How a model's reply ended: every reason that is not the ordinary one is a branch of its own."""

from collections.abc import Mapping
from typing import Final

from inspect_ai.model import ContentText, ModelOutput

from gta_bench.agents.contract import Decision
from gta_bench.agents.provider import NO_CONTENT, RAW_STOP
from gta_bench.agents.replies import clean_text, without_thinking
from gta_bench.errors import EnvironmentProblem
from gta_bench.records.steps import MalformedStep
from gta_bench.records.units import StopKind

# What a model is told about its reply, and what the trace says of it.
TOLD: Final[Mapping[StopKind, str]] = {
    "cut off": "the reply was cut off at its token limit; reply again, in fewer words",
    "refused": "the reply was refused or filtered",
    "context": "the dialogue does not fit into the model's context window",
    "empty": "the reply is empty",
    "malformed call": "the tool call could not be read; make it again",
    "call as text": "the reply ends with a tool call as text; call tools by the interface for it",
}
# No reply follows these.
FINAL: Final[frozenset[StopKind]] = frozenset({"context", "refused"})
# Reasons of providers for which Inspect has no word.
_MALFORMED: Final = ("MALFORMED_", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS")
_WINDOW_FULL: Final = "model_context_window_exceeded"


def reply_words(output: ModelOutput) -> str:
    """What a reply says to the user: no reasoning, and nothing that Inspect put there."""
    text = without_thinking(clean_text(output.completion)).strip()
    return "" if text == NO_CONTENT else text


def read_stop(output: ModelOutput) -> StopKind | None:
    """How the reply ended; None for an answer or calls that came to their end."""
    reason, calls = output.stop_reason, output.message.tool_calls
    if reason == "model_length":
        return "context"
    if reason == "content_filter" or _is_refusal(output):
        return "refused"
    if reason == "max_tokens":
        return "context" if _nothing_written(output) else "cut off"
    if calls:
        return None
    unknown = _unknown_stop(output) if reason == "unknown" else None
    return unknown or (None if reply_words(output) else "empty")


def is_broken(output: ModelOutput) -> bool:
    """Whether the provider broke the reply off, and names a reason that is not the model's."""
    unknown = output.stop_reason == "unknown" and not output.message.tool_calls
    return unknown and bool(_raw(output)) and _unknown_stop(output) is None


def broken_reply(output: ModelOutput) -> EnvironmentProblem:
    """What is told of a reply that was broken off twice; the unit has no score."""
    return EnvironmentProblem(
        f"The provider broke off a reply twice (stop reason {_raw(output)!r}). "
        "The same command runs this unit again."
    )


def stopped(output: ModelOutput, stop: StopKind) -> Decision:
    """The decision of a reply that holds neither answer nor call."""
    # The words that come with an overflow are the provider's or the engine's, not the model's.
    said = "" if stop == "context" else clean_text(output.completion)
    return Decision(MalformedStep(content=said, reason=TOLD[stop]), output, stop=stop)


def _unknown_stop(output: ModelOutput) -> StopKind | None:
    raw = _raw(output)
    if raw == _WINDOW_FULL:
        return "cut off"
    return "malformed call" if raw.upper().startswith(_MALFORMED) else None


def _raw(output: ModelOutput) -> str:
    return str((output.metadata or {}).get(RAW_STOP, ""))


def _is_refusal(output: ModelOutput) -> bool:
    parts = output.message.content
    return not isinstance(parts, str) and any(
        isinstance(part, ContentText) and bool(part.refusal) for part in parts
    )


def _nothing_written(output: ModelOutput) -> bool:
    """A server that answers an overflow with an empty reply of no tokens."""
    written = None if output.usage is None else output.usage.output_tokens
    return written == 0 and not output.message.tool_calls and not reply_words(output)

"""Every stop reason of docs/concepts/stops.md, as the default agent reads it."""

from collections.abc import Sequence
from typing import Any

import pytest
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Content,
    ContentText,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolCall

from gta_bench.agents.contract import Decision
from gta_bench.agents.provider import RAW_STOP
from gta_bench.agents.replies import is_aborted, read_stop
from gta_bench.agents.toolcalling import read_output
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from tests.agents.builders import TOOLS

CALL = ToolCall(id="a", function="OCR", arguments={"image": "inputs/menu.jpg"})


def output(
    reason: str,
    content: str | Sequence[Content] = "It costs 7.",
    *calls: ToolCall,
    raw: str = "",
    **changes: Any,
) -> ModelOutput:
    message = ChatMessageAssistant(
        content=content if isinstance(content, str) else list(content),
        tool_calls=list(calls) or None,
    )
    choice = ChatCompletionChoice.model_validate({"message": message, "stop_reason": reason})
    metadata = {RAW_STOP: raw} if raw else None
    return ModelOutput(model="m", choices=[choice], metadata=metadata, **changes)


def read(*args: Any, **changes: Any) -> Decision:
    return read_output(output(*args, **changes), TOOLS)


def test_text_that_came_to_its_end_is_the_answer() -> None:
    decision = read("stop")
    assert (decision.step, decision.stop) == (AnswerStep(content="It costs 7."), None)


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "unknown"])
def test_calls_count_and_not_the_word_for_them(reason: str) -> None:
    """Gemini says `stop` with calls."""
    decision = read(reason, "", CALL)
    assert isinstance(decision.step, CallStep)
    assert decision.step.error is None
    assert decision.stop is None


def test_text_that_was_cut_off_is_no_answer() -> None:
    decision = read("max_tokens")
    assert isinstance(decision.step, MalformedStep)
    assert decision.stop == "cut off"
    assert decision.step.content == "It costs 7."


def test_of_calls_that_were_cut_off_the_last_is_not_made() -> None:
    decision = read("max_tokens", "", CALL, CALL)
    assert [step.error is None for step in decision.calls] == [True, False]
    assert decision.stop == "cut off"


def test_an_empty_reply_of_no_tokens_at_the_limit_is_a_full_window() -> None:
    """LMDeploy answers an overflow with status 200, no text and `length`."""
    nothing = ModelUsage(input_tokens=4096, output_tokens=0, total_tokens=4096)
    assert read("max_tokens", "", usage=nothing).stop == "context"
    thought = ModelUsage(input_tokens=100, output_tokens=512, total_tokens=612)
    assert read("max_tokens", "", usage=thought).stop == "cut off"


def test_the_words_of_an_overflow_are_nobodys() -> None:
    decision = read("model_length", "maximum context length is 4096")
    assert isinstance(decision.step, MalformedStep)
    assert (decision.stop, decision.step.content) == ("context", "")


@pytest.mark.parametrize(
    "refused",
    [
        output("content_filter", "I cannot."),
        output("content_filter", "", CALL),
        output("stop", [ContentText(text="I cannot.", refusal=True)]),
    ],
)
def test_a_refusal_is_malformed_whoever_refused(refused: ModelOutput) -> None:
    decision = read_output(refused, TOOLS)
    assert isinstance(decision.step, MalformedStep)
    assert decision.stop == "refused"


@pytest.mark.parametrize(
    ("raw", "stop"),
    [
        ("MALFORMED_FUNCTION_CALL", "malformed call"),
        ("UNEXPECTED_TOOL_CALL", "malformed call"),
        ("TOO_MANY_TOOL_CALLS", "malformed call"),
        ("model_context_window_exceeded", "cut off"),
    ],
)
def test_a_reason_without_a_word_of_inspect_is_read_from_the_provider(raw: str, stop: str) -> None:
    """Inspect writes an apology into the place of Gemini's malformed call."""
    decision = read("unknown", "I apologize for the malformed call.", raw=raw)
    assert isinstance(decision.step, MalformedStep)
    assert decision.stop == stop
    assert not is_aborted(output("unknown", raw=raw))


@pytest.mark.parametrize("raw", ["OTHER", "abort", "error"])
def test_a_reply_that_the_provider_broke_off_is_nobodys_answer(raw: str) -> None:
    assert is_aborted(output("unknown", raw=raw))
    assert is_aborted(output("unknown", "", raw=raw))


def test_a_provider_that_says_no_reason_at_all_is_believed() -> None:
    assert not is_aborted(output("unknown"))
    assert read_stop(output("unknown")) is None


@pytest.mark.parametrize("text", ["", " ", "(no content)", "<think>hm</think>"])
def test_a_reply_without_words_is_empty(text: str) -> None:
    decision = read("stop", text)
    assert isinstance(decision.step, MalformedStep)
    assert decision.stop == "empty"


def test_a_call_written_as_text_is_no_answer() -> None:
    """Qwen2.5-Coder-1.5B on llama.cpp does so; it was scored as an answer."""
    decision = read("stop", '{"name": "OCR", "arguments": {"image": "inputs/menu.jpg"}}')
    assert isinstance(decision.step, MalformedStep)
    assert decision.stop == "call as text"

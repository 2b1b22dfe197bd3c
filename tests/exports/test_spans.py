"""Spans of units that a run of our own agents does not have: harnesses, steps, other contents."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSample
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolCall

from gta_bench.exports.gen_ai_messages import format_messages, format_output
from gta_bench.exports.spans import GenAiSpan, make_spans
from gta_bench.records.calls import CallRecord
from gta_bench.records.run import System
from gta_bench.records.steps import AnswerStep, CallStep, ReplyPart, ReplyStep
from gta_bench.runs.samples import UnitData, write_unit_data
from tests.builders import manifest

BEGAN = datetime(2026, 11, 18, tzinfo=UTC)
TRACE = (
    CallStep(name="OCR", arguments={"image": "inputs/a.png"}),
    ReplyStep(parts=(ReplyPart(type="text", content="Beer 7"),)),
    CallStep(name="Calculator", arguments={"expression": "7*2"}),
    ReplyStep(parts=(ReplyPart(type="text", content="14"),)),
    AnswerStep(content="14"),
)


def call(tool: str, seconds: float) -> CallRecord:
    return CallRecord(tool=tool, status="done", seconds=seconds)


def event(second: int, *tools: str, **changes: Any) -> ModelEvent:
    calls = [ToolCall(id=f"c{second}{tool}", function=tool, arguments={}) for tool in tools]
    message = ChatMessageAssistant(content="", tool_calls=calls or None)
    choice = ChatCompletionChoice(message=message, stop_reason="tool_calls" if tools else "stop")
    output = ModelOutput(model="claude-5", choices=[choice], **changes)
    return ModelEvent(
        timestamp=BEGAN + timedelta(seconds=second),
        completed=BEGAN + timedelta(seconds=second + 1),
        model="anthropic/claude-5",
        input=[],
        tools=[],
        tool_choice="auto",
        config=GenerateConfig(temperature=0.5),
        output=output,
    )


def sample(*events: ModelEvent, **data: Any) -> EvalSample:
    stored = write_unit_data(UnitData(steps=TRACE, **data))
    return EvalSample(
        id="1", epoch=1, input="x", target="", events=[*events], store=stored, uuid="u"
    )


def spans(one: EvalSample, **changes: Any) -> list[GenAiSpan]:
    system = System(model="google/gemini-4", agent="harness", harness="codex", harness_version="2")
    about = manifest(**{"mode": "end-to-end", "system": system, "created": BEGAN, **changes})
    return list(make_spans(one, "r", about, content=False).spans)


def second(nanoseconds: int) -> float:
    return (nanoseconds - round(BEGAN.timestamp() * 1e9)) / 1e9


def test_calls_of_a_harness_follow_the_replies_that_ask_for_them() -> None:
    records = (call("OCR", 0.5), call("Calculator", 0.25))
    asked = event(2, "mcp__gta__OCR"), event(5, "mcp__gta__Calculator"), event(8)
    root, *below = spans(sample(*asked, calls=records))
    assert [(span.name, second(span.start), second(span.end)) for span in below] == [
        ("chat claude-5", 2, 3),
        ("execute_tool OCR", 3, 3.5),
        ("chat claude-5", 5, 6),
        ("execute_tool Calculator", 6, 6.25),
        ("chat claude-5", 8, 9),
    ]
    assert (root.name, second(root.start), second(root.end)) == ("invoke_agent codex", 2, 9)
    assert root.attributes["gen_ai.agent.version"] == "2"
    assert root.attributes["gen_ai.provider.name"] == "gcp.gemini"


def test_calls_without_any_model_call_follow_each_other() -> None:
    records = (call("OCR", 0.5), call("Calculator", 0.25))
    root, ocr, calculator = spans(sample(calls=records))
    assert (second(ocr.start), second(ocr.end)) == (0, 0.5)
    assert (second(calculator.start), second(calculator.end)) == (0.5, 0.75)
    assert second(root.end) == 0.75


def test_step_by_step_no_tool_is_called() -> None:
    assert [span.name for span in spans(sample(event(1)), mode="step")] == [
        "invoke_agent codex",
        "chat claude-5",
    ]


def test_cached_tokens_are_input_tokens() -> None:
    usage = ModelUsage(
        input_tokens=10, output_tokens=3, input_tokens_cache_read=5, input_tokens_cache_write=7
    )
    _, chat = spans(sample(event(1, usage=usage)), mode="step")
    found = {
        name.removeprefix("gen_ai.usage."): value
        for name, value in chat.attributes.items()
        if name.startswith("gen_ai.usage.")
    }
    assert found == {
        "input_tokens": 22,
        "output_tokens": 3,
        "cache_read.input_tokens": 5,
        "cache_write.input_tokens": 7,
    }
    assert chat.attributes["gen_ai.request.temperature"] == 0.5


def test_pictures_are_named_and_not_sent() -> None:
    image = ContentImage(image="data:image/png;base64,AAAA")
    thought = ContentReasoning(reasoning="Hm.", signature="s")
    messages: list[ChatMessage] = [
        ChatMessageUser(content=[ContentText(text="Look."), image]),
        ChatMessageAssistant(content=[thought, ContentText(text="")]),
        ChatMessageTool(content="7", tool_call_id="c1"),
    ]
    text = format_messages(messages)
    assert "AAAA" not in text
    assert [message["parts"] for message in json.loads(text)] == [
        [
            {"type": "text", "content": "Look."},
            {"type": "text", "content": "[image, not exported]"},
        ],
        [{"type": "reasoning", "content": "Hm."}],
        [{"type": "tool_call_response", "id": "c1", "response": "7"}],
    ]


@pytest.mark.parametrize(("reason", "name"), [("max_tokens", "length"), ("unknown", "error")])
def test_the_end_of_a_reply_has_the_name_of_the_conventions(reason: Any, name: str) -> None:
    choice = ChatCompletionChoice(message=ChatMessageAssistant(content="x"), stop_reason=reason)
    [reply] = json.loads(format_output(ModelOutput(model="m", choices=[choice])))
    assert reply["finish_reason"] == name

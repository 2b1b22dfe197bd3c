"""Upstream's step dictionaries and our step records."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyPart,
    ReplyStep,
    StepError,
    ThoughtStep,
    describe_odd,
    read_step,
    read_trace,
    write_step,
    write_trace,
)

VECTORS = Path(__file__).parents[1] / "parity" / "upstream_vectors.json"


def called(arguments: JsonValue = None, **more: JsonValue) -> dict[str, JsonValue]:
    function: dict[str, JsonValue] = {"name": "OCR", "arguments": arguments}
    calls: list[JsonValue] = [{"type": "function", "function": function}]
    return {"role": "assistant", "tool_calls": calls, **more}


READABLE: list[tuple[dict[str, JsonValue], PredictedStep]] = [
    ({"role": "assistant", "content": "58"}, AnswerStep(content="58")),
    ({"role": "assistant", "content": None}, AnswerStep(content="")),
    ({"role": "assistant"}, AnswerStep(content="")),
    ({"role": "assistant", "content": "x", "meta": None}, AnswerStep(content="x")),
    ({"role": "assistant", "content": "x", "meta": {"type": "other"}}, AnswerStep(content="x")),
    (
        {"role": "assistant", "content": "hm", "meta": {"type": "thought"}},
        ThoughtStep(content="hm"),
    ),
    (
        {"role": "assistant", "content": None, "meta": {"type": "thought"}},
        ThoughtStep(content=""),
    ),
    (
        {
            "role": "assistant",
            "content": "[LagentAgentError] boom",
            "error": {"type": "AGENT_ERROR", "msg": "boom"},
            "meta": {"type": "error"},
        },
        AnswerStep(
            content="[LagentAgentError] boom", error=StepError(type="AGENT_ERROR", message="boom")
        ),
    ),
    (
        {"role": "assistant", "content": "x", "meta": {"type": "thought"}, "error": {"type": "E"}},
        AnswerStep(content="x", error=StepError(type="E")),
    ),
    (called({"image": "a.jpg"}), CallStep(name="OCR", arguments={"image": "a.jpg"})),
    (called({}, thought="look", content="beside"), CallStep(name="OCR", arguments={})),
    (
        called("{broken", error={"type": "ARGS_ERROR", "msg": "no JSON"}),
        CallStep(
            name="OCR", arguments="{broken", error=StepError(type="ARGS_ERROR", message="no JSON")
        ),
    ),
    (
        called({}, error={"type": "API_ERROR", "msg": None}),
        CallStep(name="OCR", arguments={}, error=StepError(type="API_ERROR")),
    ),
    ({"role": "tool", "content": None}, ReplyStep()),
    ({"role": "tool"}, ReplyStep()),
    ({"role": "tool", "content": "t"}, ReplyStep(parts=(ReplyPart(type="text", content="t"),))),
    (
        {"role": "tool", "name": "Plot", "content": {"type": "image", "content": "a.jpg"}},
        ReplyStep(parts=(ReplyPart(type="image", content="a.jpg"),)),
    ),
    (
        {
            "role": "tool",
            "content": [{"type": "text", "content": "a"}, {"type": "int", "content": 3}],
        },
        ReplyStep(parts=(ReplyPart(type="text", content="a"), ReplyPart(type="int", content="3"))),
    ),
    ({"role": "system", "content": "s"}, ReplyStep(parts=(ReplyPart(type="text", content="s"),))),
]

# What the published evaluator scores, though nobody would write it on purpose.
ODD: list[tuple[JsonValue, PredictedStep, str]] = [
    (
        {"role": "assistant", "content": "x", "error": None},
        AnswerStep(content="x", error=StepError(type="unknown")),
        "the error has no type",
    ),
    (
        called({}, error="boom"),
        CallStep(name="OCR", arguments={}, error=StepError(type="unknown", message="boom")),
        "the error has no type",
    ),
    (
        {"role": "assistant", "content": "x", "error": {"msg": "m"}},
        AnswerStep(content="x", error=StepError(type="unknown", message="m")),
        "the error has no type",
    ),
    (
        {"tool_calls": [{"function": {"name": "OCR", "arguments": {}}}, {"function": {}}]},
        CallStep(name="OCR", arguments={}),
        "of 2 calls only the first is scored",
    ),
    (
        {"role": "assistant", "tool_calls": [{"function": {"name": "OCR"}}]},
        CallStep(name="OCR"),
        "the call has no arguments",
    ),
    ({"role": "assistant", "content": 3}, AnswerStep(content="3"), "the content is not text"),
    ({"content": "x"}, ReplyStep(parts=(ReplyPart(type="text", content="x"),)), "no role"),
    (
        {"role": "tool", "content": [{"type": "smell", "content": ["r"]}]},
        ReplyStep(parts=(ReplyPart(type="text", content='["r"]'),)),
        "unknown type",
    ),
    (
        {"role": "tool", "content": 3},
        ReplyStep(parts=(ReplyPart(type="text", content="3"),)),
        "unknown type",
    ),
]

UNREADABLE: list[tuple[JsonValue, str]] = [
    (None, "A step is an object, not null"),
    (["x"], "A step is an object, not list"),
    ({"role": "assistant", "tool_calls": None}, "at least one call"),
    ({"role": "assistant", "tool_calls": []}, "at least one call"),
    ({"role": "assistant", "tool_calls": [1, 2]}, "needs a `function`"),
    ({"role": "assistant", "tool_calls": ["OCR"]}, "needs a `function`"),
    ({"role": "assistant", "tool_calls": [{"function": None}]}, "needs a `function`"),
    ({"role": "assistant", "tool_calls": [{"function": {"arguments": {}}}]}, "with a `name`"),
]


@pytest.mark.parametrize(("raw", "step"), READABLE)
def test_upstreams_steps_become_records(raw: JsonValue, step: PredictedStep) -> None:
    assert read_step(raw) == step
    assert describe_odd([raw]) == []


@pytest.mark.parametrize(("raw", "step", "told"), ODD)
def test_what_the_published_evaluator_scores_is_read_and_what_is_odd_is_told(
    raw: JsonValue, step: PredictedStep, told: str
) -> None:
    """Whole files were refused for one such step."""
    assert read_step(raw) == step
    (words,) = describe_odd([raw])
    assert words.startswith("step 0: ") and told in words


@pytest.mark.parametrize(("raw", "problem"), UNREADABLE)
def test_an_unknown_shape_is_refused_and_says_what_is_wrong(raw: JsonValue, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        read_step(raw)


def test_a_trace_is_a_list() -> None:
    assert read_trace([{"role": "assistant", "content": "a"}]) == (AnswerStep(content="a"),)
    with pytest.raises(ValueError, match="A trace is a list of steps, not dict"):
        read_trace({})


def test_a_malformed_reply_is_written_as_upstreams_failed_no_action() -> None:
    written = write_step(MalformedStep(content="", reason="empty reply"))
    assert written == {
        "role": "assistant",
        "tool_calls": [
            {"type": "function", "function": {"name": "NoAction", "arguments": {"text": ""}}}
        ],
        "error": {"type": "API_ERROR", "msg": "empty reply"},
    }
    assert read_step(written) == CallStep(
        name="NoAction",
        arguments={"text": ""},
        error=StepError(type="API_ERROR", message="empty reply"),
    )


def test_a_failed_call_without_reply_is_written_with_null() -> None:
    assert write_step(ReplyStep()) == {"role": "tool", "content": None}


def recorded_traces() -> list[Any]:
    stored = json.loads(VECTORS.read_text(encoding="utf-8"))
    step = [trace for case in stored["atomic_step"] for trace in case["predictions"]]
    whole = [turn[0] for case in stored["atomic_end_to_end"] for turn in case["predictions"]]
    return step + whole


def test_every_recorded_prediction_of_upstream_survives_reading_and_writing() -> None:
    traces = recorded_traces()
    assert len(traces) == 132
    for trace in traces:
        assert write_trace(read_trace(trace)) == trace


errors = st.none() | st.builds(StepError, type=st.text(), message=st.text())
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
parts = st.lists(
    st.builds(ReplyPart, type=st.sampled_from(["text", "image", "file"]), content=st.text()),
    max_size=3,
)
written_steps: st.SearchStrategy[PredictedStep] = (
    st.builds(CallStep, name=st.text(), arguments=values, error=errors)
    | st.builds(AnswerStep, content=st.text(), error=errors)
    | st.builds(ThoughtStep, content=st.text())
    | st.builds(ReplyStep, parts=parts.map(tuple))
)


@given(st.lists(written_steps, max_size=5))
def test_a_trace_survives_writing_and_reading(steps: list[PredictedStep]) -> None:
    assert read_trace(json.loads(json.dumps(write_trace(steps)))) == tuple(steps)

"""Calls of a unit against the replies of its model: those that agents read are all there."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from inspect_ai.event import ModelEvent
from inspect_ai.model import GenerateConfig, ModelOutput

from gta_bench.agents.calling import read_call
from gta_bench.agents.react_parser import parse_tolerant, parse_upstream
from gta_bench.leaderboard.checks import Replies, step_problems
from gta_bench.records.steps import AnswerStep, CallStep, PredictedStep
from tests.agents.builders import REPLIES, TOOLS

NAME = "mockllm/model"


def problems(
    outputs: Sequence[ModelOutput], *steps: PredictedStep, native: bool = True
) -> list[str]:
    events = [
        ModelEvent(
            model=NAME,
            input=[],
            tools=[],
            tool_choice="auto",
            config=GenerateConfig(),
            output=output,
        )
        for output in outputs
    ]
    return list(step_problems(steps, Replies(events, native=native)))


@given(REPLIES)
def test_a_call_that_an_agent_reads_in_a_text_is_found_there(text: str) -> None:
    for step in (parse_tolerant(text, TOOLS), parse_upstream(text, TOOLS, lambda path: True)):
        assert problems([ModelOutput.from_content(NAME, text)], step, native=False) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "caf\u00e9 \n\u201cmenu\u201d 1234", "k": 3},
        {"query": {"nested": [None, True, 1000.0]}},
        {"query": " padded ", "k": "12"},
        {"query": "x" * 5000},
    ],
)
def test_a_native_call_is_found_among_the_replies(arguments: dict[str, Any]) -> None:
    step = read_call("GoogleSearch", arguments, TOOLS)
    assert isinstance(step, CallStep) and step.error is None
    outputs = [ModelOutput.for_tool_call(NAME, "GoogleSearch", arguments)]
    assert problems(outputs, step, AnswerStep(content="7")) == []


def test_calls_that_no_reply_makes_are_named() -> None:
    asked = ModelOutput.for_tool_call(NAME, "GoogleSearch", {"query": "wrong words"})
    wrong = CallStep(name="GoogleSearch", arguments={"query": "wrong words"})
    assert problems([asked], wrong) == []
    right = CallStep(name="GoogleSearch", arguments={"query": "right words"})
    assert problems([asked], right) == ["its model did not call GoogleSearch with these arguments"]
    assert problems([asked], wrong, wrong) == ["its model did not call GoogleSearch 2 times"]
    other = CallStep(name="OCR", arguments={"image": "wrong"})
    assert problems([asked], other) == ["its model did not call OCR 1 time"]
    failed = other.model_copy(update={"error": {"type": "API_ERROR"}})
    assert problems([asked], failed) == []

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from gta_bench.agents.calling import TOO_DEEP, make_recordable, read_call, remove_thinking
from gta_bench.datasets.model import AtomicDataset
from gta_bench.records.steps import CallStep
from gta_bench.records.tools import Parameter, ParameterType, ToolSpec
from tests.agents.builders import OCR, SEARCH, TOOLS


def tool_taking(type: ParameterType) -> ToolSpec:
    return ToolSpec(name="Tool", inputs=(Parameter(type=type, name="value"),))


@pytest.mark.parametrize(
    ("type", "given", "recorded"),
    [
        ("int", 3, 3),
        ("int", 3.0, 3),
        ("int", "3", 3),
        ("int", " -3 ", -3),
        ("int", "3.0", 3),
        ("int", "3.", 3),
        ("int", "1_000", 1000),
        ("int", True, 1),
        ("float", 3, 3),
        ("float", False, 0.0),
        ("float", 2.5, 2.5),
        ("float", "2.5", 2.5),
        ("float", "-1e3", -1000.0),
        ("bool", True, True),
        ("bool", "true", True),
        ("bool", "False", False),
        ("bool", " False ", False),
        ("bool", "yes", True),
        ("bool", 0, False),
        ("bool", 1, True),
        ("text", "a", "a"),
        ("text", "", ""),
        ("text", 3, "3"),
        ("text", 2.5, "2.5"),
        ("text", True, "true"),
        ("text", [1, 2], "[1, 2]"),
        ("text", {"ä": 1}, '{"ä": 1}'),
        ("image", "inputs/a.jpg", "inputs/a.jpg"),
        ("file", " inputs/a.pdf\n", "inputs/a.pdf"),
    ],
)
def test_a_value_that_can_only_mean_one_thing_is_brought_to_its_type(
    type: ParameterType, given: JsonValue, recorded: JsonValue
) -> None:
    step = read_call("Tool", {"value": given}, (tool_taking(type),))
    assert step.error is None
    assert step.arguments == {"value": recorded}
    assert isinstance(step.arguments, dict)
    assert step.arguments["value"].__class__ is recorded.__class__


@pytest.mark.parametrize(
    ("type", "given", "wanted"),
    [
        ("int", 2.5, "an integer"),
        ("int", "three", "an integer"),
        ("int", [3], "an integer"),
        ("int", "9" * 5000, "an integer"),
        ("float", "nan", "a number"),
        ("float", "wide", "a number"),
        ("float", "1e999", "a number"),
        ("float", {}, "a number"),
        ("bool", "maybe", "true or false"),
        ("bool", 2, "true or false"),
        ("bool", [], "true or false"),
        ("image", 3, "the path of a file"),
        ("audio", " ", "the path of a file"),
        ("video", ["a.mp4"], "the path of a file"),
    ],
)
def test_a_value_of_another_type_is_named_with_what_it_should_be(
    type: ParameterType, given: JsonValue, wanted: str
) -> None:
    step = read_call("Tool", {"value": given}, (tool_taking(type),))
    assert step.arguments == {"value": given}
    assert step.error is not None
    assert step.error.type == "ARGS_ERROR"
    assert step.error.message.startswith(f"Tool: argument 'value' must be {wanted}, got ")
    assert len(step.error.message) < 200


def test_null_leaves_an_optional_argument_out() -> None:
    step = read_call("GoogleSearch", {"query": "q", "k": None}, TOOLS)
    assert step == CallStep(name="GoogleSearch", arguments={"query": "q"})


def test_null_for_a_required_argument_is_a_missing_one() -> None:
    step = read_call("GoogleSearch", {"query": None}, TOOLS)
    assert step.arguments == {"query": None}
    assert step.error is not None
    assert step.error.message == "GoogleSearch: missing argument 'query'."


def test_everything_that_is_wrong_is_said_at_once() -> None:
    step = read_call("GoogleSearch", {"q": 1, "k": "x"}, TOOLS)
    assert step.error is not None
    assert step.error.message == (
        "GoogleSearch: unknown argument 'q', the parameters are query, k; "
        "missing argument 'query'; argument 'k' must be an integer, got \"x\"."
    )


def test_a_tool_without_parameters_takes_none() -> None:
    step = read_call("Now", {"zone": "UTC"}, (ToolSpec(name="Now"),))
    assert step.error is not None
    assert step.error.message == "Now: unknown argument 'zone', the parameters are none."


def test_an_unknown_tool_is_answered_with_the_known_ones_each_once() -> None:
    step = read_call("ocr", {}, (OCR, SEARCH, OCR))
    assert step.error is not None
    assert step.error.message == "Unknown tool 'ocr'. Known tools: OCR, GoogleSearch."
    none = read_call("OCR", {}, ())
    assert none.error is not None
    assert none.error.message == "Unknown tool 'OCR'. Known tools: none."


def test_arguments_that_are_no_object_are_recorded_as_they_came() -> None:
    step = read_call("OCR", ["inputs/a.jpg"], TOOLS)
    assert step.arguments == ["inputs/a.jpg"]
    assert step.error is not None
    assert step.error.message == "OCR: the arguments are no JSON object."


def test_values_that_json_does_not_know_are_recorded_as_text() -> None:
    given = {"a": float("nan"), "b": float("-inf"), "c": date(2024, 5, 1), 4: ("x", "\ud800")}
    assert make_recordable(given) == {
        "a": "nan",
        "b": "-inf",
        "c": "2024-05-01",
        "4": ["x", "\ufffd"],
    }


def test_nesting_without_end_is_cut() -> None:
    value: JsonValue = "core"
    for _ in range(400):
        value = [value]
    text = json.dumps(make_recordable(value))
    assert TOO_DEEP in text
    assert "core" not in text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.sampled_from(["OCR", "GoogleSearch", "DrawBox", "Foo"]), JSON)
def test_any_arguments_become_a_call_that_can_be_written_and_read_back(
    name: str, arguments: JsonValue
) -> None:
    step = read_call(name, arguments, TOOLS)
    assert CallStep.model_validate_json(step.model_dump_json()) == step


@given(JSON)
def test_a_call_that_passed_passes_again_unchanged(value: JsonValue) -> None:
    step = read_call("DrawBox", {"image": "a", "bbox": value, "width": value}, TOOLS)
    if step.error is None:
        assert read_call("DrawBox", step.arguments, TOOLS) == step


def test_the_references_own_calls_pass_with_each_tasks_own_tools(atomic: AtomicDataset) -> None:
    failed = [
        task.id
        for task in atomic.tasks.values()
        for turn in task.calls
        if read_call(turn.call.name, turn.call.arguments, task.tools)
        != CallStep(name=turn.call.name, arguments=dict(turn.call.arguments))
    ]
    assert failed == ["34", "35"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("It is 7.", "It is 7."),
        ("<think>8?</think>It is 7.", "It is 7."),
        (" \n<think>8?</think>It is 7.", "It is 7."),
        ("<think>8?", ""),
        ("<think>8?</think><think>9?", ""),
        # DeepSeek-R1, QwQ and Qwen3-Thinking: the opening tag is the end of the prompt.
        ("It may be 8.</think>It is 7.", "It is 7."),
        ("It may be 8.\n</think>", ""),
        ("Write `<think>` and `</think>` around it.", "Write `<think>` and `</think>` around it."),
    ],
)
def test_reasoning_is_no_part_of_the_answer(text: str, answer: str) -> None:
    assert remove_thinking(text) == answer

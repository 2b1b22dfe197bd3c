import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from gta_bench.agents.contract import DecidedStep, list_dataset_files
from gta_bench.agents.react import format_upstream_call
from gta_bench.agents.react_parser import (
    CRASH,
    FOLLOW_THE_FORMAT,
    parse_upstream,
    read_upstream_thought,
)
from gta_bench.datasets.model import AtomicDataset
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep, StepError
from gta_bench.records.tools import Parameter, ParameterType, ToolSpec
from tests.agents.builders import OCR, REPLIES, SEARCH, TOOLS

VECTORS = json.loads(
    (Path(__file__).parent.parent / "parity" / "upstream_vectors.json").read_text("utf-8")
)["react_next_step"]
# As the vectors state them: OCR(image:image), GoogleSearch(query:text, k:int optional).
VECTOR_TOOLS = (OCR, SEARCH)


def upstream_form(step: DecidedStep) -> dict[str, Any]:
    """The step as upstream records it; a malformed one stands for a crash."""
    if isinstance(step, MalformedStep):
        return {"raises": step.reason.removeprefix(CRASH)}
    form: dict[str, Any] = {"role": "assistant"}
    if isinstance(step, AnswerStep):
        form["content"] = step.content
    else:
        function = {"name": step.name, "arguments": step.arguments}
        form["tool_calls"] = [{"type": "function", "function": function}]
    if step.error is not None:
        form["error"] = {"type": step.error.type, "msg": step.error.message}
    return form


@pytest.mark.parametrize("vector", VECTORS["cases"], ids=lambda vector: vector["case"])
def test_a_reply_becomes_exactly_the_step_that_upstream_recorded(vector: dict[str, Any]) -> None:
    step = parse_upstream(
        vector["message"], VECTOR_TOOLS, lambda path: path == VECTORS["existing_file"]
    )
    assert upstream_form(step) == vector["result"]


def test_there_are_42_recorded_replies() -> None:
    assert len(VECTORS["cases"]) == 42


def call(name: str, arguments: str) -> str:
    return f"Thought: t\nAction: {name}\nAction Input: {arguments}"


def parsed(text: str, *, files: tuple[str, ...] = ("inputs/menu.jpg",)) -> DecidedStep:
    return parse_upstream(text, TOOLS, files.__contains__)


@pytest.mark.parametrize(
    ("arguments", "crash"),
    [
        ("true", "TypeError(\"'bool' object is not iterable\")"),
        ("1.5", "TypeError(\"'float' object is not iterable\")"),
        ('[["image"]]', "TypeError(\"unhashable type: 'list'\")"),
        ('```json\n["image"]\n```', "AttributeError(\"'list' object has no attribute 'get'\")"),
    ],
)
def test_json_that_is_no_object_is_malformed_and_names_upstreams_crash(
    arguments: str, crash: str
) -> None:
    step = parsed(call("OCR", arguments))
    assert isinstance(step, MalformedStep)
    assert step.reason == f"upstream's parser raises {crash}"
    assert step.content == call("OCR", arguments)


@pytest.mark.parametrize("arguments", ["[" * 100_000, "9" * 5000])
def test_json_that_python_refuses_is_malformed(arguments: str) -> None:
    step = parsed(call("OCR", arguments))
    assert isinstance(step, MalformedStep)
    assert step.reason.startswith(CRASH)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('```json\n"abc"\n```', "unknown arguments: {'a', 'b', 'c'}"),
        ("[1]", "unknown arguments: {1}"),
        ('{"z": 1, "y": 2}', "unknown arguments: {'y', 'z'}"),
        ('{"bbox": ""}', "missing required arguments: {'image'}"),
        ("{}", "missing required arguments: {'bbox', 'image'}"),
    ],
)
def test_wrong_argument_names_leave_the_raw_text_and_say_which(
    arguments: str, message: str
) -> None:
    step = parsed(call("DrawBox", arguments))
    assert step == CallStep(
        name="DrawBox",
        arguments=arguments,
        error=StepError(type="ARGS_ERROR", message=message),
    )


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({"width": "wide"}, "ValueError(\"could not convert string to float: 'wide'\")"),
        ({"width": []}, None),
        ({"filled": "false"}, None),
        ({"filled": None}, None),
        ({"annotation": ["a"]}, None),
        ({"width": 2, "filled": 0}, None),
    ],
)
def test_values_pass_where_pythons_constructor_takes_them(
    extra: dict[str, Any], problem: str | None
) -> None:
    arguments = {"image": "inputs/menu.jpg", "bbox": "(1, 2, 3, 4)", **extra}
    step = parsed(call("DrawBox", json.dumps(arguments)))
    assert isinstance(step, CallStep)
    assert step.arguments == arguments
    if extra == {"width": []}:
        assert step.error is not None and step.error.message.startswith("TypeError(")
    else:
        assert (step.error and step.error.message) == problem


def test_a_number_too_large_for_its_type_is_an_api_error() -> None:
    step = parsed(call("GoogleSearch", '{"query": "q", "k": 1e999}'))
    assert isinstance(step, CallStep)
    assert step.arguments == {"query": "q", "k": "inf"}
    assert step.error is not None
    assert step.error.message.startswith("OverflowError(")


def test_files_have_to_exist() -> None:
    text = call("OCR", '{"image": "outputs/box.jpg"}')
    missing = parsed(text)
    assert isinstance(missing, CallStep) and missing.error is not None
    assert missing.error.message == "FileNotFoundError(\"No such file: 'outputs/box.jpg'\")"
    assert parsed(text, files=("outputs/box.jpg",)) == CallStep(
        name="OCR", arguments={"image": "outputs/box.jpg"}
    )


@pytest.mark.parametrize(
    ("type", "name"),
    [("image", "ImageIO"), ("audio", "AudioIO"), ("video", "VideoIO"), ("file", "File")],
)
def test_a_file_that_is_no_text_is_not_supported(type: ParameterType, name: str) -> None:
    tool = ToolSpec(name="Read", inputs=(Parameter(type=type, name="path"),))
    step = parse_upstream(call("Read", '{"path": 3}'), (tool,), lambda path: True)
    assert isinstance(step, CallStep) and step.error is not None
    assert step.error.message == (
        f"NotImplementedError(\"The value type `<class 'int'>` is not supported by `{name}`\")"
    )


def test_a_failed_call_with_an_argument_named_inputs_records_only_that() -> None:
    """Upstream looks the recorded arguments up under `inputs`, which a tool may use itself."""
    tool = ToolSpec(
        name="Sum",
        inputs=(Parameter(type="text", name="inputs"), Parameter(type="int", name="n")),
    )
    step = parse_upstream(call("Sum", '{"inputs": "1,2", "n": "x"}'), (tool,), lambda path: True)
    assert isinstance(step, CallStep)
    assert step.arguments == "1,2"


@pytest.mark.parametrize(
    ("name", "recorded", "arguments", "message"),
    [
        ("NoAction", "NoAction", {"text": "{}"}, "{}"),
        ("InvalidAction", "InvalidAction", {"text": "{}"}, "{}"),
        ("Foo.run", "InvalidAction", {"text": "{}"}, "{}"),
        ("OCR.run.fast", "InvalidAction", {"text": "{}"}, "{}"),
        ("OCR.fast", "OCR", "{}", "invalid API: fast"),
    ],
)
def test_names_that_are_no_tool_have_upstreams_records(
    name: str, recorded: str, arguments: JsonValue, message: str
) -> None:
    assert parsed(call(name, "{}")) == CallStep(
        name=recorded,
        arguments=arguments,
        error=StepError(type="API_ERROR", message=message),
    )


def test_a_tool_whose_name_has_a_dot_is_found_before_the_dot_is_split() -> None:
    tool = ToolSpec(name="web.search", inputs=(Parameter(type="text", name="query"),))
    step = parse_upstream(call("web.search", '{"query": "q"}'), (tool,), lambda path: True)
    assert step == CallStep(name="web.search", arguments={"query": "q"})


def test_the_first_definition_holds_where_a_tool_is_offered_twice() -> None:
    other = ToolSpec(name="OCR", inputs=())
    step = parse_upstream(call("OCR", "{}"), (other, OCR), lambda path: True)
    assert step == CallStep(name="OCR", arguments={})


def test_half_characters_are_replaced_so_that_a_step_can_be_written() -> None:
    step = parsed(call("GoogleSearch", '{"query": "\\ud800"}'))
    assert step == CallStep(name="GoogleSearch", arguments={"query": "\ufffd"})
    assert step.model_dump_json()


@pytest.mark.parametrize(
    ("reply", "thought"),
    [
        ("Thought: look\nAction: OCR\nAction Input: {}", " look\n"),
        ("Thought: a\nThought: b\nAction: OCR\n", " b\n"),
        ("Thought: done\nFinal Answer: 7", " done\n"),
        ("no marker", "no marker"),
        ("", ""),
    ],
)
def test_the_thought_is_what_upstream_takes_for_it(reply: str, thought: str) -> None:
    assert read_upstream_thought(reply) == thought


@given(REPLIES)
def test_any_text_becomes_a_step_that_can_be_written_and_read_back(text: str) -> None:
    step = parsed(text)
    assert type(step).model_validate_json(step.model_dump_json()) == step


# Without colons: upstream takes a marker inside the arguments for a marker.
WORDS = st.text(st.characters(codec="utf-8", exclude_characters=":"))


@given(st.recursive(st.none() | st.booleans() | st.floats() | WORDS, st.lists))
def test_any_json_as_arguments_becomes_a_step(value: JsonValue) -> None:
    text = call("GoogleSearch", json.dumps({"query": value, "k": value}))
    step = parsed(text)
    assert isinstance(step, CallStep)
    assert step.name == "GoogleSearch"


@given(st.text(alphabet="Action InputFl swer.:\n{}"))
def test_a_text_without_whole_markers_is_no_action(text: str) -> None:
    if "Action Input:" not in text and "Final Answer:" not in text:
        step = parsed(text)
        assert isinstance(step, CallStep)
        assert step.name == "NoAction"
        assert step.error == StepError(type="API_ERROR", message=FOLLOW_THE_FORMAT)


def test_the_references_own_calls_pass_but_for_those_that_no_model_can_make(
    atomic: AtomicDataset,
) -> None:
    """Two references forget the image, one misspells its path, one uses an unknown parameter."""
    failed: dict[str, list[str]] = {}
    files = list_dataset_files(atomic.tasks.values())
    for task in atomic.tasks.values():
        tools = [atomic.tools[name] for name in task.offered]
        for turn in task.calls:
            step = parse_upstream(format_upstream_call(turn), tools, files.__contains__)
            assert isinstance(step, CallStep)
            if step.error is not None:
                failed.setdefault(task.id, []).append(step.error.message)
    assert failed == {
        "34": ["missing required arguments: {'image'}"],
        "35": ["missing required arguments: {'image'}"],
        "89": ["unknown arguments: {'bbox'}"] * 2,
        "226": ["FileNotFoundError(\"No such file: '/image/image_447.png'\")"],
    }

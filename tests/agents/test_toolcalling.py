import json
from typing import Any

import pytest
from hypothesis import given
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ChatMessageTool,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
)
from inspect_ai.model._call_tools import parse_tool_call
from inspect_ai.tool import ToolCall

from gta_bench.agents.contract import History, RefusedTurn, Setup, make_step_histories
from gta_bench.agents.toolcalling import (
    make_tool_info,
    make_toolcalling_messages,
    read_output,
    toolcalling,
)
from gta_bench.datasets.model import AtomicDataset
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, UserTurn
from gta_bench.records.dialogue import ToolCall as Called
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep, StepError
from gta_bench.records.tools import Parameter, ToolSpec
from tests.agents.builders import (
    DRAW,
    HISTORIES,
    REPLIES,
    SEARCH,
    TOOLS,
    Listening,
    decide,
    inspect_warnings,
    model_saying,
    shown,
)

pytestmark = inspect_warnings

MENU = {"image": "inputs/menu.jpg"}
FILES = "These files belong to the request: `inputs/menu.jpg`"


def calling(*calls: ToolCall, content: str = "") -> ModelOutput:
    message = ChatMessageAssistant(content=content, tool_calls=list(calls))
    choice = ChatCompletionChoice(message=message, stop_reason="tool_calls")
    return ModelOutput(model="mockllm", choices=[choice])


def call(name: str, arguments: dict[str, Any], **changes: Any) -> ToolCall:
    return ToolCall(id=f"id-{name}", function=name, arguments=arguments, **changes)


def decided(output: ModelOutput | str) -> CallStep | AnswerStep | MalformedStep:
    return decide(toolcalling, HISTORIES[0], setup=Setup(model=model_saying(output))).step


def test_a_native_call_is_the_step() -> None:
    assert decided(calling(call("OCR", MENU))) == CallStep(name="OCR", arguments=MENU)


def test_text_beside_a_call_does_not_make_it_an_answer() -> None:
    output = calling(call("OCR", MENU), content="I will read the menu.")
    assert decided(output) == CallStep(name="OCR", arguments=MENU)


def test_of_several_calls_the_first_is_the_step_and_the_others_are_kept() -> None:
    output = calling(call("OCR", MENU), call("GoogleSearch", {"query": "q"}), call("OCR", MENU))
    decision = decide(toolcalling, HISTORIES[0], setup=Setup(model=model_saying(output)))
    assert decision.step == CallStep(name="OCR", arguments=MENU)
    assert [step.name for step in decision.calls] == ["OCR", "GoogleSearch", "OCR"]
    assert decision.output is not None
    assert len(decision.output.message.tool_calls or []) == 3


def test_text_alone_is_an_answer() -> None:
    assert decided(" It costs 7.\n") == AnswerStep(content="It costs 7.")


@pytest.mark.parametrize("output", ["", " \n", "<think>hm", "(no content)"])
def test_a_reply_of_nothing_is_malformed(output: str) -> None:
    step = decided(output)
    assert isinstance(step, MalformedStep)
    assert step.reason == "the reply is empty"


def test_reasoning_is_no_answer() -> None:
    thinking = ContentReasoning(reasoning="It must be 7.")
    assert isinstance(decided(ModelOutput.from_content("mockllm", [thinking])), MalformedStep)
    both = ModelOutput.from_content("mockllm", [thinking, ContentText(text="7")])
    assert decided(both) == AnswerStep(content="7")


def test_arguments_are_checked_and_brought_to_their_types() -> None:
    output = calling(call("GoogleSearch", {"query": "q", "k": "3"}))
    assert decided(output) == CallStep(name="GoogleSearch", arguments={"query": "q", "k": 3})
    wrong = decided(calling(call("GoogleSearch", {"k": 3})))
    assert isinstance(wrong, CallStep)
    assert wrong.error == StepError(
        type="ARGS_ERROR", message="GoogleSearch: missing argument 'query'."
    )


def test_a_tool_that_is_not_offered_is_an_error_of_the_call() -> None:
    step = decided(calling(call("Plot", {"command": "x"})))
    assert isinstance(step, CallStep)
    assert step.name == "Plot"
    assert step.error is not None
    assert step.error.type == "API_ERROR"
    assert "Known tools: OCR, GoogleSearch, DrawBox." in step.error.message


@pytest.mark.parametrize("raw", ['{"image": "inputs/me', "{'image': 'x'}", '{"a": 1}{"b": 2}'])
def test_arguments_that_the_provider_sent_broken_are_kept_raw(raw: str) -> None:
    """The parse error is Inspect's own, as its providers make it."""
    broken = parse_tool_call("1", "OCR", raw, [make_tool_info(tool) for tool in TOOLS])
    assert broken.parse_error is not None
    step = decided(calling(broken))
    assert isinstance(step, CallStep)
    assert step.name == "OCR"
    assert step.arguments == raw
    assert step.error is not None
    assert step.error.type == "ARGS_ERROR"
    assert "Error details" in step.error.message


def test_a_parse_error_of_another_form_is_kept_whole() -> None:
    step = decided(calling(call("OCR", {}, parse_error="no idea")))
    assert step == CallStep(
        name="OCR", arguments="no idea", error=StepError(type="ARGS_ERROR", message="no idea")
    )


@given(REPLIES)
def test_any_text_becomes_a_step_that_can_be_written(text: str) -> None:
    text = text.encode("utf-8", "replace").decode("utf-8")
    step = read_output(ModelOutput.from_content("mockllm", text), TOOLS).step
    assert type(step).model_validate_json(step.model_dump_json()) == step


@given(REPLIES)
def test_any_raw_arguments_become_a_call_that_can_be_written(raw: str) -> None:
    infos = [make_tool_info(tool) for tool in TOOLS]
    made = parse_tool_call("1", "GoogleSearch", raw, infos)
    step = read_output(calling(made), TOOLS).step
    assert isinstance(step, CallStep)
    assert CallStep.model_validate_json(step.model_dump_json()) == step


def test_a_tool_is_offered_with_types_and_what_types_cannot_say() -> None:
    assert json.loads(make_tool_info(DRAW).model_dump_json(exclude_none=True)) == {
        "name": "DrawBox",
        "description": "Draws a box.",
        "parameters": {
            "type": "object",
            "properties": {
                "image": {"type": "string", "description": "Path of an image file."},
                "bbox": {"type": "string", "description": "As `(x1, y1, x2, y2)`."},
                "width": {
                    "type": "number",
                    "description": "Optional, by default 1.5.",
                    "default": 1.5,
                },
                "filled": {
                    "type": "boolean",
                    "description": "Optional, by default False.",
                    "default": False,
                },
                "annotation": {"type": "string", "description": "Optional."},
            },
            "required": ["image", "bbox"],
            "additionalProperties": False,
        },
    }


def test_integers_are_offered_as_integers() -> None:
    k = make_tool_info(SEARCH).parameters.properties["k"]
    assert k.type == "integer"
    assert k.description == "How many results. Optional, by default 10."
    query = make_tool_info(SEARCH).parameters.properties["query"]
    assert (query.type, query.description) == ("string", "query")


def test_the_description_names_kinds_of_files() -> None:
    tool = ToolSpec(
        name="Read",
        inputs=(
            Parameter(type="file", name="paper", filetype="application/pdf"),
            Parameter(type="video", name="clip", description="What to watch."),
            Parameter(type="audio", name="sound", optional=True),
        ),
    )
    info = make_tool_info(tool)
    assert info.description == "Read"
    assert [param.description for param in info.parameters.properties.values()] == [
        "Path of a file. File type: application/pdf.",
        "What to watch. Path of a video file.",
        "Path of an audio file. Optional.",
    ]


def test_the_history_has_native_calls_with_results_tied_to_them() -> None:
    messages = make_toolcalling_messages(HISTORIES[-1])
    assert shown(messages[1:]) == [
        ("user", f"{FILES}\n\nWhat does the bière cost?"),
        ("assistant", ""),
        ("tool", "(0, 0, 9, 9) Bière 7"),
        ("assistant", ""),
        ("tool", "[image](outputs/dummy_generated_image.jpg)"),
    ]
    made = [
        made
        for message in messages
        if isinstance(message, ChatMessageAssistant)
        for made in message.tool_calls or []
    ]
    results = [message for message in messages if isinstance(message, ChatMessageTool)]
    assert (made[0].function, made[0].arguments) == ("OCR", MENU)
    assert [one.id for one in made] == [result.tool_call_id for result in results]
    assert [one.id for one in made] == ["gta000001", "gta000002"]
    assert [message.content for message in messages if message.role == "assistant"] == [[], []]
    assert [result.function for result in results] == ["OCR", "DrawBox"]


def test_own_words_parts_of_results_and_refusals_are_shown() -> None:
    history = History(
        task="7",
        mode="end-to-end",
        turns=(
            UserTurn(content="?"),
            RefusedTurn(reply="", feedback="Say something."),
            CallTurn(call=Called(name="OCR", arguments=MENU), content="Reading."),
            ReplyTurn(tool="OCR", type="text", content="a"),
            ReplyTurn(tool="OCR", type="image", content="outputs/b.png"),
            AnswerTurn(content="7"),
        ),
    )
    assert shown(make_toolcalling_messages(history)[1:]) == [
        ("user", "?"),
        ("assistant", ""),
        ("user", "Say something."),
        ("assistant", "Reading."),
        ("tool", "a\n[image](outputs/b.png)"),
        ("assistant", "7"),
    ]


def test_the_model_is_asked_once_with_every_tool_once() -> None:
    listening = Listening("7")
    setup = Setup(model=listening.model, config=GenerateConfig(seed=1))
    decide(toolcalling, HISTORIES[-1], (*TOOLS, TOOLS[0]), setup=setup)
    assert [[tool.name for tool in tools] for tools in listening.tools] == [
        ["OCR", "GoogleSearch", "DrawBox"]
    ]
    assert listening.configs[0].seed == 1


def test_all_770_prefixes_of_the_dataset_are_shown_with_portable_paths(
    atomic: AtomicDataset,
) -> None:
    prefixes = 0
    for task in atomic.tasks.values():
        infos = "".join(make_tool_info(tool).model_dump_json() for tool in task.tools)
        for history in make_step_histories(task):
            messages = make_toolcalling_messages(history)
            text = infos + "".join(message.model_dump_json() for message in messages)
            assert str(atomic.root) not in text
            assert all(item.source not in text for item in task.attachments)
            assert all(item.path in text for item in task.attachments)
            open_calls: list[str] = []
            for message in messages:
                if isinstance(message, ChatMessageAssistant) and message.tool_calls:
                    open_calls.append(message.tool_calls[0].id)
                elif isinstance(message, ChatMessageTool):
                    assert message.tool_call_id == open_calls.pop()
            assert open_calls == []
            prefixes += 1
    assert prefixes == 770

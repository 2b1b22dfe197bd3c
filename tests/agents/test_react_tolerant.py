import warnings

import pytest
from hypothesis import given

from gta_bench.agents.contract import make_step_histories
from gta_bench.agents.react import format_call
from gta_bench.agents.react_parser import cut_invented, parse_tolerant
from gta_bench.datasets.model import AtomicDataset
from gta_bench.records.dialogue import AnswerTurn
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from gta_bench.records.tools import Parameter, ToolSpec
from tests.agents.builders import REPLIES, TOOLS

MENU = {"image": "inputs/menu.jpg"}
READS_MENU = CallStep(name="OCR", arguments=MENU)
OBJECT = '{"image": "inputs/menu.jpg"}'


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(f"Thought: t\nAction: OCR\nAction Input: {OBJECT}", id="by the book"),
        pytest.param(f"Action:OCR\nAction Input:{OBJECT}", id="no blanks"),
        pytest.param(f"Action: OCR\r\nAction Input: {OBJECT}\r\n", id="other line ends"),
        pytest.param(f"thought: t\naction: OCR\naction input: {OBJECT}", id="small markers"),
        pytest.param(f"ACTION : OCR\nACTION INPUT : {OBJECT}", id="blank before the colon"),
        pytest.param(f"**Action:** OCR\n**Action Input:** {OBJECT}", id="bold with colon"),
        pytest.param(f"**Action**: OCR\n**Action Input**: {OBJECT}", id="bold before colon"),
        pytest.param(f"### Action: OCR\n### Action Input: {OBJECT}", id="headings"),
        pytest.param(f"- Action: OCR\n- Action Input: {OBJECT}", id="list"),
        pytest.param(f"Action: OCR\nAction_Input: {OBJECT}", id="underscore"),
        pytest.param(f"Action:\nOCR\nAction Input:\n{OBJECT}", id="values on their own lines"),
        pytest.param(f"Action: `OCR`\nAction Input: `{OBJECT}`", id="backticks"),
        pytest.param(f'Action: "OCR"\nAction Input: {OBJECT}', id="quotes"),
        pytest.param(f"Action: [OCR]\nAction Input: {OBJECT}", id="brackets"),
        pytest.param(f"Action: ocr\nAction Input: {OBJECT}", id="small name"),
        pytest.param(f"Action: OCR.run\nAction Input: {OBJECT}", id="method"),
        pytest.param(f"Action: functions.OCR\nAction Input: {OBJECT}", id="namespace"),
        pytest.param(f"Action: the OCR tool\nAction Input: {OBJECT}", id="in words"),
        pytest.param(f"Action: OCR\nAction Input: ```json\n{OBJECT}\n```", id="json fence"),
        pytest.param(f"Action: OCR\nAction Input:\n```\n{OBJECT}\n```", id="plain fence"),
        pytest.param(f"Action: OCR\nAction Input: {OBJECT}\nI hope it helps", id="text after"),
        pytest.param(f"Action: OCR\nAction Input: with {OBJECT}", id="text before"),
        pytest.param(f"Action: OCR\nAction Input: {OBJECT}}}", id="one brace too many"),
        pytest.param(f"Action: OCR\n{OBJECT}", id="no input marker"),
        pytest.param(f"Action: OCR({OBJECT})", id="like a function"),
        pytest.param(f"I will read it. Action: OCR Action Input: {OBJECT}", id="one line"),
        pytest.param(f"Thought: t Action: OCR\nAction Input: {OBJECT}", id="thought and action"),
        pytest.param("Action: OCR\nAction Input: {'image': 'inputs/menu.jpg'}", id="python"),
        pytest.param(
            'Action: OCR\nAction Input: {"image": "inputs/menu.jpg",}', id="trailing comma"
        ),
        pytest.param(f"<think>Final Answer: no</think>\nAction: OCR\nAction Input: {OBJECT}"),
        pytest.param(f"```\nThought: t\nAction: OCR\nAction Input: {OBJECT}\n```", id="all fenced"),
    ],
)
def test_a_call_is_read_however_it_is_written(reply: str) -> None:
    assert parse_tolerant(reply, TOOLS) == READS_MENU


@pytest.mark.parametrize(
    "invented",
    [
        "Response: Beer 7",
        "Observation: Beer 7",
        "Response: Beer 7\nThought: I know\nFinal Answer: 7",
        'Response: x\nThought: b\nAction: GoogleSearch\nAction Input: {"query": "q"}',
        'Thought: b\nAction: GoogleSearch\nAction Input: {"query": "q"}',
        "Final Answer: 7",
    ],
)
def test_what_a_model_invents_after_a_call_is_ignored(invented: str) -> None:
    reply = f"Thought: t\nAction: OCR\nAction Input: {OBJECT}\n{invented}"
    assert parse_tolerant(reply, TOOLS) == READS_MENU


@pytest.mark.parametrize(
    ("reply", "content"),
    [
        ("Thought: x\nFinal Answer: 7", "7"),
        ("Final Answer:  7 \n", "7"),
        ("final answer: 7", "7"),
        ("**Final Answer:** 7", "7"),
        ("## Final Answer:\n\n7 in all\nfor two", "7 in all\nfor two"),
        ("Thought: I know it. Final Answer: 7", "7"),
        ("Final Answer: 7\nThought: y\nFinal Answer: 8", "7"),
        (f"Final Answer: 7\nAction: OCR\nAction Input: {OBJECT}", "7"),
        ("Thought: t\nAction: None\nFinal Answer: 7", "7"),
        ("Action: OCR\nFinal Answer: 7", "7"),
        ("Action: Final Answer\nAction Input: 7", "7"),
        ("Action: Finish\nAction Input: 7", "7"),
        ("<think>Action: OCR</think>Final Answer: 7", "7"),
    ],
)
def test_a_final_answer_is_read_however_it_is_written(reply: str, content: str) -> None:
    assert parse_tolerant(reply, TOOLS) == AnswerStep(content=content)


@pytest.mark.parametrize(
    "reply",
    [
        "It costs 7.",
        "The reaction: none. My Response: seven, as an Action: pay",
        "Steps:\n1. read\n2. pay",
    ],
)
def test_a_text_without_markers_at_a_lines_start_is_an_answer(reply: str) -> None:
    assert parse_tolerant(f" {reply}\n", TOOLS) == AnswerStep(content=reply)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "the reply is empty"),
        (" \n\t", "the reply is empty"),
        ("<think>hm, hm", "the reply is empty"),
        ("<think>hm</think>\n", "the reply is empty"),
        ("Thought: I should read the menu.", "the reply has neither a call nor an answer"),
        ("Response: Beer 7", "the reply has neither a call nor an answer"),
        (f"Action Input: {OBJECT}", "the reply has neither a call nor an answer"),
        ("Thought: x\nFinal Answer:", "the final answer is empty"),
        ("Final Answer: \nThought: and now?", "the final answer is empty"),
    ],
)
def test_a_reply_that_says_nothing_is_malformed(reply: str, reason: str) -> None:
    step = parse_tolerant(reply, TOOLS)
    assert isinstance(step, MalformedStep)
    assert step.reason == reason


@pytest.mark.parametrize(
    ("reply", "name", "arguments", "error", "message"),
    [
        pytest.param(
            'Action: Foo\nAction Input: {"x": 1}',
            "Foo",
            {"x": 1},
            "API_ERROR",
            "Unknown tool 'Foo'. Known tools: OCR, GoogleSearch, DrawBox.",
            id="unknown tool",
        ),
        pytest.param(
            "Action: Foo\nAction Input: some words",
            "Foo",
            "some words",
            "API_ERROR",
            "Unknown tool 'Foo'. Known tools: OCR, GoogleSearch, DrawBox.",
            id="unknown tool, input in words",
        ),
        pytest.param(
            'Action: OCR\nAction Input: {"picture": "inputs/menu.jpg"}',
            "OCR",
            {"picture": "inputs/menu.jpg"},
            "ARGS_ERROR",
            "OCR: unknown argument 'picture', the parameters are image; missing argument 'image'.",
            id="wrong name",
        ),
        pytest.param(
            'Action: GoogleSearch\nAction Input: {"query": "q", "k": "many"}',
            "GoogleSearch",
            {"query": "q", "k": "many"},
            "ARGS_ERROR",
            "GoogleSearch: argument 'k' must be an integer, got \"many\".",
            id="wrong type",
        ),
        pytest.param(
            "Action: OCR\nAction Input: inputs/menu.jpg",
            "OCR",
            "inputs/menu.jpg",
            "ARGS_ERROR",
            'OCR: the input must be a JSON object such as {"parameter": "value"}.',
            id="no object",
        ),
        pytest.param(
            'Action: OCR\nAction Input: {"image": "inputs/me',
            "OCR",
            '{"image": "inputs/me',
            "ARGS_ERROR",
            "OCR: the input cannot be read as JSON (Unterminated string starting at).",
            id="cut off",
        ),
        pytest.param(
            "Action: OCR\nAction Input: {1, 2}",
            "OCR",
            "{1, 2}",
            "ARGS_ERROR",
            "OCR: the input must be a JSON object, with a value for each name.",
            id="a set",
        ),
        pytest.param(
            "Thought: t\nAction: OCR",
            "OCR",
            {},
            "ARGS_ERROR",
            "OCR: missing argument 'image'.",
            id="no input",
        ),
        pytest.param(
            "Action: OCR\nAction Input:",
            "OCR",
            {},
            "ARGS_ERROR",
            "OCR: missing argument 'image'.",
            id="empty input",
        ),
    ],
)
def test_a_wrong_call_says_what_is_wrong(
    reply: str, name: str, arguments: object, error: str, message: str
) -> None:
    step = parse_tolerant(reply, TOOLS)
    assert isinstance(step, CallStep)
    assert (step.name, step.arguments) == (name, arguments)
    assert step.error is not None
    assert (step.error.type, step.error.message) == (error, message)


def test_code_with_raw_line_breaks_and_marker_like_lines_is_one_argument() -> None:
    plot = ToolSpec(name="Plot", inputs=(Parameter(type="text", name="command"),))
    code = "def solution():\n    return {1: 2}\nAction: none\nFinal Answer: no"
    reply = f'Thought: t\nAction: Plot\nAction Input: {{"command": "{code}"}}\nResponse: x'
    assert parse_tolerant(reply, (plot,)) == CallStep(name="Plot", arguments={"command": code})


def test_a_tool_without_parameters_needs_no_input() -> None:
    now = ToolSpec(name="Now")
    for reply in ("Action: Now", "Action: Now\nAction Input:", "Action: Now\nAction Input: {}"):
        assert parse_tolerant(reply, (now,)) == CallStep(name="Now", arguments={})


def test_a_tool_that_is_really_called_finish_is_called() -> None:
    finish = ToolSpec(name="Finish", inputs=(Parameter(type="text", name="text"),))
    reply = 'Action: Finish\nAction Input: {"text": "7"}'
    assert parse_tolerant(reply, (finish,)) == CallStep(name="Finish", arguments={"text": "7"})


def test_python_literals_with_odd_escapes_give_no_warning() -> None:
    reply = "Action: GoogleSearch\nAction Input: {'query': '\\d+', 'k': 3}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = parse_tolerant(reply, TOOLS)
    assert step == CallStep(name="GoogleSearch", arguments={"query": "\\d+", "k": 3})


@pytest.mark.parametrize(
    "arguments",
    ['{"a":' * 100_000, "{" * 100_000, "{'a':" * 100_000, '{"query": ' + "9" * 5000 + "}"],
)
def test_absurd_input_is_an_error_of_the_call(arguments: str) -> None:
    step = parse_tolerant(f"Action: GoogleSearch\nAction Input: {arguments}", TOOLS)
    assert isinstance(step, CallStep)
    assert step.error is not None
    assert step.error.type == "ARGS_ERROR"


@given(REPLIES)
def test_any_text_becomes_a_step_that_can_be_written_and_read_back(text: str) -> None:
    step = parse_tolerant(text, TOOLS)
    assert type(step).model_validate_json(step.model_dump_json()) == step


@given(REPLIES)
def test_only_an_empty_reply_or_one_with_markers_is_malformed(text: str) -> None:
    step = parse_tolerant(text, TOOLS)
    if isinstance(step, MalformedStep) and step.content.strip():
        assert ":" in text


def test_every_reference_call_is_read_back_as_it_was_written(atomic: AtomicDataset) -> None:
    """But for the two calls that lack their image."""
    failed = []
    for task in atomic.tasks.values():
        for turn in task.calls:
            step = parse_tolerant(format_call(turn), task.tools)
            if step != CallStep(name=turn.call.name, arguments=dict(turn.call.arguments)):
                failed.append(task.id)
    assert failed == ["34", "35"]


def test_every_reference_answer_is_read_as_an_answer(atomic: AtomicDataset) -> None:
    answers = [
        turn
        for task in atomic.tasks.values()
        for turn in task.steps
        if isinstance(turn, AnswerTurn)
    ]
    assert len(answers) == 213
    for turn in answers:
        step = parse_tolerant(f"Thought: done\nFinal Answer: {turn.content}", TOOLS)
        assert step == AnswerStep(content=turn.content.strip())


def test_the_histories_of_the_dataset_are_770(atomic: AtomicDataset) -> None:
    assert sum(len(make_step_histories(task)) for task in atomic.tasks.values()) == 770


INVENTED = "\nResponse: Beer 7\n\nThought: I know.\nFinal Answer: It costs 7."


@pytest.mark.parametrize(
    "call",
    [
        f"Thought: t\nAction: OCR\nAction Input: {OBJECT}",
        f"Action: OCR\nAction Input: ```json\n{OBJECT}\n```",
        f"Action: OCR({OBJECT}",
        "Action: OCR\nAction Input: {'image': 'inputs/menu.jpg'}",
        'Action: Now\nAction Input: {"text": "\\nResponse: no"}',
        "Action: Now\nAction Input: {'text': 'one \\n'}",
        "Action: OCR\nAction Input: not an object",
        'Action: OCR\nAction Input: {"image": "inputs',
        "<think>Action: Now\nAction Input: {}</think>Action: OCR\nAction Input: {}",
        "Thought: Action: none yet\nAction: OCR\nAction Input: {}",
    ],
)
def test_what_a_model_invents_after_its_call_is_not_shown_to_it_again(call: str) -> None:
    """With an invented result and answer in its past, a model repeated them for all its turns."""
    assert cut_invented(call + INVENTED, TOOLS) == call
    assert cut_invented(call, TOOLS) == call


def test_a_call_without_an_input_ends_before_its_invented_result() -> None:
    assert cut_invented("Action: Now\nResponse: It is 7.", TOOLS) == "Action: Now"


@pytest.mark.parametrize(
    "reply",
    ["", "Hm.", f"Thought: t{INVENTED}", "Thought: which?\nAction:", f"Final Answer: {OBJECT}"],
)
def test_a_reply_without_a_call_is_shown_as_it_is(reply: str) -> None:
    assert cut_invented(reply, TOOLS) == reply


@given(REPLIES)
def test_what_is_left_of_any_reply_is_the_same_call(reply: str) -> None:
    step = parse_tolerant(reply, TOOLS)
    cut = cut_invented(reply, TOOLS)
    assert reply.startswith(cut)
    assert cut_invented(cut, TOOLS) == cut
    assert parse_tolerant(cut, TOOLS) == step

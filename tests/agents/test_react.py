import re
from collections.abc import Callable, Sequence
from contextvars import Context

import pytest
from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput, StopReason

from gta_bench.agents.contract import (
    AgentFactory,
    History,
    RefusedTurn,
    Setup,
    list_dataset_files,
    make_step_histories,
)
from gta_bench.agents.react import (
    make_react_messages,
    make_upstream_messages,
    react,
    react_upstream,
)
from gta_bench.agents.replies import pick_model
from gta_bench.agents.toolcalling import toolcalling
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import EnvironmentProblem
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, ToolCall, UserTurn
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from gta_bench.records.tools import ToolSpec
from tests.agents.builders import (
    HISTORIES,
    MENU,
    TOOLS,
    Listening,
    decide,
    inspect_warnings,
    model_saying,
    shown,
)

pytestmark = inspect_warnings

QUESTION = "What does the bière cost?"
FILES = "These files belong to the request: `inputs/menu.jpg`"
LAST = "Call no more tools. Sum up the conversation so far and give your final answer."


def test_upstreams_history_is_bare_calls_and_results_as_system_messages() -> None:
    messages = make_upstream_messages(HISTORIES[-1], TOOLS)
    assert messages[0].role == "system"
    assert shown(messages[1:]) == [
        ("system", FILES),
        ("user", QUESTION),
        ("assistant", 'Action:OCR\nAction Input:{"image": "inputs/menu.jpg"}'),
        ("system", "(0, 0, 9, 9) Bière 7"),
        (
            "assistant",
            'Action:DrawBox\nAction Input:{"image": "inputs/menu.jpg", "bbox": "(0, 0, 9, 9)", '
            '"annotation": "7 \\u20ac"}',
        ),
        ("system", "[image](outputs/dummy_generated_image.jpg)"),
        ("user", LAST),
    ]


def test_upstream_asks_for_an_answer_without_tools_on_the_last_turn_only() -> None:
    texts = [make_upstream_messages(history, TOOLS)[-1].text for history in HISTORIES]
    assert [text == LAST for text in texts] == [False, False, True]


def test_our_history_is_written_as_the_prompt_asks_with_results_from_the_user() -> None:
    messages = make_react_messages(HISTORIES[-1], TOOLS)
    assert messages[0].role == "system"
    assert shown(messages[1:]) == [
        ("user", f"{FILES}\n\n{QUESTION}"),
        ("assistant", 'Action: OCR\nAction Input: {"image": "inputs/menu.jpg"}'),
        ("user", "Response: (0, 0, 9, 9) Bière 7"),
        (
            "assistant",
            'Action: DrawBox\nAction Input: {"image": "inputs/menu.jpg", "bbox": "(0, 0, 9, 9)", '
            '"annotation": "7 €"}',
        ),
        ("user", "Response: [image](outputs/dummy_generated_image.jpg)"),
    ]


OWN_WORDS = "Thought: look\nAction: OCR\nAction Input: {}"
OWN = History(
    task="7",
    attachments=(MENU,),
    mode="end-to-end",
    last=True,
    turns=(
        UserTurn(content=QUESTION),
        RefusedTurn(reply="Hm.", feedback="Please follow the format"),
        CallTurn(
            call=ToolCall(name="OCR", arguments={"image": "inputs/menu.jpg"}), content=OWN_WORDS
        ),
        ReplyTurn(tool="OCR", type="text", content="Bière 7"),
        ReplyTurn(tool="OCR", type="image", content="outputs/a.png"),
        AnswerTurn(content="7", thought="I know."),
    ),
)


def test_upstream_shows_its_own_turns_with_markers_and_a_word_before_the_last() -> None:
    assert shown(make_upstream_messages(OWN, TOOLS)[1:]) == [
        ("user", FILES),
        ("user", QUESTION),
        ("assistant", "Hm."),
        ("system", "Response:Please follow the format\n"),
        ("assistant", OWN_WORDS),
        ("system", "Response:Bière 7\n[image](outputs/a.png)\n"),
        ("assistant", "7"),
        ("system", "This is your last turn: answer now, from what the conversation holds."),
    ]


def test_our_own_turns_look_like_the_references() -> None:
    assert shown(make_react_messages(OWN, TOOLS)[1:]) == [
        ("user", f"{FILES}\n\n{QUESTION}"),
        ("assistant", "Hm."),
        ("user", "Response: Please follow the format"),
        ("assistant", OWN_WORDS),
        ("user", "Response: Bière 7\n[image](outputs/a.png)"),
        ("assistant", "Thought: I know.\nFinal Answer: 7"),
    ]


def test_our_own_turns_end_with_the_call_and_upstreams_as_they_were_said() -> None:
    said = "Action: Now\nAction Input: {}"
    invented = f"{said}\nResponse: It is 7.\nFinal Answer: 7"
    call = CallTurn(call=ToolCall(name="Now"), content=invented)
    refused = RefusedTurn(reply=invented, feedback="No.")
    turns = (UserTurn(content="?"), call, refused)
    history = History(task="7", turns=turns, mode="end-to-end")
    for build, shown_again in ((make_react_messages, said), (make_upstream_messages, invented)):
        texts = [text for role, text in shown(build(history, TOOLS)) if role == "assistant"]
        assert texts == [shown_again, shown_again]


def test_a_thought_that_a_history_holds_is_shown_before_the_call() -> None:
    turn = CallTurn(call=ToolCall(name="Now"), thought=" What time is it?\n")
    history = History(task="7", turns=(UserTurn(content="?"), turn))
    assert make_react_messages(history, TOOLS)[-1].text == (
        "Thought: What time is it?\nAction: Now\nAction Input: {}"
    )
    assert make_upstream_messages(history, TOOLS)[-1].text == "Action:Now\nAction Input:{}"


def test_a_task_without_files_has_no_file_message() -> None:
    history = History(task="7", turns=(UserTurn(content="Hello?"),))
    for build in (make_react_messages, make_upstream_messages):
        assert [message.role for message in build(history, TOOLS)] == ["system", "user"]


CALL = 'Thought: t\nAction: OCR\nAction Input: {"image": "inputs/menu.jpg"}'


@pytest.mark.parametrize("agent", [react, react_upstream])
def test_a_call_is_decided(agent: AgentFactory) -> None:
    decision = decide(agent, HISTORIES[0], setup=Setup(model=model_saying(CALL)))
    assert decision.step == CallStep(name="OCR", arguments={"image": "inputs/menu.jpg"})
    assert decision.calls == (decision.step,)
    assert decision.output is not None
    assert decision.output.completion == CALL


@pytest.mark.parametrize("agent", [react, react_upstream])
def test_an_answer_is_decided(agent: AgentFactory) -> None:
    setup = Setup(model=model_saying("Thought: t\nFinal Answer: 7"))
    decision = decide(agent, HISTORIES[-1], setup=setup)
    assert isinstance(decision.step, AnswerStep)
    assert decision.step.content.strip() == "7"
    assert decision.calls == ()


def test_an_empty_reply_is_malformed_for_us_and_no_action_for_upstream() -> None:
    ours = decide(react, HISTORIES[0], setup=Setup(model=model_saying("")))
    assert isinstance(ours.step, MalformedStep)
    theirs = decide(react_upstream, HISTORIES[0], setup=Setup(model=model_saying("")))
    assert isinstance(theirs.step, CallStep)
    assert theirs.step.name == "NoAction"


@pytest.mark.parametrize("agent", [react, react_upstream, toolcalling])
def test_an_output_without_choices_is_no_reply_at_all(agent: AgentFactory) -> None:
    setup = Setup(model=model_saying(ModelOutput(model="mockllm")))
    with pytest.raises(EnvironmentProblem, match="without choices"):
        decide(agent, HISTORIES[0], setup=setup)


@pytest.mark.parametrize("agent", [react, react_upstream])
def test_the_engines_words_about_an_overflow_are_no_answer(agent: AgentFactory) -> None:
    """Inspect puts the provider's error into the place of the reply."""
    full = ModelOutput.from_content("m", "Final Answer: too long", stop_reason="model_length")
    decision = decide(agent, HISTORIES[0], setup=Setup(model=model_saying(full)))
    assert isinstance(decision.step, MalformedStep)
    assert (decision.stop, decision.step.content) == ("context", "")


def test_an_answer_that_was_cut_off_is_none_but_a_whole_call_is_one() -> None:
    cut = ModelOutput.from_content("m", "Final Answer: It costs", stop_reason="max_tokens")
    decision = decide(react, HISTORIES[0], setup=Setup(model=model_saying(cut)))
    assert isinstance(decision.step, MalformedStep)
    assert decision.stop == "cut off"
    call = ModelOutput.from_content("m", CALL, stop_reason="max_tokens")
    decision = decide(react, HISTORIES[0], setup=Setup(model=model_saying(call)))
    assert isinstance(decision.step, CallStep)
    assert decision.stop == "cut off"


@pytest.mark.parametrize(
    ("reason", "stop"), [("max_tokens", "cut off"), ("content_filter", "refused")]
)
def test_upstream_reads_a_reply_that_did_not_end_and_counts_it(
    reason: StopReason, stop: str
) -> None:
    cut = ModelOutput.from_content("m", "Final Answer: It costs", stop_reason=reason)
    decision = decide(react_upstream, HISTORIES[0], setup=Setup(model=model_saying(cut)))
    assert decision.step == AnswerStep(content=" It costs")
    assert decision.stop == stop


def test_upstreams_client_strips_a_reply_before_it_is_read() -> None:
    setup = Setup(model=model_saying("\n Final Answer: 7 \n"))
    decision = decide(react_upstream, HISTORIES[-1], setup=setup)
    assert decision.step == AnswerStep(content=" 7")


def test_upstreams_thought_is_kept_beside_the_step() -> None:
    decision = decide(react_upstream, HISTORIES[0], setup=Setup(model=model_saying(CALL)))
    assert decision.thought.strip() == "t"


def test_upstream_accepts_files_that_the_history_or_the_dataset_knows() -> None:
    text = 'Action: OCR\nAction Input: {"image": "inputs/other.jpg"}'
    unknown = decide(react_upstream, HISTORIES[0], setup=Setup(model=model_saying(text)))
    assert isinstance(unknown.step, CallStep) and unknown.step.error is not None
    assert unknown.step.error.type == "API_ERROR"
    setup = Setup(model=model_saying(text), known_files=frozenset({"inputs/other.jpg"}))
    assert decide(react_upstream, HISTORIES[0], setup=setup).step == CallStep(
        name="OCR", arguments={"image": "inputs/other.jpg"}
    )


@pytest.mark.parametrize("agent", [react, react_upstream])
def test_the_model_is_asked_once_without_tools_and_with_the_given_config(
    agent: AgentFactory,
) -> None:
    listening = Listening()
    config = GenerateConfig(max_tokens=64, temperature=0)
    decide(agent, HISTORIES[0], setup=Setup(model=listening.model, config=config))
    assert len(listening.messages) == 1
    assert listening.tools == [[]]
    assert listening.configs[0].max_tokens == 64
    assert listening.configs[0].temperature == 0


def test_without_a_model_of_its_own_an_agent_asks_the_one_inspect_evaluates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("INSPECT_EVAL_MODEL", "mockllm/evaluated")
    # An evaluation before this one leaves its model in the context of the process.
    assert str(Context().run(pick_model, Setup())) == "mockllm/evaluated"


def whole_text(messages: list[ChatMessage]) -> str:
    return "\n".join(message.text for message in messages)


@pytest.mark.parametrize("build", [make_react_messages, make_upstream_messages])
def test_all_770_prefixes_of_the_dataset_are_shown_with_portable_paths(
    build: Callable[[History, Sequence[ToolSpec]], list[ChatMessage]], atomic: AtomicDataset
) -> None:
    prefixes = 0
    known = list_dataset_files(atomic.tasks.values())
    for task in atomic.tasks.values():
        tools = [atomic.tools[name] for name in task.offered]
        for history in make_step_histories(task):
            text = whole_text(build(history, tools))
            assert str(atomic.root) not in text
            assert all(item.source not in text for item in task.attachments)
            assert all(item.path in text for item in task.attachments)
            shown_images = set(re.findall(r"\[image\]\((.*?)\)", text))
            assert shown_images <= known
            prefixes += 1
    assert prefixes == 770


def test_229_prefixes_of_the_dataset_end_with_upstreams_last_message(
    atomic: AtomicDataset,
) -> None:
    last = [
        make_upstream_messages(history, task.tools)[-1].text == LAST
        for task in atomic.tasks.values()
        for history in make_step_histories(task)
    ]
    assert (len(last), sum(last)) == (770, 229)

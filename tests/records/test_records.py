import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gta_bench.records.atomic import AtomicTask, FreeTextAnswer, WhitelistAnswer
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, ToolCall, UserTurn
from gta_bench.records.files import Attachment
from gta_bench.records.finding import Finding
from gta_bench.records.finished import ResultMeta
from gta_bench.records.steps import AnswerStep, CallStep, StepError
from gta_bench.records.tools import Parameter, ToolSpec
from gta_bench.records.workflow import Checkpoint, WorkflowTask

OCR = ToolSpec(name="OCR", inputs=(Parameter(type="image", name="image"),))
TASK = AtomicTask(
    id="0",
    tools=(OCR, OCR.model_copy(update={"description": "again"})),
    attachments=(Attachment(path="inputs/menu.jpg", source="image/menu.jpg", type="image"),),
    dialogue=(
        UserTurn(content="Read it."),
        CallTurn(call=ToolCall(name="OCR", arguments={"image": "inputs/menu.jpg"})),
        ReplyTurn(tool="OCR", type="text", content="Beer 7"),
        AnswerTurn(content="It costs 7."),
    ),
    answer=WhitelistAnswer(whitelist=(("7",),)),
)


def test_a_task_survives_writing_and_reading_unchanged() -> None:
    assert AtomicTask.model_validate_json(TASK.model_dump_json()) == TASK


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        TASK.id = "1"  # type: ignore[misc]


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        Finding.model_validate(
            {"check": "a", "severity": "note", "file": "f", "message": "", "x": 1}
        )


def test_a_task_gives_its_request_steps_and_calls_in_order() -> None:
    assert TASK.request == "Read it."
    assert [step.turn for step in TASK.steps] == ["call", "answer"]
    assert [call.call.name for call in TASK.calls] == ["OCR"]


def test_the_first_definition_of_a_tool_listed_twice_is_offered() -> None:
    assert TASK.offered == {"OCR": OCR}


def test_a_tool_finds_its_inputs_by_name() -> None:
    assert OCR.input("image") == OCR.inputs[0]
    assert OCR.input("bbox") is None


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "inputs/../x", "inputs/", "image/a.jpg", "inputs/a/b", "inputs/a\\b"]
)
def test_a_path_that_is_not_portable_is_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        Attachment(path=path, source="a.jpg")


def test_answers_are_told_apart_by_their_kind() -> None:
    raw = TASK.model_dump(mode="json")
    raw["answer"] = {"kind": "free_text", "references": ["a", "b", "c"]}
    assert AtomicTask.model_validate_json(
        AtomicTask.model_validate(raw).model_dump_json()
    ).answer == FreeTextAnswer(references=("a", "b", "c"))


def test_leaves_come_depth_first_and_a_childless_node_is_its_own_leaf() -> None:
    tree = Checkpoint(
        id="cp1",
        children=(
            Checkpoint(id="cp1-1"),
            Checkpoint(id="cp1-2", children=(Checkpoint(id="cp1-2-1"),)),
        ),
    )
    task = WorkflowTask(
        id="1",
        request="",
        category=None,
        tools=(),
        attachments=(),
        checkpoints=(tree, Checkpoint(id="cp2")),
    )
    assert [leaf.id for leaf in task.leaves()] == ["cp1-1", "cp1-2-1", "cp2"]


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_weight_is_a_finite_number_that_is_not_negative(weight: float) -> None:
    with pytest.raises(ValidationError):
        Checkpoint(id="cp1", weight=weight)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x)))
def test_a_call_keeps_whatever_arguments_a_model_gave(arguments: object) -> None:
    step = CallStep.model_validate({"name": "OCR", "arguments": arguments})
    assert CallStep.model_validate_json(step.model_dump_json()) == step


def test_an_answer_that_is_a_crash_text_says_so() -> None:
    step = AnswerStep(content="[Error]", error=StepError(type="crash"))
    assert step.error is not None
    assert step.error.message == ""


def test_how_long_results_took_is_stated_or_between_the_two_times() -> None:
    times = {"started": "2026-11-15T09:00:00Z", "finished": "2026-11-15T11:00:30+02:00"}
    assert ResultMeta.model_validate(times).duration == 30
    assert ResultMeta.model_validate({**times, "seconds": 5}).duration == 5
    assert ResultMeta.model_validate({"started": times["started"]}).duration is None
    assert ResultMeta().duration is None
    backwards = {"started": times["finished"], "finished": times["started"]}
    assert ResultMeta.model_validate(backwards).duration == 0

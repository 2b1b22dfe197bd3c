from pydantic import BaseModel

from gta_bench.datasets.files import Location
from gta_bench.datasets.released import (
    ReleasedAtomicTask,
    ReleasedWorkflowTask,
    find_unknown_keys,
)
from tests.builders import atomic_task, checkpoint, workflow_task


def unknown_keys(part: BaseModel) -> list[str | None]:
    return [finding.field for finding in find_unknown_keys(part, Location("file.json"))]


def test_a_task_of_the_known_layout_has_no_unknown_key() -> None:
    assert unknown_keys(ReleasedAtomicTask.model_validate(atomic_task())) == []
    assert unknown_keys(ReleasedWorkflowTask.model_validate(workflow_task())) == []


def test_unknown_keys_are_found_at_every_depth() -> None:
    raw = atomic_task(a=1)
    raw["dialogs"][1]["tool_calls"][0]["function"]["b"] = 2
    raw["dialogs"][2]["content"]["c"] = 3
    raw["gt_answer"]["d"] = 4
    assert unknown_keys(ReleasedAtomicTask.model_validate(raw)) == [
        "a",
        "dialogs.1.tool_calls.0.function.b",
        "dialogs.2.content.c",
        "gt_answer.d",
    ]


def test_unknown_keys_are_found_in_checkpoint_trees() -> None:
    raw = workflow_task(sub_tasks=[checkpoint("a", checkpoint("b", judge="strict"))])
    found = unknown_keys(ReleasedWorkflowTask.model_validate(raw))
    assert found == ["sub_tasks.0.sub_tasks.0.judge"]


def test_arguments_are_data_and_have_no_unknown_keys() -> None:
    raw = atomic_task()
    raw["dialogs"][1]["tool_calls"][0]["function"]["arguments"] = {"anything": {"goes": 1}}
    assert unknown_keys(ReleasedAtomicTask.model_validate(raw)) == []

from gta_bench.datasets.released import (
    ReleasedAtomicTask,
    ReleasedWorkflowTask,
    unknown_keys,
)
from tests.builders import atomic_task, checkpoint, workflow_task


def test_a_task_of_the_known_layout_has_no_unknown_key() -> None:
    assert list(unknown_keys(ReleasedAtomicTask.model_validate(atomic_task()))) == []
    assert list(unknown_keys(ReleasedWorkflowTask.model_validate(workflow_task()))) == []


def test_unknown_keys_are_found_at_every_depth() -> None:
    raw = atomic_task(a=1)
    raw["dialogs"][1]["tool_calls"][0]["function"]["b"] = 2
    raw["dialogs"][2]["content"]["c"] = 3
    raw["gt_answer"]["d"] = 4
    assert list(unknown_keys(ReleasedAtomicTask.model_validate(raw))) == [
        "a",
        "dialogs.1.tool_calls.0.function.b",
        "dialogs.2.content.c",
        "gt_answer.d",
    ]


def test_unknown_keys_are_found_in_checkpoint_trees() -> None:
    raw = workflow_task(sub_tasks=[checkpoint("a", checkpoint("b", judge="strict"))])
    found = list(unknown_keys(ReleasedWorkflowTask.model_validate(raw)))
    assert found == ["sub_tasks.0.sub_tasks.0.judge"]


def test_arguments_are_data_and_have_no_unknown_keys() -> None:
    raw = atomic_task()
    raw["dialogs"][1]["tool_calls"][0]["function"]["arguments"] = {"anything": {"goes": 1}}
    assert list(unknown_keys(ReleasedAtomicTask.model_validate(raw))) == []

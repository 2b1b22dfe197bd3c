from pathlib import Path

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.stats import atomic_stats, workflow_stats
from gta_bench.datasets.workflow import load_workflow
from tests.builders import atomic_task, write_atomic, write_workflow


def test_gta_atomic_in_numbers(atomic_dir: Path) -> None:
    stats = atomic_stats(load_atomic(atomic_dir))
    assert stats.tasks == 229
    assert stats.tools_per_task == {"1": 17, "2": 147, "3": 50, "4": 15}
    assert (stats.steps, stats.tool_calls, stats.tool_messages, stats.answers) == (
        770,
        557,
        555,
        213,
    )
    assert stats.gt_answer == {"dict": 156, "list": 16, "null": 57}
    assert stats.attachments == 249
    assert stats.calls_per_tool == {
        "OCR": 131,
        "ImageDescription": 114,
        "Calculator": 70,
        "CountGivenObject": 50,
        "GoogleSearch": 44,
        "MathOCR": 20,
        "TextToImage": 19,
        "DrawBox": 18,
        "ImageStylization": 18,
        "AddText": 18,
        "TextToBbox": 16,
        "Plot": 15,
        "Solver": 14,
        "RegionAttributeDescription": 10,
    }


def test_gta_workflow_in_numbers(workflow_dir: Path) -> None:
    stats = workflow_stats(load_workflow(workflow_dir))
    assert (stats.tasks, stats.leaves, stats.tools) == (20, 229, 37)
    assert sum(stats.leaves_per_task.values()) == 20
    assert sum(stats.tasks_per_category.values()) == 20


def test_every_kind_of_answer_is_counted_by_its_json_kind(tmp_path: Path) -> None:
    answers = {"0": None, "1": ["a"], "2": {"whitelist": [["a"]]}}
    tasks = {task: atomic_task(gt_answer=answer) for task, answer in answers.items()}
    stats = atomic_stats(load_atomic(write_atomic(tmp_path, tasks)))
    assert stats.gt_answer == {"null": 1, "list": 1, "dict": 1}


def test_a_small_workflow_dataset_is_counted(tmp_path: Path) -> None:
    stats = workflow_stats(load_workflow(write_workflow(tmp_path)))
    assert stats.top_level_checkpoints == 1
    assert stats.leaves_per_task == {"2": 1}

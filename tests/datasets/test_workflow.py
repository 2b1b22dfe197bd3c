from pathlib import Path
from typing import Any

import pytest

from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import DatasetError
from tests.builders import checkpoint, parameter, tool, workflow_task, write_workflow


def test_the_twenty_released_tasks_have_their_leaves_and_tools(workflow_dir: Path) -> None:
    dataset = load_workflow(workflow_dir)
    assert len(dataset.tasks) == 20
    assert sum(1 for task in dataset.tasks.values() for _ in task.leaves()) == 229
    assert len(dataset.tools) == 37


def test_a_good_task_becomes_a_record(tmp_path: Path) -> None:
    files = [{"type": "file", "path": "resources/files/a.pdf", "url": None}]
    root = write_workflow(tmp_path, {"5": workflow_task(files=files, tools=[tool("OCR"), "Plot"])})
    task = load_workflow(root).tasks["5"]
    assert task.request == "Write a report."
    assert task.tools == ("OCR", "Plot")
    assert task.attachments[0].path == "inputs/a.pdf"
    assert [leaf.id for leaf in task.leaves()] == ["cp1-1", "cp1-2"]


def test_bare_strings_among_the_files_are_attached_and_found(tmp_path: Path) -> None:
    """Task 126 of the release has two; the published loader drops them in silence."""
    files = ["resources/files/126-1.csv", "resources/files/126-2.csv"]
    dataset = load_workflow(write_workflow(tmp_path, {"126": workflow_task(files=files)}))
    assert len(dataset.tasks["126"].attachments) == 2
    assert [(finding.check, finding.task, finding.field) for finding in dataset.findings] == [
        ("bare-string-file", "126", "files.0"),
        ("bare-string-file", "126", "files.1"),
    ]


def test_resources_of_a_message_are_attached_too_and_a_difference_is_found(tmp_path: Path) -> None:
    message = {
        "role": "user",
        "content": "Look.",
        "resources": [{"path": "resources/a.png"}, {"path": "resources/b.png"}],
    }
    task = workflow_task(files=[{"path": "resources/a.png"}], dialogs=[message])
    dataset = load_workflow(write_workflow(tmp_path, {"1": task}))
    assert [item.source for item in dataset.tasks["1"].attachments] == [
        "resources/a.png",
        "resources/b.png",
    ]
    assert [finding.check for finding in dataset.findings] == ["resources-differ"]


def test_a_default_that_is_the_authors_path_is_dropped_and_found(tmp_path: Path) -> None:
    odd = tool("PdfFileGenerator", parameter("output_dir", default="/home/someone/out"))
    dataset = load_workflow(write_workflow(tmp_path, toolmeta=[odd]))
    assert dataset.tools["PdfFileGenerator"].inputs[0].default is None
    assert [finding.field for finding in dataset.findings] == ["PdfFileGenerator.output_dir"]


@pytest.mark.parametrize(
    ("change", "field", "problem"),
    [
        ({"dialogs": [{"role": "assistant", "content": "x"}]}, "dialogs.0", "user messages"),
        ({"dialogs": [{"role": "user", "content": None}]}, "dialogs.0", "messages with text"),
        ({"sub_tasks": None}, "sub_tasks", "valid list"),
        ({"sub_tasks": [checkpoint("a"), checkpoint("a")]}, "a", "2 leaves have this id"),
        ({"sub_tasks": [checkpoint("a", weight=-1)]}, "sub_tasks.0.weight", "greater than"),
        ({"sub_tasks": [checkpoint("a", weight="2")]}, "sub_tasks.0.weight", "valid number"),
        (
            {"sub_tasks": [checkpoint("a", {"weight": 1})]},
            "sub_tasks.0.sub_tasks.0.id",
            "Field required",
        ),
    ],
)
def test_what_cannot_become_a_record_is_refused_with_its_place(
    tmp_path: Path, change: dict[str, Any], field: str, problem: str
) -> None:
    root = write_workflow(tmp_path, {"9": workflow_task(**change)})
    with pytest.raises(DatasetError, match=problem) as caught:
        load_workflow(root)
    assert (caught.value.file, caught.value.task, caught.value.field) == ("end.json", "9", field)


def test_a_missing_dataset_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="gta data fetch workflow"):
        load_workflow(tmp_path)

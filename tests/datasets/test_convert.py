import json
from pathlib import Path

import pytest

from gta_bench.datasets.convert import convert
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import DatasetError, UsageError
from tests.authored import TASK, write_task


def write_released(root: Path) -> None:
    leaf = {"id": "b", "requirements": 'Says "quoted" \\ and \x7f.', "weight": 1.5}
    deep = {"id": "g", "requirements": "Heading", "weight": 2, "sub_tasks": [
        {"id": "h", "sub_tasks": [{"id": "c", "requirements": "x"}]}, {"id": "d"}]}  # fmt: skip
    files = [
        {"path": "resources/one/a.png", "type": "image", "url": "https://example.org/a.png"},
        {"path": "resources/two/a.png"},
    ]
    entry = {
        "tools": ["Calculator"],
        "files": files,
        "dialogs": [{"role": "user", "content": "Do it.\n\nThen stop."}],
        "sub_tasks": [deep, leaf],
        "workflow_category_6class": None,
    }
    (root / "resources/one").mkdir(parents=True)
    (root / "resources/one/a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (root / "end.json").write_text(json.dumps({"10": entry, "11": {**entry, "files": []}}))
    (root / "toolmeta.json").write_text("[]")


def test_released_tasks_survive_the_way_to_folders_and_back(tmp_path: Path) -> None:
    write_released(tmp_path / "first")
    first = load_workflow(tmp_path / "first")
    assert convert(first, tmp_path / "folders") == 1
    folders = load_workflow(tmp_path / "folders")
    assert convert(folders, tmp_path / "back") == 1
    back = load_workflow(tmp_path / "back")
    assert back.tasks == first.tasks and list(back.tasks) == list(first.tasks)
    for task in first.tasks:
        assert task_digests(first, task) == task_digests(folders, task) == task_digests(back, task)
    assert (tmp_path / "back/toolmeta.json").is_file()
    assert (tmp_path / "folders/10/inputs/a.png").read_bytes() == b"\x89PNG\r\n\x1a\n"


PLAIN = """\
format = 1
id = "q3-sales"
[[leaf]]
id = "a"
says = "x"
"""


def test_an_own_task_gets_a_place_for_its_files(tmp_path: Path) -> None:
    write_task(tmp_path / "own", PLAIN)
    assert convert(load_workflow(tmp_path / "own"), tmp_path / "released") == 0
    (task,) = load_workflow(tmp_path / "released").tasks.values()
    assert task.attachments[0].source == "resources/q3-sales/sales.csv"
    assert not (tmp_path / "released/toolmeta.json").exists()


def test_what_the_released_layout_cannot_hold_is_refused(tmp_path: Path) -> None:
    write_task(tmp_path / "own", TASK)
    with pytest.raises(DatasetError, match="field 'sums': the released layout has no `checks`"):
        convert(load_workflow(tmp_path / "own"), tmp_path / "released")
    assert not (tmp_path / "released").exists()


def test_a_path_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    write_task(tmp_path / "own", PLAIN + '[inputs."sales.csv"]\nreleased = "../../x"\n')
    with pytest.raises(DatasetError, match="not a relative path inside a dataset"):
        convert(load_workflow(tmp_path / "own"), tmp_path / "released")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    write_task(tmp_path / "own", PLAIN)
    with pytest.raises(UsageError, match="is not empty"):
        convert(load_workflow(tmp_path / "own"), tmp_path / "own")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is not empty"):
        convert(load_workflow(tmp_path / "own"), tmp_path / "file")


def test_every_field_of_a_task_folder_is_written(tmp_path: Path) -> None:
    from gta_bench.datasets.convert import format_task

    task = load_workflow(write_task(tmp_path / "own").parent).tasks["q3-sales"]
    other = write_task(tmp_path / "again", format_task(task), files={"inputs/sales.csv": b""})
    assert load_workflow(other.parent).tasks["q3-sales"] == task

from pathlib import Path
from typing import Any

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.errors import DatasetError
from gta_bench.records.atomic import PLACEHOLDER_IMAGE, FreeTextAnswer, WhitelistAnswer
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn
from tests.builders import atomic_task, call, reply, tool, write_atomic, write_json


def test_the_release_has_the_published_counts(atomic_dir: Path) -> None:
    dataset = load_atomic(atomic_dir)
    turns = [turn for task in dataset.tasks.values() for turn in task.dialogue]
    assert list(dataset.tasks) == [str(number) for number in range(229)]
    assert sum(isinstance(turn, CallTurn) for turn in turns) == 557
    assert sum(isinstance(turn, ReplyTurn) for turn in turns) == 555
    assert sum(isinstance(turn, AnswerTurn) for turn in turns) == 213
    assert {(finding.check, finding.task) for finding in dataset.findings} == {
        ("host-path-reply", "118")
    }


def test_no_path_of_the_release_is_a_hosts(atomic_dir: Path) -> None:
    for task in load_atomic(atomic_dir).tasks.values():
        written = task.model_dump_json()
        assert str(atomic_dir) not in written
        assert "C:\\\\" not in written
        assert all(item.path.startswith("inputs/") for item in task.attachments)


def test_the_placeholder_of_a_produced_image_is_the_same_in_reply_and_argument(
    atomic_dir: Path,
) -> None:
    dialogue = load_atomic(atomic_dir).tasks["48"].dialogue
    shown = [turn.content for turn in dialogue if isinstance(turn, ReplyTurn)]
    assert shown[-2] == PLACEHOLDER_IMAGE
    last_call = [turn for turn in dialogue if isinstance(turn, CallTurn)][-1]
    assert last_call.call.arguments["image"] == PLACEHOLDER_IMAGE


def test_a_good_task_becomes_a_record(tmp_path: Path) -> None:
    task = load_atomic(write_atomic(tmp_path)).tasks["0"]
    assert task.request == "What does the beer cost?"
    assert task.attachments[0].path == "inputs/menu.jpg"
    assert task.attachments[0].source == "image/menu.jpg"
    assert task.calls[0].call.arguments == {"image": "inputs/menu.jpg"}
    assert task.answer == WhitelistAnswer(whitelist=(("7", "seven"),))


def test_files_of_one_name_get_distinct_portable_paths(tmp_path: Path) -> None:
    files = [{"path": "image/a.jpg"}, {"path": "more/a.jpg"}, {"path": "other/a.jpg"}]
    root = write_atomic(tmp_path, {"0": atomic_task(files=files)})
    paths = [item.path for item in load_atomic(root).tasks["0"].attachments]
    assert paths == ["inputs/a.jpg", "inputs/a_2.jpg", "inputs/a_3.jpg"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (None, None),
        (["a", "b"], FreeTextAnswer(references=("a", "b"))),
        (
            {"whitelist": [["a"], ["b", "c"]], "blacklist": [["d"]]},
            WhitelistAnswer(whitelist=(("a",), ("b", "c")), blacklist=(("d",),)),
        ),
    ],
)
def test_every_kind_of_answer_is_kept(tmp_path: Path, raw: Any, expected: Any) -> None:
    root = write_atomic(tmp_path, {"0": atomic_task(gt_answer=raw)})
    assert load_atomic(root).tasks["0"].answer == expected


def test_a_step_file_of_the_same_shape_is_read_where_there_is_no_dataset_file(
    tmp_path: Path,
) -> None:
    root = write_atomic(tmp_path)
    (root / "dataset.json").rename(root / "step.json")
    dataset = load_atomic(root)
    assert dataset.file == "step.json"
    assert len(dataset.tasks) == 1


@pytest.mark.parametrize("listed", [False, True])
def test_toolmeta_is_an_object_or_a_list(tmp_path: Path, listed: bool) -> None:
    tools = [tool("OCR"), tool("Plot")]
    toolmeta = tools if listed else {entry["name"]: entry for entry in tools}
    dataset = load_atomic(write_atomic(tmp_path, toolmeta=toolmeta))
    assert list(dataset.tools) == ["OCR", "Plot"]


def test_without_toolmeta_the_tasks_definitions_hold_and_it_is_a_finding(tmp_path: Path) -> None:
    root = write_atomic(tmp_path)
    (root / "toolmeta.json").unlink()
    dataset = load_atomic(root)
    assert [finding.check for finding in dataset.findings] == ["toolmeta-missing"]


def test_quirks_of_the_layout_are_findings_and_not_failures(tmp_path: Path) -> None:
    user = {"role": "user", "content": "Hi", "tool_calls": [call("OCR", {})["tool_calls"][0]]}
    task = atomic_task(files=["image/menu.jpg"], dialogs=[user], extra=1)
    task["tools"][0]["inputs"][0]["hint"] = "x"
    found = {
        (finding.check, finding.field): finding.severity
        for finding in load_atomic(write_atomic(tmp_path, {"7": task})).findings
    }
    assert found == {
        ("bare-string-file", "files.0"): "warning",
        ("unknown-key", "extra"): "note",
        ("unknown-key", "tools.0.inputs.0.hint"): "note",
        ("misplaced-tool-call", "dialogs.0.tool_calls"): "warning",
    }


@pytest.mark.parametrize(
    ("change", "field", "problem"),
    [
        ({"dialogs": []}, "dialogs", "at least 1 item"),
        ({"tools": None}, "tools", "valid list"),
        ({"tools": [tool("OCR", {"type": "smell"})]}, "tools.0.inputs.0.type", "Input should be"),
        ({"files": [{"url": None}]}, "files.0.path", "Field required"),
        ({"files": [{"path": "/etc/passwd"}]}, "files.0.path", "not a relative path"),
        ({"files": [{"path": "../a.jpg"}]}, "files.0.path", "not a relative path"),
        ({"files": [{"path": "a\\b.jpg"}]}, "files.0.path", "not a relative path"),
        ({"files": [{"path": ""}]}, "files.0.path", "not a relative path"),
        ({"gt_answer": 5}, "gt_answer", "valid"),
        ({"dialogs": [{"role": "user"}]}, "dialogs.0.content", "needs a text"),
        ({"dialogs": [{"role": "king", "content": ""}]}, "dialogs.0.role", "Input should be"),
        ({"dialogs": [{"role": "tool", "content": "x", "name": "a"}]}, "dialogs.0", "tool message"),
        (
            {"dialogs": [{**reply("OCR", "x"), "role": "user"}]},
            "dialogs.0.content",
            "must be text",
        ),
        (
            {"dialogs": [{"role": "assistant", "tool_calls": []}]},
            "dialogs.0.tool_calls",
            "at least 1 item",
        ),
        (
            {"dialogs": [call("OCR", {}, tool_calls=call("OCR", {})["tool_calls"] * 2)]},
            "dialogs.0.tool_calls",
            "at most 1 item",
        ),
    ],
)
def test_what_cannot_become_a_record_is_refused_with_its_place(
    tmp_path: Path, change: dict[str, Any], field: str, problem: str
) -> None:
    root = write_atomic(tmp_path, {"3": atomic_task(**change)})
    with pytest.raises(DatasetError, match=problem) as caught:
        load_atomic(root)
    assert (caught.value.file, caught.value.task, caught.value.field) == (
        "dataset.json",
        "3",
        field,
    )


@pytest.mark.parametrize("task_id", ["", "../1", ".hidden", "a b", "x" * 65])
def test_a_task_id_that_could_not_name_a_folder_is_refused(tmp_path: Path, task_id: str) -> None:
    with pytest.raises(DatasetError, match="a task id has"):
        load_atomic(write_atomic(tmp_path, {task_id: atomic_task()}))


@pytest.mark.parametrize(
    ("toolmeta", "problem"),
    [
        (5, "must be an object by tool name or a list"),
        ([tool("OCR"), tool("OCR")], "field 'OCR': the tool is defined twice"),
        ({"Plot": tool("OCR")}, "field 'Plot': the key and the name 'OCR' differ"),
        ([{"description": "nameless"}], "field 'name': Field required"),
    ],
)
def test_a_toolmeta_that_cannot_be_read_is_refused(
    tmp_path: Path, toolmeta: Any, problem: str
) -> None:
    with pytest.raises(DatasetError, match=problem) as caught:
        load_atomic(write_atomic(tmp_path, toolmeta=toolmeta))
    assert caught.value.file == "toolmeta.json"


def test_a_missing_dataset_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="gta data fetch atomic"):
        load_atomic(tmp_path)


def test_a_dataset_that_is_no_object_is_refused(tmp_path: Path) -> None:
    root = write_atomic(tmp_path)
    write_json(root / "dataset.json", [])
    with pytest.raises(DatasetError, match="must be an object keyed by task id, not list"):
        load_atomic(root)

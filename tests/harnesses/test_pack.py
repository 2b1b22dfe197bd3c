"""Eval packs: their steps, their attachments, and everything that can be wrong with them."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from gta_bench.datasets.model import WorkflowDataset
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import DatasetError
from gta_bench.harnesses.collecting import keep_files
from gta_bench.harnesses.delivery import Delivery, Finished
from gta_bench.harnesses.finished import read_pack
from gta_bench.records.finished import Pack, PackMeta, PackTask
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.runs.artefacts import ArtefactStore
from tests.builders import workflow_task, write_workflow
from tests.conftest import REPOSITORY

SECRET = "not for the judge"
SCHEMAS = REPOSITORY / "docs" / "reference" / "schemas"


@pytest.fixture
def dataset(tmp_path: Path) -> WorkflowDataset:
    return load_workflow(
        write_workflow(tmp_path / "data", {"7": workflow_task(), "8": workflow_task()})
    )


def said(text: str, **changes: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **changes}


def entry(task: int | str = 7, *files: str, **changes: Any) -> dict[str, Any]:
    return {
        "task_id": task,
        "sample_idx": 1,
        "origin_prompt": ["Write a report."],
        "assistant_outputs": [[said("Done.")]],
        "attached_files": list(files),
        "full_tree": [],
        "meta": {},
        **changes,
    }


def write_pack(tmp_path: Path, *tasks: Any, **changes: Any) -> Path:
    file = tmp_path / "pack" / "pack.json"
    file.parent.mkdir(exist_ok=True)
    whole = {"schema_version": 1, "generated_from": {}, "tasks": list(tasks), **changes}
    file.write_text(json.dumps(whole), encoding="utf-8")
    return file


def only(found: Finished) -> Delivery:
    (delivery,) = found.deliveries.values()
    return delivery


def answers(delivery: Delivery) -> list[str]:
    return [
        step.content
        for step in delivery.trace
        if isinstance(step, AnswerStep) and step.error is None
    ]


def test_several_traces_follow_each_other(tmp_path: Path, dataset: WorkflowDataset) -> None:
    outputs = [[said("First.", meta={"type": "thought"}), said("One.")], [said("Two.")]]
    pack = write_pack(tmp_path, entry(assistant_outputs=outputs))
    assert answers(only(read_pack(pack, dataset.tasks))) == ["One.", "Two."]


def test_shortened_calls_are_read_as_calls(tmp_path: Path, dataset: WorkflowDataset) -> None:
    calls = [
        {"name": "Plot", "last_arguments": {"command": "x"}, "success": True, "attempts": 2},
        {"name": "OCR", "last_arguments": {}, "success": False, "attempts": 1},
    ]
    steps = [{"role": "assistant", "tool_calls_summary": calls}, said("Done.")]
    found = only(read_pack(write_pack(tmp_path, entry(assistant_outputs=[steps])), dataset.tasks))
    assert [(call.tool, call.status) for call in found.calls] == [
        ("Plot", "done"),
        ("OCR", "error"),
    ]
    assert [step.name for step in found.trace if isinstance(step, CallStep)] == ["Plot", "OCR"]
    assert answers(found) == ["Done."]


@pytest.mark.parametrize("text", ["(error) HTTP 500", "[LagentAgentError] HTTPError: 503"])
def test_a_runner_s_words_for_a_crash_are_no_answer(
    tmp_path: Path, dataset: WorkflowDataset, text: str
) -> None:
    pack = write_pack(tmp_path, entry(assistant_outputs=[[said(text)]]))
    assert answers(only(read_pack(pack, dataset.tasks))) == []


def test_no_output_at_all_is_an_empty_delivery(tmp_path: Path, dataset: WorkflowDataset) -> None:
    pack = write_pack(tmp_path, {"task_id": "8"})
    assert read_pack(pack, dataset.tasks).deliveries == {"8": Delivery()}


def test_time_cost_and_system_are_kept(tmp_path: Path, dataset: WorkflowDataset) -> None:
    meta = {"elapsed_sec": 9, "call_elapsed_sec": 7.5, "cost_usd": 1, "usage": {"credits": 3}}
    about = {"backend": "manus", "dry_run": False, "model": 3}
    found = read_pack(write_pack(tmp_path, entry(meta=meta), generated_from=about), dataset.tasks)
    assert (only(found).meta.duration, only(found).meta.cost_usd) == (7.5, 1)
    assert (found.stated("harness"), found.stated("model")) == ("manus", None)
    free = read_pack(write_pack(tmp_path, entry(), generated_from="by hand"), dataset.tasks)
    assert free.stated("harness") is None


def test_attachments_are_found_below_the_pack_or_the_root(
    tmp_path: Path, dataset: WorkflowDataset
) -> None:
    inside = tmp_path / "pack" / "out" / "7" / "files"
    (inside / "a").mkdir(parents=True)
    (inside / "a" / "b.txt").write_text("deep", encoding="utf-8")
    (tmp_path / "pack" / "x").mkdir()
    for folder in ("out", "x"):
        (tmp_path / "pack" / folder / "same.txt").write_text(folder, encoding="utf-8")
    names = ["out/7/files/a/b.txt", "out/same.txt", f"{tmp_path}/pack/x/same.txt", "x\\same.txt"]
    pack = write_pack(tmp_path, entry(7, *names))
    kept = keep_files(ArtefactStore(tmp_path / "kept"), only(read_pack(pack, dataset.tasks)).files)
    assert [file.path for file in kept.deliverables] == [
        "outputs/a/b.txt",
        "outputs/same-2.txt",
        "outputs/same-3.txt",
        "outputs/same.txt",
    ]
    rooted = read_pack(write_pack(tmp_path, entry(7, "b.txt")), dataset.tasks, root=inside / "a")
    (file,) = keep_files(ArtefactStore(tmp_path / "kept"), only(rooted).files).deliverables
    assert (file.path, file.size) == ("outputs/b.txt", 4)


def test_nothing_outside_the_root_is_read(tmp_path: Path, dataset: WorkflowDataset) -> None:
    (tmp_path / "secret.txt").write_text(SECRET, encoding="utf-8")
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "linked").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    (folder / "file").write_text("x", encoding="utf-8")
    names = [
        *("../secret.txt", f"{tmp_path}/secret.txt", f"{folder}/../secret.txt", "/dev/zero"),
        *("C:\\secret.txt", "link.txt", "linked/secret.txt", "pipe", ".", "", "file/x", "a\0b"),
        *("# A text\n\nthat is no path" * 500, "n" * 300, "missing.txt", "linked"),
    ]
    delivery = only(read_pack(write_pack(tmp_path, entry(7, *names)), dataset.tasks))
    store = ArtefactStore(tmp_path / "kept")
    kept = keep_files(store, delivery.files)
    assert kept.deliverables == ()
    assert not store.folder.exists()
    reasons = {item.name: item.reason for item in (*delivery.left_out, *kept.left_out)}
    assert len(reasons) == len(names)
    assert "outside" in reasons["/dev/zero"]
    assert reasons["pipe"] == reasons["link.txt"] == "is not a regular file"
    assert "links are not followed" in reasons["secret.txt"]
    assert reasons["missing.txt"] == "is missing"


def test_unknown_tasks_and_other_prompts_are_reported(
    tmp_path: Path, dataset: WorkflowDataset
) -> None:
    pack = write_pack(tmp_path, entry(7, origin_prompt=["Write a poem."]), entry(99))
    found = read_pack(pack, dataset.tasks)
    assert list(found.deliveries) == ["7"]
    assert [(one.task, one.message) for one in found.findings] == [
        ("7", "the system got a different request."),
        ("99", "is not a task of the dataset: left out."),
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"schema_version": 2},
            "field 'schema_version': is 2; only packs of version 1 can be read.",
        ),
        ({"schema_version": None}, "field 'schema_version': is None"),
        ({"schema_version": True}, "field 'schema_version': is True"),
        ({"tasks": {}}, "field 'tasks': Input should be a valid list"),
        ({"tasks": []}, "contains no task of the dataset"),
        ({"tasks": [entry(99)]}, "contains no task of the dataset"),
        ({"tasks": [entry(7), entry("7")]}, "task '7': the task occurs twice; remove one."),
        ({"tasks": [{}]}, "task 'tasks.0', field 'task_id': Field required"),
        ({"tasks": [3]}, "task 'tasks.0'"),
        ({"tasks": [entry() | {"task_id": 7.5}]}, "field 'task_id"),
        ({"tasks": [entry(attached_files="a.txt")]}, "field 'attached_files'"),
        ({"tasks": [entry(assistant_outputs=[["text"]])]}, "field 'assistant_outputs.0.0'"),
        (
            {"tasks": [entry(assistant_outputs=[[{"tool_calls_summary": [3]}]])]},
            "A tool call needs a `function` with a `name`",
        ),
        ({"tasks": [entry(meta={"elapsed_sec": -1})]}, "field 'meta.elapsed_sec'"),
        ({"tasks": [entry(meta={"elapsed_sec": "9"})]}, "field 'meta.elapsed_sec'"),
    ],
)
def test_a_malformed_pack_is_a_named_error(
    tmp_path: Path, dataset: WorkflowDataset, change: dict[str, Any], problem: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        read_pack(write_pack(tmp_path, entry(), **change), dataset.tasks)
    assert str(caught.value).startswith("pack.json")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"schema_version": NaN}', b'"x"'],
)
def test_bytes_that_are_no_pack_are_a_named_error(
    tmp_path: Path, dataset: WorkflowDataset, data: bytes
) -> None:
    file = tmp_path / "pack.json"
    file.write_bytes(data)
    with pytest.raises(DatasetError, match=r"pack\.json"):
        read_pack(file, dataset.tasks)


def test_a_pipe_and_a_huge_file_are_no_packs(tmp_path: Path, dataset: WorkflowDataset) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as stream:
        stream.truncate(1 << 40)
    for name in ("pipe", "huge"):
        with pytest.raises(DatasetError, match="is not a file of at most"):
            read_pack(tmp_path / name, dataset.tasks)


def test_the_published_schema_accepts_what_is_read_and_names_every_field(tmp_path: Path) -> None:
    schema = json.loads((SCHEMAS / "Pack.schema.json").read_text(encoding="utf-8"))
    page = (SCHEMAS.parent / "packs.md").read_text(encoding="utf-8")
    example = json.loads(page.partition("```json\n")[2].partition("```")[0])
    jsonschema.validate(example, schema)
    jsonschema.validate(json.loads(write_pack(tmp_path, entry()).read_bytes()), schema)
    with pytest.raises(jsonschema.ValidationError, match="'task_id' is a required property"):
        jsonschema.validate({**example, "tasks": [{}]}, schema)
    for place, record in (("", Pack), ("tasks[].", PackTask), ("tasks[].meta.", PackMeta)):
        assert all(f"| `{place}{name}` |" in page for name in record.model_fields)

"""`gta import folder|pack|agentcompass|opencompass` as a user meets them."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model

import gta_bench
from gta_bench.cli import app
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.installed import load_any
from gta_bench.errors import DatasetError, RunError
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_units
from tests.builders import (
    JPEG,
    atomic_task,
    workflow_task,
    write_atomic,
    write_json,
    write_workflow,
)
from tests.judging.builders import honest


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_atomic(tmp_path / "data" / "gta_atomic", {str(n): atomic_task() for n in range(3)})
    files = [{"type": "image", "path": "image/menu.jpg", "url": None}]
    tasks = {str(number): workflow_task(files=files) for number in range(3)}
    data = write_workflow(tmp_path / "data" / "gta_workflow", tasks)
    (data / "image").mkdir()
    (data / "image" / "menu.jpg").write_bytes(JPEG)
    return tmp_path


def put(name: str, content: str | bytes = "x") -> None:
    file = Path("results") / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)


def test_a_folder_becomes_a_run_with_all_tasks_of_the_dataset() -> None:
    put("0/final.txt", "Done.")
    put("0/files/a/b.docx", b"word")
    put("0/files/copy-of-the-menu.jpg", JPEG)
    put("1/final.txt", b"caf\xe9")
    put("9/final.txt")
    write_json(Path("results/meta.json"), {"harness": "Manus", "model": "m"})
    meta = {"seconds": 61.5, "cost_usd": 0.25, "tokens": {"input": 10, "output": 2}}
    write_json(Path("results/0/meta.json"), meta)
    result = gta("import", "folder", "results", "--out", "run", "--harness-version", "1.6")
    assert result.exit_code == 0, result.output
    assert "2 of 3 tasks imported into run.\n" in result.stderr
    assert "Not delivered, so strict scoring counts them as failed: 2\n" in result.stderr
    assert "1 deliverable.\n" in result.stderr
    assert "9: is not the folder of a task of the dataset" in result.stderr
    assert "task 1, 1/final.txt: is not UTF-8; it was read as cp1252." in result.stderr
    manifest = read_manifest(Path("run"))
    system = manifest.spec.system
    assert (system.harness, system.harness_version, system.model) == ("Manus", "1.6", "m")
    assert (manifest.imported_from, manifest.spec.tools) == ("results", "own")
    assert manifest.notes == ("not delivered: 1 of 3 tasks.",)
    found = read_units(log_folder(Path("run")), manifest.spec.tasks, 1, WorkflowUnit)
    assert (len(found.units), found.not_run) == (3, ())
    first, second, missing = found.units
    assert [file.path for file in first.deliverables] == ["outputs/a/b.docx"]
    assert [file.path for file in first.inputs] == ["inputs/menu.jpg"]
    usage = first.usage
    assert (usage.seconds, usage.cost_usd, usage.input_tokens) == (61.5, 0.25, 10)
    assert (first.answer, second.answer) == ("Done.", "café")
    assert (missing.answer, missing.deliverables, missing.failure) == ("", (), None)
    assert all(unit.digests is not None and unit.digests.asks for unit in found.units)


def test_what_was_left_out_is_told_once_for_each_reason_and_kept_with_the_unit() -> None:
    put("0/final.txt")
    for number in range(3):
        Path(f"results/0/link-{number}").symlink_to("/etc/passwd")
    result = gta("import", "folder", "results", "--out", "run", "--tasks", "0")
    reason = "task 0, link-0: is a link, and links are not followed (and 2 more): left out."
    assert reason in result.stderr
    (unit,) = read_units(log_folder(Path("run")), ("0",), 1, WorkflowUnit).units
    assert unit.strays == ("link-0", "link-1", "link-2")


def test_many_findings_are_counted() -> None:
    put("0/final.txt")
    for number in range(15):
        put(f"other-{number:02}/final.txt")
    result = gta("import", "folder", "results", "--out", "run")
    assert "… and 5 more findings." in result.stderr


def test_a_folder_of_atomic_answers_is_scored_end_to_end() -> None:
    put("0/final.txt", "It costs 7.")
    put("1/final.txt", "It costs 8.")
    result = gta("import", "folder", "results", "--dataset", "atomic", "--out", "run")
    assert result.exit_code == 0, result.output
    assert "deliverables" not in result.stderr
    manifest = read_manifest(Path("run"))
    units = read_units(log_folder(Path("run")), manifest.spec.tasks, 1, AtomicUnit).units
    assert [unit.trace is None for unit in units] == [False, False, True]
    assert all(unit.digests is not None and unit.digests.asks for unit in units)
    scored = gta("score", "run", "--similarity", "exact-or-half", "--json")
    assert scored.exit_code == 1, "a task has no prediction"
    numbers = json.loads(scored.stdout)
    assert (numbers["n"], numbers["n_units"]) == (2, 3)
    assert numbers["metrics"]["ans_acc"] == pytest.approx(100 / 3)


def test_a_pack_is_imported_with_the_command_line_s_names() -> None:
    steps = [[{"role": "assistant", "content": "Done."}]]
    entry = {"task_id": 1, "assistant_outputs": steps, "attached_files": ["results/r.md"]}
    about = {"backend": "openclaw"}
    put("r.md")
    write_json(Path("pack.json"), {"schema_version": 1, "generated_from": about, "tasks": [entry]})
    command = ("import", "pack", "pack.json", "--out", "run", "--model", "m", "--tasks", "1,2")
    result = gta(*command)
    assert result.exit_code == 0, result.output
    assert "1 of 2 tasks imported" in result.stderr
    system = read_manifest(Path("run")).spec.system
    assert (system.harness, system.model) == ("openclaw", "m")
    assert gta(*command[:-1], "0,1").exit_code == 0
    manifest = read_manifest(Path("run"))
    assert manifest.spec.tasks == ("1", "2", "0")
    units = read_units(log_folder(Path("run")), manifest.spec.tasks, 1, WorkflowUnit).units
    assert [unit.answer for unit in units] == ["Done.", "", ""]
    other = gta(*command, "--harness", "lagent")
    assert "another setting (harness: openclaw there, lagent here)" in str(other.exception)


def test_what_a_pack_lacks_fails_under_strict_and_no_judge_is_asked_about_it() -> None:
    """Judges were shown an empty delivery, and gave points to tasks that nobody had done."""
    steps = [[{"role": "assistant", "content": "Done."}]]
    entry = {"task_id": 1, "assistant_outputs": steps, "attached_files": []}
    write_json(Path("pack.json"), {"schema_version": 1, "tasks": [entry]})
    said = gta("import", "pack", "pack.json", "--out", "run").stderr
    assert "Not delivered, so strict scoring counts them as failed: 0 2\n" in said
    asked = []

    def reply(input: list[ChatMessage], *_: Any) -> ModelOutput:
        request = {"messages": [{"content": input[-1].text}]}
        asked.append(request)
        output = ModelOutput.from_content("mockllm", honest(request))
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    judge = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    gta_bench.judge("run", judge)
    scores = gta_bench.score("run")
    assert isinstance(scores, WorkflowScores)
    (table,) = scores.judges
    assert len(asked) == table.strict.n_leaves / 3
    assert (table.strict.n, table.strict.n_units) == (3, 3)
    assert table.strict.root_score == pytest.approx(8 / 3)
    assert (table.compat.n, table.compat.root_score) == (1, 8)
    assert {(one.task, one.cause) for one in table.failures} == {
        ("0", "missing deliverable"),
        ("2", "missing deliverable"),
    }
    assert [group.name for group in table.kinds] == ["no file", "not delivered"]


def test_no_run_is_made_of_a_broken_source() -> None:
    put("0/final.txt")
    put("task_0/final.txt")
    result = gta("import", "folder", "results", "--out", "run")
    assert isinstance(result.exception, DatasetError)
    assert not Path("run").exists()


def test_links_among_stored_attachments_are_not_followed() -> None:
    steps = [{"role": "assistant", "content": "Done."}]
    write_folder = Path("stored/task0/attachments")
    write_folder.mkdir(parents=True)
    (write_folder / "passwd").symlink_to("/etc/passwd")
    (write_folder / "real.txt").write_text("x", encoding="utf-8")
    write_json(Path("stored/task0/prediction.json"), {"0": {"prediction": [steps], "gold": [[]]}})
    command = ("import", "opencompass", "stored", "--dataset", "workflow", "--out", "run")
    result = gta(*command, "--tasks", "0", "--harness", "lagent")
    assert result.exit_code == 0, result.output
    (unit,) = read_units(log_folder(Path("run")), ("0",), 1, WorkflowUnit).units
    assert [file.path for file in unit.deliverables] == ["outputs/real.txt"]
    assert read_manifest(Path("run")).spec.system.harness == "lagent"


def put_attempt(folder: str, task: str, data: str = "gta_workflow", **changes: Any) -> None:
    """What the plugin of AgentCompass stores of an attempt."""
    dataset = load_any(Path("data") / data)
    asks = task_digests(dataset, task).asks if task in dataset.tasks else None
    calls = [{"tool": "OCR", "status": "done", "seconds": 0.5, "backend": "b 1"}]
    trace = [
        {"step": "call", "name": "OCR", "arguments": {"image": "inputs/image_1.jpg"}},
        {"step": "reply", "parts": [{"type": "text", "content": "beer 7"}]},
        {"step": "answer", "content": "It is 7."},
    ]
    attempt = {"task": task, "asks": asks, "trace": trace, "calls": calls, "meta": {"model": "m"}}
    attempt |= changes
    put(f"{folder}/gta/attempt.json", json.dumps(attempt))


def test_attempts_of_agentcompass_become_a_run() -> None:
    meta = {"model": "m", "harness": "codex", "seconds": 3.5}
    left = [["link", "is a link, and links are not followed"]]
    put_attempt("details/normal/0--a/attempt-1", "0", meta=meta, left_out=left)
    put("details/normal/0--a/attempt-1/gta/files/a/report.md", "# Report")
    put("details/normal/0--a/attempt-1/artifacts/other.txt")
    put_attempt("details/normal/0--a/attempt-2", "0", attempt=2, meta=meta)
    put_attempt("details/error/9--b/attempt-1", "9", meta=meta)
    result = gta("import", "agentcompass", "results", "--out", "run")
    assert result.exit_code == 0, result.output
    assert "1 of 3 tasks imported into run." in result.output
    assert "task 9, details/error/9--b/attempt-1/gta/attempt.json: is not a task" in result.output
    assert "is a link, and links are not followed" in result.output
    system = read_manifest(Path("run")).spec.system
    assert (system.model, system.harness) == ("m", "codex")
    unit = read_units(log_folder(Path("run")), ("0", "1", "2"), 1, WorkflowUnit).units[0]
    assert unit.answer == "It is 7."
    assert [file.path for file in unit.deliverables] == ["outputs/a/report.md"]
    assert [call.tool for call in unit.calls] == ["OCR"]
    assert unit.usage.seconds == 3.5
    result = gta("import", "agentcompass", "results", "--attempt", "2", "--out", "second")
    assert result.exit_code == 0, result.output
    unit = read_units(log_folder(Path("second")), ("0",), 1, WorkflowUnit).units[0]
    assert unit.deliverables == ()


def test_attempts_of_agentcompass_in_atomic_are_scored() -> None:
    put_attempt("details/normal/1--a/attempt-1", "1", data="gta_atomic")
    options = ("--dataset", "atomic", "--tasks", "1", "--out", "run")
    assert gta("import", "agentcompass", "results", *options).exit_code == 0
    (unit,) = read_units(log_folder(Path("run")), ("1",), 1, AtomicUnit).units
    assert [step.step for step in unit.trace or ()] == ["call", "reply", "answer"]


@pytest.mark.parametrize(
    ("folders", "said"),
    [
        ((), "contains no `gta/attempt.json` of attempt 1"),
        (("one/attempt-1", "two/attempt-1"), "import one run at a time"),
    ],
)
def test_a_folder_that_is_no_run_of_the_plugin_is_refused(
    folders: tuple[str, ...], said: str
) -> None:
    put("details/normal/0--a/task.json", "{}")
    for folder in folders:
        put_attempt(folder, "0")
    result = gta("import", "agentcompass", "results", "--out", "run")
    assert isinstance(result.exception, DatasetError)
    assert said in str(result.exception)


def test_an_attempt_of_which_nothing_was_stored_is_refused() -> None:
    """AgentCompass makes the folder before the tools are opened, and may never get to the end."""
    put_attempt("details/normal/0--a/attempt-1", "0")
    # A harness cannot make an attempt of another task look lost.
    put("details/normal/0--a/attempt-1/gta/files/2--c/attempt-1/result.json", "{}")
    put("details/normal/0--a/attempt-1/artifacts/2--c/attempt-1/result.json", "{}")
    put("details/running/1--b/attempt-2/result.json", "{}")
    assert gta("import", "agentcompass", "results", "--out", "run").exit_code == 0
    name = f"one--{sha256(b'1').hexdigest()}"
    for folder in ("error/1--b/attempt-1", "fatal/1/attempt_1", f"running/{name}/attempt-1"):
        put(f"details/{folder}/result.json", "{}")
        refused = gta("import", "agentcompass", "results", "--out", "bad")
        assert isinstance(refused.exception, DatasetError)
        assert f"details/{folder}, task" in str(refused.exception)
        assert "task '1': has no result: AgentCompass began this attempt" in str(refused.exception)
        assert "or leave it out with --tasks" in str(refused.exception)
        Path("results/details", folder, "result.json").unlink()
        Path("results/details", folder).rmdir()
    put("details/error/1--b/attempt-1/result.json", "{}")
    put_attempt("details/error/2--c/attempt-1", "2", fault="A tool gave no reply: gone.")
    refused = gta("import", "agentcompass", "results", "--out", "bad")
    assert str(refused.exception).endswith("with --tasks. (The same is true of 2.)")
    assert not Path("bad").exists()
    left_out = gta("import", "agentcompass", "results", "--tasks", "0", "--out", "less")
    assert left_out.exit_code == 0, left_out.output
    # AgentCompass runs tasks again in the folder of another run, without the files of the first.
    Path("results").rename("first")
    put_attempt("details/normal/1--b/attempt-1", "1")
    put_attempt("details/normal/2--c/attempt-1", "2")
    put("details/normal/0--a/attempt-1/result.json", "{}")
    both = Path("both")
    both.mkdir()
    Path("first").rename(both / "first")
    Path("results").rename(both / "again")
    assert "has no result" in str(
        gta("import", "agentcompass", both / "again", "--out", "x").exception
    )
    done = gta("import", "agentcompass", both, "--out", "whole")
    assert done.exit_code == 0, done.output
    assert "3 of 3 tasks imported" in done.output


def test_another_source_or_attempt_needs_another_folder() -> None:
    put_attempt("details/normal/0--a/attempt-1", "0")
    put_attempt("details/normal/0--a/attempt-2", "0", attempt=2)
    command = ("import", "agentcompass", "results", "--out", "run")
    first = gta(*command, "--tasks", "0")
    assert first.exit_code == 0 and "before" not in first.output
    again = gta(*command, "--tasks", "0,1")
    assert again.exit_code == 0, again.output
    assert "1 task had been imported before; the new results count." in again.output
    other = gta(*command, "--attempt", "2", "--tasks", "0")
    said = "(imported_from: results there, results, attempt 2 here). Choose another --out."
    assert isinstance(other.exception, RunError) and said in str(other.exception)
    Path("results").rename("newer")
    other = gta("import", "agentcompass", "newer", "--out", "run", "--tasks", "0,2")
    assert "(imported_from: results there, newer here)" in str(other.exception)

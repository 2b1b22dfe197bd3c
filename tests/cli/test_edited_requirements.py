"""`gta score RUN --data EDITED`: existing work, judged by other requirements."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model

import gta_bench
from gta_bench.cli import app
from gta_bench.errors import RunError
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.reports.summary import run_badges
from gta_bench.runs.directory import list_progress
from gta_bench.runs.store import lock_folder
from gta_bench.runs.versions import REPLACED
from tests.builders import (
    atomic_task,
    checkpoint,
    workflow_task,
    write_atomic,
    write_json,
    write_workflow,
)
from tests.judging.builders import asked, honest

RUN = Path("run")


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


class Judge:
    """A judge that keeps which leaves it was asked about, and with which words."""

    def __init__(self) -> None:
        self.leaves: list[str] = []
        self.words = ""

    def __call__(self, input: list[ChatMessage], *_: Any) -> ModelOutput:
        request = {"messages": [{"content": input[-1].text}]}
        self.leaves += asked(request)
        self.words += input[-1].text
        output = ModelOutput.from_content("mockllm", honest(request))
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    def ask(self) -> list[str]:
        self.leaves.clear()
        gta_bench.judge(RUN, get_model("mockllm/model", custom_outputs=self, memoize=False))
        return sorted(self.leaves)


def dataset(name: str, *leaves: dict[str, Any], request: str = "Write it.") -> Path:
    dialogs = [{"role": "user", "content": request}]
    task = workflow_task(sub_tasks=list(leaves), dialogs=dialogs)
    return write_workflow(Path(name), {"1": task})


@pytest.fixture(autouse=True)
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished result of one task with three leaves."""
    monkeypatch.chdir(tmp_path)
    data = dataset("data", *(checkpoint(name, requirements=f"Is {name}") for name in "abc"))
    steps = [[{"role": "assistant", "content": "Done."}]]
    entry = {"task_id": 1, "assistant_outputs": steps, "attached_files": []}
    write_json(Path("pack.json"), {"schema_version": 1, "tasks": [entry]})
    assert gta("import", "pack", "pack.json", "--data", data, "--out", RUN).exit_code == 0


def test_only_leaves_that_say_something_else_are_judged_again() -> None:
    """`--data` was ignored: no leaf was asked, and the command ended with 0."""
    judge = Judge()
    assert judge.ask() == ["a", "b", "c"]
    edited = dataset(
        "edited",
        checkpoint("a", requirements="Is a"),
        checkpoint("b", requirements="Is much better", weight=2),
        checkpoint("renamed", requirements="Is c"),
    )
    scored = gta("score", RUN, "--data", edited)
    assert scored.exit_code == 1
    told = "edited: 1 of 1 unit kept, 1 leaf to judge again; 2 verdicts kept."
    assert told in scored.stderr
    assert judge.ask() == ["b"]
    assert "Is much better" in judge.words
    scores = gta_bench.score(RUN)
    assert isinstance(scores, WorkflowScores)
    assert [leaf.leaf for leaf in scores.judges[0].tasks[0].leaves] == ["a", "b", "renamed"]
    assert scores.judges[0].strict.root_score == 8
    manifest = gta_bench.manifest(RUN)
    assert manifest.edited_from is not None
    assert "edited requirements" in run_badges(manifest)
    assert len((RUN / REPLACED).read_bytes().splitlines()) == 1
    assert judge.ask() == []
    again = gta("score", RUN, "--data", edited)
    assert (again.exit_code, "judged again" in again.stderr) == (0, False)
    (unit,) = gta_bench.units(RUN)
    assert unit.digests is not None and set(unit.digests.leaf) == {"a", "b", "renamed"}


def test_back_at_the_first_requirements_nothing_is_edited() -> None:
    """The badge stayed, and the tasks of the other dataset were counted."""
    leaves = [checkpoint(name, requirements=f"Is {name}") for name in "abc"]
    before, judge = gta_bench.manifest(RUN), Judge()
    assert judge.ask() == ["a", "b", "c"]
    other = [*leaves[:2], checkpoint("c", requirements="Is far")]
    dialogs = [{"role": "user", "content": "Write it."}]
    tasks = {"1": workflow_task(sub_tasks=other, dialogs=dialogs), "2": workflow_task()}
    write_workflow(Path("other"), tasks)
    assert gta("score", RUN, "--data", "other").exit_code == 1
    edited = gta_bench.manifest(RUN)
    assert edited.dataset_tasks == 2
    assert "subset: 1 of 2 tasks" in run_badges(edited)
    gta("score", RUN, "--data", "data")
    assert gta_bench.manifest(RUN) == before
    assert judge.ask() == []


def test_requirements_are_not_edited_while_a_judge_is_asked() -> None:
    """Verdicts that came meanwhile would be lost with the file that is replaced."""
    Judge().ask()
    edited = dataset("edited", checkpoint("a", requirements="Is a"))
    (asking,) = (folder for folder in list_progress(RUN) if folder != RUN / "progress")
    with lock_folder(asking):
        refused = gta("score", RUN, "--data", edited)
    assert isinstance(refused.exception, RunError)
    assert f"Another command is asking a judge about {RUN}" in str(refused.exception)
    assert gta("score", RUN, "--data", edited).exit_code == 0


def test_what_was_asked_something_else_does_not_count_until_it_is_run_again() -> None:
    """The whole command was refused."""
    before = gta_bench.manifest(RUN)
    other = dataset("other", checkpoint("a", requirements="Is a"), request="Draw it.")
    found = gta("score", RUN, "--data", other)
    assert found.exit_code == 1
    assert "0 of 1 unit kept, 1 unit to run again; 0 verdicts kept." in found.stderr
    assert "Run again: gta run workflow --data other --out run" in found.stderr
    assert [one.cause for one in gta_bench.score(RUN).unscored] == ["not run yet"]
    write_workflow(Path("fewer"), {"2": workflow_task()})
    assert "1 unit removed" in gta("score", RUN, "--data", "fewer").stderr
    gta("score", RUN, "--data", "data")
    assert gta_bench.manifest(RUN) == before


def test_an_atomic_run_keeps_its_reference() -> None:
    data = write_atomic(Path("atomic"), {"0": atomic_task()})
    Path("results/0").mkdir(parents=True)
    Path("results/0/final.txt").write_text("7")
    gta("import", "folder", "results", "--dataset", "atomic", "--data", data, "--out", "other")
    refused = gta("score", "other", "--data", data)
    assert "is for GTA-Workflow" in str(refused.exception)

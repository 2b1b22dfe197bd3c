"""A dataset that changes under finished runs: the plan, and the model calls that it costs."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model

import gta_bench
from gta_bench.cli import app
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.verdicts import read_verdicts
from tests.authored import write_task
from tests.judging.builders import asked, honest

RUNS = ("run-1", "run-2", "run-3")
LEAF = '[[leaf]]\nid = "{}"\nsays = "{}"\n'


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def write(root: str, name: str, request: str = "Do it.", data: bytes = b"1", **leaves: str) -> None:
    toml = 'format = 1\nid = "q3-sales"\n'
    toml += "".join(LEAF.format(leaf, says) for leaf, says in leaves.items())
    files = {"inputs/sales.csv": data, "gold/best/answer.txt": b"Done."}
    write_task(Path(root), toml, name=name, request=request, files=files)


class Models:
    """A system and a judge that count their calls."""

    def __init__(self) -> None:
        self.system: list[str] = []
        self.leaves: list[str] = []

    def answer(self, input: list[ChatMessage], *_: Any) -> ModelOutput:
        self.system.append(input[-1].text)
        return self._reply("Done.")

    def verdict(self, input: list[ChatMessage], *_: Any) -> ModelOutput:
        request = {"messages": [{"content": input[-1].text}]}
        self.leaves += asked(request)
        return self._reply(honest(request))

    def _reply(self, text: str) -> ModelOutput:
        output = ModelOutput.from_content("mockllm", text)
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    def run(self, out: str, data: str) -> WorkflowScores:
        return gta_bench.run(
            "workflow",
            out,
            model=get_model("mockllm/model", custom_outputs=self.answer, memoize=False),
            judges=[get_model("mockllm/judge", custom_outputs=self.verdict, memoize=False)],
            data=data,
        )

    def judge(self, out: str) -> None:
        gta_bench.judge(out, get_model("mockllm/judge", custom_outputs=self.verdict, memoize=False))

    def count(self) -> tuple[int, int]:
        """The calls since the last count, of the system and of the judge."""
        found = len(self.system), len(self.leaves)
        self.system.clear()
        self.leaves.clear()
        return found


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Models:
    """Three tasks with two leaves each, in two versions."""
    monkeypatch.chdir(tmp_path)
    for name in ("first", "second", "third"):
        write("old", name, a="Is a", b="Is b")
    write("new", "first", a="Is a", b="Is better")
    write("new", "second", a="Is a", b="Is b")
    write("new", "third", data=b"2", a="Is a", b="Is b")
    write("new", "fourth", a="Is a", b="Is b")
    return Models()


def test_one_leaf_edited_one_task_added_one_input_changed(models: Models) -> None:
    for run in RUNS:
        assert models.run(run, "old").complete
    assert models.count() == (9, 18)

    plan = json.loads(gta("data", "diff", "old", "new", *RUNS, "--json").stdout)
    assert {one["task"]: (one["action"], one["changed"]) for one in plan["tasks"]} == {
        "first": ("judge", ["leaf b"]),
        "second": ("reuse", []),
        "third": ("run", ["inputs"]),
        "fourth": ("added", []),
    }
    for one in plan["runs"]:
        assert one["units"] == {"added": 1, "judge": 1, "reuse": 1, "run": 1}
        assert (one["judge"], one["judge_calls"]) == (1, 1)
        assert (one["system_calls"], one["new_judge_calls"]) == (2, 4)
    shown = gta("data", "diff", "old", "new", *RUNS)
    assert "third   run again    inputs" in shown.stdout
    assert "4 tasks: 1 reuse, 1 judge again, 1 run again, 1 added." in shown.stderr

    for run in RUNS:
        followed = gta("score", run, "--data", "new")
        assert (
            "2 of 3 units kept, 1 leaf to judge again, 1 unit to run again; 3 verdicts kept."
            in (followed.stderr)
        )
        assert models.count() == (0, 0)
        unscored = {
            (key.task, key.leaf): row.verdict.cause
            for key, row in read_verdicts(Path(run)).items()
            if row.verdict.type == "unscored"
        }
        assert unscored == {("first", "b"): "leaf_changed"}
        models.judge(run)
        assert models.leaves == ["b"]
        assert models.count() == (0, 1)
        scores = models.run(run, "new")
        assert models.count() == (2, 4)
        assert (scores.complete, scores.n_units) == (True, 4)
        assert models.run(run, "new").complete
        assert models.count() == (0, 0)


def test_back_at_the_old_version_nothing_is_done_twice(models: Models) -> None:
    before = models.run("run", "old")
    models.count()
    gta("score", "run", "--data", "new")
    models.run("run", "new")
    assert models.count() == (2, 5)
    assert gta("score", "run", "--data", "old").exit_code == 0
    again = gta_bench.score("run", "workflow")
    assert again.judges[0].strict == before.judges[0].strict
    gta("score", "run", "--data", "new")
    assert models.run("run", "new").complete
    assert models.count() == (0, 0)


def test_a_leaf_that_needs_a_judge_says_so_and_a_removed_task_does_not_count(
    models: Models,
) -> None:
    models.run("run", "old")
    shutil.rmtree("new/third")
    found = gta("score", "run", "--data", "new", "--json")
    assert found.exit_code == 1 and "1 unit removed" in found.stderr
    scores = json.loads(found.stdout)
    assert (scores["n"], scores["n_units"]) == (2, 2)
    (table,) = scores["judges"]
    leaves = {leaf["leaf"]: leaf for leaf in table["tasks"][0]["leaves"]}
    assert (leaves["a"]["causes"], leaves["b"]["causes"]) == ([], ["leaf_changed"])


def test_runs_of_two_versions_are_compared_on_what_they_share(models: Models) -> None:
    models.run("run-1", "old")
    models.run("run-2", "new")
    compared = gta("compare", "run-1", "run-2")
    assert compared.exit_code == 0, compared.exception
    told = "1 of 3 common tasks is the same in both versions of the dataset; 1 to judge again "
    assert told in compared.stderr and "1 to run again (third)" in compared.stderr


def test_datasets_and_runs_of_two_benchmarks_are_refused(models: Models) -> None:
    from tests.builders import write_atomic

    write_atomic(Path("atomic"))
    assert "no tasks in common" in str(gta("data", "diff", "old", "atomic").exception)
    models.run("run", "old")
    refused = gta("data", "diff", "atomic", "atomic", "run")
    assert "is a run of workflow" in str(refused.exception)
    same = gta("data", "diff", "old", "old")
    assert (same.exit_code, same.stdout) == (0, "")

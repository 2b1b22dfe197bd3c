"""`gta gate --run`: NEW is run by the command itself, only as far as needed."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gta_bench.runs.directory import read_gate_plan, read_manifest
from tests.builders import atomic_task, workflow_task, write_atomic, write_workflow
from tests.chat_server import chat_server
from tests.cli.test_gate import run_gate
from tests.cli.test_run import gta
from tests.judging.builders import names, question, verdict

TASKS = 20
RUN = ("--mode", "step", "--similarity", "exact-or-half", "--data", "data")
WORSE = ("--sequential", "--run", "--", "atomic", *RUN, "--agent", "silent")
SAME = ("--sequential", "--margin", "30", "--run", "--", "atomic", *RUN, "--agent", "gold")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, and a baseline that passes all of it."""
    folder = tmp_path_factory.mktemp("gate")
    write_atomic(folder / "data", {str(number): atomic_task() for number in range(TASKS)})
    options = ("atomic", *RUN[:-1], folder / "data", "--agent", "gold", "--out", folder / "base")
    assert gta("run", *options).exit_code == 0
    assert gta("gate", "--write-baseline", folder / "base.json", folder / "base").exit_code == 0
    return folder


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


@pytest.mark.usefixtures("here")
def test_a_system_that_fails_everything_is_worse_after_six_tasks() -> None:
    result = gta("gate", "base.json", "runs/silent", "--json", *WORSE)
    assert result.exit_code == 10, result.output
    found = json.loads(result.stdout)
    assert (found["decision"], found["used"], len(found["unused"])) == ("worse", 6, 14)
    manifest, plan = read_manifest(Path("runs/silent")), read_gate_plan(Path("runs/silent"))
    assert plan is not None
    assert (plan.margin, len(plan.tasks)) == (10, TASKS)
    assert manifest.spec.tasks == plan.tasks[:6] == tuple(found["tasks"][:6])
    assert any("until it was decided" in note for note in manifest.notes)
    logs = sorted(Path("runs/silent/logs").iterdir())
    again = gta("gate", "base.json", "runs/silent", "--json", *WORSE)
    assert (again.exit_code, json.loads(again.stdout)) == (10, found)
    assert sorted(Path("runs/silent/logs").iterdir()) == logs
    stored = gta("gate", "base.json", "runs/silent", "--json", "--sequential")
    assert (stored.exit_code, json.loads(stored.stdout)) == (10, found)


@pytest.mark.usefixtures("here")
def test_an_unchanged_system_goes_on_until_a_drop_is_ruled_out() -> None:
    result = gta("gate", "base.json", "runs/gold", "--seed", "night 7", *SAME)
    assert result.exit_code == 0, result.output
    assert "Not worse: NEW has not dropped by 30 points or more" in result.stdout
    assert "11 of 20 tasks used, in random order" in result.stdout
    assert "not needed, because it is decided without them" in result.stderr
    assert len(read_manifest(Path("runs/gold")).spec.tasks) == 11


@pytest.mark.usefixtures("here")
def test_a_run_that_exists_is_used_and_no_task_is_run_again() -> None:
    options = ("atomic", *RUN, "--agent", "gold", "--tasks", "0:10", "--out", "runs/part")
    assert gta("run", *options).exit_code == 0
    result = gta("gate", "base.json", "runs/part", "--json", *SAME)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    used = {*found["tasks"][: found["used"]]}
    assert {*read_manifest(Path("runs/part")).spec.tasks} == used | {str(n) for n in range(10)}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--run", "--", "atomic", *RUN], "only --sequential can be before the end"),
        (["--sequential", "--run"], "After --run, say what to run, as for `gta run`"),
        (["--sequential", "--run", "--", "atomik"], "No such command 'atomik'; did you mean"),
        ([*WORSE, "--out", "x"], "NEW is the folder of the run: leave --out out"),
        ([*WORSE, "--help"], "Nothing was run or decided. For help alone: gta run atomic --help"),
        ([*WORSE, "--estimate"], "--estimate is for `gta run`"),
        ([*WORSE, "--tasks", "0:4"], "4 tasks cannot decide about a margin of 10 points"),
        ([*SAME, "--epochs", "2"], "began with 1 epochs, not 2 epochs"),
        (["--seed", "8", *SAME], "began with the seed 'first', not the seed '8'"),
        (["--sequential", "--margin", "40", *SAME[3:]], "a margin of 30 points, not a margin of"),
        ([], "add --sequential, or finish the run with `gta run`"),
        (["--sequential", "--margin", "5"], "began with a margin of 30 points"),
        (["--sequential", "--", "atomic"], "gta gate BASE NEW"),
        (WORSE, "another setting (agent: gold there, silent here)"),
    ],
)
def test_mistakes_are_named_before_anything_runs(arguments: list[str], said: str) -> None:
    if not Path("runs/begun").exists():
        assert gta("gate", "base.json", "runs/begun", "--seed", "first", *SAME).exit_code == 0
    fresh = "--tasks" in arguments
    code, message = run_gate("base.json", "runs/fresh" if fresh else "runs/begun", *arguments)
    assert code == 2
    assert said in message
    assert len(read_manifest(Path("runs/begun")).spec.tasks) == 11
    assert not Path("runs/fresh").exists()


@pytest.mark.usefixtures("here")
def test_a_run_that_a_gate_stopped_is_no_baseline() -> None:
    if not Path("runs/begun").exists():
        assert gta("gate", "base.json", "runs/begun", "--seed", "first", *SAME).exit_code == 0
    said = "finish it with `gta run` before it becomes a baseline"
    for arguments in (["--write-baseline", "part.json", "runs/begun"], ["runs/begun", "base"]):
        code, message = run_gate(*arguments)
        assert code == 2
        assert said in message
    assert not Path("part.json").exists()


@pytest.mark.usefixtures("here")
def test_a_stopped_run_without_its_plan_is_refused() -> None:
    assert gta("gate", "base.json", "runs/torn", *WORSE).exit_code == 10
    Path("runs/torn/gate.json").unlink()
    for options in (("--common",), ("--sequential",), WORSE):
        code, message = run_gate("base.json", "runs/torn", *options)
        assert code == 2
        assert "gate.json is missing" in message


class Office:
    """A model that answers by its version, and a judge that likes one of the versions."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def __call__(self, request: dict[str, Any]) -> str:
        self.calls[request["model"]] += 1
        if request["model"] != "judge":
            return f"The report of {request['model']}."
        liked = "The report of good." in json.dumps(request["messages"])
        scores = [verdict(leaf, 8 if liked else 2, used=["answer"]) for leaf in names(request)]
        return json.dumps({"verdicts": scores} if "verdicts" in question(request) else scores[0])


@pytest.fixture
def office(loopback: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    """Models `good`, `bad` and `judge` for a dollar a call, and a baseline of the good one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")
    write_workflow(tmp_path / "data", {str(number): workflow_task() for number in range(8)})
    found = Office()
    with chat_server(found) as server:
        tables = [
            f'[models.{name}]\nmodel = "openai-api/local/{name}"\nbase_url = "{server.url}"\n'
            'key_env = "GTA_TEST_KEY_A"\ninput_price = 100000\noutput_price = 0\n'
            for name in ("good", "bad", "judge")
        ]
        (tmp_path / "gta.toml").write_text("\n".join(tables), encoding="utf-8")
        options = ("--data", "data", "--judge", "judge", "--no-preflight")
        assert gta("run", "workflow", "--model", "good", *options, "--out", "a").exit_code == 0
        assert gta("gate", "--write-baseline", "base.json", "a").exit_code == 0
        found.calls.clear()
        yield found


def test_what_a_judge_decides_is_judged_part_by_part_within_the_budget(office: Office) -> None:
    """The model may cost 3 dollars at first: three tasks run, and one or two of them are used."""
    options = ("workflow", "--data", "data", "--model", "bad", "--judge", "judge", "--no-preflight")
    command = ("gate", "base.json", "b", "--sequential", "--run", "--", *options)
    stopped = gta(*command, "--max-cost", "3", "--max-connections", "1")
    assert stopped.exit_code == 11, stopped.output
    assert "The run has spent its budget of $3" in stopped.stderr
    spent = office.calls["bad"]
    assert 3 <= spent < 6
    result = gta(*command)
    assert result.exit_code == 10, result.output
    assert "6 of 8 tasks used, in random order" in result.stdout
    assert "If all 8 tasks are needed: " in result.stderr
    assert office.calls["bad"] == 6
    assert office.calls["judge"] == 12
    assert gta(*command).exit_code == 10
    assert sum(office.calls.values()) == 18
    timed = gta(*command[:2], "c", *command[3:], "--max-hours", "0.0000001")
    assert timed.exit_code == 11, timed.output
    assert "budget.hours" in timed.stderr
    other = gta(*command[:2], "d", *command[3:-3], "--judge", "good")
    assert "the judges differ (openai-api/local/judge and openai-api/local/good)" in str(
        other.exception
    )
    assert not Path("d").exists()

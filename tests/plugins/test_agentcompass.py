"""The plugin's classes against AgentCompass's published interface, with real tools over MCP."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.datasets.atomic import load_atomic
from gta_bench.errors import DatasetError, RunError, UsageError, WorkspaceDamaged
from gta_bench.records.finished import CompassAttempt
from gta_bench.tape.reference import write_reference_tape
from tests.builders import write_atomic
from tests.plugins.published_compass import (
    MODULES,
    RunResult,
    RuntimeContext,
    TaskStatus,
    runtime_context,
)
from tests.plugins.stand_ins import imported
from tests.tape.datasets import CALCULATOR, multiplication


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with imported("agentcompass", MODULES, monkeypatch) as module:
        yield module


@pytest.fixture
def data(tmp_path: Path) -> Path:
    tasks = {str(left - 2): multiplication(left) for left in range(2, 5)}
    return write_atomic(tmp_path / "data", tasks, [CALCULATOR])


def request(data: Path, environment: str = "host_process", **parameters: Any) -> Any:
    return SimpleNamespace(
        benchmark=SimpleNamespace(params={"data": str(data), **parameters}),
        environment=SimpleNamespace(id=environment),
        harness=SimpleNamespace(id="shell"),
        model=SimpleNamespace(id="m"),
    )


async def call(workspace: str, *arguments: str) -> tuple[int | None, str]:
    """`.gta/tools.py` as a harness starts it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", ".gta/tools.py", *arguments),
        cwd=workspace,
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    return process.returncode, said.decode()


@pytest.mark.usefixtures("loopback")
def test_a_shell_calls_the_tools_and_the_attempt_is_graded_and_imported(
    plugin: Any, data: Path, tmp_path: Path
) -> None:
    write_reference_tape(load_atomic(data), tmp_path / "tape")
    benchmark, req = plugin.GTAAtomic(), request(data, tape=str(tmp_path / "tape"))
    tasks = benchmark.load_tasks(req)
    assert [task.task_id for task in tasks] == ["0", "1", "2"]
    assert tasks[0].ground_truth is None

    async def work() -> RunResult:
        runtime_context.set(RuntimeContext(tmp_path / "results", "0", 1))
        prepared = await benchmark.prepare_task(tasks[0], None, req, None)
        assert tasks[0].question in prepared.input.prompt
        folder = prepared.input.workspace
        assert "Calculator" in (await call(folder))[1]
        arguments = json.dumps({"expression": "2*7"})
        assert await call(folder, "Calculator", arguments) == (0, "14\n")
        assert (await call(folder, "Calculator", "{}"))[0] == 1
        Path(folder, "outputs", "note.txt").write_text("14", encoding="utf-8")
        Path(folder, "outputs", "link").symlink_to("/etc/passwd")
        result = RunResult("0", TaskStatus.COMPLETED, "It is 14.")
        graded: RunResult = await benchmark.evaluate(tasks[0], prepared, result, req, None)
        assert not Path(folder).exists()
        return graded

    graded = asyncio.run(work())
    assert graded.metrics == {"score": 1.0, "tool_calls": 2, "tool_call_errors": 1}
    (stored,) = tmp_path.rglob("gta/attempt.json")
    attempt = CompassAttempt.model_validate_json(stored.read_text(encoding="utf-8"))
    assert [step.step for step in attempt.trace] == ["call", "reply", "call", "answer"]
    assert [name for name, _ in attempt.left_out] == ["link"]
    assert [file.name for file in (stored.parent / "files").iterdir()] == ["note.txt"]
    command = ["import", "agentcompass", str(tmp_path / "results"), "--dataset", "atomic"]
    command += ["--data", str(data), "--tasks", "0", "--out", str(tmp_path / "run")]
    assert CliRunner().invoke(app, command).exit_code == 0


def test_a_harness_that_failed_is_graded_by_what_it_left(
    plugin: Any, data: Path, tmp_path: Path
) -> None:
    benchmark, req = plugin.GTAAtomic(), request(data)
    task = benchmark.load_tasks(req)[0]

    async def work() -> RunResult:
        runtime_context.set(RuntimeContext(tmp_path / "results", "0", 1))
        prepared = await benchmark.prepare_task(task, None, req, None)
        assert not Path(prepared.input.workspace, ".mcp.json").exists()
        issue = SimpleNamespace(message="timed out")
        result = RunResult("0", TaskStatus.RUN_ERROR, "It is 14.", [issue])
        graded: RunResult = await benchmark.evaluate(task, prepared, result, req, None)
        return graded

    assert asyncio.run(work()).metrics["score"] == 0
    (stored,) = tmp_path.rglob("gta/attempt.json")
    assert "timed out" in stored.read_text(encoding="utf-8")


def test_wrong_parameters_and_other_environments_are_refused(plugin: Any, data: Path) -> None:
    benchmark = plugin.GTAAtomic()
    with pytest.raises(UsageError, match="`data` must be the folder"):
        benchmark.load_tasks(request(data / "missing"))
    with pytest.raises(UsageError, match="remove one of them"):
        benchmark.load_tasks(request(data, tape="a", server="b"))
    req = request(data, environment="docker")
    task = benchmark.load_tasks(req)[0]
    with pytest.raises(UsageError, match="not in 'docker'"):
        asyncio.run(benchmark.prepare_task(task, None, req, None))


@pytest.fixture
def results(plugin: Any, data: Path, tmp_path: Path) -> Path:
    """Attempts of tasks 0 and 1; the harness of the first one delivers an attempt of the second."""
    benchmark, req = plugin.GTAAtomic(), request(data)

    async def work() -> None:
        for task in benchmark.load_tasks(req)[:2]:
            runtime_context.set(RuntimeContext(tmp_path / "results", task.task_id, 1))
            prepared = await benchmark.prepare_task(task, None, req, None)
            planted = Path(prepared.input.workspace, "outputs/gta/attempt.json")
            planted.parent.mkdir()
            planted.write_text("{", encoding="utf-8")
            result = RunResult(task.task_id, TaskStatus.COMPLETED, "It is 14.")
            await benchmark.evaluate(task, prepared, result, req, None)

    asyncio.run(work())
    return tmp_path / "results"


def take(results: Path, data: Path, out: Path, *options: str) -> Any:
    command = ["import", "agentcompass", str(results), "--dataset", "atomic", "--data", str(data)]
    return CliRunner().invoke(app, [*command, "--out", str(out), *options])


def find(results: Path, task: str) -> Path:
    """The attempt of a task that the plugin wrote."""
    (found,) = (one for one in results.rglob("attempt.json") if f'"task": "{task}"' in
                one.read_text(encoding="utf-8"))  # fmt: skip
    return found


def test_what_a_harness_delivers_is_no_attempt(results: Path, data: Path, tmp_path: Path) -> None:
    assert len([*results.rglob("gta/attempt.json")]) == 4
    done = take(results, data, tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert "2 of 3 tasks imported" in done.output


def test_an_attempt_without_a_result_or_of_another_task_is_refused(
    results: Path, data: Path, tmp_path: Path
) -> None:
    file = find(results, "1")
    stored = json.loads(file.read_text(encoding="utf-8"))
    for changed, said in (
        ({"fault": "A tool of the task gave no reply: gone."}, "has no result: A tool of the task"),
        ({"asks": "0" * 64}, "another task with this id"),
        ({"task": "2"}, "another task with this id"),
    ):
        file.write_text(json.dumps({**stored, **changed}), encoding="utf-8")
        refused = take(results, data, tmp_path / "bad")
        assert isinstance(refused.exception, DatasetError) and said in str(refused.exception)
    assert take(results, data, tmp_path / "run", "--tasks", "0").exit_code == 0


def evaluate_after(
    act: Callable[[Any], None], plugin: Any, req: Any, results: Path, answer: str
) -> RunResult:
    """The grade of the first task after a harness did something to its attempt, and answered."""
    benchmark = plugin.GTAAtomic()
    task = benchmark.load_tasks(req)[0]

    async def work() -> RunResult:
        runtime_context.set(RuntimeContext(results, "0", 1))
        prepared = await benchmark.prepare_task(task, None, req, None)
        (attempt,) = benchmark._attempts.values()
        act(attempt)
        result = RunResult("0", TaskStatus.COMPLETED, answer)
        graded: RunResult = await benchmark.evaluate(task, prepared, result, req, None)
        return graded

    return asyncio.run(work())


@pytest.mark.usefixtures("loopback")
def test_a_lost_tool_is_stored_as_a_fault(plugin: Any, data: Path, tmp_path: Path) -> None:
    write_reference_tape(load_atomic(data), tmp_path / "tape")
    req = request(data, tape=str(tmp_path / "tape"))

    def lose(attempt: Any) -> None:
        attempt.tools.broken = ConnectionError("gone")

    with pytest.raises(RunError, match="gave no reply: gone"):
        evaluate_after(lose, plugin, req, tmp_path / "results", "It is 14.")
    assert "gave no reply" in find(tmp_path / "results", "0").read_text(encoding="utf-8")


@pytest.mark.usefixtures("loopback")
def test_a_harness_that_damages_its_folders_is_graded_by_what_it_left(
    plugin: Any, data: Path, tmp_path: Path
) -> None:
    write_reference_tape(load_atomic(data), tmp_path / "tape")
    req = request(data, tape=str(tmp_path / "tape"))

    def damage(attempt: Any) -> None:
        (attempt.workspace.root / "outputs").rmdir()
        with pytest.raises(WorkspaceDamaged) as caught:
            attempt.workspace.write("a.txt", b"x")
        attempt.tools.broken = caught.value

    graded = evaluate_after(damage, plugin, req, tmp_path / "results", "I do not know.")
    assert graded.metrics["score"] == 0


@pytest.mark.parametrize("linked", [False, True])
def test_no_name_and_no_link_keeps_an_attempt_from_being_graded(
    plugin: Any, data: Path, tmp_path: Path, linked: bool
) -> None:
    def leave(attempt: Any) -> None:
        outputs = attempt.workspace.root / "outputs"
        if linked:
            outputs.rmdir()
            outputs.symlink_to(data)
        else:
            Path(os.fsdecode(os.fsencode(outputs) + b"/\xe9.txt")).write_text("x")
            (outputs / "note.txt").write_text("14", encoding="utf-8")

    graded = evaluate_after(leave, plugin, request(data), tmp_path / "results", "It is 14.")
    assert "score" in graded.metrics
    stored = find(tmp_path / "results", "0")
    attempt = CompassAttempt.model_validate_json(stored.read_text(encoding="utf-8"))
    assert [name for name, _ in attempt.left_out] == (["outputs"] if linked else ["?.txt"])
    assert (stored.parent / "files" / "note.txt").exists() != linked

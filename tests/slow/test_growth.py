"""A pilot grows to more tasks and more epochs: what is asked for, and what comes out in the end."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.selection import sample_tasks
from gta_bench.records.scores import StrictStepScores
from gta_bench.records.verdicts import Scored
from gta_bench.runs.directory import log_folder, read_manifest, read_scores, read_workflow_scores
from gta_bench.runs.logs import list_logs
from gta_bench.runs.verdicts import read_verdicts
from tests.builders import atomic_task, workflow_task, write_atomic, write_workflow
from tests.chat_server import chat_server
from tests.cli.test_run import gta
from tests.judging.builders import honest, names
from tests.scripted import find_task, reference_reply, write_settings

pytestmark = pytest.mark.slow

CLOCK = {"seconds"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loopback: None) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCRIPTED_KEY", "none")


def run(*options: str | Path) -> None:
    result = gta("run", *options)
    assert result.exit_code == 0, (result.output, result.exception)


def atomic_scores(folder: str) -> dict[str, Any]:
    """Every score of a run, without what a clock says."""
    return read_scores(Path(folder)).model_dump(
        exclude={"usage": CLOCK, "tools": {"__all__": CLOCK}, "units": {"__all__": CLOCK}}
    )


def test_a_pilot_of_8_tasks_grows_to_16_and_to_three_epochs(atomic_dir: Path) -> None:
    dataset = load_atomic(atomic_dir)
    by_request = {task.request: task for task in dataset.tasks.values()}
    asked: Counter[str] = Counter()
    reference = reference_reply(dataset.tasks)

    def reply(request: dict[str, Any]) -> str | dict[str, Any]:
        task = find_task(request, by_request)
        if task is not None:
            asked[task.request] += 1
        return reference(request)

    def steps(tasks: Iterable[str], times: int = 1) -> Counter[str]:
        found: Counter[str] = Counter()
        for name in tasks:
            task = dataset.tasks[name]
            found[task.request] += len(task.steps) * times
        return found

    def taken() -> Counter[str]:
        found = Counter(asked)
        asked.clear()
        return found

    small, large = (sample_tasks(dataset, size, seed=7) for size in (8, 16))
    common = ("atomic", "--mode", "step", "--model", "scripted", "--similarity", "exact-or-half")
    chosen = (*common, "--data", atomic_dir, "--sample-seed", "7")
    with chat_server(reply) as server:
        write_settings(Path("gta.toml"), server.url)
        run(*chosen, "--sample", "8", "--out", "pilot")
        assert taken() == steps(small)
        run(*chosen, "--sample", "16", "--out", "pilot")
        assert taken() == steps(set(large) - set(small))
        run(*chosen, "--sample", "16", "--epochs", "3", "--out", "pilot")
        assert taken() == steps(large, 2)
        run(*chosen, "--sample", "16", "--epochs", "3", "--out", "pilot")
        assert not taken()
        run(*chosen, "--sample", "16", "--epochs", "3", "--out", "fresh")
        assert taken() == steps(large, 3)
    assert atomic_scores("pilot") == atomic_scores("fresh")
    strict = read_scores(Path("pilot")).strict
    assert isinstance(strict, StrictStepScores)
    assert strict.inst_acc is not None
    assert 0 < strict.inst_acc < 100
    growth = read_manifest(Path("pilot")).growth
    added = tuple(task for task in large if task not in small)
    assert [(one.tasks, one.epochs) for one in growth] == [(added, 1), ((), 1)]
    assert len(list_logs(log_folder(Path("pilot")))) == 1


def test_two_processes_extend_what_one_began() -> None:
    data = write_atomic(Path("data"), {str(number): atomic_task() for number in range(8)})
    common = ("atomic", "--mode", "step", "--model", "scripted", "--similarity", "exact-or-half")
    chosen = (*common, "--data", data.resolve())
    with chat_server() as server:
        write_settings(Path("gta.toml"), server.url)
        run(*chosen, "--limit", "4", "--out", "grown")
        before = server.answered
        run(*chosen, "--limit", "8", "--epochs", "2", "--workers", "2", "--out", "grown")
        missing = 8 * 2 - 4
        # A command may ask for a word before it begins.
        assert missing * 2 <= server.answered - before <= missing * 2 + 1
        run(*chosen, "--epochs", "2", "--out", "fresh")
    assert atomic_scores("grown") == atomic_scores("fresh")
    assert len(list_logs(log_folder(Path("grown")))) == 1


def test_a_judge_is_asked_about_what_was_added() -> None:
    tasks = {
        str(number): workflow_task(dialogs=[{"role": "user", "content": f"Write report {number}."}])
        for number in range(4)
    }
    data = write_workflow(Path("data"), tasks)
    asked: Counter[str] = Counter()

    def reply(request: dict[str, Any]) -> str:
        if request["model"] == "judge":
            asked["judge"] += len(names(request))
            return honest(request) if names(request) else "Ready."
        asked["system"] += "Write report" in str(request["messages"])
        return "Done."

    def taken() -> dict[str, int]:
        found = {name: count for name, count in asked.items() if count}
        asked.clear()
        return found

    chosen = ("workflow", "--model", "scripted", "--judge", "judge", "--data", data.resolve())
    with chat_server(reply) as server:
        settings = write_settings(Path("gta.toml"), server.url)
        with settings.open("a", encoding="utf-8") as file:
            file.write(
                '[models.judge]\nmodel = "openai-api/local/judge"\n'
                f'base_url = "{server.url}"\nkey_env = "SCRIPTED_KEY"\n'
            )
        run(*chosen, "--limit", "2", "--out", "grown")
        assert taken() == {"system": 2, "judge": 4}
        run(*chosen, "--limit", "4", "--out", "grown")
        assert taken() == {"system": 2, "judge": 4}
        run(*chosen, "--epochs", "2", "--out", "grown")
        assert taken() == {"system": 4, "judge": 8}
        run(*chosen, "--task", "1", "--epochs", "2", "--out", "grown")
        assert not taken()
        run(*chosen, "--epochs", "2", "--out", "fresh")
    grown, fresh = (read_workflow_scores(Path(name)) for name in ("grown", "fresh"))
    assert [one.strict for one in grown.judges] == [one.strict for one in fresh.judges]
    assert [one.tasks for one in grown.judges] == [one.tasks for one in fresh.judges]
    verdicts = read_verdicts(Path("grown")).values()
    assert len(verdicts) == 16
    assert all(isinstance(row.verdict, Scored) for row in verdicts)
    page = gta("report", "grown", "--html", "grown.html")
    assert page.exit_code == 0, page.output
    assert "epochs: 1 to 2" in Path("grown.html").read_text(encoding="utf-8")

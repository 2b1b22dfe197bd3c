"""Exports before the real `harbor` package, in an environment of its own.

GTA_HARBOR_PYTHON names an interpreter (3.12 or newer) that has it; without it one is installed.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.datasets.atomic import load_atomic
from gta_bench.metrics.reference import reference_trace
from gta_bench.records.atif import Trajectory, read_steps
from gta_bench.records.steps import write_trace
from tests.authoring.folders import write_authored
from tests.conftest import REPOSITORY
from tests.needs import require_programs
from tests.test_extension import EXTENSION, write_trip

pytestmark = pytest.mark.measure
STORED = "predictions/workflow_gemini25pro_lagent_20"
# Harbor reads the folders of tasks, and reads and writes the trajectories.
SCRIPT = """
import json, sys
from pathlib import Path
from harbor.models.task.task import Task
from harbor.models.trajectories import Trajectory
tasks = [Task(folder) for place in sys.argv[3:] for folder in sorted(Path(place).iterdir())]
for task in tasks:
    (server,) = task.config.environment.mcp_servers
    assert (server.transport, server.command) == ("stdio", "gta")
    assert task.instruction.strip()
out = Path(sys.argv[2])
out.mkdir()
for file in Path(sys.argv[1]).iterdir():
    read = Trajectory.model_validate_json(file.read_text())
    (out / file.name).write_text(read.model_dump_json(exclude_none=True))
print(json.dumps([task.name for task in tasks]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    named = os.environ.get("GTA_HARBOR_PYTHON")
    if named:
        return named
    place = tmp_path_factory.mktemp("harbor")
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    subprocess.run([place / "bin" / "pip", "install", "--quiet", "harbor==0.25.0"], check=True)
    return str(place / "bin" / "python")


def gta(*command: str) -> str:
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    return result.stdout


def trajectories(data_dir: Path, folder: Path) -> Path:
    """The stored works on GTA-Workflow, and the reference of GTA-Atomic as if a system did it."""
    atomic, workflow = data_dir / "gta_atomic", data_dir / "gta_workflow"
    traces = [[write_trace(reference_trace(one))] for one in load_atomic(atomic).tasks.values()]
    done = {str(place): {"prediction": one, "gold": one} for place, one in enumerate(traces)}
    (folder / "done.json").write_text(json.dumps(done), encoding="utf-8")
    sources = {
        "a": [str(folder / "done.json"), "--mode", "end-to-end", "--data", str(atomic)],
        "w": [str(data_dir / STORED), "--dataset", "workflow", "--data", str(workflow)],
    }
    for name, source in sources.items():
        gta("import", "opencompass", *source, "--out", str(folder / f"run-{name}"))
        gta("export", "atif", str(folder / f"run-{name}"), "--out", str(folder / f"atif-{name}"))
        for file in (folder / f"atif-{name}").iterdir():
            (folder / "atif").mkdir(exist_ok=True)
            file.rename(folder / "atif" / file.name)
    return folder / "atif"


def test_harbor_reads_what_was_exported_and_gives_it_back(
    python: str, data_dir: Path, tmp_path: Path
) -> None:
    places = []
    for name, tasks in (("atomic", "0:24"), ("workflow", "0:20")):
        places.append(str(tmp_path / name))
        chosen = ["--dataset", name, "--data", str(data_dir / f"gta_{name}"), "--tasks", tasks]
        gta("export", "harbor", *chosen, "--out", places[-1])
    atif, again = trajectories(data_dir, tmp_path), tmp_path / "again"
    ran = subprocess.run(
        [python, "-c", SCRIPT, str(atif), str(again), *places],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    named = json.loads(ran.stdout)
    print(f"{len(named)} tasks, {len(list(atif.iterdir()))} trajectories")
    assert sum(name.startswith("gta-bench/atomic-") for name in named) >= 20
    assert sum(name.startswith("gta-bench/workflow-") for name in named) == 20
    assert len(list(atif.iterdir())) == 229 + 20
    for file in atif.iterdir():
        ours, theirs = (
            Trajectory.model_validate_json((place / file.name).read_bytes())
            for place in (atif, again)
        )
        assert read_steps(theirs.steps) == read_steps(ours.steps)


def run_trials(python: str, results: Path, trials: Sequence[str]) -> list[Any]:
    """What Harbor says of each trial: its rewards, or the exception."""
    script = REPOSITORY / "tests" / "measure" / "harbor_trials.py"
    ran = subprocess.run(
        [python, str(script), str(results), *trials],
        env={
            **os.environ,
            "PYTHONPATH": str(script.parent),
            "GTA_PYTHON": sys.executable,
            "GTA_SOURCE": str(REPOSITORY / "src"),
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: list[Any] = json.loads(ran.stdout)
    return found


def change_solution(folder: Path, work: Path, out: Path) -> Path:
    """A copy of an exported task, whose solution is a work with known mistakes."""
    shutil.copytree(folder, out / folder.name)
    solution = out / folder.name / "solution"
    shutil.rmtree(solution / "outputs")
    shutil.copytree(work, solution / "outputs")
    (solution / "outputs" / "wrong.toml").unlink()
    (solution / "final.txt").unlink(missing_ok=True)
    if (answer := solution / "outputs" / "final.txt").is_file():
        answer.replace(solution / "final.txt")
    return out / folder.name


def score_here(task: Path, work: Path, place: Path) -> dict[str, float]:
    """The rewards that `gta score` gives to a work."""
    shutil.copytree(work, place / "results" / task.name)
    (place / "results" / task.name / "wrong.toml").unlink()
    run = str(place / "run")
    gta("import", "folder", str(place / "results"), "--data", str(task.parent), "--out", run,
        "--tasks", task.name)  # fmt: skip
    (table,) = json.loads(gta("score", run, "--json"))["judges"]
    (found,) = table["tasks"]
    leaves = {f"leaf/{leaf['leaf']}": leaf["value"] / 10 for leaf in found["leaves"]}
    return {"reward": found["root"] / 10, **leaves}


def test_harbor_verifies_own_and_forged_tasks(python: str, tmp_path: Path) -> None:
    require_programs("bwrap")
    tasks, out = tmp_path / "tasks", tmp_path / "out"
    gta("forge", "clean", "schedule", "--seed", "harbor", "--count", "2", "--out", str(tasks))
    write_authored(tasks)
    gta("export", "harbor", "--dataset", "workflow", "--data", str(tasks), "--out", str(out))
    folders = sorted(out.iterdir())
    works = [
        min((tasks / one.name.removeprefix("workflow-") / "wrong").iterdir()) for one in folders
    ]
    changed = [
        change_solution(folder, work, tmp_path / "changed")
        for folder, work in zip(folders, works, strict=True)
    ]
    trials = [f"{agent}={folder}" for agent in ("oracle", "nop") for folder in folders]
    trials += [f"oracle={folder}" for folder in changed]
    found = run_trials(python, tmp_path / "results", trials)
    count = len(folders)
    assert count == 3
    assert all(set(rewards.values()) == {1.0} for rewards in found[:count]), "solved"
    assert all(set(rewards.values()) == {0.0} for rewards in found[count : 2 * count]), "empty"
    for work, rewards in zip(works, found[2 * count :], strict=True):
        task = work.parent.parent
        assert rewards == score_here(task, work, tmp_path / "here" / task.name)
        assert 0 < rewards["reward"] < 1
        print(task.name, work.name, rewards)


# An agent that prepares its container for the verifier: programs, modules, links, rewards.
ATTACK = """#!/bin/sh
cat > /programs/gta <<'END'
#!/bin/sh
echo '{"reward": 1}' > /logs/verifier/reward.json
END
cp /programs/gta /programs/python3
echo '{"reward": 1}' > /logs/verifier/reward.json
echo 1 > /logs/verifier/reward.txt
mkdir -p /workspace/gta_bench /tests
echo 'raise SystemExit(0)' | tee /workspace/json.py /workspace/gta_bench/__init__.py
cp /workspace/json.py /packages/sitecustomize.py
echo 'exit 0' > /tests/test.sh
ln -s /tests/data /workspace/outputs/data
ln -s /solution /workspace/outputs/solution
"""
MESSAGES = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {
        "id": 2,
        "method": "tools/call",
        "params": {
            "name": "UnitConverter",
            "arguments": {"value": 26.2, "unit": "mile", "to": "km"},
        },
    },
)


# Standard input stays open until the reply, because its end ends the server.
CALL = """
called=/workspace/outputs/called.txt
wait_for_reply() {
  for second in $(seq 600); do
    if grep -q '"id":2' $called; then return; fi
    sleep 1
  done
}
(cat calls; wait_for_reply) | gta tools serve --stdio --workspace /workspace \\
  --tool UnitConverter > $called
"""


def test_own_tools_and_checks_are_in_the_images_and_an_agent_changes_no_reward(
    python: str, tmp_path: Path
) -> None:
    require_programs("bwrap")
    packages = tmp_path / "packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    subprocess.run([*pip, str(packages), str(EXTENSION)], check=True)
    write_trip(tmp_path)
    toml = tmp_path / "tasks" / "trip" / "task.toml"
    own = 'id = "trip"\ntools = ["UnitConverter"]\n'
    toml.write_text(toml.read_text("utf-8").replace('id = "trip"\n', own, 1), encoding="utf-8")
    shutil.copytree(tmp_path / "results" / "trip", tmp_path / "tasks" / "trip" / "gold" / "miles")
    out = tmp_path / "out"
    command = ["export", "harbor", "--dataset", "workflow", "--data", str(tmp_path / "tasks")]
    subprocess.run(
        [sys.executable, "-m", "gta_bench.cli", *command, "--out", str(out)],
        env={**os.environ, "PYTHONPATH": f"{packages}:{REPOSITORY / 'src'}"},
        check=True,
    )
    (folder,) = out.iterdir()
    # The oracle also calls the tool of the image, by the command of the task.
    (tmp_path / "calls").write_text(
        "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in MESSAGES)
    )
    shutil.copy(tmp_path / "calls", folder / "solution" / "calls")
    with (folder / "solution" / "solve.sh").open("a") as script:
        script.write(CALL)
    # The attack, and a verifier without the package of its check.
    attacked, broken = (tmp_path / name / folder.name for name in ("attacked", "broken"))
    for place in (attacked, broken):
        shutil.copytree(folder, place)
    (attacked / "solution" / "solve.sh").write_text(ATTACK)
    image = broken / "tests" / "Dockerfile"
    image.write_text(image.read_text().replace(' "gta-units==0.1.0"', ""))
    results = tmp_path / "results-of-harbor"
    trials = [f"oracle={place}" for place in (folder, attacked, broken)]
    solved, cheated, unscored = run_trials(python, results, trials)
    assert solved == {"reward": 1.0, "leaf/far": 1.0}
    assert cheated == {"reward": 0.0, "leaf/far": 0.0}
    assert unscored[0] == "RewardFileNotFoundError"
    called = [file.read_text() for file in results.rglob("called.txt")]
    assert any("42.1648 km" in text for text in called)

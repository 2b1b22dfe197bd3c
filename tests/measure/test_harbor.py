"""Exports before the real `harbor` package, in an environment of its own.

GTA_HARBOR_PYTHON names an interpreter (3.12 or newer) that has it; without it one is installed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.datasets.atomic import load_atomic
from gta_bench.metrics.reference import reference_trace
from gta_bench.records.atif import Trajectory, read_steps
from gta_bench.records.steps import write_trace

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


def gta(*command: str) -> None:
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output


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

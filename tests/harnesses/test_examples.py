"""The examples that the documentation names, run as they stand."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_units
from tests.conftest import REPOSITORY
from tests.needs import needs

EXAMPLES = REPOSITORY / "examples"


def run(dataset: str, *options: str | Path) -> None:
    result = CliRunner().invoke(app, ["run", dataset, *map(str, options)])
    assert result.exit_code == 0, result.output


@needs("bwrap")
def test_the_python_harness_works_on_both_datasets(
    workflow_dir: Path, atomic_dir: Path, tmp_path: Path
) -> None:
    command = f"python3 {EXAMPLES / 'harness.py'} {{task_file}} {{workspace}}"
    options = ("--data", workflow_dir, "--tasks", "0:2", "--out", tmp_path / "w")
    run("workflow", *options, "--harness", command)
    manifest = read_manifest(tmp_path / "w")
    for unit in read_units(log_folder(tmp_path / "w"), manifest.spec.tasks, 1, WorkflowUnit).units:
        assert unit.answer == "The answer is 222"
        assert [file.path for file in unit.deliverables] == ["outputs/report.md"]
        assert [call.status for call in unit.calls] == ["done"]
    atomic = _atomic(atomic_dir, tmp_path / "a", command)
    assert [step.step for step in atomic.trace or ()] == ["call", "reply", "answer"]


@needs("bwrap")
def test_the_shell_harness_works(atomic_dir: Path, tmp_path: Path) -> None:
    command = f"sh {EXAMPLES / 'harness.sh'} {{task_file}} {{workspace}}"
    unit = _atomic(atomic_dir, tmp_path / "run", command)
    assert [step.step for step in unit.trace or ()] == ["call", "reply", "answer"]
    assert (unit.trace or ())[-1].content == "The answer is 42."  # type: ignore[union-attr]
    outputs = tmp_path / "run" / "files" / "1" / "outputs"
    assert sorted(file.name for file in outputs.iterdir()) == ["inputs.txt", "request.txt"]


@pytest.mark.parametrize("name", ["harness.py", "harness.sh"])
def test_an_example_is_about_30_lines(name: str) -> None:
    lines = (EXAMPLES / name).read_text().splitlines()
    assert sum(bool(line.strip()) and not line.startswith("#") for line in lines) <= 30


def _atomic(data: Path, out: Path, command: str) -> AtomicUnit:
    options = ("--mode", "end-to-end", "--similarity", "exact-or-half", "--data", data)
    run("atomic", *options, "--tasks", "1", "--out", out, "--harness", command)
    return read_units(log_folder(out), ("1",), 1, AtomicUnit).units[0]

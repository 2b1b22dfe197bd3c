"""1,000 tasks are linted in 30 seconds of CPU time."""

import time
from pathlib import Path

import pytest

from gta_bench.authoring.lint import lint
from gta_bench.authoring.scaffold import WRITERS, scaffold
from gta_bench.datasets.convert import convert
from gta_bench.datasets.workflow import load_workflow

TASKS, SECONDS = 1000, 30.0


@pytest.mark.measure
def test_a_thousand_tasks_are_linted_in_half_a_minute(tmp_path: Path, workflow_dir: Path) -> None:
    convert(load_workflow(workflow_dir), tmp_path / "released")
    for number in range(20):
        scaffold(tmp_path / "new" / f"t{number}", [*WRITERS][number % len(WRITERS)])
    start = time.process_time()
    report = lint([tmp_path / "released", tmp_path / "new"] * (TASKS // 40))
    seconds = time.process_time() - start
    print(f"{report.tasks} tasks, {len(report.findings)} findings, {seconds:.1f} s of CPU time")
    assert report.tasks == TASKS and seconds <= SECONDS

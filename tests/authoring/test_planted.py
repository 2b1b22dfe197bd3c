"""100 defects planted by seed in copies of the released tasks: lint finds at least 90."""

import shutil
from itertools import cycle, islice
from pathlib import Path
from random import Random

from gta_bench.authoring.lint import lint
from gta_bench.datasets.convert import convert
from gta_bench.datasets.workflow import load_workflow
from tests.authoring.planted import DEFECTS, edit, write

COUNT = 100
Findings = set[tuple[str, str, str | None, str]]


def copy_task(source: Path, target: Path) -> Path:
    """Copy a converted task, with what the released layout lacks: a license and two golds."""
    shutil.copytree(source, target)
    edit(target, "category =", 'license = "MIT"\ncategory =')
    for name in ("a", "b"):
        text = f"# Report {name}\n\nA right delivery, which the dataset does not have.\n"
        write(target, f"gold/{name}/report.md", text.encode())
    return target


def find(folder: Path) -> Findings:
    return {(one.check, one.file, one.field, one.message) for one in lint([folder]).findings}


def test_lint_finds_planted_defects_in_the_released_tasks(
    workflow_dir: Path, tmp_path: Path
) -> None:
    dataset = load_workflow(workflow_dir)
    convert(dataset, tmp_path / "tasks")
    # The findings of a task without defects, by its name.
    before: dict[str, Findings] = {}
    missed = []
    for number, (rule, plant) in enumerate(islice(cycle(DEFECTS.items()), COUNT)):
        rng = Random(number)
        name = rng.choice(list(dataset.tasks))
        folder = copy_task(tmp_path / "tasks" / name, tmp_path / str(number) / name)
        if name not in before:
            before[name] = find(folder)
        plant(folder, rng)
        if rule not in {check for check, *_ in find(folder) - before[name]}:
            missed.append((number, rule, name))
    assert len(missed) <= COUNT // 10, missed

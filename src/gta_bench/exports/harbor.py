"""Export tasks as Harbor task folders, with our tools over MCP and our scoring as the verifier.

The verifier's folder contains a dataset of one task, so that the work is scored by `gta import` and
`gta score` like any other finished result. Harbor hides that folder from agents.
"""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import JsonValue

from gta_bench.datasets.files import read_entries
from gta_bench.datasets.model import AtomicDataset, Dataset
from gta_bench.datasets.released import TOOLMETA
from gta_bench.errors import RunError
from gta_bench.exports.templates import TEMPLATES
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import AnswerTurn
from gta_bench.records.files import Attachment
from gta_bench.records.workflow import WorkflowTask
from gta_bench.tools.catalog import own_packages, tool_names

SCHEMA: Final = "1.4"
# The README of the folder for wheels of packages that bring tools.
WHEELS: Final = "Put wheels here for packages that are not on a package index."
Task = AtomicTask | WorkflowTask


class _Scoring(NamedTuple):
    """How to read the reward from the output of `gta score --json` for one task."""

    dataset: str
    judging: str
    value: str
    most: str


ATOMIC: Final = _Scoring("atomic", "", 'scores["metrics"]["ans_acc"]', "100")
WORKFLOW: Final = _Scoring(
    "workflow",
    ' --judge "$GTA_JUDGE"',
    'scores["judges"][0]["strict"]["root_score"] if scores["judges"] else None',
    "10",
)
# Environment of the verifier of a Workflow task; Harbor fills it in when it runs.
JUDGE_ENV: Final = {
    "GTA_JUDGE": "${GTA_JUDGE}",
    **{
        name: f"${{{name}:-}}"
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "JUDGE_API_KEY", "JUDGE_BASE_URL")
    },
}


class Exported(NamedTuple):
    """The folders that were written, and the tasks that the format cannot represent.

    `missing` has the files that tasks name but the dataset does not have.
    """

    folders: tuple[Path, ...]
    left_out: tuple[str, ...]
    missing: tuple[str, ...]


def export_harbor(dataset: Dataset, tasks: Sequence[str], out: Path) -> Exported:
    """Write a folder for each task, except for tasks that produce an image.

    Those are scored by their calls, but a verifier sees only files and texts. Raises RunError
    before anything is written if a task cannot be exported.
    """
    entries = read_entries(dataset.root / dataset.file)
    # The result of an Atomic task without a reference answer is an image.
    able = {
        name: task
        for name in tasks
        if not isinstance(task := dataset.tasks[name], AtomicTask) or task.answer is not None
    }
    scoring = ATOMIC if isinstance(dataset, AtomicDataset) else WORKFLOW
    folders = {name: out / f"{scoring.dataset}-{name}" for name in able}
    _check_tasks(dataset, able.values(), folders.values())
    for name, task in able.items():
        _write_task(dataset, scoring, task, entries[name], folders[name])
    return Exported(
        tuple(folders.values()),
        tuple(name for name in tasks if name not in able),
        tuple(
            item.source
            for task in able.values()
            for item in task.attachments
            if not _has(dataset, item)
        ),
    )


def _check_tasks(dataset: Dataset, tasks: Iterable[Task], folders: Iterable[Path]) -> None:
    file = dataset.root / TOOLMETA
    if not file.is_file():
        raise RunError(
            f"{file} is missing, but an exported task needs it: run "
            f"`gta tools list --toolmeta > {file}`."
        )
    known = tool_names()
    for task in tasks:
        unknown = [name for name in _tools(task) if name not in known]
        if unknown:
            raise RunError(
                f"Task {task.id} offers {unknown[0]!r}, which is not installed here: install the "
                "package that provides it, or leave the task out with --tasks."
            )
    there = [folder for folder in folders if folder.exists()]
    if there:
        raise RunError(f"{there[0]} already exists; choose another --out.")


def _tools(task: Task) -> list[str]:
    return list(task.offered) if isinstance(task, AtomicTask) else list(task.tools)


def _has(dataset: Dataset, item: Attachment) -> bool:
    return (dataset.root / item.source).is_file()


def _write_task(
    dataset: Dataset, scoring: _Scoring, task: Task, entry: JsonValue, folder: Path
) -> None:
    inputs = folder / "environment" / "inputs"
    inputs.mkdir(parents=True)
    files = [item for item in task.attachments if _has(dataset, item)]
    for item in files:
        shutil.copyfile(dataset.root / item.source, inputs / Path(item.path).name)
    names = ", ".join(f"`/workspace/{item.path}`" for item in task.attachments)
    about = f" The files of the task: {names}." if names else ""
    text = TEMPLATES.render("instruction.md", request=task.request, inputs=about)
    _write(folder / "instruction.md", text)
    _write(folder / "task.toml", _config(task, scoring))
    _write_image(own_packages(_tools(task)), folder / "environment")
    test = TEMPLATES.render("test.sh", task=task.id, **scoring._asdict())
    _write(folder / "tests" / "test.sh", test, mode=0o755)
    _write_data(dataset, task, entry, files, folder / "tests" / "data")
    last = task.steps[-1] if isinstance(task, AtomicTask) else None
    if isinstance(last, AnswerTurn):
        _write(folder / "solution" / "final.txt", last.content)
        script = (
            '#!/bin/sh\ncp "$(dirname "$0")/final.txt" "${GTA_WORKSPACE:-/workspace}/final.txt"'
        )
        _write(folder / "solution" / "solve.sh", script, mode=0o755)


def _write_image(packages: Mapping[str, str], folder: Path) -> None:
    """Write a Dockerfile that also installs packages that bring tools."""
    install = ""
    if packages:
        named = " ".join(f'"{name}=={number}"' for name, number in sorted(packages.items()))
        install = (
            f"\nCOPY wheels /wheels\nRUN pip install --no-cache-dir --find-links /wheels {named}"
        )
        _write(folder / "wheels" / "README", WHEELS)
    text = TEMPLATES.render("Dockerfile", version=version("gta-bench"), packages=install)
    _write(folder / "Dockerfile", text)


def _config(task: Task, scoring: _Scoring) -> str:
    options = [part for tool in _tools(task) for part in ("--tool", tool)]
    serve = ["tools", "serve", "--stdio", "--workspace", "/workspace", *options]
    about: dict[str, JsonValue] = {"dataset": scoring.dataset, "task": task.id}
    if isinstance(task, WorkflowTask) and task.category is not None:
        about["category"] = task.category
    tables: list[tuple[str, Mapping[str, JsonValue]]] = [
        ("[task]", {"name": f"gta-bench/{scoring.dataset}-{task.id}"}),
        ("[metadata]", about),
        ("[agent]", {"timeout_sec": 3600.0}),
        ("[verifier]", {"timeout_sec": 3600.0}),
        ("[environment]", {"build_timeout_sec": 1800.0, "workdir": "/workspace"}),
        (
            "[[environment.mcp_servers]]",
            {"name": "gta", "transport": "stdio", "command": "gta", "args": list(serve)},
        ),
    ]
    if scoring is WORKFLOW:
        tables.insert(4, ("[verifier.env]", dict(JUDGE_ENV)))
    lines = [f"schema_version = {json.dumps(SCHEMA)}"]
    for heading, values in tables:
        # JSON values of these kinds are valid TOML.
        lines += ["", heading, *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    return "\n".join(lines)


def _write_data(
    dataset: Dataset, task: Task, entry: JsonValue, files: Sequence[Attachment], data: Path
) -> None:
    """Write a dataset in the released layout that contains only this task."""
    _write(data / dataset.file, json.dumps({task.id: entry}, ensure_ascii=False, indent=1))
    shutil.copyfile(dataset.root / TOOLMETA, data / TOOLMETA)
    for item in files:
        (data / item.source).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(dataset.root / item.source, data / item.source)


def _write(file: Path, text: str, *, mode: int = 0o644) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n", encoding="utf-8", newline="\n")
    file.chmod(mode)

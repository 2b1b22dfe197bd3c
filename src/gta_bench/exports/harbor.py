"""Export tasks as Harbor task folders, with our tools over MCP and our scoring as the verifier.

The verifier's folder contains a dataset of one task, so that the work is scored by `gta import` and
`gta score` like any other finished result. Harbor runs the verifier in a container of its own, with
nothing of the agent's but the delivered files, and shows that folder to no agent.
"""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from gta_bench.datasets.files import read_entries
from gta_bench.datasets.folders import REQUEST_FILE, TASK_FILE
from gta_bench.datasets.model import AtomicDataset, Dataset
from gta_bench.datasets.package_checks import find_package
from gta_bench.datasets.released import TOOLMETA
from gta_bench.errors import RunError
from gta_bench.exports.templates import TEMPLATES
from gta_bench.exports.wheels import find_origin, normalize_name, read_wheel_name, write_wheel
from gta_bench.harnesses.collecting import FoundFile
from gta_bench.harnesses.delivery import Delivery
from gta_bench.harnesses.finished import read_folder
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.checks import (
    AnyCheck,
    MediaSays,
    PackageCheck,
    PythonCheck,
    SqliteQuery,
    StateFile,
    TableSame,
)
from gta_bench.records.dialogue import AnswerTurn
from gta_bench.records.files import Attachment
from gta_bench.records.run import DatasetName
from gta_bench.records.steps import AnswerStep
from gta_bench.records.workflow import WorkflowTask
from gta_bench.tools.catalog import own_packages, tool_names
from gta_bench.tools.offering import list_own_tools

SCHEMA: Final = "1.4"
OURS: Final = "gta-bench"
# The README of the folder for wheels of packages.
WHEELS: Final = "Wheels of packages that are not on a package index."
Task = AtomicTask | WorkflowTask
# What the image of the agent and that of the verifier contain besides packages.
ImageName = Literal["environment", "tests"]
CONTENT: Final[Mapping[ImageName, str]] = {
    "environment": "inputs /workspace/inputs",
    "tests": ". /tests",
}
# For checks of what is said.
HEARING: Final = "\nRUN gta tools fetch moonshine-tiny moonshine-tokenizer"
# What the verifier gets from the agent's container.
DELIVERED: Final = ("/workspace/outputs", "/workspace/final.txt")
GOLD: Final = "gold"
SOLVE: Final = """#!/bin/sh
set -eu
workspace=${GTA_WORKSPACE:-/workspace}
cd "$(dirname "$0")"
mkdir -p "$workspace/outputs"
if [ -f final.txt ]; then cp final.txt "$workspace/final.txt"; fi
if [ -d outputs ]; then cp -R outputs/. "$workspace/outputs/"; fi"""
# Environment of a verifier that needs a judge; Harbor fills it in when it runs.
JUDGE_ENV: Final = {
    "GTA_JUDGE": "${GTA_JUDGE}",
    **{
        name: f"${{{name}:-}}"
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "JUDGE_API_KEY", "JUDGE_BASE_URL")
    },
}


class Exported(NamedTuple):
    """The folders that were written, and the tasks that the format cannot represent.

    `left_out` tasks produce an image, and `stateful` ones are checked by the state of a tool
    server. `judged` tasks have leaves that need a judge. `missing` has the files that tasks name
    but the dataset does not have, and `unbundled` the packages whose wheels the images lack.
    """

    folders: tuple[Path, ...]
    left_out: tuple[str, ...]
    missing: tuple[str, ...]
    stateful: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()
    unbundled: tuple[str, ...] = ()


def export_harbor(
    dataset: Dataset, tasks: Sequence[str], out: Path, wheels: Sequence[Path] = ()
) -> Exported:
    """Write a folder for each task, except for tasks that a verifier cannot score.

    It sees only files and texts, but images of GTA-Atomic are scored by their calls, and some tasks
    of one's own by what a tool server has afterwards. `wheels` are files of packages for the
    images. Raises RunError before anything is written if a task cannot be exported.
    """
    chosen = {name: dataset.tasks[name] for name in tasks}
    # The result of an Atomic task without a reference answer is an image.
    images = [
        name
        for name, task in chosen.items()
        if isinstance(task, AtomicTask) and task.answer is None
    ]
    stateful = [name for name, task in chosen.items() if _has_check(task, StateFile, SqliteQuery)]
    able = {name: task for name, task in chosen.items() if name not in {*images, *stateful}}
    folders = {name: out / f"{_find_kind(dataset)}-{name}" for name in able}
    _check_tasks(dataset, able.values(), folders.values())
    released = dataset.layout == "released"
    entries = read_entries(dataset.root / dataset.file) if released else {}
    with TemporaryDirectory() as place:
        packages = _Packages(dataset, wheels, Path(place))
        for task in able.values():  # before anything is written
            packages.list_for(task), packages.list_checking(task)
        for task in able.values():
            _write_task(dataset, task, folders[task.id], packages)
            _write_data(dataset, task, folders[task.id] / "tests" / "data", entries)
    return Exported(
        tuple(folders.values()),
        tuple(images),
        tuple(
            item.source
            for task in able.values()
            for item in task.attachments
            if not _has(dataset, item)
        ),
        stateful=tuple(stateful),
        judged=tuple(name for name, task in able.items() if _needs_judge(task)),
        unbundled=packages.list_lacking(),
    )


def _check_tasks(dataset: Dataset, tasks: Iterable[Task], folders: Iterable[Path]) -> None:
    file = dataset.root / TOOLMETA
    if dataset.layout == "released" and not file.is_file():
        raise RunError(
            f"{file} is missing, but an exported task needs it: run "
            f"`gta tools list --toolmeta > {file}`."
        )
    known = tool_names()
    for task in tasks:
        unknown = [name for name in list_own_tools(dataset, task) if name not in known]
        if unknown:
            raise RunError(
                f"Task {task.id} offers {unknown[0]!r}, which is not installed here: install the "
                "package that provides it, or leave the task out with --tasks."
            )
    there = [folder for folder in folders if folder.exists()]
    if there:
        raise RunError(f"{there[0]} already exists; choose another --out.")


def _find_kind(dataset: Dataset) -> DatasetName:
    return "atomic" if isinstance(dataset, AtomicDataset) else "workflow"


def _list_checks(task: Task) -> list[AnyCheck]:
    leaves = task.leaves() if isinstance(task, WorkflowTask) else ()
    return [check for leaf in leaves for check in leaf.checks]


def _has_check(task: Task, *kinds: type[AnyCheck]) -> bool:
    return any(isinstance(check, kinds) for check in _list_checks(task))


def _needs_judge(task: Task) -> bool:
    leaves = task.leaves() if isinstance(task, WorkflowTask) else ()
    return any(leaf.by != "check" for leaf in leaves)


def _has(dataset: Dataset, item: Attachment) -> bool:
    return (dataset.root / item.source).is_file()


class _Packages:
    """The packages that images need besides ours, and the wheels of those that no index has."""

    def __init__(self, dataset: Dataset, wheels: Sequence[Path], place: Path) -> None:
        self._dataset = dataset
        self._place = place
        self._wheels = {read_wheel_name(wheel): wheel for wheel in wheels}
        self._editable: set[str] = set()
        self._find(OURS)

    def list_for(self, task: Task) -> dict[str, str]:
        """The packages of the tools that a task offers, with their versions."""
        return self._find_all(own_packages(list_own_tools(self._dataset, task)))

    def list_checking(self, task: Task) -> dict[str, str]:
        """The packages of the checks of a task, with their versions."""
        checks = (check for check in _list_checks(task) if isinstance(check, PackageCheck))
        named = (one.partition("==") for one in filter(None, map(find_package, checks)))
        return self._find_all({name: number for name, _, number in named})

    def copy_wheels(self, packages: Iterable[str], folder: Path) -> None:
        """Put the wheels of packages, and of ours, into a folder of an image."""
        _write(folder / "README", WHEELS)
        for name in (OURS, *packages):
            if wheel := self._wheels.get(normalize_name(name)):
                shutil.copyfile(wheel, folder / wheel.name)

    def list_lacking(self) -> tuple[str, ...]:
        """The packages that are installed from a checkout, so that their files are not known."""
        return tuple(sorted(self._editable))

    def _find_all(self, packages: dict[str, str]) -> dict[str, str]:
        for name in packages:
            self._find(name)
        return packages

    def _find(self, name: str) -> None:
        if normalize_name(name) in self._wheels:
            return
        origin = find_origin(name)
        if origin == "local":
            self._wheels[normalize_name(name)] = write_wheel(name, self._place)
        elif origin == "editable":
            self._editable.add(name)


def _write_task(dataset: Dataset, task: Task, folder: Path, packages: _Packages) -> None:
    kind = _find_kind(dataset)
    inputs = folder / "environment" / "inputs"
    inputs.mkdir(parents=True)
    for item in task.attachments:
        if _has(dataset, item):
            shutil.copyfile(dataset.root / item.source, inputs / Path(item.path).name)
    names = ", ".join(f"`/workspace/{item.path}`" for item in task.attachments)
    about = f" The files of the task: {names}." if names else ""
    text = TEMPLATES.render("instruction.md", request=task.request, inputs=about)
    _write(folder / "instruction.md", text)
    _write(folder / "task.toml", _config(dataset, kind, task))
    judging = ' --judge "$GTA_JUDGE"' if _needs_judge(task) else ""
    test = TEMPLATES.render("test.sh", task=task.id, dataset=kind, judging=judging)
    _write(folder / "tests" / "test.sh", test, mode=0o755)
    _write_images(packages, task, folder)
    _write_solution(dataset, task, folder / "solution")


def _write_images(packages: _Packages, task: Task, folder: Path) -> None:
    """Write the image of the agent, and one of the verifier if its checks need other packages.

    Harbor otherwise starts the agent's image again. Code of checks is not for agents to read.
    """
    tools, checks = packages.list_for(task), packages.list_checking(task)
    hearing = HEARING if _has_check(task, MediaSays) else ""
    _write_image(packages, tools, "" if checks else hearing, "environment", folder)
    if checks:
        _write_image(packages, checks, hearing, "tests", folder)


def _write_image(
    packages: _Packages, needed: Mapping[str, str], more: str, name: ImageName, folder: Path
) -> None:
    named = "".join(f' "{one}=={number}"' for one, number in sorted(needed.items()))
    text = TEMPLATES.render(
        "Dockerfile", version=version(OURS), packages=named + more, content=CONTENT[name]
    )
    _write(folder / name / "Dockerfile", text)
    packages.copy_wheels(needed, folder / name / "wheels")


def _write_solution(dataset: Dataset, task: Task, folder: Path) -> None:
    """Write the reference's answer, or the first of the works in gold/, for Harbor's oracle."""
    answer, files = _find_solution(dataset, task)
    if answer is None and not files:
        return
    _write(folder / "solve.sh", SOLVE, mode=0o755)
    if answer is not None:
        (folder / "final.txt").write_text(answer, encoding="utf-8", newline="")
    for file in files:
        target = folder / "outputs" / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.root.joinpath(*file.parts), target)


def _find_solution(dataset: Dataset, task: Task) -> tuple[str | None, Sequence[FoundFile]]:
    if isinstance(task, AtomicTask):
        last = task.steps[-1]
        return (last.content if isinstance(last, AnswerTurn) else None), ()
    golds = dataset.root / task.id / GOLD
    names = sorted(one.name for one in golds.iterdir() if one.is_dir()) if golds.is_dir() else []
    if dataset.layout == "released" or not names:
        return None, ()
    delivery = read_folder(golds, names[:1]).deliveries.get(names[0], Delivery())
    answers = [step.content for step in delivery.trace if isinstance(step, AnswerStep)]
    return (answers[-1] if answers else None), delivery.files


def _config(dataset: Dataset, kind: DatasetName, task: Task) -> str:
    options = [part for tool in list_own_tools(dataset, task) for part in ("--tool", tool)]
    serve = ["tools", "serve", "--stdio", "--workspace", "/workspace", *options]
    about: dict[str, JsonValue] = {"dataset": kind, "task": task.id}
    if isinstance(task, WorkflowTask) and task.category is not None:
        about["category"] = task.category
    tables: list[tuple[str, Mapping[str, JsonValue]]] = [
        ("[task]", {"name": f"gta-bench/{kind}-{task.id}"}),
        ("[metadata]", about),
        ("[agent]", {"timeout_sec": 3600.0}),
        ("[verifier]", {"timeout_sec": 3600.0, "environment_mode": "separate"}),
        ("[environment]", {"build_timeout_sec": 1800.0, "workdir": "/workspace"}),
        (
            "[[environment.mcp_servers]]",
            {"name": "gta", "transport": "stdio", "command": "gta", "args": list(serve)},
        ),
    ]
    if _needs_judge(task):
        tables.insert(4, ("[verifier.env]", dict(JUDGE_ENV)))
    lines = [f"schema_version = {json.dumps(SCHEMA)}", f"artifacts = {json.dumps(DELIVERED)}"]
    for heading, values in tables:
        # JSON values of these kinds are valid TOML.
        lines += ["", heading, *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    return "\n".join(lines)


def _write_data(dataset: Dataset, task: Task, data: Path, entries: Mapping[str, JsonValue]) -> None:
    """Write a dataset that contains only this task, in the layout of the whole."""
    if dataset.layout == "released":
        entry = {task.id: entries[task.id]}
        _write(data / dataset.file, json.dumps(entry, ensure_ascii=False, indent=1))
        parts = [TOOLMETA]
    else:
        checks = _list_checks(task)
        code = {one.run.partition(":")[0] for one in checks if isinstance(one, PythonCheck)}
        tables = {one.reference for one in checks if isinstance(one, TableSame)}
        own = (TASK_FILE, REQUEST_FILE, *sorted(code | tables))
        parts = [f"{task.id}/{name}" for name in own]
        parts += [TOOLMETA] if (dataset.root / TOOLMETA).is_file() else []
    for name in (*parts, *(item.source for item in task.attachments if _has(dataset, item))):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(dataset.root / name, data / name)


def _write(file: Path, text: str, *, mode: int = 0o644) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n", encoding="utf-8", newline="\n")
    file.chmod(mode)

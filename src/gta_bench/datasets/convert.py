"""Convert Workflow datasets between the released layout and task folders."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pydantic import JsonValue

from gta_bench.datasets.canary import mark_dataset, read_canaries
from gta_bench.datasets.files import Location
from gta_bench.datasets.folders import (
    INPUTS,
    REQUEST_FILE,
    TASK_FILE,
    TaskFile,
    read_task_file,
)
from gta_bench.datasets.model import WorkflowDataset
from gta_bench.datasets.pinned import MAIN_FILE
from gta_bench.datasets.released import TOOLMETA
from gta_bench.errors import UsageError
from gta_bench.records.checks import AnyCheck, PythonCheck, TableSame
from gta_bench.records.workflow import Checkpoint, WorkflowTask

RESOURCES = "resources"


def convert(dataset: WorkflowDataset, out: Path) -> int:
    """Write a dataset in the other layout to a new folder; return how many inputs are missing."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty. Name a new folder with --out.")
    if dataset.layout == "folders":
        _write_released(dataset, out)
    else:
        _write_folders(dataset, out)
    if (dataset.root / TOOLMETA).is_file():
        shutil.copyfile(dataset.root / TOOLMETA, out / TOOLMETA)
    if canaries := read_canaries(dataset.root):
        mark_dataset(out, canaries[0])
    sources = {item.source for task in dataset.tasks.values() for item in task.attachments}
    return sum(not (dataset.root / source).is_file() for source in sources)


def _copy(source: Path, target: Path) -> None:
    """Copy an input; the release may lack it, and then so does its copy."""
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _write_folders(dataset: WorkflowDataset, out: Path) -> None:
    for task in dataset.tasks.values():
        folder = out / task.id
        folder.mkdir(parents=True)
        (folder / TASK_FILE).write_text(format_task(task), encoding="utf-8", newline="\n")
        (folder / REQUEST_FILE).write_text(f"{task.request}\n", encoding="utf-8", newline="\n")
        for item in task.attachments:
            _copy(dataset.root / item.source, folder / item.path)


def format_task(task: WorkflowTask) -> str:
    """Return a task as the text of `task.toml`."""
    lines = ["format = 1", f"id = {_quote(task.id)}"]
    lines += [f"category = {_quote(task.category)}"] if task.category is not None else []
    lines += [f"tools = {_inline(list(task.tools))}"] if task.tools else []
    for item in task.attachments:
        lines += ["", f"[inputs.{_quote(PurePosixPath(item.path).name)}]"]
        about = {"type": item.type, "url": item.url, "released": item.source}
        lines += [f"{key} = {_quote(value)}" for key, value in about.items() if value is not None]
    # A key of the whole task stands above its tables.
    lines[2:2] = _format_order(task.checkpoints)
    lines += _format_nodes(task.checkpoints, "")
    return "\n".join(lines) + "\n"


def format_task_file(file: TaskFile) -> str:
    """Return the text of `task.toml`."""
    fields: dict[str, Any] = file.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    lists = {name: fields.pop(name, []) for name in _LISTS}
    tables = {name: fields.pop(name) for name in ("deliverables", "inputs") if name in fields}
    lines = [f"{key} = {_inline(value)}" for key, value in fields.items()]
    for name, table in tables.items():
        lines += [
            "",
            f"[{name}]",
            *(f"{_quote(key)} = {_inline(one)}" for key, one in table.items()),
        ]
    lines += _format_entries(lists, "")
    return "\n".join(lines) + "\n"


_LISTS: Final = ("leaf", "group")


def _format_entries(lists: dict[str, list[dict[str, Any]]], prefix: str) -> Iterator[str]:
    indent = "  " * prefix.count(".")
    for name in _LISTS:
        for entry in lists[name]:
            inner = {key: entry.pop(key, []) for key in _LISTS}
            yield from ("", f"{indent}[[{prefix}{name}]]")
            for key, value in entry.items():
                if key == "checks":
                    yield f"{indent}checks = ["
                    yield from (f"{indent}  {_inline({'is': None} | one)}," for one in value)
                    yield f"{indent}]"
                else:
                    yield f"{indent}{key} = {_inline(value)}"
            yield from _format_entries(inner, f"{prefix}{name}.")


def _format_order(nodes: Sequence[Checkpoint]) -> list[str]:
    """The order of a level, if it is not leaves and then groups."""
    written = sorted(nodes, key=lambda node: bool(node.children))
    if list(nodes) == written:
        return []
    return [f"order = {_inline([node.id for node in nodes])}"]


def _format_nodes(nodes: Sequence[Checkpoint], prefix: str) -> Iterator[str]:
    for node in sorted(nodes, key=lambda node: bool(node.children)):
        indent = "  " * prefix.count(".")
        name = f"{prefix}{'group' if node.children else 'leaf'}"
        yield ""
        yield f"{indent}[[{name}]]"
        fields: dict[str, Any] = {"id": node.id, "weight": node.weight, "says": node.requirements}
        fields |= _own_fields(node)
        lines = [f"{key} = {_inline(one)}" for key, one in fields.items() if one is not None]
        yield from (f"{indent}{line}" for line in [*lines, *_format_order(node.children)])
        yield from _format_nodes(node.children, f"{name}.")


def _own_fields(node: Checkpoint) -> dict[str, Any]:
    """The fields that only task folders have."""
    kept = node.model_dump(mode="json", include={"levels", "credit", "needs"})
    if node.checks:
        kept |= {"by": node.by, "checks": [describe_check(one) for one in node.checks]}
    return kept


def describe_check(check: AnyCheck) -> dict[str, JsonValue]:
    """Return a check as its author wrote it: without defaults and without attached files."""
    attached = {PythonCheck: {"source"}, TableSame: {"rows"}}.get(type(check), set())
    found = check.model_dump(mode="json", exclude_defaults=True, exclude=attached)
    return {"is": found.pop("is"), **found}


def _inline(value: JsonValue) -> str:
    """Return a value in TOML; whole numbers are written without a decimal point."""
    match value:
        case str():
            return _quote(value)
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
        case list():
            return f"[{', '.join(map(_inline, value))}]"
        case dict():
            pairs = (f"{_key(name)} = {_inline(one)}" for name, one in value.items())
            return f"{{ {', '.join(pairs)} }}"
        case _:
            return str(value)


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if plain else _quote(name)


def _quote(text: str) -> str:
    """Return a TOML string; JSON's escapes are TOML's, except that TOML also escapes DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write_released(dataset: WorkflowDataset, out: Path) -> None:
    entries: dict[str, JsonValue] = {}
    copies: dict[Path, Path] = {}
    for task in dataset.tasks.values():
        about = read_task_file(dataset.root / task.id).inputs
        files: list[JsonValue] = []
        for item in task.attachments:
            name = PurePosixPath(item.path).name
            entry = about.get(name)
            path = (entry and entry.released) or f"{RESOURCES}/{task.id}/{name}"
            copies[_inside(out, path, task.id)] = dataset.root / item.source
            described = {"path": path, "type": item.type, "url": item.url}
            files.append({key: one for key, one in described.items() if one is not None})
        entries[task.id] = {
            "tools": list(task.tools),
            "files": files,
            "dialogs": [{"role": "user", "content": task.request}],
            "sub_tasks": [_release_node(node, task.id) for node in task.checkpoints],
            "workflow_category_6class": task.category,
        }
    out.mkdir(parents=True, exist_ok=True)
    for target, source in copies.items():
        _copy(source, target)
    written = json.dumps(entries, indent=2, ensure_ascii=False)
    (out / MAIN_FILE["workflow"]).write_text(f"{written}\n", encoding="utf-8", newline="\n")


def _inside(out: Path, path: str, task: str) -> Path:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or "\\" in path:
        problem = f"{path!r} is not a relative path inside a dataset."
        raise Location(f"{task}/{TASK_FILE}").error(problem, f"{INPUTS}.released")
    return out / path


def _release_node(node: Checkpoint, task: str) -> JsonValue:
    used = [name for name in ("levels", "checks", "needs") if getattr(node, name)]
    if used:
        problem = (
            f"the released layout has no `{used[0]}`, so this leaf would be scored differently."
        )
        raise Location(f"{task}/{TASK_FILE}").error(problem, node.id)
    found: dict[str, JsonValue] = {"id": node.id, "weight": node.weight}
    if node.requirements is not None:
        found["requirements"] = node.requirements
    if node.children:
        found["sub_tasks"] = [_release_node(child, task) for child in node.children]
    return found

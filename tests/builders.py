"""Small datasets of the released layouts, made for one test each."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gta_bench.records.run import LoopLimits, RunManifest, RunSpec, System

JPEG = b"\xff\xd8\xff\xe0" + bytes(12)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def parameter(name: str | None, kind: str = "text", **changes: Any) -> dict[str, Any]:
    empty = {"description": None, "optional": False, "default": None, "filetype": None}
    return {"type": kind, "name": name, **empty, **changes}


def tool(name: str = "OCR", *inputs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"What {name} does.",
        "inputs": list(inputs or [parameter("image", "image")]),
        "outputs": [parameter(None)],
        **changes,
    }


def call(name: str, arguments: dict[str, Any], **changes: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    entry = {"type": "function", "function": function}
    return {"role": "assistant", "tool_calls": [entry], "thought": "Let me look.", **changes}


def reply(name: str, content: str, kind: str = "text") -> dict[str, Any]:
    return {"role": "tool", "name": name, "content": {"type": kind, "content": content}}


def atomic_task(**changes: Any) -> dict[str, Any]:
    return {
        "tools": [tool("OCR")],
        "files": [{"type": "image", "path": "image/menu.jpg", "url": None}],
        "dialogs": [
            {"role": "user", "content": "What does the beer cost?"},
            call("OCR", {"image": "image/menu.jpg"}),
            reply("OCR", "(0, 0, 9, 9) Beer 7"),
            {"role": "assistant", "content": "It costs 7."},
        ],
        "gt_answer": {"whitelist": [["7", "seven"]], "blacklist": None},
        **changes,
    }


def write_atomic(root: Path, tasks: dict[str, Any] | None = None, toolmeta: Any = None) -> Path:
    """A folder of GTA-Atomic's layout; one good task unless others are given."""
    (root / "image").mkdir(parents=True, exist_ok=True)
    (root / "image" / "menu.jpg").write_bytes(JPEG)
    write_json(root / "dataset.json", {"0": atomic_task()} if tasks is None else tasks)
    write_json(root / "toolmeta.json", {"OCR": tool("OCR")} if toolmeta is None else toolmeta)
    return root


def checkpoint(name: str, *children: dict[str, Any], **changes: Any) -> dict[str, Any]:
    node = {"id": name, "requirements": f"{name} is done", "weight": 1, **changes}
    return {**node, "sub_tasks": list(children)} if children else node


def workflow_task(**changes: Any) -> dict[str, Any]:
    return {
        "tools": [],
        "files": [],
        "dialogs": [{"role": "user", "content": "Write a report."}],
        "sub_tasks": [checkpoint("cp1", checkpoint("cp1-1"), checkpoint("cp1-2"))],
        "workflow_category_6class": "Planning & Decision Support",
        **changes,
    }


def write_workflow(root: Path, tasks: dict[str, Any] | None = None, toolmeta: Any = None) -> Path:
    """A folder of GTA-Workflow's layout; one good task unless others are given."""
    root.mkdir(parents=True, exist_ok=True)
    write_json(root / "end.json", {"0": workflow_task()} if tasks is None else tasks)
    write_json(root / "toolmeta.json", [tool("OCR")] if toolmeta is None else toolmeta)
    return root


def write_json(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value), encoding="utf-8")


def manifest(**changes: Any) -> RunManifest:
    """A run's manifest; `changes` are fields of it or of its spec."""
    options: dict[str, Any] = {
        "dataset": "atomic",
        "mode": "step",
        "system": System(model="m", agent="toolcalling"),
        "tasks": ("1", "2"),
    }
    facts: dict[str, Any] = {"created": datetime(2026, 11, 15, tzinfo=UTC), "dataset_digest": "d"}
    if "max_turns" in changes:
        most = changes.pop("max_turns")
        changes["loop"] = None if most is None else LoopLimits(max_turns=most)
    for name, value in changes.items():
        (options if name in RunSpec.model_fields else facts)[name] = value
    return RunManifest(spec=RunSpec(**options), **facts)

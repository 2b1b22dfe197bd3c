"""The stored predictions of the published pipeline, brought into the other forms of results."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.builders import write_json

ORIGIN = "baselines/gemini_2_5_pro_lagent/"


def task_ids(stored: Path) -> list[str]:
    """The tasks that the predictions are of."""
    return sorted(folder.name.removeprefix("task") for folder in stored.iterdir())


def stored_entry(stored: Path, task: str) -> Any:
    text = (stored / f"task{task}" / "prediction.json").read_text(encoding="utf-8")
    return json.loads(text)["0"]


def write_pack(file: Path, stored: Path, *, absolute: bool = False) -> Path:
    """An eval pack, as upstream's builder makes one of its own predictions."""
    tasks = []
    for number, task in enumerate(task_ids(stored), start=1):
        entry = stored_entry(stored, task)
        base = f"{stored}/" if absolute else ""
        tasks.append(
            {
                "task_id": int(task),
                "sample_idx": number,
                "origin_prompt": entry["origin_prompt"],
                "assistant_outputs": entry["assistant_outputs"],
                "attached_files": [name.replace(ORIGIN, base) for name in entry["attached_files"]],
                "full_tree": entry["full_tree"],
                "meta": {"backend": "lagent", "elapsed_sec": 12.5, "status": "done"},
            }
        )
    about = {"script": "test", "backend": "lagent", "num_tasks": len(tasks)}
    write_json(file, {"schema_version": 1, "generated_from": about, "tasks": tasks})
    return file


def write_folder(root: Path, stored: Path, answers: Mapping[str, str], *, flat: bool) -> Path:
    """A folder of results: `<id>/final.txt` and `files/`, or `task_<id>` with all in one place."""
    for task in task_ids(stored):
        folder = root / (f"task_{task}" if flat else task)
        files = folder if flat else folder / "files"
        files.mkdir(parents=True)
        for file in (stored / f"task{task}" / "attachments").glob("*"):
            shutil.copy(file, files / file.name)
        name = "answer.md" if flat else "final.txt"
        (folder / name).write_text(f"{answers[task]}\n", encoding="utf-8")
    return root

"""Digests of a dataset and of each task, including their files."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from gta_bench.datasets.files import sha256
from gta_bench.datasets.model import AtomicDataset, Dataset, WorkflowDataset
from gta_bench.records.digests import (
    TaskDigests,
    canonical_json,
    content_digest,
    digest_atomic,
    digest_workflow,
)

MISSING = "missing"
# Folders of a task folder with examples of right, wrong and worthless work.
PROOFS: Final = ("gold", "wrong", "cheat")


def dataset_digest(dataset: Dataset) -> str:
    """The sha256 of the names and contents of the dataset's files, in order of name.

    Of task folders, the digests of the tasks count: comments, notes and examples change nothing.
    """
    if isinstance(dataset, WorkflowDataset) and dataset.layout == "folders":
        tasks: dict[str, JsonValue] = {
            name: [describe_digests(task_digests(dataset, name)), task.category]
            for name, task in dataset.tasks.items()
        }
        return hashlib.sha256(canonical_json(tasks).encode(errors="surrogatepass")).hexdigest()
    sources = {item.source for task in dataset.tasks.values() for item in task.attachments}
    whole = hashlib.sha256()
    for name in sorted({dataset.file, "toolmeta.json", *sources}):
        file = dataset.root / name
        digest = sha256(file) if file.is_file() else MISSING
        whole.update(f"{name}\0{digest}\n".encode())
    return whole.hexdigest()


def task_digests(dataset: Dataset, task: str) -> TaskDigests:
    """The digests of a task; its files are hashed once per loaded dataset.

    The tools are the dataset's own definitions, even if a run calls others. A Workflow task without
    a list of tools offers all tools of the dataset.
    """
    if task not in dataset.digests:
        dataset.digests[task] = _compute_digests(dataset, task)
    return dataset.digests[task]


def _compute_digests(dataset: Dataset, task: str) -> TaskDigests:
    inputs = {
        item.path: sha256(file) if (file := dataset.root / item.source).is_file() else None
        for item in dataset.tasks[task].attachments
    }
    if isinstance(dataset, AtomicDataset):
        return digest_atomic(dataset.tasks[task], inputs=inputs)
    entry = dataset.tasks[task]
    tools = {name: dataset.tools.get(name) for name in entry.tools or dataset.tools}
    found = digest_workflow(entry, inputs=inputs, tools=tools)
    if dataset.layout == "released":
        return found
    return found.model_copy(update={"proofs": digest_proofs(dataset.root / task)})


def describe_digests(digests: TaskDigests) -> JsonValue:
    """The digests on which results depend, as JSON: all but `proofs`."""
    return digests.model_dump(mode="json", exclude={"proofs"})


def digest_proofs(folder: Path) -> str | None:
    """The digest of a task folder's examples (gold, wrong, cheat); None if it has none."""
    files: dict[str, JsonValue] = {
        file.relative_to(folder).as_posix(): _digest_file(file)
        for name in PROOFS
        for file in _walk(folder / name)
    }
    return content_digest(files) if files else None


def _walk(place: Path) -> Iterator[Path]:
    """Every file and link below a place; links are not followed."""
    if place.is_symlink() or place.is_file():
        yield place
    elif place.is_dir():
        for child in sorted(place.iterdir()):
            if not child.name.startswith("."):
                yield from _walk(child)


def _digest_file(file: Path) -> str:
    return f"link to {file.readlink()}" if file.is_symlink() else sha256(file)

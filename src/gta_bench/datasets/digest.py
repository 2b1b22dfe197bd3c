"""Digests of a dataset and of each task, including their files."""

import hashlib

from gta_bench.datasets.files import sha256
from gta_bench.datasets.model import AtomicDataset, Dataset
from gta_bench.records.digests import TaskDigests, digest_atomic, digest_workflow

MISSING = "missing"


def dataset_digest(dataset: Dataset) -> str:
    """The sha256 of the names and contents of the dataset's files, in order of name."""
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
    return digest_workflow(entry, inputs=inputs, tools=tools)

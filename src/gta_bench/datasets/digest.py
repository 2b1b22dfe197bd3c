"""One digest for a whole dataset: what it says and every file that its tasks need."""

import hashlib

from gta_bench.datasets.files import sha256
from gta_bench.datasets.model import Dataset

MISSING = "missing"


def dataset_digest(dataset: Dataset) -> str:
    """The sha256 over the names and contents of the dataset's files, in order of name."""
    sources = {item.source for task in dataset.tasks.values() for item in task.attachments}
    whole = hashlib.sha256()
    for name in sorted({dataset.file, "toolmeta.json", *sources}):
        file = dataset.root / name
        digest = sha256(file) if file.is_file() else MISSING
        whole.update(f"{name}\0{digest}\n".encode())
    return whole.hexdigest()

"""Checks of a dataset's files on disk: present, as published, and what they claim to be."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from gta_bench.datasets.files import KIND_OF_SUFFIX, file_kind, sha256
from gta_bench.datasets.model import AtomicDataset, Dataset
from gta_bench.datasets.pins import PINNED_FILES
from gta_bench.datasets.receipt import changed_files, read_receipt
from gta_bench.datasets.spot import Spot

TYPE_OF_KIND = {
    "jpeg": "image",
    "png": "image",
    "webp": "image",
    "gif": "image",
    "wav": "audio",
    "mp3": "audio",
    "mp4": "video",
}
IMAGE_FOLDER = "image"


def missing_attachments(dataset: Dataset) -> Iterator[Spot]:
    """Input files that are not in the dataset's folder."""
    for task in dataset.tasks.values():
        for index, attachment in enumerate(task.attachments):
            if not (dataset.root / attachment.source).is_file():
                yield Spot(f"{attachment.source} is missing.", task.id, f"files.{index}")


def not_the_release(dataset: AtomicDataset) -> Iterator[Spot]:
    """Files whose content is not the published one."""
    for name, published in PINNED_FILES["atomic"].items():
        file = dataset.root / name
        if file.is_file() and sha256(file) != published:
            yield Spot("is not the file of the release (its sha256 differs).", file=name)


def changed_since_fetch(dataset: Dataset) -> Iterator[Spot]:
    """Files that differ from what `gta data fetch` wrote."""
    receipt = read_receipt(dataset.root)
    if receipt is not None:
        for name in changed_files(dataset.root, receipt):
            yield Spot("differs from what was fetched.", file=name)


def bytes_disagree(dataset: Dataset) -> Iterator[Spot]:
    """Files whose bytes are of another kind than their extension says."""
    owners = {item.source: task.id for task in dataset.tasks.values() for item in task.attachments}
    for source in sorted(owners.keys() | _images(dataset.root)):
        file = dataset.root / source
        claimed = KIND_OF_SUFFIX.get(PurePosixPath(source).suffix.lower())
        kind = file_kind(file) if file.is_file() else None
        if claimed is not None and kind is not None and kind != claimed:
            message = f"{source} is {kind} by its bytes, {claimed} by its name."
            owner = owners.get(source)
            yield Spot(message, owner, None if owner is None else "files", source)


def type_disagrees(dataset: Dataset) -> Iterator[Spot]:
    """Files whose declared type is not what their name says."""
    for task in dataset.tasks.values():
        for index, attachment in enumerate(task.attachments):
            suffix = PurePosixPath(attachment.source).suffix.lower()
            expected = TYPE_OF_KIND.get(KIND_OF_SUFFIX.get(suffix, ""), "file")
            if attachment.type not in (None, expected):
                message = f"{attachment.source} is declared {attachment.type!r}, not {expected!r}."
                yield Spot(message, task.id, f"files.{index}.type")


def unused_images(dataset: AtomicDataset) -> Iterator[Spot]:
    """Images of the release that no task has."""
    used = {item.source for task in dataset.tasks.values() for item in task.attachments}
    for source in sorted(_images(dataset.root) - used):
        yield Spot("no task has this file.", file=source)


def _images(root: Path) -> set[str]:
    folder = root / IMAGE_FOLDER
    names = (file.name for file in folder.iterdir() if file.is_file()) if folder.is_dir() else ()
    return {f"{IMAGE_FOLDER}/{name}" for name in names}

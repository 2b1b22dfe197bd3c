"""Published digests of the dataset files, and the receipt that `gta data fetch` writes."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from gta_bench.datasets.files import sha256
from gta_bench.errors import DatasetError
from gta_bench.records.base import Record
from gta_bench.records.run import DatasetName

# Files whose published content is known; everything else is "not pinned".
PINNED_FILES: Mapping[DatasetName, Mapping[str, str]] = {
    "atomic": {
        "dataset.json": "a6ee050d7ba99d9777a2005fac9654eb8c88f890989b54f89b5bc2134287998e",
        "toolmeta.json": "3cbc7a5cba6cf611a11ece09b26fe4954ae95a8058baff3642a80c7894a8fb22",
    },
    "workflow": {},
}

MAIN_FILE: Mapping[DatasetName, str] = {"atomic": "dataset.json", "workflow": "end.json"}


RECEIPT = "fetched.json"


class Receipt(Record):
    """Where a dataset came from, and the sha256 of the archive and of every file."""

    source: str
    archives: Mapping[str, str]
    files: Mapping[str, str]
    pinned: tuple[str, ...]


def read_receipt(root: Path) -> Receipt | None:
    """The receipt of a folder, or None where it was not fetched."""
    file = root / RECEIPT
    if not file.is_file():
        return None
    try:
        return Receipt.model_validate_json(file.read_bytes())
    except ValidationError as exc:
        message = "is not a receipt of `gta data fetch`; remove it or fetch again."
        raise DatasetError(message, file=RECEIPT) from exc


def write_receipt(root: Path, receipt: Receipt) -> None:
    """Keep the receipt in the folder that it describes."""
    (root / RECEIPT).write_text(receipt.model_dump_json(indent=2) + "\n", encoding="utf-8")


def changed_files(root: Path, receipt: Receipt) -> Iterator[str]:
    """Files of the receipt that are missing or have another content."""
    for name, digest in receipt.files.items():
        file = root / name
        if not file.is_file() or sha256(file) != digest:
            yield name

"""What a fetch wrote, kept beside the data so that later looks can compare."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from gta_bench.datasets.files import sha256
from gta_bench.errors import DatasetError
from gta_bench.records.base import Record

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

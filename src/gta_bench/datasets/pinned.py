"""Published digests of dataset files and prompt texts, and the receipt of `gta data fetch`.

The texts belong to the published pipeline and are not shipped here. They are fetched once, as part
of the Python source that contains them, which is parsed and never run.
"""

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

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
# The digest of the whole released dataset with its images, as `dataset_digest` computes it; that of
# GTA-Workflow is not known.
RELEASED_DIGESTS: Final[Mapping[DatasetName, str]] = {
    "atomic": "80fd51385af60a1c551eb768a86ae391a0c466c324fa508e13ddc13008cdb764",
}
MAIN_FILE: Mapping[DatasetName, str] = {"atomic": "dataset.json", "workflow": "end.json"}
RECEIPT = "fetched.json"

REPOSITORY: Final = "open-compass/GTA"
COMMIT: Final = "e1a53a7c8e1c44c79e58ccc8437505d8860a10e8"
SOURCE: Final = "opencompass/opencompass/models/lagent.py"
PROMPTS_FILE: Final = "prompts.json"
# The sha256 of each text: the one before the paths of files, and the last message of step mode.
PINNED_TEXTS: Final[Mapping[str, str]] = {
    "files": "9660b8842e83027b8ebd8ff4c9d93add3608c8b443c3f8636c1de63c66d5857f",
    "answer_without_tools": "931b20973e19daca41a6f8235ed17a50671a457e8cb2a40c2cae341b02936067",
}


class Receipt(Record):
    """Where a dataset came from, and the sha256 of the archive and of every file."""

    source: str
    archives: Mapping[str, str]
    files: Mapping[str, str]
    pinned: tuple[str, ...]


def read_receipt(root: Path) -> Receipt | None:
    """The receipt of a folder, or None if it was not fetched."""
    file = root / RECEIPT
    if not file.is_file():
        return None
    try:
        return Receipt.model_validate_json(file.read_bytes())
    except ValidationError as exc:
        message = "is not a receipt of `gta data fetch`; remove it or fetch again."
        raise DatasetError(message, file=RECEIPT) from exc


def write_receipt(root: Path, receipt: Receipt) -> None:
    """Write the receipt to the folder that it describes."""
    (root / RECEIPT).write_text(
        receipt.model_dump_json(indent=2) + "\n", encoding="utf-8", newline="\n"
    )


def find_changes(root: Path, receipt: Receipt) -> Iterator[str]:
    """Files of the receipt that are missing or have changed."""
    for name, digest in receipt.files.items():
        file = root / name
        if not file.is_file() or sha256(file) != digest:
            yield name


def read_prompts(folder: Path, pins: Mapping[str, str] = PINNED_TEXTS) -> Mapping[str, str] | None:
    """The fetched texts by name; None if they were not fetched."""
    file = folder / PROMPTS_FILE
    if not file.is_file():
        return None
    try:
        texts = json.loads(file.read_text(encoding="utf-8"))
        known = {name: str(texts[name]) for name in pins}
        if any(text_digest(text) != pins[name] for name, text in known.items()):
            raise ValueError("digests differ")
    except (ValueError, KeyError, TypeError) as exc:
        raise DatasetError(
            "does not contain the published texts; remove it and run `gta data fetch prompts`.",
            file=str(file),
        ) from exc
    return known


def find_texts(source: str, pins: Mapping[str, str]) -> dict[str, str]:
    """The texts with these digests among all texts of a Python source, by name.

    >>> find_texts("GREETING = 'hello'", {"greeting": text_digest("hello")})
    {'greeting': 'hello'}
    """
    try:
        nodes = ast.walk(ast.parse(source))
    except SyntaxError as exc:
        raise ValueError(f"it is not Python source ({exc.msg}).") from exc
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    found = {text_digest(value): value for value in constants if isinstance(value, str)}
    missing = [name for name, pin in pins.items() if pin not in found]
    if missing:
        raise ValueError(f"there is no text with the published digest of {', '.join(missing)}.")
    return {name: found[pin] for name, pin in pins.items()}


def write_prompts(folder: Path, texts: Mapping[str, str]) -> None:
    """Write texts to the file that `read_prompts` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(dict(texts), indent=2, ensure_ascii=False)
    (folder / PROMPTS_FILE).write_text(f"{content}\n", encoding="utf-8", newline="\n")


def text_digest(text: str) -> str:
    """The sha256 that identifies a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

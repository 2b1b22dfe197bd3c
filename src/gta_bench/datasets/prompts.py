"""Texts of the published pipeline that are not ours to ship: fetched once, known by digest.

A text is taken from the Python source that holds it. The source is parsed, never run.
"""

import ast
import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from gta_bench.errors import DatasetError

REPOSITORY: Final = "open-compass/GTA"
COMMIT: Final = "e1a53a7c8e1c44c79e58ccc8437505d8860a10e8"
SOURCE: Final = "opencompass/opencompass/models/lagent.py"
FILE: Final = "prompts.json"
# The sha256 of each text: what stands before the paths of files, and the last message of step mode.
PINNED_TEXTS: Final[Mapping[str, str]] = {
    "files": "9660b8842e83027b8ebd8ff4c9d93add3608c8b443c3f8636c1de63c66d5857f",
    "answer_without_tools": "931b20973e19daca41a6f8235ed17a50671a457e8cb2a40c2cae341b02936067",
}


def read_prompts(folder: Path, pins: Mapping[str, str] = PINNED_TEXTS) -> Mapping[str, str] | None:
    """The fetched texts by name; None where there are none."""
    file = folder / FILE
    if not file.is_file():
        return None
    try:
        texts = json.loads(file.read_text(encoding="utf-8"))
        known = {name: str(texts[name]) for name in pins}
    except (ValueError, KeyError, TypeError) as exc:
        raise _changed(file) from exc
    if any(digest(text) != pins[name] for name, text in known.items()):
        raise _changed(file)
    return known


def find_texts(source: str, pins: Mapping[str, str]) -> dict[str, str]:
    """The texts with these digests among all texts of a Python source, by name.

    >>> find_texts("GREETING = 'hello'", {"greeting": digest("hello")})
    {'greeting': 'hello'}
    """
    try:
        nodes = ast.walk(ast.parse(source))
    except SyntaxError as exc:
        raise ValueError(f"it is no Python source ({exc.msg}).") from exc
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    found = {digest(value): value for value in constants if isinstance(value, str)}
    missing = [name for name, pin in pins.items() if pin not in found]
    if missing:
        raise ValueError(f"there is no text with the published digest of {', '.join(missing)}.")
    return {name: found[pin] for name, pin in pins.items()}


def write_prompts(folder: Path, texts: Mapping[str, str]) -> None:
    """Keep texts where `read_prompts` finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(dict(texts), indent=2, ensure_ascii=False)
    (folder / FILE).write_text(f"{content}\n", encoding="utf-8")


def digest(text: str) -> str:
    """The sha256 by which a text is known."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _changed(file: Path) -> DatasetError:
    return DatasetError(
        "has other texts than the published ones; remove it and run `gta data fetch prompts`.",
        file=str(file),
    )

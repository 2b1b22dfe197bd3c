"""The files of a harness that lie in the user's folder, and a digest of them.

Digested is what the command, `--harness-readable` or `--agent-bridge` names below the folder in
which `gta` runs: a file by itself, a folder with all files below it. Hidden names, caches and runs
of ours are passed over. What lies elsewhere is installed, and has a version.
"""

import hashlib
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

from gta_bench.datasets.files import sha256
from gta_bench.harnesses.choice import Harness, parse_command, shown_files
from gta_bench.runs.directory import MANIFEST

CACHES: Final = frozenset({"__pycache__", "node_modules"})


def files_digest(harness: Harness, folder: Path | None = None) -> str | None:
    """A sha256 over names and contents; None where nothing of the harness lies in the folder."""
    folder = folder or Path.cwd()
    files = {
        file.relative_to(folder).as_posix(): file
        for path in _named(harness)
        if path.is_relative_to(folder)
        for file in _below(path)
        if not any(map(_is_passed_over, file.relative_to(folder).parts))
    }
    if not files:
        return None
    whole = hashlib.sha256()
    for name, file in sorted(files.items()):
        whole.update(f"{name}\0{sha256(file)}\n".encode())
    return whole.hexdigest()


def _named(harness: Harness) -> Iterator[Path]:
    """What the harness is made of, as far as its options say."""
    yield from harness.readable
    if harness.kind == "command":
        yield from shown_files(parse_command(harness.target))
    elif harness.kind == "bridged":
        module = import_module(harness.target.partition(".")[0].partition(":")[0])
        places = getattr(module, "__path__", None) or filter(None, [module.__file__])
        yield from (Path(place).absolute() for place in places)


def _below(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for place, folders, files in os.walk(path):
        if MANIFEST in files:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not _is_passed_over(name)]
        yield from (file for name in files if (file := Path(place, name)).is_file())


def _is_passed_over(name: str) -> bool:
    return name.startswith(".") or name in CACHES

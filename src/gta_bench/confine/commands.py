"""The programs and files of this machine that a foreign command names and a jail must show."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from gta_bench.confine.walls import ENVIRONMENT, Python


def locate(words: Sequence[str]) -> list[str] | None:
    """Return the command with absolute paths; None if there is no such program.

    The system's own programs keep their names, because every jail finds them.
    """
    arguments = [_absolute(word) for word in words[1:]]
    if "/" not in words[0] and shutil.which(words[0], path=ENVIRONMENT["PATH"]) is not None:
        return [words[0], *arguments]
    program = shutil.which(words[0])
    return None if program is None else [_spell(Path(program)), *arguments]


def _absolute(word: str) -> str:
    """Make a relative path absolute, because the command starts elsewhere; `run` is no path."""
    path = Path(word)
    if word.startswith(("-", "{")) or (path.is_absolute() and ".." not in path.parts):
        return word
    is_path = _exists(path) and ("/" in word or (bool(path.suffix) and path.is_file()))
    return _spell(path) if is_path else word


def _spell(path: Path) -> str:
    """Return the absolute path; without `..`, which a cell without that folder cannot follow.

    A link keeps its name, because programs look for their packages beside it.
    """
    whole = path.absolute()
    if ".." not in whole.parts:
        return str(whole)
    return str(whole.resolve() if whole.name == ".." else whole.parent.resolve() / whole.name)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a program in an argument is too long for a name
        return False


def find_command_files(words: Sequence[str]) -> list[Path]:
    """Return the files of this machine that a command names, so that its cell can show them."""
    paths = [Path(word) for word in words if word.startswith("/")]
    found = [path for path in paths if _exists(path) and not path.is_relative_to("/usr")]
    return [*found, *(path.resolve() for path in found if path.is_symlink())]


def find_installations(files: Sequence[Path]) -> list[Path]:
    """Return the packages that these programs need: of their `node_modules`, or of their Python."""
    return list(dict.fromkeys(path for file in files for path in _find_installation(file)))


def _find_installation(file: Path) -> Iterator[Path]:
    modules = [folder for folder in file.parents if folder.name == "node_modules"]
    if modules:
        yield modules[-1]
    prefix = file.parent.parent
    settings = prefix / "pyvenv.cfg"
    if file.parent.name == "bin" and settings.is_file():
        lines = settings.read_text(encoding="utf-8", errors="replace").splitlines()
        homes = [line.partition("=")[2].strip() for line in lines if line.startswith("home")]
        prefixes = [str(prefix), *(str(Path(home).parent) for home in homes)]
        yield from map(Path, Python.at(str(prefix / "bin/python"), prefixes).roots)

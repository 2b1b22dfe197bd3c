"""Files that a foreign system left: found and read without following a link, within the quota."""

import errno
import hashlib
import os
import stat
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from gta_bench.confine.files import NotRegularError, open_folder, open_regular, read_bounded
from gta_bench.confine.names import is_plain, numbered, shown
from gta_bench.confine.workspace import Quota
from gta_bench.records.files import Deliverable
from gta_bench.redaction import current_redactor
from gta_bench.runs.artefacts import ArtefactStore

OUTPUTS = "outputs"
MOST_ENTRIES = 20_000  # of one task that are looked at
DEEPEST = 32
TOO_MANY = "is one file too many"
TOO_LARGE = "is larger than the task's quota allows"
# What programs leave beside their work; hidden names are passed too.
CLUTTER = frozenset({"__MACOSX", "__pycache__", "node_modules", "Thumbs.db"})


class FoundFile(NamedTuple):
    """A file below `root`, and the name that it has as a deliverable."""

    root: Path
    parts: tuple[str, ...]
    name: str


class LeftOut(NamedTuple):
    """A name that did not become a deliverable, and why."""

    name: str
    reason: str


class Listing(NamedTuple):
    """What a folder holds, top files first."""

    files: tuple[FoundFile, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class KeptFiles(NamedTuple):
    """What became a deliverable, by name, and what did not."""

    deliverables: tuple[Deliverable, ...]
    left_out: tuple[LeftOut, ...]


def list_files(root: Path, *below: str, skip: Collection[str] = ()) -> Listing:
    """Every regular file below a folder; `skip` are names at its top that are something else."""
    files: list[FoundFile] = []
    left_out: list[LeftOut] = []
    level: list[tuple[str, ...]] = [()]
    seen = 0
    while level:
        following = []
        for parts in level:
            for entry in _entries(root.joinpath(*below, *parts)):
                if (not parts and entry.name in skip) or _is_clutter(entry.name):
                    continue
                seen += 1
                if seen > MOST_ENTRIES:
                    many = f"more than {MOST_ENTRIES} entries; the others were not looked at"
                    return Listing(tuple(files), (*left_out, LeftOut("…", many)))
                path = (*parts, entry.name)
                reason = _objection(entry, path)
                if reason is not None:
                    left_out.append(LeftOut("/".join(path), reason))
                elif entry.is_dir(follow_symlinks=False):
                    following.append(path)
                else:
                    files.append(FoundFile(root, (*below, *path), _name(path)))
        level = following
    return Listing(tuple(files), tuple(left_out))


class Keeping:
    """Files of one task on their way into the store, as many as the quota of a workspace allows.

    `inputs` are the digests of the task's own files: copies of them are no deliverables.
    """

    def __init__(
        self, store: ArtefactStore, inputs: Collection[str] = (), quota: Quota | None = None
    ) -> None:
        self._store, self._inputs, self._quota = store, inputs, quota or Quota()
        self._kept: dict[str, Deliverable] = {}
        self._left_out: list[LeftOut] = []
        self._room = self._quota.total_bytes

    @property
    def room(self) -> int | None:
        """The bytes that the next file may have; None where there is one file too many."""
        if len(self._kept) >= self._quota.files:
            return None
        return min(self._room, self._quota.file_bytes)

    def keep(self, name: str, data: bytes) -> None:
        """Keep a file that there is room for."""
        if hashlib.sha256(data).hexdigest() in self._inputs:
            return
        path = _free(f"{OUTPUTS}/{current_redactor().filename(name)}", self._kept)
        self._kept[path] = self._store.keep_file(path, data)
        self._room -= len(data)

    def leave(self, name: str, reason: str) -> None:
        """Note a file that is not kept."""
        self._left_out.append(LeftOut(name, reason))

    @property
    def result(self) -> KeptFiles:
        """What was kept, by name, and what was not."""
        files = tuple(self._kept[path] for path in sorted(self._kept))
        return KeptFiles(files, tuple(self._left_out))


def keep_files(
    store: ArtefactStore, files: Iterable[FoundFile], *, inputs: Collection[str] = ()
) -> KeptFiles:
    """Read each file into the store; why others were not read is told."""
    keeping = Keeping(store, inputs)
    for file in files:
        data = _read(file, keeping.room)
        if isinstance(data, str):
            keeping.leave(file.name, data)
        else:
            keeping.keep(file.name, data)
    return keeping.result


def open_below(root: Path, parts: tuple[str, ...]) -> BufferedReader:
    """Open a regular file below a folder; a link anywhere on the way is an error."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder(root))
        for part in parts[:-1]:
            folder = stack.enter_context(open_folder(part, within=folder))
        return open_regular(parts[-1], within=folder)


def problem(exc: OSError) -> str:
    """Why a file below a folder was not read, in a few words."""
    if isinstance(exc, NotRegularError):
        return "is not a regular file"
    if exc.errno in (errno.ELOOP, errno.ENOTDIR):
        return "lies behind a link or a file, and links are not followed"
    if exc.errno == errno.ENOENT:
        return "is missing"
    return f"cannot be read: {exc.strerror}"


def _read(file: FoundFile, room: int | None) -> bytes | str:
    """The content, or why there is none."""
    if room is None:
        return TOO_MANY
    try:
        with open_below(file.root, file.parts) as stream:
            data = read_bounded(stream, room)
    except OSError as exc:
        return problem(exc)
    return TOO_LARGE if data is None else data


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """A folder's entries by name; none where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            found = [entry for _, entry in zip(range(MOST_ENTRIES + 1), entries, strict=False)]
    except OSError:
        return
    yield from sorted(found, key=lambda entry: entry.name)


def _objection(entry: os.DirEntry[str], path: tuple[str, ...]) -> str | None:
    """Why an entry is not looked at further; the names are those that a workspace allows."""
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError as exc:
        return problem(exc)
    if stat.S_ISLNK(mode):
        return "is a link, and links are not followed"
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        return "is not a regular file"
    if not is_plain(unicodedata.normalize("NFC", entry.name)):
        return f"{shown(entry.name)} is not a usable file name"
    if len(path) > DEEPEST:
        return f"lies more than {DEEPEST} folders deep"
    return None


def _is_clutter(name: str) -> bool:
    return name.startswith(".") or name in CLUTTER


def _name(path: tuple[str, ...]) -> str:
    return unicodedata.normalize("NFC", "/".join(path))


def _free(path: str, taken: Collection[str]) -> str:
    """The path, or a numbered one where it is taken; as a workspace does."""
    number, free = 1, path
    while free in taken:
        number += 1
        free = numbered(path, number)
    return free

"""Files that a foreign system wrote: found and read within the quota, without following links."""

import errno
import hashlib
import os
import stat
import unicodedata
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from gta_bench.confine.files import NotRegularError, open_folder, open_regular, read_bounded
from gta_bench.confine.names import add_number, is_plain, quote_foreign
from gta_bench.confine.workspace import Quota
from gta_bench.records.files import Deliverable
from gta_bench.redaction import current_redactor
from gta_bench.runs.artefacts import ArtefactStore

OUTPUTS = "outputs"
MOST_ENTRIES = 20_000  # of one task
DEEPEST = 32
LINK = "is a link, and links are not followed"
TOO_MANY = "is one file too many"
TOO_LARGE = "is larger than the task's quota allows"
# Left over by programs; hidden names are skipped too.
CLUTTER = frozenset({"__MACOSX", "__pycache__", "node_modules", "Thumbs.db"})


class FoundFile(NamedTuple):
    """A file below `root`, and the name that it has as a deliverable."""

    root: Path
    parts: tuple[str, ...]
    name: str


class LeftOut(NamedTuple):
    """The name of a file that did not become a deliverable, and the reason."""

    name: str
    reason: str


class Listing(NamedTuple):
    """The files in a folder, those at the top first."""

    files: tuple[FoundFile, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class KeptFiles(NamedTuple):
    """The deliverables, sorted by name, and the files that were left out."""

    deliverables: tuple[Deliverable, ...]
    left_out: tuple[LeftOut, ...]


def list_files(root: Path, *below: str, skip: Collection[str] = ()) -> Listing:
    """List the regular files below a folder, except those named in `skip` at its top."""
    if below and root.joinpath(*below).is_symlink():
        return Listing(left_out=(LeftOut("/".join(below), LINK),))
    files: list[FoundFile] = []
    left_out: list[LeftOut] = []
    level: list[tuple[str, ...]] = [()]
    seen = 0
    while level:
        following = []
        for parts in level:
            for entry in _entries(root.joinpath(*below, *parts)):
                skipped = not parts and entry.name in skip
                if skipped or entry.name.startswith(".") or entry.name in CLUTTER:
                    continue
                seen += 1
                if seen > MOST_ENTRIES:
                    many = f"more than {MOST_ENTRIES} entries; the others were not read"
                    return Listing(tuple(files), (*left_out, LeftOut("…", many)))
                path = (*parts, entry.name)
                reason = _find_objection(entry, path)
                if reason is not None:
                    # A name may have bytes that are not UTF-8, which no record can contain.
                    name = "/".join(path).encode("utf-8", "replace").decode()
                    left_out.append(LeftOut(name, reason))
                elif entry.is_dir(follow_symlinks=False):
                    following.append(path)
                else:
                    name = unicodedata.normalize("NFC", "/".join(path))
                    files.append(FoundFile(root, (*below, *path), name))
        level = following
    return Listing(tuple(files), tuple(left_out))


def keep_files(
    store: ArtefactStore, files: Iterable[FoundFile], *, inputs: Collection[str] = ()
) -> KeptFiles:
    """Copy files of one task into the store, up to the quota of a workspace.

    `inputs` are the digests of the task's own files: copies of them are not deliverables.
    """
    quota = Quota()
    kept: dict[str, Deliverable] = {}
    left_out: list[LeftOut] = []
    room = quota.total_bytes
    for file in files:
        if len(kept) >= quota.files:
            left_out.append(LeftOut(file.name, TOO_MANY))
            continue
        try:
            with open_below(file.root, file.parts) as stream:
                data = read_bounded(stream, min(room, quota.file_bytes))
        except OSError as exc:
            left_out.append(LeftOut(file.name, explain_unread(exc)))
            continue
        if data is None:
            left_out.append(LeftOut(file.name, TOO_LARGE))
        elif hashlib.sha256(data).hexdigest() not in inputs:
            path = _make_unique(f"{OUTPUTS}/{current_redactor().filename(file.name)}", kept)
            kept[path] = store.keep_file(path, data)
            room -= len(data)
    return KeptFiles(tuple(kept[path] for path in sorted(kept)), tuple(left_out))


def open_below(root: Path, parts: tuple[str, ...]) -> BufferedReader:
    """Open a regular file below a folder; a link anywhere in its path is an error."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder(root))
        for part in parts[:-1]:
            folder = stack.enter_context(open_folder(part, within=folder))
        return open_regular(parts[-1], within=folder)


def explain_unread(exc: OSError) -> str:
    """Return in a few words why a file below a folder was not read."""
    if isinstance(exc, NotRegularError):
        return "is not a regular file"
    if exc.errno in (errno.ELOOP, errno.ENOTDIR):
        return "is behind a link or a file, and links are not followed"
    if exc.errno == errno.ENOENT:
        return "is missing"
    return f"cannot be read: {exc.strerror}"


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return a folder's entries sorted by name; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(islice(entries, MOST_ENTRIES + 1), key=lambda entry: entry.name)
    except OSError:
        return []


def _find_objection(entry: os.DirEntry[str], path: tuple[str, ...]) -> str | None:
    """Return why an entry is left out; the allowed names are those of a workspace."""
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError as exc:
        return explain_unread(exc)
    if stat.S_ISLNK(mode):
        return LINK
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        return "is not a regular file"
    if not is_plain(unicodedata.normalize("NFC", entry.name)):
        return f"{quote_foreign(entry.name)} is not a usable file name"
    if len(path) > DEEPEST:
        return f"is more than {DEEPEST} folders deep"
    return None


def _make_unique(path: str, taken: Collection[str]) -> str:
    """Return the path, with a number if it is taken, as in a workspace."""
    number, free = 1, path
    while free in taken:
        number += 1
        free = add_number(path, number)
    return free

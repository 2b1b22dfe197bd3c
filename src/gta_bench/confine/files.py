"""Handle files that hostile code may have made, without following links and without blocking."""

import errno
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from itertools import count
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from gta_bench.confine.systems import explain_no_jail
from gta_bench.redaction import Redactor, find_free_name

CHUNK = 1 << 20
DEEPEST = 64  # levels of folders below a job's own that are kept
LONGEST = 2048  # bytes of a path below it; with the host's own path, 4096 would be too many
# How reading a folder fails if a job made it unreadable.
HIDDEN = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP)
# Windows opens no folders and has other flags. No foreign code runs there that could swap a file
# for a link meanwhile, so names are checked instead.
HAS_DESCRIPTORS = os.open in os.supports_dir_fd


class NotRegularError(OSError):
    """A folder, link, pipe, socket or device instead of a file."""


class _Usage(NamedTuple):
    """Contents of a folder; counting stops once a bound is exceeded."""

    bytes: int
    files: int


def _add_flags(flags: int, *names: str) -> int:
    """Add those of the flags that this system has, and those that every file is opened with."""
    for name in (*names, "O_CLOEXEC", "O_NOINHERIT", "O_BINARY"):
        flags |= getattr(os, name, 0)
    return flags


@dataclass(frozen=True, slots=True)
class OpenFolder:
    """A folder that stays the same while it is open, even if its name is given to another one.

    Without descriptors (Windows), it is only a path that was a folder when it was opened.
    """

    path: Path
    descriptor: int | None

    def entry(self, name: str | Path) -> str | Path:
        """The name of an entry, to be used together with `descriptor` as `dir_fd`."""
        return name if self.descriptor is not None else self.path / name

    def stat(self) -> os.stat_result:
        """The folder's own properties."""
        return self.path.stat() if self.descriptor is None else os.fstat(self.descriptor)

    def scan(self) -> Iterator[os.DirEntry[str]]:
        """Its entries, in no particular order."""
        with _scan(self) as entries:
            yield from entries


@contextmanager
def _scan(folder: OpenFolder) -> Iterator[Iterator[os.DirEntry[str]]]:
    if folder.descriptor is None:
        with os.scandir(str(folder.path)) as entries:
            yield entries
    else:
        with os.scandir(folder.descriptor) as entries:
            yield entries


@contextmanager
def open_folder(path: Path | str, *, within: OpenFolder | None = None) -> Iterator[OpenFolder]:
    """A folder, open; raises OSError if it is a link."""
    where, parent = (path, None) if within is None else (within.entry(path), within.descriptor)
    whole = Path(path) if within is None else within.path / path
    if not HAS_DESCRIPTORS:
        _require_folder(os.lstat(where), where)
        yield OpenFolder(whole, None)
        return
    folder = os.open(where, _add_flags(os.O_RDONLY, "O_DIRECTORY", "O_NOFOLLOW"), dir_fd=parent)
    try:
        yield OpenFolder(whole, folder)
    finally:
        os.close(folder)


def _require_folder(about: os.stat_result, path: Path | str) -> None:
    # A junction of Windows is a folder that is also a link.
    linked = getattr(about, "st_file_attributes", 0) & stat.FILE_ATTRIBUTE_REPARSE_POINT
    if not stat.S_ISDIR(about.st_mode) or linked:
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(path))


def open_regular(
    path: Path | str, *, within: OpenFolder | None = None, follow: bool = False
) -> BufferedReader:
    """Open a regular file for reading without blocking; raise OSError for anything else.

    Links are refused unless `follow` is set. The file is checked before opening, because opening a
    device can have effects, and again afterwards, because it may have been replaced in between.
    """
    where, parent = (path, None) if within is None else (within.entry(path), within.descriptor)
    before = os.stat(where, dir_fd=parent, follow_symlinks=follow)
    _require_regular(before.st_mode, path)
    flags = _add_flags(os.O_RDONLY, "O_NONBLOCK", "O_NOCTTY", *(() if follow else ("O_NOFOLLOW",)))
    descriptor = os.open(where, flags, dir_fd=parent)
    try:
        after = os.fstat(descriptor)
        _require_regular(after.st_mode, path)
        if not HAS_DESCRIPTORS and not os.path.samestat(before, after):
            raise NotRegularError(errno.EINVAL, "was replaced meanwhile", str(path))
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def _require_regular(mode: int, path: Path | str) -> None:
    if not stat.S_ISREG(mode):
        raise NotRegularError(errno.EINVAL, "not a regular file", str(path))


def read_bounded(stream: BinaryIO, most: int) -> bytes | None:
    """The content, or None if it has more than that many bytes, whatever its stated size."""
    if os.fstat(stream.fileno()).st_size > most:
        return None
    data = stream.read(most + 1)
    return None if len(data) > most else data


def write_new(name: str, data: bytes, *, within: OpenFolder) -> None:
    """Create a file that must not exist yet; it is removed again on failure."""
    flags = _add_flags(os.O_WRONLY | os.O_CREAT | os.O_EXCL, "O_NOFOLLOW")
    descriptor = os.open(within.entry(name), flags, 0o644, dir_fd=within.descriptor)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
    except BaseException:
        with suppress(OSError):
            remove_file(name, within=within)
        raise


def remove_file(name: str, *, within: OpenFolder) -> None:
    """Delete a file or a link, also one that is read-only, which Windows would refuse."""
    if not HAS_DESCRIPTORS:
        path = within.path / name
        if not path.is_symlink():
            path.chmod(stat.S_IWRITE)
    os.unlink(within.entry(name), dir_fd=within.descriptor)


def set_mode(name: str, mode: int, *, within: OpenFolder) -> None:
    """Set the permissions of an entry of a folder."""
    os.chmod(within.entry(name), mode, dir_fd=within.descriptor)


def lstat_entry(name: str, *, within: OpenFolder) -> os.stat_result:
    """The properties of an entry of a folder, without following a link."""
    return os.stat(within.entry(name), dir_fd=within.descriptor, follow_symlinks=False)


def walk(root: Path, *, strict: bool = False) -> Iterator[os.DirEntry[str]]:
    """Every entry below a folder, without following links.

    Folders that vanish meanwhile are skipped. So are unreadable folders, unless `strict` is set.
    """
    waiting = [str(root)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError as exc:
            if strict and exc.errno in HIDDEN:
                raise


def read_below(
    root: Path, path: str, *, most_bytes: int, most_files: int
) -> Iterator[tuple[str, bytes | None]]:
    """Yield the files at or below a path of a folder, by name; None for what is not a file.

    No link is followed, even if one is made meanwhile. Raises OSError if there is too much.
    """
    room = most_bytes
    for number, (name, data) in enumerate(_read_below(root, PurePosixPath(path).parts)):
        content = None
        if data is not None:
            with data:
                content = read_bounded(data, room)
            if content is None:
                raise OSError(errno.EFBIG, f"it has more than {most_bytes} bytes")
            room -= len(content)
        if number >= most_files:
            raise OSError(errno.EFBIG, f"it has more than {most_files} files")
        yield name, content


def _read_below(root: Path, parts: Sequence[str]) -> Iterator[tuple[str, BufferedReader | None]]:
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder(root))
        for depth, part in enumerate(parts[:-1], 1):
            try:
                folder = stack.enter_context(open_folder(part, within=folder))
            except FileNotFoundError:
                return
            except OSError:
                yield "/".join(parts[:depth]), None  # a link or a file in place of a folder
                return
        for name in parts[-1:] or list_names(folder):
            shown = "/".join([*parts[:-1], name])
            yield from _walk_open(folder, name, shown, DEEPEST)


def _walk_open(
    folder: OpenFolder, name: str, shown: str, deeper: int
) -> Iterator[tuple[str, BufferedReader | None]]:
    """Yield an entry of an open folder, or everything in it if it is a folder."""
    shown = os.fsencode(shown).decode("utf-8", "replace")
    try:
        mode = lstat_entry(name, within=folder).st_mode
        if not stat.S_ISDIR(mode):
            yield shown, open_regular(name, within=folder) if stat.S_ISREG(mode) else None
            return
        if not deeper:
            raise OSError(errno.EFBIG, f"it has more than {DEEPEST} levels of folders")
        with open_folder(name, within=folder) as inner:
            for child in sorted(list_names(inner)):
                yield from _walk_open(inner, child, f"{shown}/{child}", deeper - 1)
    except FileNotFoundError:
        return  # it was removed meanwhile


def usage(root: Path, *, most_bytes: int, most_files: int) -> _Usage:
    """Bytes and entries below a folder; counting stops once a bound is exceeded.

    An unreadable folder counts as too much, because its contents are unknown.
    """
    size = count = 0
    try:
        for entry in walk(root, strict=True):
            count += 1
            with suppress(FileNotFoundError, NotADirectoryError):
                size += entry.stat(follow_symlinks=False).st_size
            if size > most_bytes or count > most_files:
                break
    except OSError:
        size = most_bytes + 1
    return _Usage(size, count)


def give(folder: Path, user: int | None) -> None:
    """Make a job's user the owner of a folder; None if the job has our user."""
    if user is not None and sys.platform != "win32":
        os.chown(folder, user, user, follow_symlinks=False)


def take_back(root: Path, owner: os.stat_result) -> None:
    """Make that user the owner of a folder and everything in it, with ordinary permissions.

    No process may write to it meanwhile. Folders that are nested too deep to be read are removed.
    """
    if sys.platform != "linux":
        raise explain_no_jail()
    with suppress(PermissionError):  # a job cannot have changed what we cannot change
        os.chown(root, owner.st_uid, owner.st_gid, follow_symlinks=False)
        root.chmod(owner.st_mode & 0o777)
    with open_folder(root) as top:
        _take_back(top, owner, DEEPEST, LONGEST)


def _take_back(folder: OpenFolder, owner: os.stat_result, deeper: int, longer: int) -> None:
    if sys.platform != "linux":
        raise explain_no_jail()
    descriptor = folder.descriptor
    for name in list_names(folder):
        mode = lstat_entry(name, within=folder).st_mode
        is_folder = stat.S_ISDIR(mode)
        with suppress(PermissionError):
            os.chown(name, owner.st_uid, owner.st_gid, dir_fd=descriptor, follow_symlinks=False)
            if is_folder or stat.S_ISREG(mode):
                set_mode(name, 0o755 if is_folder else 0o644, within=folder)
        left = longer - len(os.fsencode(name)) - 1
        if is_folder and deeper and left > 0:
            with suppress(PermissionError), open_folder(name, within=folder) as below:
                _take_back(below, owner, deeper - 1, left)
        elif is_folder:
            remove_tree(Path(f"/proc/self/fd/{descriptor}", name))


def redact_tree(root: Path, redactor: Redactor) -> None:
    """Redact the contents and names of all files below a folder; links with secrets are deleted."""
    numbers = count(2)
    for entry in [*walk(root)][::-1] if redactor else ():  # contents before their folder
        path = Path(entry.path)
        with suppress(OSError):
            if entry.is_symlink():
                target = str(path.readlink())
                if redactor.text(target) != target:
                    path.unlink()
            elif entry.is_file(follow_symlinks=False):
                _redact_file(path, redactor)
            name = redactor.filename(entry.name)
            if name != entry.name:
                path.rename(find_free_name(str(path.with_name(name)), os.path.lexists, numbers))


def _redact_file(path: Path, redactor: Redactor) -> None:
    with open_regular(path) as stream:
        data, mode = stream.read(), os.fstat(stream.fileno()).st_mode
    clean = redactor.data(data)
    if clean != data:
        path.unlink()
        with open_folder(path.parent) as folder:
            write_new(path.name, clean, within=folder)
            set_mode(path.name, stat.S_IMODE(mode), within=folder)


def remove_tree(root: Path) -> None:
    """Delete a folder, however deep it is and whatever permissions its folders have.

    `shutil.rmtree` recurses, and a tree made by hostile code can be deeper than Python's stack and
    longer than the longest path. So every nested folder is first moved to the top.
    """
    with open_folder(root) as top:
        counter = 0
        names = list_names(top)
        while names:
            name = names.pop()
            if not is_folder(name, within=top):
                remove_file(name, within=top)
                continue
            with suppress(PermissionError):
                set_mode(name, 0o700, within=top)
            with open_folder(name, within=top) as folder:
                for child in list_names(folder):
                    if is_folder(child, within=folder):
                        counter += 1
                        with suppress(PermissionError):
                            set_mode(child, 0o700, within=folder)
                        moved = f".moved-{counter}-{os.urandom(6).hex()}"
                        _move(child, moved, folder, top)
                        names.append(moved)
                    else:
                        remove_file(child, within=folder)
            os.rmdir(top.entry(name), dir_fd=top.descriptor)
    root.rmdir()


def _move(name: str, moved: str, folder: OpenFolder, top: OpenFolder) -> None:
    old, new = folder.entry(name), top.entry(moved)
    os.rename(old, new, src_dir_fd=folder.descriptor, dst_dir_fd=top.descriptor)


def list_names(folder: OpenFolder) -> list[str]:
    """The names in an open folder, in no particular order."""
    return [entry.name for entry in folder.scan()]


def is_folder(name: str, *, within: OpenFolder) -> bool:
    """Whether an entry of a folder is itself a folder, not a link to one."""
    return stat.S_ISDIR(lstat_entry(name, within=within).st_mode)

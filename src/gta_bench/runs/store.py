"""Files of a run: in a local folder, or at an address of any store that fsspec supports.

`RemotePath` has the part of `pathlib.Path` that readers and writers of runs use, so the same code
handles both. An object in a store is written completely or not at all and cannot be appended to;
see `append`.
"""

import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO
from uuid import uuid4

from fsspec import AbstractFileSystem, filesystem  # type: ignore[import-untyped]
from fsspec.core import split_protocol  # type: ignore[import-untyped]

from gta_bench.errors import EnvironmentProblem, RunError, StoreError, UsageError
from gta_bench.runs.locking import has_lock, try_lock, wait_for_lock

PARTS = ".parts"
LOCK = ".lock"
INSTANT = 0.1  # seconds in which somebody who only looked at a lock is gone
LEAST_ROOM = 4 * 2**20  # bytes; no log can be continued with less
AT_ONCE = 1000  # parts that are fetched concurrently
BLOCK = 65536  # bytes that are searched for the end of a line at once


class RemotePath(PurePosixPath):
    """A file or folder in a store, such as s3://bucket/runs/x.

    A folder exists if it contains something. pathlib does the arithmetic of names, with the
    protocol as the first part; fsspec does everything else.
    """

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)

    @property
    def fs(self) -> AbstractFileSystem:
        """The store's fsspec file system."""
        return _filesystem(self.parts[0].removesuffix(":"))

    @property
    def path(self) -> str:
        """The path in `fs`."""
        return "/".join(self.parts[1:])

    def resolve(self) -> "RemotePath":
        """Return the path itself: addresses have no links."""
        return self

    def as_uri(self) -> str:
        """Return the address."""
        return str(self)

    def exists(self) -> bool:
        """Whether this is a file or a folder that contains something."""
        return self._kind() is not None

    def is_file(self) -> bool:
        """Whether this is a file."""
        return self._kind() == "file"

    def is_dir(self) -> bool:
        """Whether this is a folder that contains something."""
        return self._kind() == "directory"

    def _kind(self) -> str | None:
        # fsspec's `isfile` and `isdir` return False if the store does not answer.
        with explain_store_errors(self):
            try:
                return str(self.fs.info(self.path)["type"])
            except FileNotFoundError:
                return None

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: a store creates folders with the files in them."""

    def iterdir(self) -> Iterator["RemotePath"]:
        """Yield the direct children; none if the folder does not exist."""
        with explain_store_errors(self):
            found = self.fs.ls(self.path, detail=False) if self.is_dir() else []
        return (self / name.rstrip("/").rpartition("/")[2] for name in found)

    def glob(self, pattern: str) -> Iterator["RemotePath"]:
        """Yield the files that match a pattern with as many parts as their relative path has."""
        depth = pattern.count("/") + 1
        with explain_store_errors(self):
            found = self.fs.find(self.path, maxdepth=depth) if self.is_dir() else []
        for name in found:
            below = name.strip("/")[len(self.path) + 1 :]
            if below.count("/") + 1 == depth and fnmatch(below, pattern):
                yield self / below

    def read_bytes(self) -> bytes:
        """Return the content."""
        with explain_store_errors(self):
            data = self.fs.cat_file(self.path)
        assert isinstance(data, bytes)
        return data

    def write_bytes(self, data: bytes) -> None:
        """Write or replace the file atomically."""
        with explain_store_errors(self, writing=True):
            self.fs.pipe_file(self.path, data)

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        """Write or replace the file atomically."""
        self.write_bytes(text.encode(encoding))

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete the file."""
        with explain_store_errors(self):
            if not missing_ok or self.fs.exists(self.path):
                self.fs.rm_file(self.path)


StorePath = Path | RemotePath


def store_path(text: str) -> StorePath:
    """Parse a local path, or an address such as s3://bucket/runs/x.

    >>> store_path("runs/x")
    PosixPath('runs/x')
    >>> store_path("s3://bucket/runs/x").parent
    RemotePath('s3://bucket/runs')
    """
    protocol, path = split_protocol(text)
    if protocol is None:
        return Path(text)
    if protocol in ("file", "local"):
        return Path(path)
    try:
        _filesystem(protocol)
    except ImportError as exc:
        raise EnvironmentProblem(f"{text} needs a package that is not installed: {exc}.") from exc
    except ValueError as exc:
        raise UsageError(f"{text} is neither a folder nor a supported address: {exc}.") from exc
    return RemotePath(text)


@contextmanager
def explain_store_errors(path: StorePath, *, writing: bool = False) -> Iterator[None]:
    """Turn failures of a store inside the block into StoreError; those of a local path stay."""
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError as exc:
        if isinstance(path, Path) or not writing:
            raise
        raise StoreError(
            f"Cannot write to {path}: {_reason(exc)} Check that the bucket exists."
        ) from exc
    except _failures() as exc:
        if isinstance(path, Path):
            raise
        raise StoreError(
            f"Cannot reach {path}: {_reason(exc)} Everything already in the store is safe; run "
            "the same command again when it is available, and it does only what is missing."
        ) from exc


def disk_full_hint(path: StorePath) -> str:
    """Return a hint that goes after the name of a folder whose disk is full, else "".

    A write that fails for lack of space may surface as any error, such as a missing log.
    """
    if isinstance(path, RemotePath) or shutil.disk_usage(path).free > LEAST_ROOM:
        return ""
    return " (its disk is full: free some space)"


def temp_full_hint() -> str:
    """Return a sentence about the folder of temporary files if its disk is full, else "".

    Inspect builds its logs there, and reports only that a log is missing.
    """
    folder = Path(tempfile.gettempdir())
    if not disk_full_hint(folder):
        return ""
    return f" The disk with {folder} on {platform.node()} is full: free some space."


def write_bytes_atomically(file: StorePath, data: bytes) -> None:
    """Write or replace a file atomically: a reader never sees half of it.

    A device or a pipe, such as /dev/stdout, is written to and never replaced.
    """
    if isinstance(file, RemotePath) or (file.exists() and not (file.is_file() or file.is_dir())):
        file.write_bytes(data)
        return
    with write_atomically(file) as part:
        part.write_bytes(data)


@contextmanager
def write_atomically(file: StorePath) -> Iterator[Path]:
    """Yield a local file to write; it becomes `file` if the block succeeds, else it is deleted."""
    if isinstance(file, RemotePath):
        with tempfile.TemporaryDirectory(prefix="gta-") as folder:
            part = Path(folder) / file.name
            yield part
            with explain_store_errors(file, writing=True):
                file.fs.put_file(str(part), file.path)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".part-{uuid4().hex}")
    try:
        yield part
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def open_binary(file: StorePath) -> Iterator[IO[bytes]]:
    """Open a file for reading, with random access."""
    if isinstance(file, RemotePath):
        with explain_store_errors(file), file.fs.open(file.path, "rb") as stream:
            yield stream
        return
    with file.open("rb") as stream:
        yield stream


def remove_folder(folder: StorePath) -> None:
    """Delete a folder and everything in it."""
    if isinstance(folder, RemotePath):
        with explain_store_errors(folder, writing=True):
            if folder.fs.exists(folder.path):
                folder.fs.rm(folder.path, recursive=True)
        return
    shutil.rmtree(folder)


@contextmanager
def lock_folder(
    folder: StorePath, *, patience: float = 0, what: str | None = None
) -> Iterator[None]:
    """Lock a folder for this process; the lock ends with the process, however that ends.

    Raises RunError if another process still has the lock after `patience` seconds; `what` says
    what that process does.
    """
    local = _find_lock(folder)
    local.mkdir(parents=True, exist_ok=True)
    with (local / LOCK).open("ab") as handle:
        # Who asks `is_locked` has the lock for an instant.
        end = time.monotonic() + max(patience, INSTANT)
        while not try_lock(handle.fileno()):
            if time.monotonic() >= end:
                raise RunError(
                    f"Another command is {what or f'working on {folder}'}; `gta status` shows "
                    "its progress. What it finishes is kept: run this command again after it."
                )
            time.sleep(0.2 if patience else INSTANT / 4)
        yield


def is_locked(folder: StorePath) -> bool:
    """Whether a process is working on the folder now; any number of readers may ask at once."""
    file = _find_lock(folder) / LOCK
    if not file.is_file():
        return False
    with file.open("rb") as handle:
        return has_lock(handle.fileno())


def _find_lock(folder: StorePath) -> Path:
    """Return the folder with the lock; a store is locked among this machine's processes only."""
    if isinstance(folder, Path):
        return folder
    return Path(tempfile.gettempdir()) / f"gta-lock-{sha256(str(folder).encode()).hexdigest()[:16]}"


def append_lines(file: StorePath, data: bytes) -> None:
    """Append whole lines durably; several threads and processes may do so at once.

    A last line that a kill left half written is replaced.
    """
    if isinstance(file, RemotePath):
        if data:
            append(file, data)
        return
    fold_parts(file)
    with file.open("ab+") as stream:
        wait_for_lock(stream.fileno())
        end = end_of_lines(stream)
        stream.seek(end)
        if tail := stream.read():
            if is_json(tail):
                data = b"\n" + data
            else:
                stream.truncate(end)
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def end_of_lines(stream: IO[bytes]) -> int:
    """Return the offset after the last complete line of a file."""
    end = stream.seek(0, os.SEEK_END)
    while end > 0:
        start = stream.seek(max(0, end - BLOCK))
        found = stream.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def is_json(line: bytes) -> bool:
    """Whether a line is complete JSON; one that a kill cut off is not."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def append(file: RemotePath, data: bytes) -> None:
    """Append to a file in a store by writing a new object, `<file>.parts/<time>-…`.

    The file is the object with its own name, if there is one, followed by its parts in order.
    """
    (parts_of(file) / f"{time.time_ns():020d}-{uuid4().hex[:8]}").write_bytes(data)


@contextmanager
def join_parts(file: StorePath) -> Iterator[Path]:
    """Yield a file joined with its parts: the file itself if it has none, else a temporary copy."""
    parts = sort_by_name(parts_of(file).iterdir()) if parts_of(file).is_dir() else []
    if isinstance(file, Path) and not parts:
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="gta-") as folder:
        copy = Path(folder) / file.name
        with copy.open("wb") as stream:
            if file.is_file():
                data = file.read_bytes()
                # Drop a line that a kill left half written before the first part.
                stream.write(data[: data.rfind(b"\n") + 1] if parts else data)
            for data in _contents(parts):
                stream.write(data)
        yield copy


def fold_parts(file: Path) -> None:
    """Move parts that were copied here from a store into the file, before more is appended."""
    parts = file.with_name(f"{file.name}{PARTS}")
    if not parts.is_dir():
        return
    # Other processes that append wait here, and find the parts already folded.
    with file.with_name(f".{file.name}.lock").open("ab") as lock:
        wait_for_lock(lock.fileno())
        if parts.is_dir():
            with join_parts(file) as whole:
                write_bytes_atomically(file, whole.read_bytes())
            shutil.rmtree(parts)


def sort_by_name(files: Iterable[StorePath]) -> list[StorePath]:
    """Sort files of one folder."""
    return sorted(files, key=str)


def parts_of(file: StorePath) -> StorePath:
    """Return the folder with the parts of a file."""
    return file.with_name(f"{file.name}{PARTS}")


def _contents(files: Sequence[StorePath]) -> Iterator[bytes]:
    """Yield the contents of files in order, fetching many at once from a store."""
    for start in range(0, len(files), AT_ONCE):
        some = files[start : start + AT_ONCE]
        remote = [file for file in some if isinstance(file, RemotePath)]
        if not remote:
            yield from (file.read_bytes() for file in some)
            continue
        with explain_store_errors(remote[0]):
            found = remote[0].fs.cat([file.path for file in remote])
        yield from (found[name] for name in sorted(found))


@cache
def _filesystem(protocol: str) -> AbstractFileSystem:
    # Another process may write at any time, so listings are not cached.
    return filesystem(protocol, use_listings_cache=False)


@cache
def _failures() -> tuple[type[Exception], ...]:
    """Return what clients of stores raise; they are imported only when something fails."""
    from aiohttp import ClientError as HttpError
    from botocore.exceptions import (  # type: ignore[import-untyped]
        BotoCoreError,
        ClientError,
    )

    return (OSError, HttpError, BotoCoreError, ClientError)


def _reason(exc: Exception) -> str:
    text = " ".join(str(exc).split()) or type(exc).__name__
    return text if text.endswith(".") else f"{text}."

"""Where a run's files lie: a folder of this machine, or an address of any store fsspec knows.

`RemotePath` has the part of `pathlib.Path` that readers and writers of runs use, so they are the
same for both. An object of a store is there whole or not at all, and cannot be appended to: see
`append`.
"""

import fcntl
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO
from uuid import uuid4

from fsspec import AbstractFileSystem, filesystem  # type: ignore[import-untyped]
from fsspec.core import split_protocol  # type: ignore[import-untyped]

from gta_bench.errors import EnvironmentProblem, StoreError, UsageError

PARTS = ".parts"
LEAST_ROOM = 4 * 2**20  # bytes; no log can be continued with less
AT_ONCE = 1000  # parts that are fetched side by side


class RemotePath:
    """A file or folder in a store; a folder is there if something lies in it."""

    def __init__(self, protocol: str, path: str) -> None:
        self.protocol = protocol
        self.path = path.strip("/")

    @property
    def fs(self) -> AbstractFileSystem:
        """The store, as fsspec knows it."""
        return _filesystem(self.protocol)

    @property
    def name(self) -> str:
        """The last part."""
        return PurePosixPath(self.path).name

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return PurePosixPath(self.path).stem

    @property
    def parent(self) -> "RemotePath":
        """The folder."""
        return RemotePath(self.protocol, self.path.rpartition("/")[0])

    def with_name(self, name: str) -> "RemotePath":
        """The file of another name in the same folder."""
        return self.parent / name

    def __truediv__(self, name: str) -> "RemotePath":
        return RemotePath(self.protocol, f"{self.path}/{name}")

    def __str__(self) -> str:
        return f"{self.protocol}://{self.path}"

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def resolve(self) -> "RemotePath":
        """An address has no other form."""
        return self

    def as_uri(self) -> str:
        """The address."""
        return str(self)

    def exists(self) -> bool:
        """Whether there is a file, or a folder with something in it."""
        return self._kind() is not None

    def is_file(self) -> bool:
        """Whether there is a file."""
        return self._kind() == "file"

    def is_dir(self) -> bool:
        """Whether there is a folder with something in it."""
        return self._kind() == "directory"

    def _kind(self) -> str | None:
        """What is there. A store's own `isfile` takes one that does not answer for an empty one."""
        with reaching(self):
            try:
                return str(self.fs.info(self.path)["type"])
            except FileNotFoundError:
                return None

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: folders of a store come with what lies in them."""

    def iterdir(self) -> Iterator["RemotePath"]:
        """What lies directly in the folder."""
        with reaching(self):
            names = self.fs.ls(self.path, detail=False) if self.is_dir() else []
        return (RemotePath(self.protocol, name) for name in names)

    def glob(self, pattern: str) -> Iterator["RemotePath"]:
        """Files below the folder, by a pattern with as many parts as they have."""
        depth = pattern.count("/") + 1
        with reaching(self):
            found = self.fs.find(self.path, maxdepth=depth) if self.is_dir() else []
        for name in found:
            below = name.strip("/")[len(self.path) + 1 :]
            if below.count("/") + 1 == depth and fnmatch(below, pattern):
                yield self / below

    def read_bytes(self) -> bytes:
        """The whole content."""
        with reaching(self):
            data = self.fs.cat_file(self.path)
        assert isinstance(data, bytes)
        return data

    def write_bytes(self, data: bytes) -> None:
        """Put the file there, whole; an older one is replaced."""
        with reaching(self, writing=True):
            self.fs.pipe_file(self.path, data)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove the file."""
        with reaching(self):
            if not missing_ok or self.fs.exists(self.path):
                self.fs.rm_file(self.path)

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        """Put the text there, whole."""
        self.write_bytes(text.encode(encoding))


StorePath = Path | RemotePath


def store_path(text: str) -> StorePath:
    """A folder of this machine, or an address such as s3://bucket/runs/x."""
    protocol, path = split_protocol(text)
    if protocol is None:
        return Path(text)
    if protocol in ("file", "local"):
        return Path(path)
    place = RemotePath(protocol, path)
    try:
        _ = place.fs
    except ImportError as exc:
        raise EnvironmentProblem(f"{text} needs a package that is not here: {exc}.") from exc
    except ValueError as exc:
        raise UsageError(f"{text} is no folder and no address that is known: {exc}.") from exc
    return place


@contextmanager
def reaching(place: StorePath, *, writing: bool = False) -> Iterator[None]:
    """Failures of a store inside the block are told in one line; those of a folder stay."""
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError as exc:
        if isinstance(place, Path) or not writing:
            raise
        raise StoreError(
            f"{place} cannot be written: {_reason(exc)} Look whether the bucket is there."
        ) from exc
    except _failures() as exc:
        if isinstance(place, Path):
            raise
        raise StoreError(
            f"{place} cannot be reached: {_reason(exc)} What the store holds already is safe; "
            "give the same command again when it answers, and only what is missing is done."
        ) from exc


def full_words(place: StorePath) -> str:
    """`, whose disk is full…` after the name of a folder of which that is true.

    A write that fails for want of room may show as anything, such as a log that is not there.
    """
    if isinstance(place, RemotePath) or shutil.disk_usage(place).free > LEAST_ROOM:
        return ""
    return ", whose disk is full: make room"


def write_whole(file: StorePath, data: bytes) -> None:
    """All or nothing: a reader never sees half a file."""
    if isinstance(file, RemotePath):
        file.write_bytes(data)
        return
    with made_whole(file) as part:
        part.write_bytes(data)


@contextmanager
def made_whole(file: StorePath) -> Iterator[Path]:
    """A file of this machine to write; at the end of the block it is in its place, or never."""
    if isinstance(file, RemotePath):
        with tempfile.TemporaryDirectory(prefix="gta-") as folder:
            part = Path(folder) / file.name
            yield part
            with reaching(file, writing=True):
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
def opened(file: StorePath) -> Iterator[IO[bytes]]:
    """A file for reading at any place of it."""
    if isinstance(file, RemotePath):
        with reaching(file), file.fs.open(file.path, "rb") as stream:
            yield stream
        return
    with file.open("rb") as stream:
        yield stream


def remove_folder(folder: StorePath) -> None:
    """Remove a folder with all that lies in it."""
    if isinstance(folder, RemotePath):
        with reaching(folder, writing=True):
            if folder.fs.exists(folder.path):
                folder.fs.rm(folder.path, recursive=True)
        return
    shutil.rmtree(folder)


def append(file: RemotePath, data: bytes) -> None:
    """Keep more of a file that grows: in an object of its own, `<file>.parts/<time>-…`.

    The file is what lies under its own name, if anything does, and then its parts by their names.
    """
    (parts_of(file) / f"{time.time_ns():020d}-{uuid4().hex[:8]}").write_bytes(data)


@contextmanager
def whole_file(file: StorePath) -> Iterator[Path]:
    """A file that grows, with its parts: itself where it has none, else a copy for the block."""
    parts = sorted_by_name(parts_of(file).iterdir()) if parts_of(file).is_dir() else []
    if isinstance(file, Path) and not parts:
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="gta-") as folder:
        copy = Path(folder) / file.name
        with copy.open("wb") as stream:
            if file.is_file():
                data = file.read_bytes()
                # A line that a kill left half written ends where the first part begins.
                stream.write(data[: data.rfind(b"\n") + 1] if parts else data)
            for data in _contents(parts):
                stream.write(data)
        yield copy


def fold_parts(file: Path) -> None:
    """Parts that came from a store with the file become its own lines, before more is appended."""
    parts = file.with_name(f"{file.name}{PARTS}")
    if not parts.is_dir():
        return
    # Whoever else appends waits here, and finds the parts folded.
    with file.with_name(f".{file.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if parts.is_dir():
            with whole_file(file) as whole:
                write_whole(file, whole.read_bytes())
            shutil.rmtree(parts)


def sorted_by_name(files: Iterable[StorePath]) -> list[StorePath]:
    """Files of one place, in order."""
    return sorted(files, key=str)


def parts_of(file: StorePath) -> StorePath:
    """Where the parts of a file lie."""
    return file.with_name(f"{file.name}{PARTS}")


def _contents(files: Sequence[StorePath]) -> Iterator[bytes]:
    """The contents of files in one folder, in order; a store is asked for many at once."""
    for start in range(0, len(files), AT_ONCE):
        some = files[start : start + AT_ONCE]
        remote = [file for file in some if isinstance(file, RemotePath)]
        if not remote:
            yield from (file.read_bytes() for file in some)
            continue
        with reaching(remote[0]):
            found = remote[0].fs.cat([file.path for file in remote])
        yield from (found[name] for name in sorted(found))


@cache
def _filesystem(protocol: str) -> AbstractFileSystem:
    # Another process may write at any time: no listing is remembered.
    return filesystem(protocol, use_listings_cache=False)


@cache
def _failures() -> tuple[type[Exception], ...]:
    """What a store's client raises; imported when the first failure is looked at."""
    from aiohttp import ClientError as HttpError
    from botocore.exceptions import (  # type: ignore[import-untyped]
        BotoCoreError,
        ClientError,
    )

    return (OSError, HttpError, BotoCoreError, ClientError)


def _reason(exc: Exception) -> str:
    words = " ".join(str(exc).split()) or type(exc).__name__
    return words if words.endswith(".") else f"{words}."

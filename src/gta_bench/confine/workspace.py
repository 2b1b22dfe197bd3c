"""A task's files: `inputs/` to read, `outputs/` to write, and no other path for any tool.

Agents see portable paths (`inputs/menu.jpg`, `outputs/plot.png`), never the host's. Accepted
spellings of a path, all others being refused with a ToolError that lists the files there are:

- `inputs/a.png`, and with `./` or `/` before it, doubled slashes or backslashes for slashes;
- `a.png` alone, if exactly one of the two folders has it;
- any Unicode form of the name, blanks or one pair of quotes around the whole.

There is no `..`, no deeper folder, no link, no `~`, no URL and no %-decoding.
"""

import hashlib
import os
import threading
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, cast

from gta_bench.confine import files
from gta_bench.confine.names import clean_name, is_plain, numbered, shown
from gta_bench.datasets.files import KINDS
from gta_bench.errors import EnvironmentProblem, ToolError

MIB = 1 << 20
_Folder = Literal["inputs", "outputs"]
FOLDERS: tuple[_Folder, _Folder] = ("inputs", "outputs")
PARTIAL = ".partial"  # half-written files, on the same file system as the outputs
IMAGE_KINDS = ("png", "jpeg", "gif", "webp")
LONGEST_SPELLING = 1024
LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a task may read and write."""

    input_bytes: int = 512 * MIB
    read_bytes: int = 64 * MIB
    file_bytes: int = 64 * MIB
    total_bytes: int = 256 * MIB
    files: int = 200


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file that a tool wrote, under its portable path."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs by name; `strays` are no regular files, or too large, and were not read."""

    files: tuple[OutputFile, ...]
    strays: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Workspace:
    """One task's files. One process writes to it at a time; threads may share it."""

    root: Path
    quota: Quota = field(default_factory=Quota)
    _lock: threading.Lock = field(
        default_factory=threading.Lock, init=False, repr=False, compare=False
    )

    def __reduce__(self) -> tuple[type["Workspace"], tuple[Path, Quota]]:
        return Workspace, (self.root, self.quota)

    @classmethod
    def create(
        cls,
        root: Path,
        attachments: Mapping[str, Path],
        *,
        quota: Quota | None = None,
        follow_links: bool = False,
    ) -> "Workspace":
        """Make the folders and copy each attachment (portable path → file of the host).

        Copied and not linked, so that nothing done to a workspace reaches the dataset.
        `follow_links` is for datasets that consist of links, as the Hub's cache does.
        """
        if os.open not in os.supports_dir_fd:
            raise EnvironmentProblem("Workspaces need Linux or macOS; use the tool server.")
        root.mkdir(parents=True, exist_ok=True)
        space = cls(root.resolve(strict=True), quota or Quota())
        for name in (*FOLDERS, PARTIAL):
            (space.root / name).mkdir(exist_ok=True)
        (space.root / "inputs").chmod(0o755)  # root's harness is another user
        for path, source in attachments.items():
            space._attach(path, source, follow=follow_links)
        return space

    def _attach(self, path: str, source: Path, *, follow: bool) -> None:
        folder, _, name = path.partition("/")
        if folder != "inputs" or not is_plain(name):
            raise EnvironmentProblem(f"{shown(path)} is not a plain path `inputs/NAME`.")
        try:
            with files.open_regular(source, follow=follow) as original:
                data = files.read_bounded(original, self.quota.input_bytes)
        except OSError as exc:
            hint = " Links are not followed." if source.is_symlink() and not follow else ""
            raise EnvironmentProblem(f"{source}: {exc.strerror}, for {path!r}.{hint}") from exc
        if data is None:
            most = self.quota.input_bytes
            raise EnvironmentProblem(f"{source}: is larger than {most} bytes, for {path!r}.")
        with self._folder("inputs") as inputs:
            try:
                files.write_new(name, data, within=inputs)
            except FileExistsError as exc:
                raise EnvironmentProblem(f"{path!r} is in the workspace already.") from exc
            os.chmod(name, 0o444, dir_fd=inputs)

    # Reading

    def resolve(self, spelling: str) -> str:
        """The portable path of an existing file, from an agent's spelling of it."""
        parts = _parts(spelling)
        wanted: Sequence[_Folder] = FOLDERS
        if len(parts) == 2 and parts[0] in FOLDERS:
            wanted = [parts[0]]
        elif len(parts) != 1:
            self._unknown(spelling)
        found = [f"{folder}/{name}" for folder in wanted if (name := self._find(folder, parts[-1]))]
        if len(found) > 1:
            choices = " or ".join(f"`{path}`" for path in found)
            raise ToolError(f"{shown(spelling)} could be {choices}: write one of them.")
        return found[0] if found else self._unknown(spelling)

    @contextmanager
    def open(self, spelling: str, *, most_bytes: int | None = None) -> Iterator[BinaryIO]:
        """A checked file, open for reading: regular, no link on the way, not too large."""
        path = self.resolve(spelling)
        folder, _, name = path.partition("/")
        most = self.quota.read_bytes if most_bytes is None else most_bytes
        try:
            with self._folder(cast(_Folder, folder)) as within:
                stream = files.open_regular(name, within=within)
        except OSError as exc:
            raise ToolError(f"`{path}` cannot be read: it is not a regular file.") from exc
        with stream:
            size = os.fstat(stream.fileno()).st_size
            if size > most:
                raise ToolError(f"`{path}` has {size} bytes; at most {most} are read.")
            yield stream

    def read(self, spelling: str, *, most_bytes: int | None = None) -> bytes:
        """The content of a file."""
        most = self.quota.read_bytes if most_bytes is None else most_bytes
        with self.open(spelling, most_bytes=most) as stream:
            data = files.read_bounded(stream, most)
        if data is None:  # it grew meanwhile
            raise ToolError(f"{shown(spelling)} has more than {most} bytes.")
        return data

    def resolve_images(self, spellings: str | Sequence[str]) -> tuple[str, ...]:
        """The portable paths of images, given as a list or as text separated by commas."""
        if isinstance(spellings, str):
            spellings = [part for part in spellings.split(",") if part.strip()]
        paths = tuple(self.resolve(spelling) for spelling in spellings)
        for path in paths:
            if not self._is_image(path):
                raise ToolError(f"`{path}` is not an image ({', '.join(IMAGE_KINDS)}).")
        return paths

    # Writing

    def write(
        self, name: str, data: bytes, *, suffix: str | None = None, overwrite: bool = False
    ) -> OutputFile:
        """Keep data as an output: whole or not at all, within the quota, never through a link.

        The name is cleaned (`clean_name`); if it is taken the file becomes `name-2`, unless
        `overwrite` is chosen.
        """
        wanted = clean_name(name, suffix=suffix)
        if len(data) > self.quota.file_bytes:
            most = self.quota.file_bytes
            raise ToolError(f"`{wanted}` would have {len(data)} bytes; at most {most} are kept.")
        partial = os.urandom(12).hex()
        with self._lock, self._folder("outputs") as outputs, self._folder(PARTIAL) as workbench:
            newest = self._make_room(outputs, wanted, len(data), overwrite=overwrite)
            files.write_new(partial, data, within=workbench)
            try:
                # A clock's tick can be longer than the time between two files.
                stamp = max(time.time_ns(), newest + 1)
                os.utime(partial, ns=(stamp, stamp), dir_fd=workbench)
                _share(partial, workbench, outputs)
                kept = _publish(partial, wanted, workbench, outputs, overwrite=overwrite)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(partial, dir_fd=workbench)
        return OutputFile(f"outputs/{kept}", len(data), hashlib.sha256(data).hexdigest())

    def _make_room(self, outputs: int, name: str, size: int, *, overwrite: bool) -> int:
        """Refuse what exceeds the quota; otherwise the time of the newest output."""
        used = count = newest = 0
        with os.scandir(outputs) as entries:
            for entry in entries:
                about = entry.stat(follow_symlinks=False)
                newest = max(newest, about.st_mtime_ns)
                if not (overwrite and entry.name == name):
                    used, count = used + about.st_size, count + 1
        if count >= self.quota.files:
            raise ToolError(f"The task has {count} output files; no more are allowed.")
        if used + size > self.quota.total_bytes:
            room = max(0, self.quota.total_bytes - used)
            raise ToolError(f"`{name}` has {size} bytes; the task's outputs have room for {room}.")
        return newest

    # Looking around

    def outputs(self) -> Outputs:
        """What has been written, by name, with digests."""
        found, strays = [], []
        with self._folder("outputs") as within:
            for name in _names(within):
                output = self._describe(name, within)
                if output is None:
                    strays.append(shown(name)[1:-1])
                else:
                    found.append(output)
        return Outputs(tuple(found), tuple(strays))

    def _describe(self, name: str, within: int) -> OutputFile | None:
        """An output with its digest; None for what no tool of ours can have written."""
        if not is_plain(unicodedata.normalize("NFC", name)):
            return None
        try:
            with files.open_regular(name, within=within) as stream:
                data = files.read_bounded(stream, self.quota.file_bytes)
        except OSError:
            return None
        if data is None:
            return None
        return OutputFile(f"outputs/{name}", len(data), hashlib.sha256(data).hexdigest())

    def newest_image(self) -> str | None:
        """The portable path of the image that was written last, if there is one."""
        with self._folder("outputs") as within:
            ages = []
            for name in _names(within):
                with suppress(OSError):
                    about = os.stat(name, dir_fd=within, follow_symlinks=False)
                    ages.append((about.st_mtime_ns, name))
        newest_first = (f"outputs/{name}" for _, name in sorted(ages, reverse=True))
        return next((path for path in newest_first if self._is_image(path)), None)

    def listing(self) -> tuple[str, ...]:
        """The portable paths of all entries, for messages; not yet checked to be files."""
        paths = []
        for folder in FOLDERS:
            with self._folder(folder) as within:
                paths += [f"{folder}/{name}" for name in _names(within)]
        return tuple(paths)

    def _is_image(self, path: str) -> bool:
        folder, _, name = path.partition("/")
        try:
            with (
                self._folder(cast(_Folder, folder)) as within,
                files.open_regular(name, within=within) as stream,
            ):
                head = stream.read(16)
        except OSError:
            return False
        return any(kind in IMAGE_KINDS and form.match(head) for form, kind in KINDS)

    @contextmanager
    def _folder(self, name: str) -> Iterator[int]:
        """One of our folders, reached without following a link."""
        with ExitStack() as stack:
            try:
                root = stack.enter_context(files.open_folder(self.root))
                folder = stack.enter_context(files.open_folder(name, within=root))
            except OSError as exc:
                raise EnvironmentProblem(f"`{name}` of the workspace is not a folder.") from exc
            yield folder

    def _find(self, folder: _Folder, name: str) -> str | None:
        """The name on disk that is the same text, whatever Unicode form it was saved in."""
        with self._folder(folder) as within:
            for entry in _names(within):
                if unicodedata.normalize("NFC", entry) == name:
                    return entry
        return None

    def _unknown(self, spelling: str) -> str:
        known = [shown(path)[1:-1] for path in self.listing()]
        more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
        there = ", ".join(f"`{path}`" for path in known[:LISTED]) + more if known else "none"
        raise ToolError(f"There is no file {shown(spelling)}. Files: {there}.")


def _parts(spelling: str) -> list[str]:
    """The parts of a path as an agent wrote it; refuses what no spelling of ours can be."""
    text = unicodedata.normalize("NFC", spelling[: LONGEST_SPELLING + 1]).strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'`":
        text = text[1:-1].strip()
    parts = [part for part in text.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or len(text) > LONGEST_SPELLING or ".." in parts:
        raise ToolError(f"{shown(spelling)} is not a path of this task. Write `inputs/NAME`.")
    return parts


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


def _share(partial: str, workbench: int, outputs: int) -> None:
    """Let a file belong to whom its folder does: a harness may change what a tool of its made."""
    owner = os.fstat(outputs)
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.chown(partial, owner.st_uid, owner.st_gid, dir_fd=workbench, follow_symlinks=False)


def _publish(partial: str, wanted: str, workbench: int, outputs: int, *, overwrite: bool) -> str:
    """Give a finished file its name; a link never replaces anything, a rename always does."""
    if overwrite:
        try:
            os.replace(partial, wanted, src_dir_fd=workbench, dst_dir_fd=outputs)
        except IsADirectoryError as exc:
            raise ToolError(f"`{wanted}` is a folder; choose another name.") from exc
        return wanted
    name, number = wanted, 1
    while True:
        try:
            os.link(partial, name, src_dir_fd=workbench, dst_dir_fd=outputs, follow_symlinks=False)
        except FileExistsError:
            number += 1
            name = numbered(wanted, number)
        else:
            return name

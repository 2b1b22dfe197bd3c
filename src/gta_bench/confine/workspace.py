"""A task's files: tools read `inputs/` and write `outputs/`, and reach no other path.

Agents see portable paths (`inputs/menu.jpg`, `outputs/plot.png`), never the host's. These
spellings of a path are accepted; all others raise ToolError with the list of files:

- `inputs/a.png`, also with a leading `./` or `/`, doubled slashes or backslashes for slashes;
- `a.png` alone, if exactly one of the two folders has it;
- any Unicode form of the name, with blanks or one pair of quotes around the path.

There is no `..`, no deeper folder, no link, no `~`, no URL and no %-decoding.
"""

import hashlib
import os
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NoReturn

from gta_bench.confine import files
from gta_bench.confine.files import OpenFolder
from gta_bench.confine.limits import MIB
from gta_bench.confine.names import add_number, clean_name, is_plain, quote_foreign
from gta_bench.datasets.files import KINDS
from gta_bench.errors import EnvironmentProblem, ToolError, WorkspaceDamaged

FOLDERS = ("inputs", "outputs")
PARTIAL = ".partial"  # half-written files, on the same file system as the outputs
IMAGE_KINDS = ("png", "jpeg", "gif", "webp")
LONGEST_SPELLING = 1024
LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much a task may read and write."""

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
    """The outputs by name; `strays` are names of entries that are not readable files."""

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
        """Create the folders and copy each attachment (portable path → file of the host).

        Attachments are copied, so that no change in a workspace reaches the dataset.
        `follow_links` is for datasets that consist of links, such as the Hub's cache.
        """
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
            raise EnvironmentProblem(f"{quote_foreign(path)} is not a plain path `inputs/NAME`.")
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
            files.set_mode(name, 0o444, within=inputs)

    # Reading

    def resolve(self, spelling: str) -> str:
        """The portable path of an existing file, from an agent's spelling of it."""
        parts = _parts(spelling)
        wanted: Sequence[str] = FOLDERS
        if len(parts) == 2 and parts[0] in FOLDERS:
            wanted = [parts[0]]
        elif len(parts) != 1:
            self._raise_unknown(spelling)
        found = [f"{folder}/{name}" for folder in wanted if (name := self._find(folder, parts[-1]))]
        if len(found) > 1:
            choices = " or ".join(f"`{path}`" for path in found)
            raise ToolError(
                f"{quote_foreign(spelling)} could be {choices}. Use one of these paths."
            )
        return found[0] if found else self._raise_unknown(spelling)

    @contextmanager
    def open(self, spelling: str, *, most_bytes: int | None = None) -> Iterator[BinaryIO]:
        """A file open for reading; it is regular, not reached through a link and not too large."""
        path = self.resolve(spelling)
        most = self.quota.read_bytes if most_bytes is None else most_bytes
        try:
            stream = self._open_file(path)
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
            raise ToolError(f"{quote_foreign(spelling)} has more than {most} bytes.")
        return data

    def resolve_images(self, spellings: str | Sequence[str]) -> tuple[str, ...]:
        """The portable paths of images, given as a list or as comma-separated text."""
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
        """Write an output atomically, within the quota, and never through a link.

        The name is cleaned (`clean_name`). If it is taken, the file becomes `name-2`, unless
        `overwrite` is set.
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
                # Two files can be written within one tick of the clock.
                stamp = max(time.time_ns(), newest + 1)
                where = workbench.entry(partial)
                os.utime(where, ns=(stamp, stamp), dir_fd=workbench.descriptor)
                _give_to_owner(partial, workbench, outputs)
                kept = _publish(partial, wanted, workbench, outputs, overwrite=overwrite)
            finally:
                with suppress(FileNotFoundError):
                    files.remove_file(partial, within=workbench)
        return _output_file(kept, data)

    def _make_room(self, outputs: OpenFolder, name: str, size: int, *, overwrite: bool) -> int:
        """Refuse a file that exceeds the quota; return the time of the newest output."""
        used = count = newest = 0
        for entry in outputs.scan():
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

    # Listing

    def outputs(self) -> Outputs:
        """The files that were written, by name, with digests."""
        found, strays = [], []
        with self._folder("outputs") as within:
            for name in _names(within):
                data = None
                if is_plain(unicodedata.normalize("NFC", name)):
                    with suppress(OSError), files.open_regular(name, within=within) as stream:
                        data = files.read_bounded(stream, self.quota.file_bytes)
                if data is None:
                    strays.append(quote_foreign(name)[1:-1])
                else:
                    found.append(_output_file(name, data))
        return Outputs(tuple(found), tuple(strays))

    def newest_image(self) -> str | None:
        """The portable path of the image that was written last, if there is one."""
        with self._folder("outputs") as within:
            ages = []
            for name in _names(within):
                with suppress(OSError):
                    ages.append((files.lstat_entry(name, within=within).st_mtime_ns, name))
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
        try:
            with self._open_file(path) as stream:
                head = stream.read(16)
        except OSError:
            return False
        return any(kind in IMAGE_KINDS and form.match(head) for form, kind in KINDS)

    def _open_file(self, path: str) -> BinaryIO:
        folder, _, name = path.partition("/")
        with self._folder(folder) as within:
            return files.open_regular(name, within=within)

    @contextmanager
    def _folder(self, name: str) -> Iterator[OpenFolder]:
        """One of the workspace's folders, reached without following a link."""
        with ExitStack() as stack:
            try:
                root = stack.enter_context(files.open_folder(self.root))
                folder = stack.enter_context(files.open_folder(name, within=root))
            except OSError as exc:
                raise WorkspaceDamaged(f"`{name}` of the workspace is not a folder.") from exc
            yield folder

    def _find(self, folder: str, name: str) -> str | None:
        """The name on disk that is the same text, in any Unicode form."""
        with self._folder(folder) as within:
            names = _names(within)
        return next((one for one in names if unicodedata.normalize("NFC", one) == name), None)

    def _raise_unknown(self, spelling: str) -> NoReturn:
        known = [quote_foreign(path)[1:-1] for path in self.listing()]
        more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
        there = ", ".join(f"`{path}`" for path in known[:LISTED]) + more if known else "none"
        raise ToolError(f"There is no file {quote_foreign(spelling)}. Files: {there}.")


def _parts(spelling: str) -> list[str]:
    """The parts of a path as an agent wrote it; ToolError if it cannot be one of the task's."""
    text = unicodedata.normalize("NFC", spelling[: LONGEST_SPELLING + 1]).strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'`":
        text = text[1:-1].strip()
    parts = [part for part in text.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or len(text) > LONGEST_SPELLING or ".." in parts:
        raise ToolError(f"{quote_foreign(spelling)} is not a path of this task. Use `inputs/NAME`.")
    return parts


def _names(folder: OpenFolder) -> list[str]:
    return sorted(files.list_names(folder))


def _output_file(name: str, data: bytes) -> OutputFile:
    return OutputFile(f"outputs/{name}", len(data), hashlib.sha256(data).hexdigest())


def _give_to_owner(name: str, folder: OpenFolder, outputs: OpenFolder) -> None:
    """Give root's file to the owner of the outputs, so that a harness can change it."""
    owner = outputs.stat()
    if sys.platform != "win32" and os.geteuid() == 0 and owner.st_uid != 0:
        user, group = owner.st_uid, owner.st_gid
        os.chown(name, user, group, dir_fd=folder.descriptor, follow_symlinks=False)


def _publish(
    partial: str, wanted: str, workbench: OpenFolder, outputs: OpenFolder, *, overwrite: bool
) -> str:
    """Give a finished file its name; unless asked to, no file is ever replaced."""
    source, places = workbench.entry(partial), (workbench.descriptor, outputs.descriptor)
    if overwrite:
        try:
            target = outputs.entry(wanted)
            os.replace(source, target, src_dir_fd=places[0], dst_dir_fd=places[1])
        except (IsADirectoryError, PermissionError) as exc:  # the latter on Windows
            if not files.is_folder(wanted, within=outputs):
                raise
            raise ToolError(f"`{wanted}` is a folder; choose another name.") from exc
        return wanted
    name, number = wanted, 1
    while True:
        try:
            _link(source, outputs.entry(name), places)
        except FileExistsError:
            number += 1
            name = add_number(wanted, number)
        else:
            return name


def _link(source: str | Path, target: str | Path, places: tuple[int | None, int | None]) -> None:
    """Give a file another name; raises FileExistsError if that name is taken."""
    if sys.platform == "win32":
        os.rename(source, target)  # noqa: PTH104 (which says nothing about a name that is taken)
        return
    os.link(source, target, src_dir_fd=places[0], dst_dir_fd=places[1], follow_symlinks=False)

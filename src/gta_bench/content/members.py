"""Files inside a file: archives of every form, and mails."""

import asyncio
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final, Literal

from pydantic import Base64Bytes, TypeAdapter

from gta_bench.confine.archives import ArchiveLimits, check_archive
from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB
from gta_bench.content.driver import Driver, check_size
from gta_bench.content.identify import BROKEN_ZIP
from gta_bench.errors import ToolError

MOST_BYTES: Final = 48 * MIB  # of all members together
MOST_MEMBERS: Final = 5000
DEEPEST: Final = 5  # levels of nesting; an office file is an archive too
# Files that macOS adds to archives.
JUNK: Final = ("__MACOSX/", ".DS_Store")


@dataclass(frozen=True, slots=True)
class ZipContent:
    """The names of an archive's files in order, their real size in total, and its comment."""

    names: tuple[str, ...]
    unpacked_bytes: int
    comment: str = ""


async def read_zip(data: bytes, *, skip_bad: bool = False) -> ZipContent:
    """List an archive. Raises ToolError if it is broken, unsafe or unpacks to too much.

    With `skip_bad`, single members may be broken or unsafe; do not unpack those.
    """
    check_size(data, label="The zip reader")
    return await asyncio.to_thread(_list_members, data, skip_bad)


def _list_members(data: bytes, skip_bad: bool) -> ZipContent:
    summary = check_archive(io.BytesIO(data), skip_bad=skip_bad)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            comment = archive.comment.decode("utf-8", "replace")
            names = tuple(info.filename for info in archive.infolist() if not info.is_dir())
    except BROKEN_ZIP as exc:
        raise ToolError(f"The archive is broken: {exc}.") from exc
    return ZipContent(names, summary.unpacked_bytes, comment)


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside a file; `data` is None if it was too large or there is a `problem`."""

    name: str
    bytes: int
    data: Base64Bytes | None = field(repr=False)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Members:
    """The reply of the parser in the jail."""

    members: tuple[Member, ...]


DRIVER = Driver("members", "The archive reader", (), TypeAdapter(Members))


async def read_members(
    data: bytes, form: Literal["packed", "mail"], jail: Jail, *, name: str
) -> tuple[Member, ...]:
    """Read the members of a tar archive, a compressed file or a mail.

    Raises ToolError if the file is broken.
    """
    found = await DRIVER.read(
        jail,
        data,
        form=form,
        inner=PurePosixPath(name).stem or "content",
        most_bytes=MOST_BYTES,
        most_members=MOST_MEMBERS,
    )
    return found.members


async def read_zip_members(data: bytes) -> tuple[Member, ...]:
    """Read the members of a zip archive.

    Raises ToolError if the archive is broken or unpacks to too much. A single broken or unsafe
    member has a problem and no data; the others are still read.
    """
    check_size(data, label="The zip reader")
    return await asyncio.to_thread(lambda: tuple(_read_all(data)))


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    try:
        with archive.open(info) as stream:
            return Member(info.filename, info.file_size, stream.read(info.file_size))
    except BROKEN_ZIP as exc:
        return _skip_member(info, f"It is broken: {exc}.")


def _skip_member(info: zipfile.ZipInfo, problem: str = "") -> Member:
    return Member(info.filename, info.file_size, None, problem)


def _read_all(data: bytes) -> Iterator[Member]:
    limits = ArchiveLimits(depth=DEEPEST)
    bad = check_archive(io.BytesIO(data), limits=limits, skip_bad=True).bad
    room = MOST_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for index, info in enumerate(archive.infolist()):
                if info.is_dir() or info.filename.startswith(JUNK):
                    continue
                if index in bad:
                    yield _skip_member(info, bad[index])
                    continue
                room -= info.file_size
                yield _read_member(archive, info) if room >= 0 else _skip_member(info)
    except BROKEN_ZIP as exc:
        raise ToolError(f"The archive is broken: {exc}.") from exc

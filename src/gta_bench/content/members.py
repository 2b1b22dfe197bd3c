"""The files within a file: archives of every form, and mails."""

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


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A file in an archive; `bytes` is what the archive says that it unpacks to."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class ZipContent:
    """An archive's files, in its own order, how much they really unpack to, its comment."""

    members: tuple[ZipMember, ...]
    unpacked_bytes: int
    comment: str = ""


async def read_zip(
    data: bytes, *, limits: ArchiveLimits | None = None, skip_bad: bool = False
) -> ZipContent:
    """List an archive; ToolError if it is broken, unsafe or unpacks to too much.

    With `skip_bad`, single members may be broken or unsafe: nobody may unpack those.
    """
    check_size(data, label="The zip reader")
    return await asyncio.to_thread(_listing, data, limits, skip_bad)


def _listing(data: bytes, limits: ArchiveLimits | None, skip_bad: bool) -> ZipContent:
    summary = check_archive(io.BytesIO(data), limits=limits, skip_bad=skip_bad)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            comment = archive.comment.decode("utf-8", "replace")
            infos = [info for info in archive.infolist() if not info.is_dir()]
    except BROKEN_ZIP as exc:
        raise ToolError(f"The archive is broken: {exc}.") from exc
    members = tuple(ZipMember(info.filename, info.file_size) for info in infos)
    return ZipContent(members, summary.unpacked_bytes, comment)


MOST_BYTES: Final = 48 * MIB  # of all members together
MOST_MEMBERS: Final = 5000
DEEPEST: Final = 5  # an office file is an archive too
# What a system leaves beside the files that somebody packed.
JUNK: Final = ("__MACOSX/", ".DS_Store")


@dataclass(frozen=True, slots=True)
class Member:
    """A file within a file; `data` is None where there was too much of it, or a `problem`."""

    name: str
    bytes: int
    data: Base64Bytes | None = field(repr=False)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Members:
    """What the driver in the jail replies."""

    members: tuple[Member, ...]


DRIVER = Driver("members", "The archive reader", (), TypeAdapter(Members))


async def read_members(
    data: bytes, form: Literal["packed", "mail"], jail: Jail, *, name: str
) -> tuple[Member, ...]:
    """The members of a tar archive, a packed file or a mail; ToolError if it is broken."""
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
    """The members of a zip archive; ToolError if it is broken or unpacks to too much.

    A member that is broken or unsafe has a problem and no data; the others are read all the same.
    """
    check_size(data, label="The zip reader")
    return await asyncio.to_thread(lambda: tuple(_zip_members(data)))


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    try:
        with archive.open(info) as stream:
            return Member(info.filename, info.file_size, stream.read(info.file_size))
    except BROKEN_ZIP as exc:
        return _unread(info, f"It is broken: {exc}.")


def _unread(info: zipfile.ZipInfo, problem: str = "") -> Member:
    return Member(info.filename, info.file_size, None, problem)


def _zip_members(data: bytes) -> Iterator[Member]:
    limits = ArchiveLimits(depth=DEEPEST)
    bad = check_archive(io.BytesIO(data), limits=limits, skip_bad=True).bad
    room = MOST_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for place, info in enumerate(archive.infolist()):
                if info.is_dir() or info.filename.startswith(JUNK):
                    continue
                if place in bad:
                    yield _unread(info, bad[place])
                    continue
                room -= info.file_size
                yield _zip_member(archive, info) if room >= 0 else _unread(info)
    except BROKEN_ZIP as exc:
        raise ToolError(f"The archive is broken: {exc}.") from exc

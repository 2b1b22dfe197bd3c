"""Zip archives: what is in them, without unpacking anything to disk."""

import asyncio
import io
import zipfile
from dataclasses import dataclass

from gta_bench.confine.archives import ArchiveLimits, check_archive
from gta_bench.content.driver import check_size
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

    def as_text(self) -> str:
        """One file a line."""
        lines = [f"{member.bytes:>12}  {member.name}" for member in self.members]
        return "\n".join([f"{len(self.members)} files, {self.unpacked_bytes} bytes", *lines])


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

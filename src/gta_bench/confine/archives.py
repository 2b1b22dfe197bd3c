"""Check archives and office files before anything unpacks them: zip bombs, links, bad members."""

import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

from gta_bench.confine.limits import MIB
from gta_bench.errors import ToolError

CHUNK = 1 << 16
LOCAL_HEADER = struct.Struct("<4s2xHH16xHH")
END_RECORD = struct.Struct("<4s4H2LH")
END_RECORD_64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR_64 = struct.Struct("<4sLQL")
LONGEST_COMMENT = 0xFFFF
ENTRY_BYTES = 46 + 1024  # a central directory's entry with a long name
ENCRYPTED = 0x1
STORED, DEFLATED = 0, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """How large an archive may get; the ratio is checked only above `ratio_from` bytes."""

    members: int = 5000
    total_bytes: int = 300 * MIB
    ratio: float = 200.0
    ratio_from: int = 10 * MIB
    depth: int = 2


class ArchiveSummary(NamedTuple):
    """The contents of an archive, counted by unpacking it, including nested archives."""

    members: int
    unpacked_bytes: int
    depth: int
    bad: Mapping[int, str] = MappingProxyType({})


class BrokenArchive(ToolError):
    """Not an archive, or one whose list of members cannot be read."""


class BadMember(ToolError):
    """A member that must not be unpacked; the others may be fine."""


def check_archive(
    stream: BinaryIO, *, limits: ArchiveLimits | None = None, skip_bad: bool = False
) -> ArchiveSummary:
    """Unpack a zip without keeping anything; raise ToolError as soon as it exceeds a limit.

    The sizes that an archive states are not trusted. Works for docx, xlsx, pptx, odt, epub. Takes
    about a second for 300 MB, so do not call it on the event loop. A bad member (a link, a broken
    one) raises ToolError too; with `skip_bad` it is reported in `bad`, by its index, and nested
    archives that are broken are left to the code that opens them.
    """
    counter = _Counter(limits or ArchiveLimits(), skip_bad=skip_bad)
    counter.archive(stream, depth=0)
    return ArchiveSummary(counter.members, counter.unpacked, counter.deepest, counter.bad)


class _Counter:
    """The sums over an archive and the archives inside it."""

    def __init__(self, limits: ArchiveLimits, *, skip_bad: bool) -> None:
        self.limits = limits
        self.skip_bad = skip_bad
        self.members = self.unpacked = self.deepest = 0
        self.bad: dict[int, str] = {}

    def archive(self, stream: BinaryIO, *, depth: int) -> None:
        if depth > self.limits.depth:
            raise ToolError(f"The archive nests archives {depth} deep; {depth - 1} are allowed.")
        self.deepest = max(self.deepest, depth)
        size = stream.seek(0, 2)
        _check_directory(stream, size, self.limits)
        try:
            with zipfile.ZipFile(stream) as archive:
                infos = archive.infolist()
        # zipfile raises NotImplementedError and struct.error on hostile bytes too.
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, OSError) as exc:
            raise BrokenArchive(f"The archive is broken: {exc}.") from exc
        self.members += len(infos)
        if self.members > self.limits.members:
            raise ToolError(f"The archive has more than {self.limits.members} members.")
        if sum(info.compress_size for info in infos) > size:
            raise ToolError("The archive's members overlap.")
        seen: set[str] = set()
        for index, info in enumerate(infos):
            try:
                _check_info(info, seen)
                self._member(stream, info, size, depth)
            except BadMember as exc:
                if not self.skip_bad:
                    raise
                if depth == 0:
                    self.bad[index] = str(exc)

    def _member(self, stream: BinaryIO, info: zipfile.ZipInfo, size: int, depth: int) -> None:
        """Unpack one member; if it is itself an archive, check it too."""
        start = _data_start(stream, info)
        with tempfile.SpooledTemporaryFile(max_size=MIB) as nested:
            keep: bool | None = None
            for data in _inflate(stream, start, info):
                if keep is None:  # the first piece
                    keep = data[:4] == b"PK\x03\x04"
                self._count(len(data), size)
                if keep:
                    nested.write(data)
            try:
                if keep:
                    self.archive(nested, depth=depth + 1)  # type: ignore[arg-type]
            except BrokenArchive:
                if not self.skip_bad:
                    raise

    def _count(self, more: int, packed: int) -> None:
        self.unpacked += more
        limits = self.limits
        if self.unpacked > limits.total_bytes:
            raise ToolError(f"The archive unpacks to more than {limits.total_bytes} bytes.")
        if self.unpacked > limits.ratio_from and self.unpacked > limits.ratio * packed:
            raise ToolError(f"The archive unpacks to more than {limits.ratio:g} times its size.")


def _check_directory(stream: BinaryIO, size: int, limits: ArchiveLimits) -> None:
    """Refuse a list of members that would fill the memory, before zipfile reads all of it."""
    tail_size = min(size, END_RECORD.size + LONGEST_COMMENT)
    stream.seek(size - tail_size)
    tail = stream.read(tail_size)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < END_RECORD.size:
        raise BrokenArchive("The file is not a zip archive.")
    directory = END_RECORD.unpack_from(tail, at)[5]
    if at >= LOCATOR_64.size and tail[at - LOCATOR_64.size :].startswith(b"PK\x06\x07"):
        _, _, stated, _ = LOCATOR_64.unpack_from(tail, at - LOCATOR_64.size)
        # zipfile looks right before the locator, whatever the locator says.
        before = max(0, size - tail_size + at - LOCATOR_64.size - END_RECORD_64.size)
        for where, mark in ((min(stated, size), b""), (before, b"PK\x06\x06")):
            stream.seek(where)
            record = stream.read(END_RECORD_64.size)
            if len(record) == END_RECORD_64.size and record.startswith(mark):
                directory = max(directory, END_RECORD_64.unpack(record)[8])
    if directory > limits.members * ENTRY_BYTES:
        raise ToolError(f"The archive has more than {limits.members} members.")


def _check_info(info: zipfile.ZipInfo, seen: set[str]) -> None:
    """Check the name and the stated properties of a member."""
    name = info.orig_filename
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\0" in name or ":" in name[:2]:
        raise BadMember(f"The archive's member {name!r} points outside the archive.")
    if stat.S_ISLNK(info.external_attr >> 16):
        raise BadMember(f"The archive's member {name!r} is a link.")
    if info.flag_bits & ENCRYPTED:
        raise BadMember(f"The archive's member {name!r} is encrypted.")
    if info.compress_type not in (STORED, DEFLATED):
        raise BadMember(f"The archive's member {name!r} uses an unsupported compression method.")
    if name in seen:
        raise BadMember(f"The archive has the member {name!r} twice.")
    seen.add(name)


def _data_start(stream: BinaryIO, info: zipfile.ZipInfo) -> int:
    stream.seek(max(0, info.header_offset))
    header = stream.read(LOCAL_HEADER.size)
    if (
        info.header_offset < 0
        or len(header) < LOCAL_HEADER.size
        or not header.startswith(b"PK\x03\x04")
    ):
        raise BadMember(f"The archive's member {info.orig_filename!r} is broken.")
    _, flags, method, name_size, extra_size = LOCAL_HEADER.unpack(header)
    if method != info.compress_type or flags & ENCRYPTED:
        raise BadMember(f"The archive's member {info.orig_filename!r} contradicts itself.")
    return info.header_offset + LOCAL_HEADER.size + int(name_size) + int(extra_size)


def _inflate(stream: BinaryIO, start: int, info: zipfile.ZipInfo) -> Iterator[bytes]:
    """The member's content in pieces of limited size."""
    left = info.compress_size
    stream.seek(start)
    unpack = zlib.decompressobj(-zlib.MAX_WBITS)
    while left > 0 and (packed := stream.read(min(CHUNK, left))):
        left -= len(packed)
        if info.compress_type == STORED:
            yield packed
            continue
        try:
            while packed and not unpack.eof:
                if data := unpack.decompress(packed, MIB):
                    yield data
                packed = unpack.unconsumed_tail
        except zlib.error as exc:
            raise BadMember(f"The archive's member {info.orig_filename!r} is broken.") from exc

"""Archives and office files that unpack to far more than they are: found before anybody does."""

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

from gta_bench.errors import ToolError

MIB = 1 << 20
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
    """How large an archive may get; the ratio counts only above `ratio_from` bytes."""

    members: int = 5000
    total_bytes: int = 300 * MIB
    ratio: float = 200.0
    ratio_from: int = 10 * MIB
    depth: int = 2


class ArchiveSummary(NamedTuple):
    """What an archive holds, counted by unpacking it, nested archives included."""

    members: int
    unpacked_bytes: int
    depth: int
    bad: Mapping[int, str] = MappingProxyType({})


class BrokenArchive(ToolError):
    """No archive, or one whose list of members cannot be read."""


class BadMember(ToolError):
    """A member that nobody should unpack; the others may be good."""


def check_archive(
    stream: BinaryIO, *, limits: ArchiveLimits | None = None, skip_bad: bool = False
) -> ArchiveSummary:
    """Unpack a zip into nothing, counting; refuse it with a ToolError as soon as it is too much.

    Sizes that an archive states are not believed: other programs do not believe them either.
    Works for docx, xlsx, pptx, odt, epub. Takes about a second for 300 MB; not for the event loop.
    A bad member (a link, a broken one) is one, too, or with `skip_bad` stands in `bad` with the
    reason, under its place in the archive; archives within are then checked by whoever opens them.
    """
    counter = _Counter(limits or ArchiveLimits(), skip_bad=skip_bad)
    counter.archive(stream, depth=0)
    return ArchiveSummary(counter.members, counter.unpacked, counter.deepest, counter.bad)


class _Counter:
    """The sums over an archive and all that are packed in it."""

    def __init__(self, limits: ArchiveLimits, *, skip_bad: bool) -> None:
        self.limits = limits
        self.skip_bad = skip_bad
        self.members = self.unpacked = self.deepest = 0
        self.bad: dict[int, str] = {}

    def archive(self, stream: BinaryIO, *, depth: int) -> None:
        if depth > self.limits.depth:
            raise ToolError(f"The archive holds archives {depth} deep; {depth - 1} are allowed.")
        self.deepest = max(self.deepest, depth)
        size = stream.seek(0, 2)
        _check_directory(stream, size, self.limits)
        try:
            with zipfile.ZipFile(stream) as archive:
                infos = archive.infolist()
        # The parser of hostile bytes; NotImplementedError and struct.error are its words too.
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, OSError) as exc:
            raise BrokenArchive(f"The archive is broken: {exc}.") from exc
        self.members += len(infos)
        if self.members > self.limits.members:
            raise ToolError(f"The archive has more than {self.limits.members} members.")
        if sum(info.compress_size for info in infos) > size:
            raise ToolError("The archive's members overlap.")
        seen: set[str] = set()
        for place, info in enumerate(infos):
            try:
                _check_info(info, seen)
                self._member(stream, info, size, depth)
            except BadMember as exc:
                if not self.skip_bad:
                    raise
                if depth == 0:
                    self.bad[place] = str(exc)

    def _member(self, stream: BinaryIO, info: zipfile.ZipInfo, size: int, depth: int) -> None:
        """Unpack one member; if it is itself an archive, look into it."""
        start = _data_start(stream, info)
        with tempfile.SpooledTemporaryFile(max_size=MIB) as nested:
            keep = False
            first = True
            for data in _inflate(stream, start, info):
                if first:
                    keep, first = data[:4] == b"PK\x03\x04", False
                self._count(len(data), size)
                if keep:
                    nested.write(data)
            if keep:
                self._nested(nested, depth + 1)  # type: ignore[arg-type]

    def _nested(self, stream: BinaryIO, depth: int) -> None:
        try:
            self.archive(stream, depth=depth)
        except BrokenArchive:
            if not self.skip_bad:
                raise

    def _count(self, more: int, packed: int) -> None:
        self.unpacked += more
        if self.unpacked > self.limits.total_bytes:
            most = self.limits.total_bytes
            raise ToolError(f"The archive unpacks to more than {most} bytes.")
        many = self.unpacked > self.limits.ratio_from
        if many and self.unpacked > self.limits.ratio * packed:
            ratio = self.limits.ratio
            raise ToolError(f"The archive unpacks to more than {ratio:g} times its size.")


def _check_directory(stream: BinaryIO, size: int, limits: ArchiveLimits) -> None:
    """Refuse a directory that would itself fill the memory, before zipfile reads it whole."""
    tail_size = min(size, END_RECORD.size + LONGEST_COMMENT)
    stream.seek(size - tail_size)
    tail = stream.read(tail_size)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < END_RECORD.size:
        raise BrokenArchive("The file is not a zip archive.")
    directory = END_RECORD.unpack_from(tail, at)[5]
    if at >= LOCATOR_64.size and tail[at - LOCATOR_64.size :].startswith(b"PK\x06\x07"):
        _, _, where, _ = LOCATOR_64.unpack_from(tail, at - LOCATOR_64.size)
        stream.seek(min(where, size))
        record = stream.read(END_RECORD_64.size)
        if len(record) == END_RECORD_64.size:
            directory = max(directory, END_RECORD_64.unpack(record)[8])
        # zipfile looks right before the locator, whatever the locator says.
        stream.seek(max(0, size - tail_size + at - LOCATOR_64.size - END_RECORD_64.size))
        record = stream.read(END_RECORD_64.size)
        if len(record) == END_RECORD_64.size and record.startswith(b"PK\x06\x06"):
            directory = max(directory, END_RECORD_64.unpack(record)[8])
    if directory > limits.members * ENTRY_BYTES:
        raise ToolError(f"The archive has more than {limits.members} members.")


def _check_info(info: zipfile.ZipInfo, seen: set[str]) -> None:
    """Name and claims of a member."""
    name = info.orig_filename
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\0" in name or ":" in name[:2]:
        raise BadMember(f"The archive's member {name!r} points out of the archive.")
    if stat.S_ISLNK(info.external_attr >> 16):
        raise BadMember(f"The archive's member {name!r} is a link.")
    if info.flag_bits & ENCRYPTED:
        raise BadMember(f"The archive's member {name!r} is encrypted.")
    if info.compress_type not in (STORED, DEFLATED):
        raise BadMember(f"The archive's member {name!r} is packed in an uncommon way.")
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
    """The member's content in pieces of bounded size."""
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

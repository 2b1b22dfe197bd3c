"""Archives, and files that nobody knows."""

import asyncio
import io
import zipfile
from typing import Final

from gta_bench.content.archive import ZipContent, ZipMember, read_zip
from gta_bench.content.identify import BROKEN_ZIP, find_form
from gta_bench.content.text import read_text
from gta_bench.errors import GtaError, ToolError
from gta_bench.judging.showing.draft import Draft, left_out, quoted, settled

HEAD: Final = 256  # bytes
LINE: Final = 16
MEMBER_BYTES: Final = 20_000


async def show_archive(draft: Draft) -> None:
    """The list of its members, and the text of the small ones."""
    subject = draft.subject
    content = await settled(read_zip(subject.data))
    if isinstance(content, GtaError):
        draft.missed("its members", content)
        show_bytes(draft)
        return
    draft.probe("files", len(content.members))
    draft.probe("unpacked bytes", content.unpacked_bytes)
    draft.hidden("the comment of the archive", content.comment, shown=False)
    most = subject.limits.members
    lines = [f"{member.bytes:>12,}  {member.name}" for member in content.members[:most]]
    draft.text("\n".join(["[Members: bytes, name]", *lines, ""]), what="list of members")
    if len(content.members) > most:
        draft.cut.append(left_out("member", most + 1, len(content.members), how="listed"))
    rest = len(content.members)
    for name, text in await asyncio.to_thread(_texts, subject.data, content, most):
        if not draft.room:
            break
        draft.text(f"\n[Member {name}]\n{text}\n", what=f"member {quoted(name)}")
        rest -= 1
    if rest:
        draft.cut.append(f"of {rest:,} of {len(content.members):,} members only the name is shown")


def _texts(data: bytes, content: ZipContent, most: int) -> list[tuple[str, str]]:
    """Names and texts of members that are small texts."""
    found = []
    small = [member for member in content.members[:most] if member.bytes <= MEMBER_BYTES]
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in small:
                text = _text(archive, member)
                if text is not None:
                    found.append((member.name, text))
    except BROKEN_ZIP:
        return found
    return found


def _text(archive: zipfile.ZipFile, member: ZipMember) -> str | None:
    with archive.open(member.name) as stream:
        data = stream.read(MEMBER_BYTES + 1)
    if len(data) > MEMBER_BYTES or find_form(data) != "text":
        return None
    try:
        return read_text(data).text
    except ToolError:
        return None


async def show_unknown(draft: Draft) -> None:
    """Its first bytes."""
    show_bytes(draft)


def show_bytes(draft: Draft) -> None:
    """The first bytes as numbers and letters, all else being unknown."""
    data = draft.subject.data
    lines = []
    for at in range(0, min(len(data), HEAD), LINE):
        piece = data[at : at + LINE]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{at:08x}  {piece.hex(' '):<47}  {letters}")
    draft.text("\n".join(["[First bytes]", *lines, ""]), what="first bytes")
    if len(data) > HEAD:
        draft.cut.append(left_out("byte", HEAD + 1, len(data)))

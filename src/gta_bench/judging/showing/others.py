"""Files that nobody knows."""

from typing import Final

from gta_bench.judging.showing.draft import Draft, left_out

HEAD: Final = 256  # bytes
LINE: Final = 16
CLOSED: Final = ("7z", "rar")


async def show_unknown(draft: Draft) -> None:
    """Its first bytes; of an archive that nothing here opens, that it is one."""
    form = draft.subject.identity.form
    if form in CLOSED:
        draft.unshown.append(f"its members: {form} archives are not opened")
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

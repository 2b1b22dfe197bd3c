"""Markdown as models write it, made ready for pandoc; line by line, so that no text is slow."""

import re
from typing import Final

from gta_bench.errors import ToolError
from gta_bench.tools.documents.fences import pieces
from gta_bench.tools.documents.needs import clean_text

# Every repetition has a bound: a hostile text must not take longer than its length.
PLACEHOLDER: Final = re.compile(r"\{\{\s{0,8}image_(\d{1,6})\s{0,8}\}\}")
# Between these two stands a picture's number; both are private, and taken out of the text before.
OPEN, CLOSE = "\ue000", "\ue001"

INLINE_CODE: Final = re.compile(r"(`[^`\n]+`)")
TEX_DISPLAY: Final = re.compile(r"\\\[((?:[^$\\]|\\[^\[\]]){1,1000}?)\\\]")
TEX_INLINE: Final = re.compile(r"\\\(((?:[^$\n\\]|\\[^()\n]){1,300}?)\\\)")
ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
TOO_DEEP: Final = re.compile(r"^[ \t]*(?:>[ \t]?|[-*+][ \t]|\d{1,9}[.)][ \t]){60}", re.MULTILINE)
INDENTED: Final = re.compile(r"[ \t]{2,}\S")


def check_size(name: str, content: str, most: int) -> None:
    """Refuse what would take a document program too long."""
    size = len(content.encode("utf-8", "replace"))
    if size > most:
        raise ToolError(f"`{name}` has {size} bytes; at most {most}. Split the work into files.")
    if not content.strip():
        raise ToolError(f"`{name}` is empty: there is nothing to write.")


def marked(content: str) -> str:
    """Without control characters, and with each `{{image_n}}` as a mark that no syntax touches."""
    clean = clean_text(content).replace(OPEN, "").replace(CLOSE, "")
    return PLACEHOLDER.sub(lambda found: f"{OPEN}{int(found[1])}{CLOSE}", clean)


def prepared(text: str) -> str:
    """What models write and Markdown would take otherwise, outside of code.

    Formulas between `\\(…\\)` and `\\[…\\]` get dollars. A line after a list or a table that is
    not part of it begins a paragraph.
    """
    if TOO_DEEP.search(text):
        raise ToolError("Lists or quotes are nested more than 60 deep: no page shows that.")
    return "".join(
        _separated(_with_dollars(piece.text)) if piece.language is None else piece.text
        for piece in pieces(text)
    )


def _with_dollars(text: str) -> str:
    if "\\(" not in text and "\\[" not in text:
        return text
    text = TEX_DISPLAY.sub(lambda found: f"$${found[1].strip()}$$", text)
    parts = INLINE_CODE.split(text)  # every second one is code
    for number in range(0, len(parts), 2):
        parts[number] = TEX_INLINE.sub(lambda found: f"${found[1].strip()}$", parts[number])
    return "".join(parts)


def _separated(text: str) -> str:
    lines: list[str] = []
    in_list = in_table = False
    for line in text.splitlines(keepends=True):
        item, row = ITEM.match(line) is not None, line.lstrip().startswith("|")
        ends_list = in_list and not item and not INDENTED.match(line)
        if line.strip() and (ends_list or (in_table and not row)):
            lines.append("\n")
        in_list = bool(line.strip()) and (item or (in_list and not ends_list))
        in_table = row
        lines.append(line)
    return "".join(lines)

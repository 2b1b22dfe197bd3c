"""Markdown as models write it, prepared for pandoc line by line, in linear time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gta_bench.errors import ToolError

FENCES = ("```", "~~~")
# Control characters, lone surrogates, and what XML forbids; tab and newline stay.
UNWRITABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
# Every repetition is bounded, so that hostile text cannot make a search slow.
PLACEHOLDER: Final = re.compile(r"\{\{\s{0,8}image_(\d{1,6})\s{0,8}\}\}")
# Private characters around the number of a picture. The text itself may not contain them.
OPEN, CLOSE = "\ue000", "\ue001"
INLINE_CODE: Final = re.compile(r"(`[^`\n]+`)")
TEX_DISPLAY: Final = re.compile(r"\\\[((?:[^$\\]|\\[^\[\]]){1,1000}?)\\\]")
TEX_INLINE: Final = re.compile(r"\\\(((?:[^$\n\\]|\\[^()\n]){1,300}?)\\\)")
ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
TOO_DEEP: Final = re.compile(r"^[ \t]*(?:>[ \t]?|[-*+][ \t]|\d{1,9}[.)][ \t]){60}", re.MULTILINE)
INDENTED: Final = re.compile(r"[ \t]{2,}\S")


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some lines. `language` is None outside of code fences; `inner` omits the fence lines."""

    lines: tuple[str, ...]
    language: str | None = None
    closed: bool = True

    @property
    def text(self) -> str:
        """All lines."""
        return "".join(self.lines)

    @property
    def inner(self) -> str:
        """The lines inside the fence."""
        if self.language is None:
            return self.text
        return "".join(self.lines[1 : -1 if self.closed else None])


def split_fences(text: str) -> Iterator[_Piece]:
    """Split a text at code fences; the joined pieces are the text."""
    block: list[str] = []
    fence = language = None
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if fence is None and bare.startswith(FENCES):
            if block:
                yield _Piece(tuple(block))
            mark = bare[0]
            run = len(bare) - len(bare.lstrip(mark))
            fence = mark * run
            language = next(iter(bare[run:].split()), "").lower()
            block = [line]
        elif fence is not None and bare.startswith(fence) and not bare.strip(fence[0]):
            yield _Piece((*block, line), language)
            block, fence, language = [], None, None
        else:
            block.append(line)
    if block:
        yield _Piece(tuple(block), language, closed=False)


def clean_text(text: str) -> str:
    """Remove characters that no file format can store, and use one kind of line break."""
    return UNWRITABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def check_size(name: str, content: str, most: int) -> None:
    """Raise ToolError if the text is empty or too long for a document program."""
    size = len(content.encode("utf-8", "replace"))
    if size > most:
        raise ToolError(
            f"`{name}` has {size} bytes; at most {most} are allowed. Split it into several files."
        )
    if not content.strip():
        raise ToolError(f"`{name}` is empty: there is nothing to write.")


def mark_placeholders(content: str) -> str:
    """Return clean text with each `{{image_n}}` as a mark that is not Markdown syntax."""
    clean = clean_text(content).replace(OPEN, "").replace(CLOSE, "")
    return PLACEHOLDER.sub(lambda found: f"{OPEN}{int(found[1])}{CLOSE}", clean)


def prepare_markdown(text: str) -> str:
    """Rewrite what models write but Markdown reads differently, outside of code.

    Formulas between `\\(…\\)` and `\\[…\\]` get dollar signs. A line after a list or a table that
    is not part of it starts a paragraph.
    """
    if TOO_DEEP.search(text):
        raise ToolError("Lists or quotes are nested more than 60 levels deep. Use fewer levels.")
    return "".join(
        _separate_blocks(_convert_formulas(piece.text)) if piece.language is None else piece.text
        for piece in split_fences(text)
    )


def _convert_formulas(text: str) -> str:
    if "\\(" not in text and "\\[" not in text:
        return text
    text = TEX_DISPLAY.sub(lambda found: f"$${found[1].strip()}$$", text)
    parts = INLINE_CODE.split(text)  # every second one is code
    for number in range(0, len(parts), 2):
        parts[number] = TEX_INLINE.sub(lambda found: f"${found[1].strip()}$", parts[number])
    return "".join(parts)


def _separate_blocks(text: str) -> str:
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

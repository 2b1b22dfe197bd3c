"""The part of a file that its readers see: without hidden sheets, slides, text and comments."""

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gta_bench.content.identify import BROKEN_ZIP
from gta_bench.content.leftovers import split_elements
from gta_bench.content.pptx import PptxContent
from gta_bench.content.xlsx import Sheet, XlsxContent

WORDS: Final = re.compile("word/(?:document|footnotes|endnotes)[0-9]{0,2}[.]xml")
STYLES: Final = "word/styles.xml"
VANISH: Final = re.compile(r'<w:vanish\s*(?:/>|>|w:val="(?:1|true|on)")')
BEGIN: Final = re.compile(r"(<w:[pr][ >])")
TEXT: Final = re.compile(r"<w:t(?:\s[^<>]*)?>[^<]*</w:t>")
STYLE: Final = re.compile(r'<w:[pr]Style\s[^<>]{0,300}?w:val="([^"<>]{0,300})"')
STYLE_ID: Final = re.compile(r'w:styleId="([^"<>]{0,300})"')
FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
# A definition that leads nowhere is used as a comment.
REMARK: Final = re.compile(r" {0,3}\[[^\]]{1,200}\]:[ \t]{0,20}(?:#|<>)(?:\s|$)")


def show_book(book: XlsxContent) -> XlsxContent:
    """Return a workbook without its hidden sheets, rows and columns."""
    return replace(book, sheets=tuple(_show_sheet(one) for one in book.sheets if not one.hidden))


def _show_sheet(sheet: Sheet) -> Sheet:
    if not sheet.hidden_rows and not sheet.hidden_columns:
        return sheet
    rows, columns, end = frozenset(sheet.hidden_rows), set[int](), 0
    for first, last in sorted(sheet.hidden_columns):
        columns.update(range(max(first, end + 1), min(last, sheet.columns) + 1))
        end = max(end, last)
    cells = (one for one in sheet.cells if one.row not in rows and one.column not in columns)
    return replace(sheet, cells=tuple(cells))


def show_deck(deck: PptxContent) -> PptxContent:
    """Return a deck without its hidden slides."""
    slides = tuple(slide for slide in deck.slides if not slide.hidden)
    return PptxContent(slides, len(slides))


def drop_vanished(data: bytes) -> bytes:
    """Return a Word document without text that is set to be hidden; it must be safe to unpack."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    except BROKEN_ZIP:
        return data  # its reader reports what is wrong with it
    styles = split_elements(parts.get(STYLES, b"").decode("utf-8", "replace"), "w:style")
    hidden = {found[1] for one in styles if VANISH.search(one) and (found := STYLE_ID.search(one))}
    changed = {}
    for name, part in parts.items():
        if WORDS.fullmatch(name) and (hidden or b"<w:vanish" in part):
            changed[name] = "".join(_clear(part.decode("utf-8", "replace"), hidden)).encode()
    if not changed:
        return data
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as copy:
        for name, part in parts.items():
            copy.writestr(name, changed.get(name, part))
    return stream.getvalue()


def _clear(source: str, hidden: set[str]) -> Iterator[str]:
    """Yield the source of a part; runs that are hidden, by themselves or by a style, are empty."""
    first, *rest = BEGIN.split(source)
    yield first
    within = False
    for begin, piece in zip(rest[::2], rest[1::2], strict=True):
        own, end, after = piece.partition("</w:r>")
        styled = any(name in hidden for name in STYLE.findall(own))
        if begin.startswith("<w:p"):
            within = styled
        elif within or styled or VANISH.search(own):
            own = TEXT.sub("", own)
        yield f"{begin}{own}{end}{after}"


def drop_comments(markdown: str) -> str:
    """Return Markdown without its comments; code blocks show theirs."""
    return "".join(_shown_lines(markdown))


def _shown_lines(markdown: str) -> Iterator[str]:
    fence, inside = "", False
    for line in markdown.splitlines(keepends=True):
        found = None if inside else FENCE.match(line)
        if fence or found:
            if found and not fence:
                fence = found[1]
            elif found and found[1].startswith(fence):
                fence = ""
            yield line
        elif inside or not REMARK.match(line):
            shown, inside = _cut_comments(line, inside=inside)
            yield shown


def _cut_comments(line: str, *, inside: bool) -> tuple[str, bool]:
    shown = ""
    while True:
        before, mark, line = line.partition("-->" if inside else "<!--")
        shown += "" if inside else before
        if not mark:
            return shown, inside
        inside = not inside

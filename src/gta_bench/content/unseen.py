"""Text of Office files and pages that their readers do not see, found in the source."""

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from html import unescape
from typing import Final, NamedTuple

PART_BYTES: Final = 8 << 20
# Every repetition has a bound: a hostile text must not take longer than its length.
COMMENT: Final = re.compile(r"<!--(.{0,100000}?)-->", re.DOTALL)
ASIDE: Final = re.compile(r"<(desc|metadata)\b[^<>]{0,500}>(.{0,100000}?)</\1>", re.DOTALL)
TAG: Final = re.compile(r"<[^<>]{0,5000}>")
WORDS: Final = re.compile(r"<(?:\w{1,8}:)?(?:t|delText)(?:\s[^<>]{0,200})?>([^<]{0,100000})<")
VANISH: Final = re.compile(r'<w:(?:vanish|webHidden)(?:/>|\s{1,4}w:val="(?:1|true|on)")')
SLIDE_SIZE: Final = re.compile(r'<p:sldSz\b[^<>]{0,200}?cx="(\d{1,9})"[^<>]{0,200}?cy="(\d{1,9})"')
SHAPE_HIDDEN: Final = re.compile(r'<p:cNvPr\b[^<>]{0,2000}\bhidden="(?:1|true)"')
OFFSET: Final = re.compile(r'<a:off\b[^<>]{0,60}?x="(-?\d{1,12})"[^<>]{0,60}?y="(-?\d{1,12})"')
EXTENT: Final = re.compile(r'<a:ext\b[^<>]{0,60}?cx="(\d{1,12})"[^<>]{0,60}?cy="(\d{1,12})"')
OUT_OF_SIGHT: Final = re.compile(r'<(row|col)\b[^<>]{0,600}?\shidden="(?:1|true)"')


class UnseenText(NamedTuple):
    """Words, and why nobody sees them; `kept` where they stand in the text that is read."""

    why: str
    words: str
    kept: bool = False


def unseen_in_markup(source: str) -> Iterator[UnseenText]:
    """Comments of a web page or a drawing, and the asides that no browser shows."""
    yield UnseenText("comments in its source", _joined(COMMENT.findall(source)), kept=True)
    asides = (TAG.sub(" ", found) for _, found in ASIDE.findall(source))
    yield UnseenText("descriptions in its source", _joined(asides), kept=True)


def unseen_in_office(archive: zipfile.ZipFile) -> Iterator[UnseenText]:
    """What the parts of a docx, pptx or xlsx file say that it does not show."""
    names = archive.namelist()

    def texts(*starts: str) -> Iterator[str]:
        for name in names:
            if name.startswith(starts) and name.endswith(".xml"):
                with archive.open(name) as part:
                    yield part.read(PART_BYTES).decode("utf-8", "replace")

    comments = _joined(map(_words, texts("word/comments", "ppt/comments")))
    yield UnseenText("comments", comments, kept=True)
    yield from _in_word(texts)
    yield from _in_slides(texts)
    yield from _in_sheets(texts)


def _in_word(texts: Callable[..., Iterator[str]]) -> Iterator[UnseenText]:
    runs = [run for text in texts("word/document.xml") for run in pieces(text, "w:r")]
    vanished = _joined(_words(run) for run in runs if VANISH.search(run))
    yield UnseenText("text that is set to be hidden", vanished, kept=True)
    deleted = (_words(text) for document in texts("word/document.xml")
               for text in pieces(document, "w:del"))  # fmt: skip
    yield UnseenText("text that was deleted with its traces kept", _joined(deleted), kept=True)


def _in_slides(texts: Callable[..., Iterator[str]]) -> Iterator[UnseenText]:
    size = next((SLIDE_SIZE.search(text) for text in texts("ppt/presentation.xml")), None)
    shapes = [shape for slide in texts("ppt/slides/slide") for shape in pieces(slide, "p:sp")]
    hidden = _joined(_words(shape) for shape in shapes if SHAPE_HIDDEN.search(shape))
    yield UnseenText("shapes that are hidden", hidden, kept=True)
    if size is not None:
        width, height = int(size[1]), int(size[2])
        away = _joined(_words(shape) for shape in shapes if _is_away(shape, width, height))
        yield UnseenText("shapes outside of their slides", away, kept=True)


def _is_away(shape: str, width: int, height: int) -> bool:
    place, size = OFFSET.search(shape), EXTENT.search(shape)
    if place is None or size is None:
        return False
    left, top = int(place[1]), int(place[2])
    return left >= width or top >= height or left + int(size[1]) <= 0 or top + int(size[2]) <= 0


def _in_sheets(texts: Callable[..., Iterator[str]]) -> Iterator[UnseenText]:
    notes = _joined(map(_words, texts("xl/comments", "xl/threadedComments")))
    yield UnseenText("comments on cells", notes, kept=True)
    hidden = [
        found for text in texts("xl/worksheets/sheet") for found in OUT_OF_SIGHT.findall(text)
    ]
    yield UnseenText(
        "rows or columns that are hidden, each told as a word", " ".join(hidden), kept=True
    )


def _words(text: str) -> str:
    return unescape(" ".join(WORDS.findall(text)))


def pieces(text: str, tag: str) -> Iterator[str]:
    """The elements of one name; of nested ones the parts."""
    start = re.compile(rf"<{tag}[ >]")
    for piece in start.split(text)[1:]:
        yield piece.partition(f"</{tag}>")[0]


def _joined(parts: Iterable[str]) -> str:
    return " ".join(part.strip() for part in parts if part.strip())

"""All text of a package (Office, OpenDocument, EPUB), part by part, so that none is lost unseen.

Readers of a kind know what they look for. This knows nothing of a kind: it takes every text node
and every alternative text of every part, and what a reader has not shown is told under the part's
name.
"""

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import unescape
from typing import Final, NamedTuple
from unicodedata import normalize

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


PARTS: Final = (".xml", ".vml", ".rels", ".xhtml", ".html", ".htm", ".ncx", ".opf")
# Every repetition has a bound: a hostile text must not take longer than its length.
TOKEN: Final = re.compile(r"<([^<>]{0,20000})>|([^<]+)")
NAME: Final = re.compile(r"/?(?:[\w.-]{1,40}:)?([\w.-]{1,60})")
WORD: Final = re.compile(r"\w+")
# A word or a number: 1.5 is not 15, and -5 is not 5.
COMPARED: Final = re.compile(r"(?:(?<![^\W_])-(?=\d))?[^\W_]+(?:(?<=\d)[.,]\d[^\W_]*)*")
BETWEEN: Final = re.compile(
    r'<span class="comment-start"[^<>]{0,2000}>[^<]{0,20000}</span>|<[a-zA-Z/][^<>]{0,2000}>'
    r"|\]\([^()\s]{0,2000}\)|\[\^\w{1,20}\]|\\\n"
)
WRITTEN: Final = re.compile(r">([^<>]{1,20000})<")
GREEK: Final = re.compile("[\u0370-\u03ff]")
FEW: Final = 8
PATIENCE: Final = 1 << 30  # letters that are searched; what comes after them is told
# Text that goes on in the next element of the same name; all other text ends with its element.
RUNS: Final = frozenset({"t", "delText", "span", "a", "b", "i", "em", "strong", "s", "c"})
BLOCKS: Final = frozenset({"p", "h", "si", "is", "text", "comment", "title", "td", "th", "li"})
BREAKS: Final = frozenset({"br", "tab", "line-break", "cr", "space"})
# Numbers and codes of a program, which are no text of anybody.
CODES: Final = frozenset({
    "instrText", "f", "formatCode", "posOffset", "pctWidth", "pctHeight", "pctPosHOffset",
    "pctPosVOffset", "align", "sizeRelH", "sizeRelV", "style", "script", "attrName", "formula",
    "Anchor", "Row", "Column", "fmla", "datastoreItem", "binary-data", "dm", "pts",
    "SizeWithCells", "MoveWithCells", "AutoFill", "Locked", "Default", "tableStyleId", "col",
    "colOff", "row", "rowOff",
})  # fmt: skip
WORDS_OF: Final = re.compile(
    r"(?:^|\s)(?:[\w.-]{1,20}:)?(descr|title|alt|string|prompt|promptTitle|error|errorTitle|tooltip"
    r'|displayName|author|Author|initials|name|text|v)="([^"]{1,20000})"'
)
# `title`, `name` and the like say something to a reader in these elements only.
SPEAKING: Final = {
    "docPr": ("descr", "title"),
    "cNvPr": ("descr", "title"),
    "textpath": ("string",),
    "imagedata": ("title",),
    "shape": ("alt",),
    "dataValidation": ("prompt", "promptTitle", "error", "errorTitle"),
    "hyperlink": ("tooltip",),
    "hlinkClick": ("tooltip",),
    "hlinkHover": ("tooltip",),
    "section": ("name",),
    "sheet": ("name",),
    "cacheField": ("name",),
    "dataField": ("name",),
    "s": ("v",),
    "comment": ("author",),
    "ins": ("author",),
    "del": ("author",),
    "person": ("displayName",),
    "definedName": ("name",),
    "author": ("name",),
    "cmAuthor": ("name",),
    "img": ("alt", "title"),
    "image": ("title",),
}
CALCULATE: Final = re.compile(r'<(?:\w{1,8}:)?calcPr\b[^<>]{0,2000}\bfullCalcOnLoad="(?:1|true)"')
WORKBOOK: Final = "xl/workbook.xml"
LINK: Final = re.compile(r'\bTarget="([^"]{1,2000})"')
MASTERS: Final = re.compile(r"ppt/(slideMasters|slideLayouts|notesMasters|handoutMasters)/")
CELLS: Final = re.compile(r"<(?:\w{1,8}:)?sheetData>.*</(?:\w{1,8}:)?sheetData>", re.DOTALL)
# Properties are told by `office.read_package`; cells are read by the reader of workbooks.
ELSEWHERE: Final = ("docProps/", "[Content_Types].xml", "xl/sharedStrings.xml", "meta.xml",
                    "META-INF/", "xl/calcChain.xml", "settings.xml", "customXml/_rels")  # fmt: skip


class PackagePart(NamedTuple):
    """A part of a package, and its texts: paragraphs, cells, alternative texts."""

    name: str
    texts: tuple[str, ...]


def package_parts(archive: zipfile.ZipFile) -> Iterator[PackagePart]:
    """Every part that has text; call it for an archive that is safe to unpack."""
    names = archive.namelist()
    stale = WORKBOOK in names and CALCULATE.search(_source(archive, WORKBOOK))
    for name in names:
        if not name.endswith(PARTS) or name.startswith(ELSEWHERE):
            continue
        source = _source(archive, name)
        if stale and name.startswith("xl/charts/"):  # its numbers are as old as the formulas'
            source = "".join(_without(source, "<c:numCache>", "</c:numCache>"))
        texts = tuple(dict.fromkeys(_texts(name, source)))
        if texts:
            yield PackagePart(name, texts)


def left_over(
    parts: Sequence[PackagePart], shown: str, *, whole: Sequence[str] = ()
) -> Iterator[PackagePart]:
    """What of the parts does not stand in the text that is shown, each text once.

    A text is left over if its words do not follow each other in `shown`: the same words elsewhere
    may say something else. Parts whose names begin as one of `whole` were read by nobody, so they
    are left over with every text.
    """
    known = _Shown(shown)
    told: set[str] = set()
    for part in parts:
        every = part.name.startswith(tuple(whole)) if whole else False
        texts = [text for text in part.texts if text not in told and (every or text not in known)]
        told.update(texts)
        if texts:
            yield PackagePart(part.name, tuple(texts))


class _Shown:
    """A text that is shown, to look up others in it by their words alone, whatever is between.

    Links, notes and tags stand in the way of a sentence, so it is also searched without them. Few
    words must stand in one line: those of neighboring cells are no sentence.
    """

    def __init__(self, shown: str) -> None:
        plain = unescape(BETWEEN.sub(" ", shown))
        lines = [_spaced(line) for line in (*plain.splitlines(), *shown.splitlines())]
        # By whether a text may go on in the next line.
        self._within = {False: "\n".join(lines), True: f" {' '.join(' '.join(lines).split())} "}
        self._next = {False: 0, True: 0}
        self._patience = PATIENCE

    def __contains__(self, text: str) -> bool:
        wanted = _spaced(text)
        if wanted.isspace():
            return True
        long = wanted.count(" ") > FEW
        within = self._within[long]
        # Most texts come in their order, so that little is searched twice.
        for first in (self._next[long], 0):
            if self._patience < 0:
                return False
            place = within.find(wanted, first)
            self._patience -= (place if place >= 0 else len(within)) - first
            if place >= 0:
                self._next[long] = place
                return True
        return False


def _spaced(text: str) -> str:
    """The words of a text with a space before and after each."""
    return f" {' '.join(COMPARED.findall(text.casefold()))} "


def _texts(name: str, source: str) -> Iterator[str]:
    if name.endswith(".rels"):
        yield from (unescape(link) for link in _links(source))
        return
    if MASTERS.match(name):
        # Placeholders hold what the program asks for, and no slide shows it.
        source = "".join(_without(source, "<p:sp>", "</p:sp>", holding="<p:ph"))
    if name.startswith("xl/worksheets/"):
        source = CELLS.sub("", source)
    if name.startswith("word/"):
        source = "".join(_formulas_apart(source))
    for text in _blocks(source):
        plain = " ".join(unescape(text).split())
        if WORD.search(plain):
            yield plain


def _formulas_apart(source: str) -> Iterator[str]:
    """The source with each word of a formula as a paragraph of its own.

    Documents are read with formulas as TeX, in which letters stand apart and Greek ones are words:
    a paragraph is not to be found as a whole, and single letters say nothing.
    """
    first, *pieces = source.split("<m:oMath>")
    yield first
    for piece in pieces:
        formula, _, rest = piece.partition("</m:oMath>")
        said = normalize("NFKC", " ".join(WRITTEN.findall(formula)))
        words = (word for word in COMPARED.findall(GREEK.sub(" ", said)) if len(word) > 1)
        yield "</w:p>" + "".join(f"<w:p>{word}</w:p>" for word in words) + f"<w:p>{rest}"


def _source(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as stream:
        return stream.read(PART_BYTES).decode("utf-8", "replace")


def _without(source: str, start: str, end: str, *, holding: str = "") -> Iterator[str]:
    """The source without some of its elements."""
    for number, piece in enumerate(source.split(start)):
        inner, found, rest = piece.partition(end)
        yield rest if number and found and holding in inner else piece


def _links(source: str) -> Iterator[str]:
    for relation in re.findall(r"<(?:\w{1,8}:)?Relationship\b([^<>]{0,5000})>", source):
        target = LINK.search(relation)
        if target and 'TargetMode="External"' in relation:
            yield target[1]


def _blocks(source: str) -> Iterator[str]:
    """Text nodes, joined over the runs of a paragraph, and texts that stand in attributes."""
    buffer: list[str] = []
    within = holder = ""
    for tag, text in TOKEN.findall(source):
        if text:
            if within not in CODES:
                buffer.append(text)
                holder = within if text.strip() else holder
            continue
        name = _local(tag)
        if tag.startswith("/"):
            if name in BLOCKS or (name not in RUNS and name == holder):
                yield "".join(buffer)
                buffer.clear()
                holder = ""
            within = ""
        elif name in BREAKS:
            buffer.append(" ")
        elif not tag.endswith("/"):
            if name in BLOCKS and buffer:  # a text box within a paragraph
                yield "".join(buffer)
                buffer.clear()
            within = name
        yield from _speaking(name, tag)
    yield "".join(buffer)


def _speaking(name: str, tag: str) -> Iterator[str]:
    wanted = SPEAKING.get(name)
    if wanted is None or tag.startswith("/"):
        return
    for attribute, value in WORDS_OF.findall(tag):
        if attribute in wanted:
            yield value


def _local(tag: str) -> str:
    found = NAME.match(tag)
    return found[1] if found else ""

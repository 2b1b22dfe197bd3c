"""Text in packages (Office, OpenDocument, EPUB) and pages that readers do not show.

A reader of one format knows where to look for text. `read_package_parts` does not depend on the
format: it takes every text node and every alternative text of every part, and `find_leftovers`
returns those that the reader did not show, by part.
"""

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import unescape
from typing import Final, NamedTuple
from unicodedata import normalize

PART_BYTES: Final = 8 << 20
# Every repetition is bounded, so that hostile text cannot make a search slow.
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
PARTS: Final = (".xml", ".vml", ".rels", ".xhtml", ".html", ".htm", ".ncx", ".opf")
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
PATIENCE: Final = 1 << 30  # characters to search in total; texts after that count as left over
# Elements whose text continues in the next one of the same name; other text ends with its element.
RUNS: Final = frozenset({"t", "delText", "span", "a", "b", "i", "em", "strong", "s", "c"})
BLOCKS: Final = frozenset({"p", "h", "si", "is", "text", "comment", "title", "td", "th", "li"})
BREAKS: Final = frozenset({"br", "tab", "line-break", "cr", "space"})
# Elements with numbers and codes instead of text.
CODES: Final = frozenset({
    "instrText", "f", "formatCode", "posOffset", "pctWidth", "pctHeight", "pctPosHOffset",
    "pctPosVOffset", "align", "sizeRelH", "sizeRelV", "style", "script", "attrName", "formula",
    "Anchor", "Row", "Column", "fmla", "datastoreItem", "binary-data", "dm", "pts",
    "SizeWithCells", "MoveWithCells", "AutoFill", "Locked", "Default", "tableStyleId", "col",
    "colOff", "row", "rowOff",
})  # fmt: skip
ATTRIBUTE: Final = re.compile(
    r"(?:^|\s)(?:[\w.-]{1,20}:)?(descr|title|alt|string|prompt|promptTitle|error|errorTitle|tooltip"
    r'|displayName|author|Author|initials|name|text|v)="([^"]{1,20000})"'
)
# Attributes such as `title` and `name` contain readable text only in these elements.
READABLE_ATTRIBUTES: Final = {
    **dict.fromkeys(("docPr", "cNvPr"), ("descr", "title")),
    **dict.fromkeys(("hyperlink", "hlinkClick", "hlinkHover"), ("tooltip",)),
    **dict.fromkeys(("section", "sheet", "cacheField", "dataField", "definedName"), ("name",)),
    **dict.fromkeys(("author", "cmAuthor"), ("name",)),
    **dict.fromkeys(("comment", "ins", "del"), ("author",)),
    "person": ("displayName",),
    "textpath": ("string",),
    "imagedata": ("title",),
    "image": ("title",),
    "img": ("alt", "title"),
    "shape": ("alt",),
    "dataValidation": ("prompt", "promptTitle", "error", "errorTitle"),
    "s": ("v",),
}
CALCULATE: Final = re.compile(r'<(?:\w{1,8}:)?calcPr\b[^<>]{0,2000}\bfullCalcOnLoad="(?:1|true)"')
WORKBOOK: Final = "xl/workbook.xml"
RELATION: Final = re.compile(r"<(?:\w{1,8}:)?Relationship\b([^<>]{0,5000})>")
TARGET: Final = re.compile(r'\bTarget="([^"]{1,2000})"')
HYPERLINK: Final = re.compile(r'\bType="[^"]{0,300}/hyperlink"')
MASTERS: Final = re.compile(r"ppt/(slideMasters|slideLayouts|notesMasters|handoutMasters)/")
CELLS: Final = re.compile(r"<(?:\w{1,8}:)?sheetData>.*</(?:\w{1,8}:)?sheetData>", re.DOTALL)
# `office.read_package` reads properties, and the workbook reader reads cells.
ELSEWHERE: Final = ("docProps/", "[Content_Types].xml", "xl/sharedStrings.xml", "meta.xml",
                    "META-INF/", "xl/calcChain.xml", "settings.xml", "customXml/_rels")  # fmt: skip


class UnseenText(NamedTuple):
    """Text that readers do not see, and why. It is part of the text that the judge reads."""

    why: str
    words: str


def find_unseen_markup(source: str) -> Iterator[UnseenText]:
    """Find comments and descriptions in a web page or drawing, which no browser shows."""
    yield UnseenText("comments in its source", _join(COMMENT.findall(source)))
    asides = (TAG.sub(" ", found) for _, found in ASIDE.findall(source))
    yield UnseenText("descriptions in its source", _join(asides))


def find_unseen_office(archive: zipfile.ZipFile) -> Iterator[UnseenText]:
    """Find text in the parts of a docx, pptx or xlsx file that it does not show."""
    names = archive.namelist()

    def texts(*starts: str) -> Iterator[str]:
        for name in names:
            if name.startswith(starts) and name.endswith(".xml"):
                yield read_part(archive, name)

    comments = _join(map(_find_words, texts("word/comments", "ppt/comments")))
    yield UnseenText("comments", comments)
    yield from _find_in_word(texts)
    yield from _find_in_slides(texts)
    yield from _find_in_sheets(texts)


def _find_in_word(texts: Callable[..., Iterator[str]]) -> Iterator[UnseenText]:
    runs = [run for text in texts("word/document.xml") for run in split_elements(text, "w:r")]
    vanished = _join(_find_words(run) for run in runs if VANISH.search(run))
    yield UnseenText("text that is set to be hidden", vanished)
    deleted = (_find_words(text) for document in texts("word/document.xml")
               for text in split_elements(document, "w:del"))  # fmt: skip
    yield UnseenText("text that was deleted with its traces kept", _join(deleted))


def _find_in_slides(texts: Callable[..., Iterator[str]]) -> Iterator[UnseenText]:
    size = next((SLIDE_SIZE.search(text) for text in texts("ppt/presentation.xml")), None)
    shapes = [
        shape for slide in texts("ppt/slides/slide") for shape in split_elements(slide, "p:sp")
    ]
    hidden = _join(_find_words(shape) for shape in shapes if SHAPE_HIDDEN.search(shape))
    yield UnseenText("shapes that are hidden", hidden)
    if size is not None:
        width, height = int(size[1]), int(size[2])
        away = _join(_find_words(shape) for shape in shapes if _is_outside(shape, width, height))
        yield UnseenText("shapes outside of their slides", away)


def _is_outside(shape: str, width: int, height: int) -> bool:
    corner, size = OFFSET.search(shape), EXTENT.search(shape)
    if corner is None or size is None:
        return False
    left, top = int(corner[1]), int(corner[2])
    return left >= width or top >= height or left + int(size[1]) <= 0 or top + int(size[2]) <= 0


def _find_in_sheets(texts: Callable[..., Iterator[str]]) -> Iterator[UnseenText]:
    notes = _join(map(_find_words, texts("xl/comments", "xl/threadedComments")))
    yield UnseenText("comments on cells", notes)
    hidden = [
        found for text in texts("xl/worksheets/sheet") for found in OUT_OF_SIGHT.findall(text)
    ]
    what = "rows or columns that are hidden, each told as a word"  # stored name
    yield UnseenText(what, " ".join(hidden))


def _find_words(text: str) -> str:
    return unescape(" ".join(WORDS.findall(text)))


def split_elements(text: str, tag: str) -> Iterator[str]:
    """Yield the source of the elements with this tag; nested ones are split."""
    start = re.compile(rf"<{tag}[ >]")
    for piece in start.split(text)[1:]:
        yield piece.partition(f"</{tag}>")[0]


def _join(parts: Iterable[str]) -> str:
    return " ".join(part.strip() for part in parts if part.strip())


class PackagePart(NamedTuple):
    """A part of a package and its texts: paragraphs, cells, alternative texts."""

    name: str
    texts: tuple[str, ...]


class ExternalLink(NamedTuple):
    """A target outside of the package; `clicked` if only a reader's click opens it."""

    target: str
    clicked: bool


def find_external(relations: str) -> Iterator[ExternalLink]:
    """Yield the external targets of a `.rels` part."""
    for relation in RELATION.findall(relations):
        target = TARGET.search(relation)
        if target and 'TargetMode="External"' in relation:
            yield ExternalLink(target[1], HYPERLINK.search(relation) is not None)


def read_package_parts(archive: zipfile.ZipFile) -> Iterator[PackagePart]:
    """Yield every part that has text. The archive must be safe to unpack."""
    names = archive.namelist()
    stale = WORKBOOK in names and CALCULATE.search(read_part(archive, WORKBOOK))
    for name in names:
        if not name.endswith(PARTS) or name.startswith(ELSEWHERE):
            continue
        source = read_part(archive, name)
        if stale and name.startswith(
            "xl/charts/"
        ):  # its numbers are outdated like those of the formulas
            source = "".join(_drop_elements(source, "<c:numCache>", "</c:numCache>"))
        texts = tuple(dict.fromkeys(_read_texts(name, source)))
        if texts:
            yield PackagePart(name, texts)


def find_leftovers(
    parts: Sequence[PackagePart], shown: str, *, whole: Sequence[str] = ()
) -> Iterator[PackagePart]:
    """Yield the texts of the parts that are missing in `shown`, each text once.

    A text is missing if its words do not follow each other in `shown`, because the same words
    elsewhere may mean something else. No reader covers parts whose names begin with one of
    `whole`, so all of their texts are left over.
    """
    known = _Shown(shown)
    found: set[str] = set()
    for part in parts:
        every = part.name.startswith(tuple(whole)) if whole else False
        texts = [text for text in part.texts if text not in found and (every or text not in known)]
        found.update(texts)
        if texts:
            yield PackagePart(part.name, tuple(texts))


class _Shown:
    """The shown text, searchable by words regardless of what separates them.

    Links, notes and tags interrupt sentences, so the text is also searched without them. A short
    text must be on one line, because words of neighboring cells are not a sentence.
    """

    def __init__(self, shown: str) -> None:
        plain = unescape(BETWEEN.sub(" ", shown))
        lines = [_separate_words(line) for line in (*plain.splitlines(), *shown.splitlines())]
        # The key says whether a text may continue on the next line.
        self._within = {False: "\n".join(lines), True: f" {' '.join(' '.join(lines).split())} "}
        self._next = {False: 0, True: 0}
        self._patience = PATIENCE

    def __contains__(self, text: str) -> bool:
        wanted = _separate_words(text)
        if wanted.isspace():
            return True
        long = wanted.count(" ") > FEW
        within = self._within[long]
        # Most texts are in order, so the search continues from the last match.
        for first in (self._next[long], 0):
            if self._patience < 0:
                return False
            index = within.find(wanted, first)
            self._patience -= (index if index >= 0 else len(within)) - first
            if index >= 0:
                self._next[long] = index
                return True
        return False


def _separate_words(text: str) -> str:
    """Return the words of a text with a space before and after each."""
    return f" {' '.join(COMPARED.findall(text.casefold()))} "


def _read_texts(name: str, source: str) -> Iterator[str]:
    if name.endswith(".rels"):
        yield from (unescape(link.target) for link in find_external(source))
        return
    if MASTERS.match(name):
        # Placeholders contain prompts of the program, which no slide shows.
        source = "".join(_drop_elements(source, "<p:sp>", "</p:sp>", holding="<p:ph"))
    if name.startswith("xl/worksheets/"):
        source = CELLS.sub("", source)
    if name.startswith("word/"):
        source = "".join(_split_formulas(source))
    for text in _read_blocks(source):
        plain = " ".join(unescape(text).split())
        if WORD.search(plain):
            yield plain


def _split_formulas(source: str) -> Iterator[str]:
    """Yield the source with each word of a formula in its own paragraph.

    Documents are read with formulas as TeX, which separates letters and spells out Greek ones. So
    a whole paragraph cannot be found there, and single letters are not worth a search.
    """
    first, *pieces = source.split("<m:oMath>")
    yield first
    for piece in pieces:
        formula, _, rest = piece.partition("</m:oMath>")
        text = normalize("NFKC", " ".join(WRITTEN.findall(formula)))
        words = (word for word in COMPARED.findall(GREEK.sub(" ", text)) if len(word) > 1)
        yield "</w:p>" + "".join(f"<w:p>{word}</w:p>" for word in words) + f"<w:p>{rest}"


def read_part(archive: zipfile.ZipFile, name: str, most: int = PART_BYTES) -> str:
    """Return the text of a part, up to `most` bytes of it."""
    with archive.open(name) as stream:
        return stream.read(most).decode("utf-8", "replace")


def _drop_elements(source: str, start: str, end: str, *, holding: str = "") -> Iterator[str]:
    """Yield the source without the elements that contain `holding`."""
    for number, piece in enumerate(source.split(start)):
        inner, found, rest = piece.partition(end)
        yield rest if number and found and holding in inner else piece


def _read_blocks(source: str) -> Iterator[str]:
    """Yield text nodes, joined over the runs of a paragraph, and readable attributes."""
    buffer: list[str] = []
    within = holder = ""
    for tag, text in TOKEN.findall(source):
        if text:
            if within not in CODES:
                buffer.append(text)
                holder = within if text.strip() else holder
            continue
        matched = NAME.match(tag)
        name = matched[1] if matched else ""
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
        yield from _read_attributes(name, tag)
    yield "".join(buffer)


def _read_attributes(name: str, tag: str) -> Iterator[str]:
    wanted = READABLE_ATTRIBUTES.get(name)
    if wanted is None or tag.startswith("/"):
        return
    for attribute, value in ATTRIBUTE.findall(tag):
        if attribute in wanted:
            yield value

"""All text of a package (Office, OpenDocument, EPUB), part by part, so that none is lost unseen.

Readers of a kind know what they look for. This knows nothing of a kind: it takes every text node
and every alternative text of every part, and what a reader has not shown is told under the part's
name.
"""

import re
import zipfile
from collections.abc import Iterator, Sequence
from html import unescape
from typing import Final, NamedTuple

PART_BYTES: Final = 8 << 20
PARTS: Final = (".xml", ".vml", ".rels", ".xhtml", ".html", ".htm", ".ncx", ".opf")
# Every repetition has a bound: a hostile text must not take longer than its length.
TOKEN: Final = re.compile(r"<([^<>]{0,20000})>|([^<]+)")
NAME: Final = re.compile(r"/?(?:[\w.-]{1,40}:)?([\w.-]{1,60})")
WORD: Final = re.compile(r"\w+")
# Text that goes on in the next element of the same name; all other text ends with its element.
RUNS: Final = frozenset({"t", "delText", "span", "a", "b", "i", "em", "strong", "s", "c"})
BLOCKS: Final = frozenset({"p", "h", "si", "is", "text", "comment", "title", "td", "th", "li"})
BREAKS: Final = frozenset({"br", "tab", "line-break", "cr", "space"})
# Numbers and codes of a program, which are no text of anybody.
CODES: Final = frozenset({
    "instrText", "f", "formatCode", "posOffset", "pctWidth", "pctHeight", "pctPosHOffset",
    "pctPosVOffset", "align", "sizeRelH", "sizeRelV", "style", "script", "attrName", "formula",
    "Anchor", "Row", "Column", "fmla", "datastoreItem", "binary-data", "dm", "pts",
    "SizeWithCells", "MoveWithCells", "AutoFill", "Locked", "Default",
})  # fmt: skip
WORDS_OF: Final = re.compile(
    r"(?:^|\s)(?:[\w.-]{1,20}:)?(descr|title|alt|string|prompt|promptTitle|error|errorTitle|tooltip"
    r'|displayName|author|Author|initials|name|text)="([^"]{1,20000})"'
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
LINK: Final = re.compile(r'\bTarget="([^"]{1,2000})"')
MASTERS: Final = re.compile(r"ppt/(slideMasters|slideLayouts|notesMasters|handoutMasters)/")
CELLS: Final = re.compile(r"<(?:\w{1,8}:)?sheetData>.*</(?:\w{1,8}:)?sheetData>", re.DOTALL)
# Properties are told by `office.read_package`; cells are read by the reader of workbooks.
ELSEWHERE: Final = ("docProps/", "[Content_Types].xml", "xl/sharedStrings.xml", "meta.xml",
                    "META-INF/", "xl/calcChain.xml", "settings.xml", "customXml/_rels")  # fmt: skip


class Part(NamedTuple):
    """A part of a package, and its texts: paragraphs, cells, alternative texts."""

    name: str
    texts: tuple[str, ...]


def package_parts(archive: zipfile.ZipFile) -> Iterator[Part]:
    """Every part that has text; call it for an archive that is safe to unpack."""
    for name in archive.namelist():
        if not name.endswith(PARTS) or name.startswith(ELSEWHERE):
            continue
        with archive.open(name) as stream:
            source = stream.read(PART_BYTES).decode("utf-8", "replace")
        texts = tuple(dict.fromkeys(_texts(name, source)))
        if texts:
            yield Part(name, texts)


def left_over(parts: Sequence[Part], shown: str, *, whole: Sequence[str] = ()) -> Iterator[Part]:
    """What of the parts does not stand in the text that is shown, each text once.

    A text is left over if one of its words is nowhere in `shown`. Parts whose names begin as one
    of `whole` were read by nobody, so they are left over with every text.
    """
    known = set(words(shown))
    told: set[str] = set()
    for part in parts:
        every = part.name.startswith(tuple(whole)) if whole else False
        texts = [
            text
            for text in part.texts
            if text not in told and (every or not known.issuperset(words(text)))
        ]
        told.update(texts)
        if texts:
            yield Part(part.name, tuple(texts))


def words(text: str) -> list[str]:
    """The words of a text, so that two spellings of it can be compared."""
    return WORD.findall(text.casefold())


def _texts(name: str, source: str) -> Iterator[str]:
    if name.endswith(".rels"):
        yield from (unescape(link) for link in _links(source))
        return
    if MASTERS.match(name):
        source = "".join(_without_prompts(source))
    if name.startswith("xl/worksheets/"):
        source = CELLS.sub("", source)
    for text in _blocks(source):
        plain = " ".join(unescape(text).split())
        if WORD.search(plain):
            yield plain


def _without_prompts(source: str) -> Iterator[str]:
    """Placeholders of masters and layouts hold what the program asks for, and no slide shows it."""
    for number, piece in enumerate(source.split("<p:sp>")):
        shape, end, rest = piece.partition("</p:sp>")
        yield rest if number and end and "<p:ph" in shape else piece


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

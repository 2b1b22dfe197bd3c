"""Word documents as GitHub Markdown: headings, lists, tables, formulas, notes.

pandoc numbers every list as 1, 2, 3 and omits the numbers of headings. So labels such as
`ARTICLE VII:` are first written into a copy of the document.
"""

import asyncio
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape, unescape
from typing import Final, Literal, NamedTuple

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.content.identify import BROKEN_ZIP
from gta_bench.content.leftovers import PART_BYTES, split_elements
from gta_bench.content.needs import find_pandoc, missing_pandoc, require
from gta_bench.content.office import count_parts, open_office
from gta_bench.content.shown import drop_vanished
from gta_bench.errors import ToolError

DOCUMENT: Final = "word/document.xml"
NUMBERING: Final = "word/numbering.xml"
STYLES: Final = "word/styles.xml"
PROPERTIES: Final = re.compile(r"<w:pPr(?:\s[^<>]{0,300}[^<>/])?>")
CLOSED: Final = "</w:pPr>"
# pandoc reads indented paragraphs as quotations.
INDENT: Final = re.compile(r"<w:ind\s[^<>]{0,500}/>")
NOT_NUMBERED: Final = '<w:numPr><w:numId w:val="0"/></w:numPr>'
LEVEL_NUMBER: Final = re.compile(r"%([1-9])")
MOST_BASES: Final = 20
ROMAN: Final = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
    (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip
HIGHEST: Final = 5000
# The heap limit is below the jail's, so that pandoc itself reports that it needs too much.
HEAP = ["+RTS", "-M1024M", "-RTS"]
LIMITS = JailLimits(wall_seconds=28.0, cpu_seconds=28, output_bytes=64 * MIB)
HEAP_EXHAUSTED = 251
SHOWN_ERROR = 300
# GitHub Markdown, but with formulas between dollar signs.
FORMAT = "gfm-tex_math_gfm+tex_math_dollars"


class Level(NamedTuple):
    """The label format of one level; `restarts` means that an item of a higher level resets it."""

    start: int
    form: str
    text: str
    decimals: bool
    restarts: bool
    style: str


class List(NamedTuple):
    """A list. It continues the count of other lists of the same `kind`."""

    kind: str
    levels: Mapping[int, Level]
    starts: Mapping[int, int]

    def is_plain(self, levels: Iterable[int]) -> bool:
        """Whether these levels are labeled 1, 2, 3, as pandoc does."""
        return all(
            self.levels[n].form == "decimal"
            and self.levels[n].text in (f"%{n + 1}", f"%{n + 1}.", f"%{n + 1})")
            for n in levels
        )


class _Item(NamedTuple):
    """A numbered paragraph."""

    number: str
    of: List
    level: int
    heading: bool


class _Style(NamedTuple):
    """The numbering of a paragraph style."""

    base: str
    numbered: str | None
    level: int | None
    heading: bool


class Labeled(NamedTuple):
    """A document with its labels written out; `uncounted` if some could not be computed."""

    data: bytes
    uncounted: bool = False


def add_list_labels(data: bytes) -> Labeled:
    """Return a copy with labels written out, or the file itself if it needs none.

    The file must be safe to unpack.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        source = {name: parts.get(name, b"").decode() for name in (DOCUMENT, NUMBERING, STYLES)}
    except (*BROKEN_ZIP, UnicodeDecodeError):
        return Labeled(data)  # pandoc reports what is wrong with it
    if not source[NUMBERING] or max(map(len, source.values())) > PART_BYTES:
        return Labeled(data)
    count = _Count(dict(_lists(source[NUMBERING])), dict(_styles(source[STYLES])))
    labeled = "".join(_label_paragraphs(source[DOCUMENT], count))
    if labeled == source[DOCUMENT]:
        return Labeled(data, count.uncounted)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as copy:
        for name, part in parts.items():
            copy.writestr(name, labeled if name == DOCUMENT else part)
    return Labeled(stream.getvalue(), count.uncounted)


def _label_paragraphs(document: str, count: "_Count") -> Iterator[str]:
    """Yield the document with a label at the start of each numbered paragraph."""
    tags = PROPERTIES.findall(document)
    first, *rest = PROPERTIES.split(document)
    yield first
    for piece in rest:
        count.note_level(piece.partition(CLOSED)[0])
    copied = first.count("<mc:Fallback") - first.count("</mc:Fallback")
    waiting = ("", "")
    for tag, piece in zip(tags, rest, strict=True):
        inner, closed, after = piece.partition(CLOSED)
        if not closed:  # contains the properties from before a tracked change
            yield "".join(waiting)
            waiting = (tag, piece)
            continue
        if waiting[0]:
            more, closed, after = after.partition(CLOSED)
            inner = f"{waiting[1]}{tag}{inner}{CLOSED}{more}"
            tag, waiting = waiting[0], ("", "")
        label = None if copied > 0 else count.label(inner)
        if label is not None:
            start, _, numbered = inner.partition("<w:numPr>")
            inner = NOT_NUMBERED + INDENT.sub("", start + numbered.partition("</w:numPr>")[2])
            text = escape(unescape(label), quote=False)
            after = f'<w:r><w:t xml:space="preserve">{text} </w:t></w:r>{after}'
        yield f"{tag}{inner}{closed}{after}"
        copied += piece.count("<mc:Fallback") - piece.count("</mc:Fallback")
    yield "".join(waiting)


@dataclass
class _Count:
    """Counts the items of all lists in the order of the document."""

    lists: Mapping[str, List]
    styles: Mapping[str, _Style]
    uncounted: bool = False
    _used: dict[str, set[int]] = field(default_factory=dict)
    _counts: dict[str, dict[int, int]] = field(default_factory=dict)
    _begun: set[tuple[str, int]] = field(default_factory=set)

    def note_level(self, properties: str) -> None:
        """Record that the paragraph's list uses its level in this document."""
        item = self._item(properties)
        if item is not None:
            self._used.setdefault(item.of.kind, set()).add(item.level)

    def label(self, properties: str) -> str | None:
        """Return the label of a paragraph; None if it has none or pandoc writes it."""
        item = self._item(properties)
        if item is None:
            return None
        values = self._count_item(item.number, item.of, item.level)
        if item.of.is_plain(self._used[item.of.kind] & item.of.levels.keys()) and not item.heading:
            return None
        label = _format_label(item.of.levels[item.level], item.of, values)
        self.uncounted |= label is None
        return label

    def _item(self, properties: str) -> _Item | None:
        own = properties.partition("<w:pPrChange")[0]
        if "<w:numId" not in own and "<w:pStyle" not in own:
            return None
        chain = list(self._chain(_value(own, "pStyle") or ""))
        styled = next((style for style in chain if style.numbered), None)
        number = _value(own, "numId") or (styled and styled.numbered)
        found = self.lists.get(number or "")
        if found is None or number is None:
            return None
        self.uncounted |= not found.levels  # its levels come from a list style, which is not read
        stated = _value(own, "ilvl")
        if stated and stated.isdecimal():
            index = int(stated)
        else:
            index = self._styled_level(own, styled, found)
        level = found.levels.get(index)
        if level is None or level.form in ("bullet", "none"):
            return None
        return _Item(number, found, index, any(style.heading for style in chain))

    def _chain(self, name: str) -> Iterator[_Style]:
        for _ in range(MOST_BASES):
            if name not in self.styles:
                return
            yield self.styles[name]
            name = self.styles[name].base

    def _styled_level(self, own: str, styled: _Style | None, found: List) -> int:
        name = _value(own, "pStyle")
        linked = (index for index, level in found.levels.items() if name and level.style == name)
        return next(linked, (styled and styled.level) or 0)

    def _count_item(self, number: str, found: List, level: int) -> dict[int, int]:
        counts = self._counts.setdefault(found.kind, {})
        if (number, level) not in self._begun and level in found.starts:
            counts[level] = found.starts[level] - 1
        self._begun.add((number, level))
        counts[level] = counts.get(level, found.levels[level].start - 1) + 1
        for deeper in [one for one in counts if one > level]:
            if deeper not in found.levels or found.levels[deeper].restarts:
                del counts[deeper]
        return counts


def _format_label(level: Level, found: List, values: Mapping[int, int]) -> str | None:
    """Return the label as shown; None if one of its numbers has an unknown format."""
    label = level.text
    for index in {int(one) - 1 for one in LEVEL_NUMBER.findall(label)}:
        of = found.levels.get(index)
        if of is None:
            return None
        form = FORMS.get("decimal" if level.decimals else of.form)
        value = values.get(index, of.start)
        if form is None or not 0 <= value < HIGHEST:
            return None
        label = label.replace(f"%{index + 1}", form(value))
    return label


def _roman(value: int) -> str:
    letters = ""
    for worth, letter in ROMAN:
        letters += letter * (value // worth)
        value %= worth
    return letters


def _letters(value: int) -> str:
    """Return A to Z, then AA, BB and so on, as Word does."""
    return chr(ord("A") + (value - 1) % 26) * ((value - 1) // 26 + 1) if value else ""


FORMS: Final[Mapping[str, Callable[[int], str]]] = {
    "decimal": str,
    "decimalZero": lambda value: f"{value:02}",
    "upperRoman": _roman,
    "lowerRoman": lambda value: _roman(value).lower(),
    "upperLetter": _letters,
    "lowerLetter": lambda value: _letters(value).lower(),
    "none": lambda value: "",
}


def _lists(source: str) -> Iterator[tuple[str, List]]:
    kinds = {
        _attribute(kind, "abstractNumId"): dict(_levels(kind))
        for kind in split_elements(source, "w:abstractNum")
    }
    for one in split_elements(source, "w:num"):
        kind = _value(one, "abstractNumId") or ""
        changes = list(split_elements(one, "w:lvlOverride"))
        starts = {
            _number(_attribute(change, "ilvl")): _number(start)
            for change in changes
            if (start := _value(change, "startOverride")) is not None
        }
        levels = dict(kinds.get(kind, {}))
        for change in changes:
            levels |= dict(_levels(change))
        yield _attribute(one, "numId"), List(kind, levels, starts)


def _levels(source: str) -> Iterator[tuple[int, Level]]:
    for one in split_elements(source, "w:lvl"):
        yield (
            _number(_attribute(one, "ilvl")),
            Level(
                start=_number(_value(one, "start") or "1"),
                form=_value(one, "numFmt") or "decimal",
                text=_value(one, "lvlText") or "",
                decimals="<w:isLgl" in one,
                restarts=_value(one, "lvlRestart") != "0",
                style=_value(one, "pStyle") or "",
            ),
        )


def _styles(source: str) -> Iterator[tuple[str, _Style]]:
    for one in split_elements(source, "w:style"):
        level = _value(one, "ilvl")
        yield (
            _attribute(one, "styleId"),
            _Style(
                base=_value(one, "basedOn") or "",
                numbered=_value(one, "numId"),
                level=None if level is None else _number(level),
                heading=(_value(one, "name") or "").lower().startswith("heading"),
            ),
        )


def _value(source: str, tag: str) -> str | None:
    found = re.search(rf'<w:{tag}\s[^<>]{{0,300}}?\bw:val="([^"<>]{{0,300}})"', source)
    return found[1] if found else None


def _attribute(source: str, name: str) -> str:
    found = re.search(rf'\bw:{name}="([^"<>]{{0,300}})"', source[:1000])
    return found[1] if found else ""


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else 0


@dataclass(frozen=True, slots=True)
class DocxContent:
    """The text of a document; `pictures` and `charts` are only counted.

    `uncounted` means that some labels of its lists have an unknown format.
    """

    markdown: str
    pictures: int
    charts: int
    uncounted: bool = False

    def as_text(self) -> str:
        """The document as Markdown."""
        return self.markdown


async def read_by_pandoc(
    data: bytes, form: str, jail: Jail, *, changes: Literal["all", "accept"] = "all"
) -> str:
    """Convert a document of a form that pandoc reads to Markdown.

    The text includes the metadata, comments and tracked changes; with `accept`, neither comments
    nor deleted text. Raises ToolError if pandoc cannot read the document.
    """
    require(missing_pandoc())
    argv = [str(find_pandoc()), f"--from={form}", f"--to={FORMAT}", "--wrap=none", "--sandbox"]
    argv += ["--standalone", f"--track-changes={changes}", *HEAP, f"../inputs/document.{form}"]
    result = await jail.run_program(argv, inputs={f"document.{form}": data}, limits=LIMITS)
    if result.report.exit_status == HEAP_EXHAUSTED:
        raise ToolError("Reading the document needs more memory than is allowed.")
    if not result.succeeded:
        reason = result.stderr.decode("utf-8", "replace").strip()[:SHOWN_ERROR]
        raise ToolError(f"The document cannot be read: {reason or 'pandoc gave no reason'}")
    return result.stdout.decode("utf-8", "replace")


async def read_docx(data: bytes, jail: Jail, *, as_shown: bool = False) -> DocxContent:
    """Read a Word document; with `as_shown`, without comments, deleted and hidden text.

    Raises ToolError if it is not one, is broken, or is too large.
    """
    parts = await open_office(data, "docx")
    kept = await asyncio.to_thread(drop_vanished, data) if as_shown else data
    labeled = await asyncio.to_thread(add_list_labels, kept)
    changes: Literal["all", "accept"] = "accept" if as_shown else "all"
    return DocxContent(
        markdown=await read_by_pandoc(labeled.data, "docx", jail, changes=changes),
        uncounted=labeled.uncounted,
        pictures=count_parts(parts, "word/media/"),
        charts=count_parts(parts, "word/charts/chart"),
    )

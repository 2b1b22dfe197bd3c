"""Word documents, as GitHub's Markdown: headings, lists, tables, formulas, notes."""

import asyncio
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape, unescape
from typing import Final, NamedTuple

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits
from gta_bench.content.identify import BROKEN_ZIP
from gta_bench.content.leftovers import PART_BYTES, pieces
from gta_bench.content.needs import missing_pandoc, pandoc_program, require
from gta_bench.content.office import count_parts, open_office
from gta_bench.errors import ToolError

DOCUMENT: Final = "word/document.xml"
NUMBERING: Final = "word/numbering.xml"
STYLES: Final = "word/styles.xml"
PROPERTIES: Final = re.compile(r"<w:pPr(?:\s[^<>]{0,300}[^<>/])?>")
CLOSED: Final = "</w:pPr>"
# pandoc takes what is set in for a quotation.
SET_IN: Final = re.compile(r"<w:ind\s[^<>]{0,500}/>")
NOT_NUMBERED: Final = '<w:numPr><w:numId w:val="0"/></w:numPr>'
PLACE: Final = re.compile(r"%([1-9])")
MOST_BASES: Final = 20
ROMAN: Final = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
    (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip
HIGHEST: Final = 5000


class Level(NamedTuple):
    """How the labels of one level of a list look; `restarts` behind each item of a higher level."""

    start: int
    form: str
    text: str
    decimals: bool
    restarts: bool
    style: str


class List(NamedTuple):
    """A list: it goes on counting where another one of the same `kind` ended."""

    kind: str
    levels: Mapping[int, Level]
    starts: Mapping[int, int]

    def plain(self, places: Iterable[int]) -> bool:
        """Whether pandoc's 1, 2, 3 are the labels of these levels."""
        return all(
            self.levels[n].form == "decimal"
            and self.levels[n].text in (f"%{n + 1}", f"%{n + 1}.", f"%{n + 1})")
            for n in places
        )


class _Item(NamedTuple):
    """A numbered paragraph."""

    number: str
    of: List
    place: int
    heading: bool


class _Style(NamedTuple):
    """What a paragraph style says of numbering."""

    base: str
    numbered: str | None
    level: int | None
    heading: bool


class Labeled(NamedTuple):
    """A document with its labels written out; `uncounted` if some cannot be computed."""

    data: bytes
    uncounted: bool = False


def with_labels(data: bytes) -> Labeled:
    """A copy of a Word file that is safe to unpack, or the file itself where it needs none."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        source = {name: parts.get(name, b"").decode() for name in (DOCUMENT, NUMBERING, STYLES)}
    except (*BROKEN_ZIP, UnicodeDecodeError):
        return Labeled(data)  # its reader says what is wrong with it
    if not source[NUMBERING] or max(map(len, source.values())) > PART_BYTES:
        return Labeled(data)
    count = _Count(dict(_lists(source[NUMBERING])), dict(_styles(source[STYLES])))
    written = "".join(_written(source[DOCUMENT], count))
    if written == source[DOCUMENT]:
        return Labeled(data, count.uncounted)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as copy:
        for name, part in parts.items():
            copy.writestr(name, written if name == DOCUMENT else part)
    return Labeled(stream.getvalue(), count.uncounted)


def _written(document: str, count: "_Count") -> Iterator[str]:
    """The document, with a label at the start of each paragraph that has one."""
    tags = PROPERTIES.findall(document)
    first, *rest = PROPERTIES.split(document)
    yield first
    for piece in rest:
        count.look(piece.partition(CLOSED)[0])
    copied = first.count("<mc:Fallback") - first.count("</mc:Fallback")
    held = ("", "")
    for tag, piece in zip(tags, rest, strict=True):
        inner, closed, after = piece.partition(CLOSED)
        if not closed:  # those of before a tracked change stand inside
            yield "".join(held)
            held = (tag, piece)
            continue
        if held[0]:
            more, closed, after = after.partition(CLOSED)
            inner, tag, held = f"{held[1]}{tag}{inner}{CLOSED}{more}", held[0], ("", "")
        label = None if copied > 0 else count.label(inner)
        if label is not None:
            start, _, numbered = inner.partition("<w:numPr>")
            inner = NOT_NUMBERED + SET_IN.sub("", start + numbered.partition("</w:numPr>")[2])
            text = escape(unescape(label), quote=False)
            after = f'<w:r><w:t xml:space="preserve">{text} </w:t></w:r>{after}'
        yield f"{tag}{inner}{closed}{after}"
        copied += piece.count("<mc:Fallback") - piece.count("</mc:Fallback")
    yield "".join(held)


@dataclass
class _Count:
    """Counts the items of all lists in the order of the document."""

    lists: Mapping[str, List]
    styles: Mapping[str, _Style]
    uncounted: bool = False
    _used: dict[str, set[int]] = field(default_factory=dict)
    _counts: dict[str, dict[int, int]] = field(default_factory=dict)
    _begun: set[tuple[str, int]] = field(default_factory=set)

    def look(self, properties: str) -> None:
        """Take note of the levels that lists have in this document."""
        item = self._item(properties)
        if item is not None:
            self._used.setdefault(item.of.kind, set()).add(item.place)

    def label(self, properties: str) -> str | None:
        """The label to write before a paragraph; None where it has none, or pandoc has it."""
        item = self._item(properties)
        if item is None:
            return None
        values = self._step(item.number, item.of, item.place)
        if item.of.plain(self._used[item.of.kind] & item.of.levels.keys()) and not item.heading:
            return None
        label = _label(item.of.levels[item.place], item.of, values)
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
        self.uncounted |= not found.levels  # they are those of a style of lists
        said = _value(own, "ilvl")
        place = int(said) if said and said.isdecimal() else self._styled_level(own, styled, found)
        level = found.levels.get(place)
        if level is None or level.form in ("bullet", "none"):
            return None
        return _Item(number, found, place, any(style.heading for style in chain))

    def _chain(self, name: str) -> Iterator[_Style]:
        for _ in range(MOST_BASES):
            if name not in self.styles:
                return
            yield self.styles[name]
            name = self.styles[name].base

    def _styled_level(self, own: str, styled: _Style | None, found: List) -> int:
        name = _value(own, "pStyle")
        linked = (place for place, level in found.levels.items() if name and level.style == name)
        return next(linked, (styled and styled.level) or 0)

    def _step(self, number: str, found: List, place: int) -> dict[int, int]:
        counts = self._counts.setdefault(found.kind, {})
        if (number, place) not in self._begun and place in found.starts:
            counts[place] = found.starts[place] - 1
        self._begun.add((number, place))
        counts[place] = counts.get(place, found.levels[place].start - 1) + 1
        for deeper in [one for one in counts if one > place]:
            if deeper not in found.levels or found.levels[deeper].restarts:
                del counts[deeper]
        return counts


def _label(level: Level, found: List, values: Mapping[int, int]) -> str | None:
    """The label as shown; None where one of its numbers has a form that is not known here."""
    label = level.text
    for place in {int(one) - 1 for one in PLACE.findall(label)}:
        of = found.levels.get(place)
        if of is None:
            return None
        form = FORMS.get("decimal" if level.decimals else of.form)
        value = values.get(place, of.start)
        if form is None or not 0 <= value < HIGHEST:
            return None
        label = label.replace(f"%{place + 1}", form(value))
    return label


def _roman(value: int) -> str:
    letters = ""
    for worth, letter in ROMAN:
        letters += letter * (value // worth)
        value %= worth
    return letters


def _letters(value: int) -> str:
    """A to Z, AA, BB: as Word goes on."""
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
        for kind in pieces(source, "w:abstractNum")
    }
    for one in pieces(source, "w:num"):
        kind = _value(one, "abstractNumId") or ""
        changes = list(pieces(one, "w:lvlOverride"))
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
    for one in pieces(source, "w:lvl"):
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
    for one in pieces(source, "w:style"):
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


# The heap's bound lies below the jail's, so that pandoc itself says that it needs too much.
HEAP = ["+RTS", "-M1024M", "-RTS"]
LIMITS = JailLimits(wall_seconds=28.0, cpu_seconds=28, output_bytes=64 * MIB)
HEAP_EXHAUSTED = 251
SHOWN_ERROR = 300
# GitHub's Markdown, but formulas between dollars, as everybody writes them.
FORMAT = "gfm-tex_math_gfm+tex_math_dollars"


@dataclass(frozen=True, slots=True)
class DocxContent:
    """A document's text; `pictures` and `charts` are counted, the text only names their places.

    `uncounted` if some labels of its lists are in a form that is not known here.
    """

    markdown: str
    pictures: int
    charts: int
    uncounted: bool = False

    def as_text(self) -> str:
        """The document as Markdown."""
        return self.markdown


async def read_by_pandoc(data: bytes, form: str, jail: Jail) -> str:
    """A document of any form that pandoc reads, as Markdown; ToolError if it cannot be read.

    With its title and what else it says of itself, and with comments and changes in their places.
    """
    require(missing_pandoc())
    argv = [str(pandoc_program()), f"--from={form}", f"--to={FORMAT}", "--wrap=none", "--sandbox"]
    argv += ["--standalone", "--track-changes=all", *HEAP, f"../inputs/document.{form}"]
    result = await jail.run_program(argv, inputs={f"document.{form}": data}, limits=LIMITS)
    if result.report.exit_status == HEAP_EXHAUSTED:
        raise ToolError("The document needs more memory to read than is allowed.")
    if not result.succeeded:
        words = result.stderr.decode("utf-8", "replace").strip()[:SHOWN_ERROR]
        raise ToolError(f"The document cannot be read: {words or 'pandoc gives no reason'}")
    return result.stdout.decode("utf-8", "replace")


async def read_docx(data: bytes, jail: Jail) -> DocxContent:
    """Read a Word document; ToolError if it is none, broken, or too much."""
    parts = await open_office(data, "docx")
    labeled = await asyncio.to_thread(with_labels, data)
    return DocxContent(
        markdown=await read_by_pandoc(labeled.data, "docx", jail),
        uncounted=labeled.uncounted,
        pictures=count_parts(parts, "word/media/"),
        charts=count_parts(parts, "word/charts/chart"),
    )

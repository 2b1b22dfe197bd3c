"""What stands on a slide: lines of styled words, tables and pictures, out of pandoc's tree."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from gta_bench.tools.documents.source import CLOSE, OPEN

# An arrow, hat, bar, tilde or dots over a letter, and the mark that joins the letter before it.
ACCENTS: Final = {
    "\u2192": "\u20d7",
    "^": "\u0302",
    "\u02c6": "\u0302",
    "\u00af": "\u0304",
    "\u203e": "\u0304",
    "~": "\u0303",
    "\u02dc": "\u0303",
    "\u02d9": "\u0307",
    "\u00a8": "\u0308",
}
SPACED: Final = frozenset("=<>≤≥≠≈≡∼→←↔⇒⇐⇔∈∉⊂⊆∪∩+−±×·÷∧∨")  # noqa: RUF001
BIG: Final = frozenset("∑∏∫∬∮⋃⋂")  # noqa: RUF001
LineKind = Literal["text", "heading", "quote", "code"]
Alignment = Literal["left", "right", "center"]
PICTURE: Final = re.compile(f"{OPEN}(\\d+){CLOSE}")
ALIGNMENTS: Final[dict[str, Alignment]] = {"AlignRight": "right", "AlignCenter": "center"}
DEEPEST: Final = 5
LOOKS: Final[dict[str, dict[str, Any]]] = {
    "Strong": {"bold": True},
    "Emph": {"italic": True},
    "Underline": {"underline": True},
    "Strikeout": {"strike": True},
    "Superscript": {"raised": 1},
    "Subscript": {"raised": -1},
    "SmallCaps": {},
}


class Word(NamedTuple):
    """Some characters; `raised` is 1 for an exponent, -1 for an index."""

    text: str
    raised: int = 0
    italic: bool = False


def words_of(html: str, source: str) -> list[Word]:
    """The words of pandoc's MathML; of what it could not read, the source."""
    found = re.search(r"<math.*</math>", html, re.DOTALL)
    try:
        root = ElementTree.fromstring(found[0]) if found else None
    except ElementTree.ParseError:
        root = None
    if root is None:
        return [Word(source)]
    return _joined(_words(root))


def _words(node: ElementTree.Element) -> list[Word]:
    tag = node.tag.rpartition("}")[2]
    children = list(node)
    if tag in ("annotation", "annotation-xml"):
        return []
    if tag in ("mi", "mn", "mo", "mtext", "ms"):
        return _token(tag, "".join(node.itertext()))
    if tag == "mspace":
        return [Word(" ")]
    if tag in BUILDERS and len(children) >= 1:
        return BUILDERS[tag](children)
    if tag in ("mtr", "mtd", "mtable"):
        return _read_rows(tag, children)
    return [word for child in children for word in _words(child)]


def _token(tag: str, text: str) -> list[Word]:
    text = text.replace("\u2061", "").replace("\u2062", "")
    if tag == "mo" and text in SPACED:
        return [Word(f" {text} ")]
    if tag == "mo" and text == ",":
        return [Word(", ")]
    return [Word(text, italic=tag == "mi" and len(text) == 1 and text.isalpha())] if text else []


def _fraction(children: list[ElementTree.Element]) -> list[Word]:
    over, under = (_grouped(_words(child)) for child in (children[0], children[-1]))
    return [*over, Word("/"), *under]


def _root(children: list[ElementTree.Element]) -> list[Word]:
    inner = [word for child in children for word in _words(child)]
    return [Word("√"), *_grouped(inner)]


def _nth_root(children: list[ElementTree.Element]) -> list[Word]:
    return [*_raised(children[-1], 1), Word("√"), *_grouped(_words(children[0]))]


def _power(children: list[ElementTree.Element]) -> list[Word]:
    return [*_words(children[0]), *_raised(children[-1], 1)]


def _index(children: list[ElementTree.Element]) -> list[Word]:
    return [*_words(children[0]), *_raised(children[-1], -1)]


def _both(children: list[ElementTree.Element]) -> list[Word]:
    base = _words(children[0])
    scripts = [*_raised(children[1], -1), *_raised(children[-1], 1)]
    space = [Word(" ")] if "".join(word.text for word in base) in BIG else []
    return [*base, *scripts, *space]


def _over(children: list[ElementTree.Element]) -> list[Word]:
    mark = "".join(children[-1].itertext()).strip()
    accent = ACCENTS.get(mark)
    if accent is None:
        return _power(children)
    base = "".join(word.text for word in _words(children[0]))
    return [Word(base + accent, italic=True)]


def _read_rows(tag: str, children: list[ElementTree.Element]) -> list[Word]:
    """Rows are parted by semicolons, cells by blanks."""
    parts = [_words(child) for child in children]
    between = {"mtable": Word("; "), "mtr": Word("  ")}.get(tag)
    words: list[Word] = []
    for number, part in enumerate(parts):
        words += [between] if number and between else []
        words += part
    return words


BUILDERS: Final = {
    "mfrac": _fraction,
    "msqrt": _root,
    "mroot": _nth_root,
    "msup": _power,
    "msub": _index,
    "msubsup": _both,
    "munderover": _both,
    "munder": _index,
    "mover": _over,
}


def _raised(node: ElementTree.Element, by: int) -> list[Word]:
    """An exponent or index; one within one is written out, as a line has only three heights."""
    result = []
    for word in _words(node):
        text = word.text.strip() if word.text.strip() in SPACED else word.text
        if word.raised:
            text = ("^" if word.raised > 0 else "_") + text
        result.append(Word(text, by, word.italic))
    return result


def _grouped(words: list[Word]) -> list[Word]:
    """In parentheses, unless it is one thing."""
    text = "".join(word.text for word in words)
    simple = text.isalnum() or len(text) <= 1
    return words if simple else [Word("("), *words, Word(")")]


def _joined(words: list[Word]) -> list[Word]:
    result: list[Word] = []
    for word in words:
        if result and result[-1][1:] == word[1:]:
            result[-1] = Word(result[-1].text + word.text, *word[1:])
        else:
            result.append(word)
    cleaned = [Word(re.sub(" {2,}", " ", word.text), *word[1:]) for word in result]
    return [word for word in cleaned if word.text]


@dataclass(frozen=True, slots=True)
class TextRun:
    """Words of one look."""

    text: str
    bold: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False
    code: bool = False
    raised: int = 0
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A paragraph of a slide; `mark` is a bullet or `3.`, and is drawn before the words."""

    runs: tuple[TextRun, ...]
    level: int = 0
    mark: str | None = None
    kind: LineKind = "text"
    hanging: bool = False  # belongs to the marked line before it


GridRows = tuple[tuple[tuple[TextRun, ...], ...], ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; the first `header` rows are its head."""

    rows: GridRows
    alignments: tuple[Alignment, ...]
    header: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture by its number in `image_paths`, or by the path that the text names."""

    number: int | None = None
    target: str | None = None


Block = Line | Grid | Shown


def read_blocks(blocks: Sequence[Any]) -> list[Block]:
    """The blocks of one slide in order; pictures stand where they were met."""
    return [block for node in blocks for block in _block(node, _Place())]


@dataclass(frozen=True, slots=True)
class _Place:
    level: int = 0
    mark: str | None = None
    kind: LineKind = "text"
    marked: bool = False  # the mark has been drawn


def _block(node: Any, place: _Place) -> Iterator[Block]:
    kind, content = node["t"], node.get("c")
    if kind in ("Para", "Plain"):
        yield from _paragraph(content, place)
    elif kind == "Header":
        yield from _paragraph(content[2], replace(place, kind="heading"))
    elif kind == "BulletList":
        for item in content:
            yield from _item(item, "•", place)
    elif kind == "OrderedList":
        for number, item in enumerate(content[1], start=content[0][0]):
            yield from _item(item, f"{number}.", place)
    elif kind == "CodeBlock":
        for line in content[1].rstrip("\n").expandtabs(4).split("\n"):
            yield Line((TextRun(line, code=True),), place.level, kind="code")
    elif kind == "Table":
        yield from _table(content)
    else:
        yield from _container(kind, content, place)


def _container(kind: str, content: Any, place: _Place) -> Iterator[Block]:
    """What only holds other blocks."""
    if kind == "BlockQuote":
        inner, place = content, replace(place, kind="quote")
    elif kind == "Div":
        inner = content[1]
    elif kind == "Figure":
        inner = [*content[2], *(content[1][1] or [])]
    elif kind == "LineBlock":
        inner = [{"t": "Para", "c": line} for line in content]
    elif kind == "DefinitionList":
        inner = [
            block
            for term, texts in content
            for block in [{"t": "Para", "c": term}, *(b for text in texts for b in text)]
        ]
    else:  # a rule, which a slide does not show
        inner = []
    for block in inner:
        yield from _block(block, place)


def _item(blocks: Sequence[Any], mark: str, place: _Place) -> Iterator[Block]:
    level = min(place.level + 1, DEEPEST)
    inner = _Place(level, mark, place.kind)
    for block in blocks:
        for made in _block(block, inner):
            yield made
            if isinstance(made, Line):
                inner = replace(inner, marked=True)


def _paragraph(inlines: Sequence[Any], place: _Place) -> Iterator[Block]:
    """A line for each line break; pictures come after the words that they stand among."""
    marked = place.marked
    pictures: list[Shown] = []
    for part in _split_at_breaks(list(_runs(inlines, TextRun("")))):
        runs: list[TextRun] = []
        for run in part:
            runs += _without_pictures(run, pictures) if isinstance(run, TextRun) else []
            pictures += [run] if isinstance(run, Shown) else []
        words = _trimmed(runs)
        if not words:
            continue
        mark = place.mark if not marked else None
        box = re.match(r"[☐☒]\s*", words[0].text)
        if box and mark == "•":  # a task's box is its bullet
            mark = box[0].strip()
            words = _trimmed((replace(words[0], text=words[0].text[box.end() :]), *words[1:]))
        yield Line(words, place.level, mark, place.kind, hanging=place.mark is not None and marked)
        marked = True
    yield from pictures


def _split_at_breaks(
    parts: Sequence["TextRun | Shown | None"],
) -> Iterator[list["TextRun | Shown"]]:
    held: list[TextRun | Shown] = []
    for part in parts:
        if part is None:
            yield held
            held = []
        else:
            held.append(part)
    yield held


def _without_pictures(run: TextRun, pictures: list[Shown]) -> list[TextRun]:
    if OPEN not in run.text:
        return [run]
    parts = PICTURE.split(run.text)  # every second one is a number
    if run.code:
        words = "".join(f"{{{{image_{p}}}}}" if i % 2 else p for i, p in enumerate(parts))
        return [replace(run, text=words)]
    pictures += [Shown(number=int(part)) for part in parts[1::2]]
    return [replace(run, text=part) for part in parts[::2] if part]


def _trimmed(runs: Sequence[TextRun]) -> tuple[TextRun, ...]:
    """Joined where the look is the same, without blanks at both ends."""
    joined: list[TextRun] = []
    for run in runs:
        if joined and replace(joined[-1], text="") == replace(run, text=""):
            joined[-1] = replace(run, text=joined[-1].text + run.text)
        elif run.text:
            joined.append(run)
    while joined and not joined[0].text.strip():
        joined.pop(0)
    while joined and not joined[-1].text.strip():
        joined.pop()
    if joined:
        joined[0] = replace(joined[0], text=joined[0].text.lstrip())
        joined[-1] = replace(joined[-1], text=joined[-1].text.rstrip())
    return tuple(joined)


def _runs(inlines: Sequence[Any], look: TextRun) -> Iterator[TextRun | Shown | None]:
    """Words, pictures, and None for a line break."""
    for node in inlines:
        kind, content = node["t"], node.get("c")
        if kind in LOOKS:
            yield from _runs(content, replace(look, **LOOKS[kind]))
        elif kind == "Str":
            yield replace(look, text=content)
        elif kind in ("Space", "SoftBreak"):
            yield replace(look, text=" ")
        elif kind == "LineBreak":
            yield None
        elif kind == "Code":
            yield from _code(content, look)
        elif kind == "Link":
            yield from _runs(content[1], replace(look, link=_safe(content[2][0])))
        elif kind == "Image":
            yield Shown(target=content[2][0])
        else:
            yield from _others(kind, content, look)


def _others(kind: str, content: Any, look: TextRun) -> Iterator[TextRun | Shown | None]:
    if kind in ("Span", "Quoted"):
        yield from _runs(content[1], look)
    elif kind in ("RawInline", "Math"):
        yield replace(look, text=content[1])
    elif kind == "Note":
        for block in content:
            if block["t"] in ("Para", "Plain"):
                yield replace(look, text=" (")
                yield from _runs(block["c"], look)
                yield replace(look, text=")")


def _code(content: Any, look: TextRun) -> Iterator[TextRun | None]:
    classes, text = content[0][1], content[1]
    if classes[:1] != ["mathml"]:
        yield replace(look, text=text, code=True)
        return
    for word in words_of(text, source=re.sub(r"<[^<>]*>", "", text).strip()):
        yield replace(look, text=word.text, raised=word.raised, italic=word.italic or look.italic)


def _safe(target: str) -> str | None:
    return target if re.match(r"(?i)(https?://|mailto:)", target) else None


def _table(content: Any) -> Iterator[Block]:
    _, _, columns, head, bodies, foot = content
    alignments: list[Alignment] = [ALIGNMENTS.get(column[0]["t"], "left") for column in columns]
    groups = [head[1], *(part for body in bodies for part in (body[2], body[3])), foot[1]]
    pictures: list[Shown] = []
    rows = [_row(row, pictures) for group in groups for row in group]
    header = len(head[1])
    if header and not any(run.text for cell in rows[0] for run in cell):
        rows, header = rows[1:], 0
    if rows:
        width = max(len(row) for row in rows)
        full = tuple(tuple([*row, *[()] * (width - len(row))]) for row in rows)
        alignments += ["left"] * (width - len(alignments))
        yield Grid(full, tuple(alignments[:width]), header)
    yield from pictures


def _row(row: Any, pictures: list[Shown]) -> list[tuple[TextRun, ...]]:
    cells: list[tuple[TextRun, ...]] = []
    for cell in row[1]:
        runs: list[TextRun] = []
        for node in cell[4]:
            for block in _block(node, _Place()):
                if isinstance(block, Line):
                    mark = f"{block.mark} " if block.mark else ""
                    runs += [TextRun("\n")] if runs else []
                    runs += [TextRun(mark), *block.runs] if mark else block.runs
                elif isinstance(block, Shown):
                    pictures.append(block)
        cells += [_trimmed(runs), *[()] * (cell[3] - 1)]
    return cells

"""The content of a slide from pandoc's tree: lines of styled text, tables and pictures."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from gta_bench.tools.documents.source import CLOSE, OPEN

# An arrow, hat, bar, tilde or dots over a letter, and the combining character for it.
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


class MathWord(NamedTuple):
    """Some characters of a formula; `raised` is 1 for an exponent, -1 for an index."""

    text: str
    raised: int = 0
    italic: bool = False


def read_formula(html: str, source: str) -> list[MathWord]:
    """Return a formula in MathML as words on a line; the source if pandoc could not read it."""
    found = re.search(r"<math.*</math>", html, re.DOTALL)
    try:
        root = ElementTree.fromstring(found[0]) if found else None
    except ElementTree.ParseError:
        root = None
    if root is None:
        return [MathWord(source)]
    return _join_words(_read_words(root))


def _read_words(node: ElementTree.Element) -> list[MathWord]:
    tag = node.tag.rpartition("}")[2]
    children = list(node)
    if tag in ("annotation", "annotation-xml"):
        return []
    if tag in ("mi", "mn", "mo", "mtext", "ms"):
        return _read_token(tag, "".join(node.itertext()))
    if tag == "mspace":
        return [MathWord(" ")]
    if tag in BUILDERS and len(children) >= 1:
        return BUILDERS[tag](children)
    if tag in ("mtr", "mtd", "mtable"):
        return _read_rows(tag, children)
    return [word for child in children for word in _read_words(child)]


def _read_token(tag: str, text: str) -> list[MathWord]:
    text = text.replace("\u2061", "").replace("\u2062", "")
    if tag == "mo" and text in SPACED:
        return [MathWord(f" {text} ")]
    if tag == "mo" and text == ",":
        return [MathWord(", ")]
    return (
        [MathWord(text, italic=tag == "mi" and len(text) == 1 and text.isalpha())] if text else []
    )


def _fraction(children: list[ElementTree.Element]) -> list[MathWord]:
    over, under = (_group(_read_words(child)) for child in (children[0], children[-1]))
    return [*over, MathWord("/"), *under]


def _both(children: list[ElementTree.Element]) -> list[MathWord]:
    base = _read_words(children[0])
    scripts = [*_raise(children[1], -1), *_raise(children[-1], 1)]
    space = [MathWord(" ")] if "".join(word.text for word in base) in BIG else []
    return [*base, *scripts, *space]


def _over(children: list[ElementTree.Element]) -> list[MathWord]:
    mark = "".join(children[-1].itertext()).strip()
    accent = ACCENTS.get(mark)
    if accent is None:
        return [*_read_words(children[0]), *_raise(children[-1], 1)]
    base = "".join(word.text for word in _read_words(children[0]))
    return [MathWord(base + accent, italic=True)]


def _read_rows(tag: str, children: list[ElementTree.Element]) -> list[MathWord]:
    """Return rows separated by semicolons, and cells by spaces."""
    parts = [_read_words(child) for child in children]
    between = {"mtable": MathWord("; "), "mtr": MathWord("  ")}.get(tag)
    words: list[MathWord] = []
    for number, part in enumerate(parts):
        words += [between] if number and between else []
        words += part
    return words


BUILDERS: Final[dict[str, Callable[[list[ElementTree.Element]], list[MathWord]]]] = {
    "mfrac": _fraction,
    "msqrt": lambda inner: [MathWord("√"), *_group([w for c in inner for w in _read_words(c)])],
    "mroot": lambda pair: [*_raise(pair[-1], 1), MathWord("√"), *_group(_read_words(pair[0]))],
    "msup": lambda pair: [*_read_words(pair[0]), *_raise(pair[-1], 1)],
    "msub": lambda pair: [*_read_words(pair[0]), *_raise(pair[-1], -1)],
    "msubsup": _both,
    "munderover": _both,
    "munder": lambda pair: [*_read_words(pair[0]), *_raise(pair[-1], -1)],
    "mover": _over,
}


def _raise(node: ElementTree.Element, by: int) -> list[MathWord]:
    """Return an exponent or index; a nested one is spelled out with ^ or _."""
    result = []
    for word in _read_words(node):
        text = word.text.strip() if word.text.strip() in SPACED else word.text
        if word.raised:
            text = ("^" if word.raised > 0 else "_") + text
        result.append(MathWord(text, by, word.italic))
    return result


def _group(words: list[MathWord]) -> list[MathWord]:
    """Add parentheses, except around a single name or number."""
    text = "".join(word.text for word in words)
    simple = text.isalnum() or len(text) <= 1
    return words if simple else [MathWord("("), *words, MathWord(")")]


def _join_words(words: list[MathWord]) -> list[MathWord]:
    result: list[MathWord] = []
    for word in words:
        if result and result[-1][1:] == word[1:]:
            result[-1] = MathWord(result[-1].text + word.text, *word[1:])
        else:
            result.append(word)
    cleaned = [MathWord(re.sub(" {2,}", " ", word.text), *word[1:]) for word in result]
    return [word for word in cleaned if word.text]


@dataclass(frozen=True, slots=True)
class TextRun:
    """Text in one style."""

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
    """A paragraph of a slide; `mark` is a bullet or `3.`, which is drawn before the text."""

    runs: tuple[TextRun, ...]
    level: int = 0
    mark: str | None = None
    kind: LineKind = "text"
    hanging: bool = False  # belongs to the marked line before it


GridRows = tuple[tuple[tuple[TextRun, ...], ...], ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; the first `header` rows are its header."""

    rows: GridRows
    alignments: tuple[Alignment, ...]
    header: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture by its number in `image_paths`, or by the path in the text."""

    number: int | None = None
    target: str | None = None


Block = Line | Grid | Shown


def read_blocks(blocks: Sequence[Any]) -> list[Block]:
    """Return the blocks of one slide in order."""
    return [block for node in blocks for block in _read_block(node, _Context())]


@dataclass(frozen=True, slots=True)
class _Context:
    level: int = 0
    mark: str | None = None
    kind: LineKind = "text"
    marked: bool = False  # the mark has been drawn


def _read_block(node: Any, context: _Context) -> Iterator[Block]:
    kind, content = node["t"], node.get("c")
    if kind in ("Para", "Plain"):
        yield from _read_paragraph(content, context)
    elif kind == "Header":
        yield from _read_paragraph(content[2], replace(context, kind="heading"))
    elif kind == "BulletList":
        for item in content:
            yield from _read_item(item, "•", context)
    elif kind == "OrderedList":
        for number, item in enumerate(content[1], start=content[0][0]):
            yield from _read_item(item, f"{number}.", context)
    elif kind == "CodeBlock":
        for line in content[1].rstrip("\n").expandtabs(4).split("\n"):
            yield Line((TextRun(line, code=True),), context.level, kind="code")
    elif kind == "Table":
        yield from _read_table(content)
    else:
        yield from _read_container(kind, content, context)


def _read_container(kind: str, content: Any, context: _Context) -> Iterator[Block]:
    """Read a block that contains other blocks."""
    if kind == "BlockQuote":
        inner, context = content, replace(context, kind="quote")
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
    else:  # a horizontal rule, which slides do not show
        inner = []
    for block in inner:
        yield from _read_block(block, context)


def _read_item(blocks: Sequence[Any], mark: str, context: _Context) -> Iterator[Block]:
    level = min(context.level + 1, DEEPEST)
    inner = _Context(level, mark, context.kind)
    for block in blocks:
        for made in _read_block(block, inner):
            yield made
            if isinstance(made, Line):
                inner = replace(inner, marked=True)


def _read_paragraph(inlines: Sequence[Any], context: _Context) -> Iterator[Block]:
    """Yield a line for each line break, then the pictures of the paragraph."""
    marked = context.marked
    pictures: list[Shown] = []
    for part in _split_lines(list(_read_runs(inlines, TextRun("")))):
        runs: list[TextRun] = []
        for run in part:
            runs += _extract_pictures(run, pictures) if isinstance(run, TextRun) else []
            pictures += [run] if isinstance(run, Shown) else []
        words = _trim(runs)
        if not words:
            continue
        mark = context.mark if not marked else None
        box = re.match(r"[☐☒]\s*", words[0].text)
        if box and mark == "•":  # the checkbox of a task is its bullet
            mark = box[0].strip()
            words = _trim((replace(words[0], text=words[0].text[box.end() :]), *words[1:]))
        yield Line(
            words, context.level, mark, context.kind, hanging=context.mark is not None and marked
        )
        marked = True
    yield from pictures


def _split_lines(
    parts: Sequence["TextRun | Shown | None"],
) -> Iterator[list["TextRun | Shown"]]:
    line: list[TextRun | Shown] = []
    for part in parts:
        if part is None:
            yield line
            line = []
        else:
            line.append(part)
    yield line


def _extract_pictures(run: TextRun, pictures: list[Shown]) -> list[TextRun]:
    if OPEN not in run.text:
        return [run]
    parts = PICTURE.split(run.text)  # every second one is a number
    if run.code:
        words = "".join(f"{{{{image_{p}}}}}" if i % 2 else p for i, p in enumerate(parts))
        return [replace(run, text=words)]
    pictures += [Shown(number=int(part)) for part in parts[1::2]]
    return [replace(run, text=part) for part in parts[::2] if part]


def _trim(runs: Sequence[TextRun]) -> tuple[TextRun, ...]:
    """Join runs of the same style, and remove spaces at both ends."""
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


def _read_runs(inlines: Sequence[Any], look: TextRun) -> Iterator[TextRun | Shown | None]:
    """Yield text runs, pictures, and None for a line break."""
    for node in inlines:
        kind, content = node["t"], node.get("c")
        if kind in LOOKS:
            yield from _read_runs(content, replace(look, **LOOKS[kind]))
        elif kind == "Str":
            yield replace(look, text=content)
        elif kind in ("Space", "SoftBreak"):
            yield replace(look, text=" ")
        elif kind == "LineBreak":
            yield None
        elif kind == "Code":
            yield from _read_code(content, look)
        elif kind == "Link":
            yield from _read_runs(content[1], replace(look, link=_safe_link(content[2][0])))
        elif kind == "Image":
            yield Shown(target=content[2][0])
        else:
            yield from _read_other(kind, content, look)


def _read_other(kind: str, content: Any, look: TextRun) -> Iterator[TextRun | Shown | None]:
    if kind in ("Span", "Quoted"):
        yield from _read_runs(content[1], look)
    elif kind in ("RawInline", "Math"):
        yield replace(look, text=content[1])
    elif kind == "Note":
        for block in content:
            if block["t"] in ("Para", "Plain"):
                yield replace(look, text=" (")
                yield from _read_runs(block["c"], look)
                yield replace(look, text=")")


def _read_code(content: Any, look: TextRun) -> Iterator[TextRun | None]:
    classes, text = content[0][1], content[1]
    if classes[:1] != ["mathml"]:
        yield replace(look, text=text, code=True)
        return
    for word in read_formula(text, source=re.sub(r"<[^<>]*>", "", text).strip()):
        yield replace(look, text=word.text, raised=word.raised, italic=word.italic or look.italic)


def _safe_link(target: str) -> str | None:
    return target if re.match(r"(?i)(https?://|mailto:)", target) else None


def _read_table(content: Any) -> Iterator[Block]:
    _, _, columns, head, bodies, foot = content
    alignments: list[Alignment] = [ALIGNMENTS.get(column[0]["t"], "left") for column in columns]
    groups = [head[1], *(part for body in bodies for part in (body[2], body[3])), foot[1]]
    pictures: list[Shown] = []
    rows = [_read_row(row, pictures) for group in groups for row in group]
    header = len(head[1])
    if header and not any(run.text for cell in rows[0] for run in cell):
        rows, header = rows[1:], 0
    if rows:
        width = max(len(row) for row in rows)
        full = tuple(tuple([*row, *[()] * (width - len(row))]) for row in rows)
        alignments += ["left"] * (width - len(alignments))
        yield Grid(full, tuple(alignments[:width]), header)
    yield from pictures


def _read_row(row: Any, pictures: list[Shown]) -> list[tuple[TextRun, ...]]:
    cells: list[tuple[TextRun, ...]] = []
    for cell in row[1]:
        runs: list[TextRun] = []
        for node in cell[4]:
            for block in _read_block(node, _Context()):
                if isinstance(block, Line):
                    mark = f"{block.mark} " if block.mark else ""
                    runs += [TextRun("\n")] if runs else []
                    runs += [TextRun(mark), *block.runs] if mark else block.runs
                elif isinstance(block, Shown):
                    pictures.append(block)
        cells += [_trim(runs), *[()] * (cell[3] - 1)]
    return cells

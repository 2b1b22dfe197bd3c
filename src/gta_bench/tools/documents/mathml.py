"""Formulas as words on a line: `∫₀¹ x² dx = 1/3`, for files that cannot hold a formula."""

import re
import xml.etree.ElementTree as ElementTree
from typing import Final, NamedTuple

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
        return _table(tag, children)
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


def _table(tag: str, children: list[ElementTree.Element]) -> list[Word]:
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

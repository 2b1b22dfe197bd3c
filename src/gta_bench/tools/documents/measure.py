"""How wide text is drawn, without a font file: Arial's widths, which its many doubles share."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Final

from gta_bench.tools.documents.blocks import TextRun

# Thousandths of the size, from the space on (U+0020 to U+007E).
ARIAL: Final = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)  # fmt: skip
# What east_asian_width calls wide, nearly; a word is everything else up to the blanks after it.
WIDE: Final = (
    "\u1100-\u115f\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe6f"
    "\uff00-\uffef\U0001f000-\U0003ffff"
)
# Longer than any line, a word is broken anywhere.
WORD: Final = re.compile(f"\n|[{WIDE}] *|[^\n {WIDE}]{{1,200}} *| +")
OTHERS: Final = 0.6
MONO: Final = 0.6
BOLD: Final = 1.08
RAISED: Final = 0.66
# Other machines draw Arial with a font that is wider, so what fits must fit with room to spare.
SAFETY: Final = 1.2


@cache
def _width(char: str) -> float:
    if " " <= char <= "~":
        return ARIAL[ord(char) - 32] / 1000
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Cf"):
        return 0.0
    return 1.0 if unicodedata.east_asian_width(char) in "WF" else OTHERS


@lru_cache(maxsize=8192)
def _unit_width(text: str, code: bool, bold: bool) -> float:
    """At size 1, on the safe side for letters; ideographs are as wide as they are high."""
    widths = [_width(char) for char in text]
    if code:
        widths = [1.0 if width == 1.0 else MONO for width in widths]
    safety = SAFETY * (BOLD if bold else 1.0)
    return sum(1.01 if width == 1.0 else width * safety for width in widths)


def piece_width(text: str, run: TextRun, size: float) -> float:
    """In points, of some characters in a run's look."""
    scale = size * (RAISED if run.raised else 1.0)
    return scale * _unit_width(text, run.code, run.bold)


def text_width(runs: Sequence[TextRun], size: float) -> float:
    """In points, of the widest line."""
    widest = width = 0.0
    for run, word in _words(runs):
        width = 0.0 if word == "\n" else width + piece_width(word, run, size)
        widest = max(widest, width)
    return widest


def wrap(
    runs: Sequence[TextRun], room: float, size: float, *, most: int | None = None
) -> list[int]:
    """How many characters stand on each line: broken at blanks and between ideographs.

    With `most` it looks no further than one line more than that.
    """
    lines = [0]
    used = 0.0
    for run, word in _words(runs):
        width = 0.0 if word == "\n" else piece_width(word, run, size)
        bare = word.rstrip(" ")
        visible = width if len(bare) == len(word) else piece_width(bare, run, size)
        if used and used + visible > room:
            lines.append(0)
            used = 0.0
        if most is not None and len(lines) > most:
            return lines
        if visible > room:
            used = _break_anywhere(lines, run, word, room, size)
            continue
        lines[-1] += len(word)
        used += width
        if word == "\n":
            lines.append(0)
            used = 0.0
    return lines


def _break_anywhere(lines: list[int], run: TextRun, word: str, room: float, size: float) -> float:
    """A word longer than a line."""
    used = 0.0
    for char in word:
        width = piece_width(char, run, size)
        if used and used + width > room:
            lines.append(0)
            used = 0.0
        lines[-1] += 1
        used += width
    return used


def cut(runs: Sequence[TextRun], at: int) -> tuple[tuple[TextRun, ...], tuple[TextRun, ...]]:
    """The runs before and after so many characters."""
    head: list[TextRun] = []
    tail: list[TextRun] = []
    for run in runs:
        before, after = run.text[:at], run.text[at:]
        at = max(0, at - len(run.text))
        head += [replace(run, text=before)] if before else []
        tail += [replace(run, text=after)] if after else []
    return tuple(head), tuple(tail)


def _words(runs: Sequence[TextRun]) -> Iterator[tuple[TextRun, str]]:
    """Pieces that are not broken: a word with the blanks after it, or one ideograph."""
    for run in runs:
        for found in WORD.finditer(run.text):
            yield run, found[0]

"""How wide text is drawn, without a font file: Arial's widths, which its many doubles share."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from gta_bench.tools.documents.blocks import Run

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
WORD: Final = re.compile(f"\n|[{WIDE}] *|[^\n {WIDE}]+ *| +")
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


def char_width(char: str, run: Run, size: float) -> float:
    """In points, on the safe side for letters; ideographs are as wide as they are high."""
    width = _width(char)
    if run.code and width < 1.0:
        width = MONO
    scale = size * (RAISED if run.raised else 1.0)
    if width == 1.0:
        return scale * 1.01
    return scale * width * SAFETY * (BOLD if run.bold else 1.0)


def text_width(runs: Sequence[Run], size: float) -> float:
    """In points, of the widest line."""
    widest = width = 0.0
    for run in runs:
        for char in run.text:
            width = 0.0 if char == "\n" else width + char_width(char, run, size)
            widest = max(widest, width)
    return widest


def wrap(
    runs: Sequence[Run], room: float, size: float, *, most: int | None = None
) -> list[list[Run]]:
    """The lines that the words take in a width: broken at blanks and between ideographs.

    With `most` it looks no further than one line more than that.
    """
    lines: list[list[Run]] = [[]]
    used = 0.0
    for run, word in _words(runs):
        if word == "\n":
            _append(lines[-1], run, word)
            lines.append([])
            used = 0.0
            continue
        width = sum(char_width(char, run, size) for char in word)
        blank = sum(char_width(char, run, size) for char in word[len(word.rstrip()) :])
        if used and used + width - blank > room:
            lines.append([])
            used = 0.0
        if most is not None and len(lines) > most:
            _append(lines[-1], run, word)
            break
        if width - blank > room:
            used = _break_anywhere(lines, run, word, room, size)
            continue
        _append(lines[-1], run, word)
        used += width
    return lines


def cut(runs: Sequence[Run], at: int) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """The runs before and after so many characters."""
    head: list[Run] = []
    tail: list[Run] = []
    for run in runs:
        before, after = run.text[:at], run.text[at:]
        at = max(0, at - len(run.text))
        head += [replace(run, text=before)] if before else []
        tail += [replace(run, text=after)] if after else []
    return tuple(head), tuple(tail)


def _break_anywhere(lines: list[list[Run]], run: Run, word: str, room: float, size: float) -> float:
    """A word longer than a line."""
    used = 0.0
    for char in word:
        width = char_width(char, run, size)
        if used and used + width > room:
            lines.append([])
            used = 0.0
        _append(lines[-1], run, char)
        used += width
    return used


def _append(line: list[Run], run: Run, text: str) -> None:
    if line and replace(line[-1], text="") == replace(run, text=""):
        line[-1] = replace(run, text=line[-1].text + text)
    else:
        line.append(replace(run, text=text))


def _words(runs: Sequence[Run]) -> Iterator[tuple[Run, str]]:
    """Pieces that are not broken: a word with the blanks after it, or one ideograph."""
    for run in runs:
        for word in WORD.findall(run.text):
            yield run, word

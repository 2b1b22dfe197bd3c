"""Text for a video: lines that fit, in a font that has its characters."""

import unicodedata
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gta_bench.errors import ToolError
from gta_bench.tools.contract import Unavailable

FONTS = Path("/usr/share/fonts")
FIX = "apt install fonts-noto-cjk"
EM_PER_SCALE = 30  # OpenCV's letters at scale 1 are as high as this font's at 30 pixels
# Widths in em, a little larger than the real ones.
NARROW, CAPITAL, WIDE = 0.6, 0.78, 1.0
BROAD = frozenset("MWmw@%—…©®™")
LEADING = 1.5  # line height in em, as this font has it
SMALLEST = 8
MARGIN = 4
LONGEST_TEXT = 2000


class _Lettering(NamedTuple):
    """Lines to draw, and their size."""

    lines: tuple[str, ...]
    size: int


@cache
def font_missing() -> Unavailable | None:
    """Return that Noto Sans CJK is missing, if so: it has Latin, Chinese, Japanese and Korean."""
    if any(FONTS.rglob("NotoSansCJK*.tt[cf]")) or any(FONTS.rglob("NotoSansCJK*.otf")):
        return None
    return Unavailable("The font Noto Sans CJK is not installed.", FIX)


def clean(text: str) -> str:
    """Remove characters that draw nothing or a box; raises ToolError for too much text."""
    kept = "".join(
        char
        for char in text.replace("\r\n", "\n").replace("\t", "    ")
        if char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Cn", "Co")
    ).strip()
    if not kept:
        raise ToolError("text is empty; write what the video should show.")
    if len(kept) > LONGEST_TEXT:
        raise ToolError(f"text has {len(kept)} characters; at most {LONGEST_TEXT} fit on a video.")
    return kept


def family(text: str) -> str:
    """Return the face for the language of the text; Han characters differ between languages."""
    names = {unicodedata.name(char, "").split(" ")[0] for char in text}
    if names & {"HIRAGANA", "KATAKANA"}:
        return "Noto Sans CJK JP"
    return "Noto Sans CJK KR" if "HANGUL" in names else "Noto Sans CJK SC"


def fit(text: str, *, size: int, width: int, height: int) -> _Lettering:
    """Break the text into lines of that width, with smaller letters if there are too many lines."""
    while True:
        lines = [line for paragraph in text.split("\n") for line in _wrap(paragraph, width / size)]
        if len(lines) * LEADING * size <= height:
            return _Lettering(tuple(lines), size)
        if size <= SMALLEST:
            room = int(height / LEADING / SMALLEST)
            raise ToolError(f"text takes {len(lines)} lines; the video has room for {room}.")
        size = max(SMALLEST, size * 9 // 10)


def _wrap(paragraph: str, ems: float) -> list[str]:
    """Return lines of at most that many em, broken at blanks and between wide characters."""
    lines, line = [], ""
    for word in _words(paragraph):
        if line and _ems(line + word.rstrip()) > ems:
            lines.append(line.rstrip())
            line = ""
        while _ems(word) > ems and len(word) > 1:  # one word that fits no line
            most = max(
                1, next(n for n in range(len(word), 0, -1) if n == 1 or _ems(word[:n]) <= ems)
            )
            lines.append(word[:most])
            word = word[most:]
        line += word
    return [*lines, line.rstrip()]


def _words(paragraph: str) -> list[str]:
    """Return the pieces between which a line may break; a blank ends a piece."""
    words: list[str] = []
    for char in paragraph:
        if words and not _may_begin(char, words[-1][-1]):
            words[-1] += char
        else:
            words.append(char)
    return words


def _may_begin(char: str, before: str) -> bool:
    """Return whether a line may begin with a character; not with closing punctuation."""
    if char == " ":
        return False
    closes = unicodedata.category(char) in ("Po", "Pe", "Pf")
    return before == " " or (not closes and (_is_wide(char) or _is_wide(before)))


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def _ems(text: str) -> float:
    return sum(_em(char) for char in text)


def _em(char: str) -> float:
    if char in BROAD or _is_wide(char):
        return WIDE
    return CAPITAL if char.isupper() else NARROW

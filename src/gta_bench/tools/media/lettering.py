"""Text for a video: broken into lines that fit, in a font that has its characters."""

import unicodedata
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gta_bench.errors import ToolError
from gta_bench.tools.contract import Unavailable

FONTS = Path("/usr/share/fonts")
MEND = "apt install fonts-noto-cjk"
EM_PER_SCALE = 30  # OpenCV's letters at scale 1 are as high as this font's at 30 pixels
# Widths in em, a little more than they are.
NARROW, CAPITAL, WIDE = 0.6, 0.78, 1.0
BROAD = frozenset("MWmw@%—…©®™")
LEADING = 1.5  # line height in em, as this font has it
SMALLEST = 8
MARGIN = 4
LONGEST_TEXT = 2000


class _Lettering(NamedTuple):
    """Lines to draw, and how large."""

    lines: tuple[str, ...]
    size: int


@cache
def font_missing() -> Unavailable | None:
    """Noto Sans CJK is the one font that has Latin, Chinese, Japanese and Korean."""
    if any(FONTS.rglob("NotoSansCJK*.tt[cf]")) or any(FONTS.rglob("NotoSansCJK*.otf")):
        return None
    return Unavailable("The font Noto Sans CJK is not installed.", MEND)


def clean(text: str) -> str:
    """Text without characters that draw nothing or a box; at most 2000 characters."""
    kept = "".join(
        char
        for char in text.replace("\r\n", "\n").replace("\t", "    ")
        if char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Cn", "Co")
    ).strip()
    if not kept:
        raise ToolError("text is empty; write what the video shall show.")
    if len(kept) > LONGEST_TEXT:
        raise ToolError(f"text has {len(kept)} characters; at most {LONGEST_TEXT} fit on a video.")
    return kept


def family(text: str) -> str:
    """The face for the language of the text, as Han characters are drawn differently in each."""
    names = {unicodedata.name(char, "").split(" ")[0] for char in text}
    if names & {"HIRAGANA", "KATAKANA"}:
        return "Noto Sans CJK JP"
    return "Noto Sans CJK KR" if "HANGUL" in names else "Noto Sans CJK SC"


def fit(text: str, *, size: int, width: int, height: int) -> _Lettering:
    """Break the text into lines of that width; smaller letters if the lines are too many."""
    while True:
        lines = [line for paragraph in text.split("\n") for line in _wrap(paragraph, width / size)]
        if len(lines) * LEADING * size <= height:
            return _Lettering(tuple(lines), size)
        if size <= SMALLEST:
            room = int(height / LEADING / SMALLEST)
            raise ToolError(f"text takes {len(lines)} lines; the video has room for {room}.")
        size = max(SMALLEST, size * 9 // 10)


def _wrap(paragraph: str, ems: float) -> list[str]:
    """Lines of at most that many em, broken at blanks and between wide characters."""
    lines, line = [], ""
    for word in _words(paragraph):
        if line and _ems(line + word.rstrip()) > ems:
            lines.append(line.rstrip())
            line = ""
        while _ems(word) > ems and len(word) > 1:  # one word that no line can hold
            most = max(
                1, next(n for n in range(len(word), 0, -1) if n == 1 or _ems(word[:n]) <= ems)
            )
            lines.append(word[:most])
            word = word[most:]
        line += word
    return [*lines, line.rstrip()]


def _words(paragraph: str) -> list[str]:
    """Pieces between which a line may break; a blank belongs to the piece before it."""
    words: list[str] = []
    for char in paragraph:
        if words and not _may_begin(char, words[-1][-1]):
            words[-1] += char
        else:
            words.append(char)
    return words


def _may_begin(char: str, before: str) -> bool:
    """Whether a line may begin with a character after that one; not with closing punctuation."""
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

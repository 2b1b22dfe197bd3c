"""Fonts: which families documents name, and whether this machine can draw East Asian text."""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from gta_bench.tools.contract import Unavailable

Script = Literal["zh", "ja", "ko"]

FOLDERS: Final = ("/usr/share/fonts", "/usr/local/share/fonts")
EAST_ASIAN: Final = ("NotoSansCJK*", "NotoSerifCJK*", "SourceHanS*")
NO_EAST_ASIAN: Final = Unavailable(
    "no font for Chinese, Japanese and Korean was found.", "apt install fonts-noto-cjk"
)


class Family(NamedTuple):
    """Fonts that every office program knows for a script, and its language mark."""

    office: str
    language: str
    noto: str


FAMILIES: Final[dict[Script, Family]] = {
    "zh": Family("Microsoft YaHei", "zh-CN", "SC"),
    "ja": Family("Yu Gothic", "ja-JP", "JP"),
    "ko": Family("Malgun Gothic", "ko-KR", "KR"),
}
RANGES: Final[tuple[tuple[str, str, Script], ...]] = (
    ("\u4e00", "\u9fff", "zh"),
    ("\uac00", "\ud7a3", "ko"),
    ("\u3041", "\u30ff", "ja"),
    ("\u1100", "\u11ff", "ko"),
    ("\u2e80", "\u303f", "zh"),
    ("\u3100", "\u4dbf", "zh"),
    ("\uf900", "\ufaff", "zh"),
    ("\uff01", "\uff65", "zh"),
    ("\uff66", "\uff9f", "ja"),
    ("\U00020000", "\U0003ffff", "zh"),
)
LATIN: Final = "Arial"
MONO: Final = "Courier New"


@cache
def has_east_asian_font() -> bool:
    """Whether a font file for East Asian text lies where programs look for fonts."""
    return any(
        next(Path(folder).rglob(pattern), None) is not None
        for folder in FOLDERS
        for pattern in EAST_ASIAN
    )


def script_of(text: str) -> Script | None:
    """The East Asian language of some words: kana and hangul tell, other ideographs are Chinese."""
    seen = _scripts(text)
    if seen["ja"] or seen["ko"]:
        return "ja" if seen["ja"] >= seen["ko"] else "ko"
    return "zh" if seen["zh"] else None


def main_script(text: str) -> Script | None:
    """The language whose glyph forms a whole document should have: that of most of its text."""
    seen = _scripts(text)
    if not seen:
        return None
    # Japanese is written with ideographs too, so a fifth of kana among them is Japanese.
    if seen["ja"] * 4 >= seen["zh"] and seen["ja"] >= seen["ko"]:
        return "ja"
    return "ko" if seen["ko"] > seen["zh"] else "zh"


def _scripts(text: str) -> Counter[Script]:
    return Counter(script for char in text if char >= "\u1100" and (script := _script(char)))


def _script(char: str) -> Script | None:
    return next((script for first, last, script in RANGES if first <= char <= last), None)

"""Fonts: the families that documents name, and whether this machine has East Asian fonts."""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from gta_bench.content.needs import Missing

Script = Literal["zh", "ja", "ko"]

FOLDERS: Final = ("/usr/share/fonts", "/usr/local/share/fonts")
EAST_ASIAN: Final = ("NotoSansCJK*", "NotoSerifCJK*", "SourceHanS*")
NO_EAST_ASIAN: Final = Missing(
    "No font for Chinese, Japanese and Korean was found.", "apt install fonts-noto-cjk"
)


class Family(NamedTuple):
    """The font for a script in Office, its language code, and the suffix of the Noto font."""

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
def missing_east_asian_font() -> Missing | None:
    """Return what is missing if no font for East Asian text is installed."""
    files = (file for one in FOLDERS for name in EAST_ASIAN for file in Path(one).rglob(name))
    return None if any(files) else NO_EAST_ASIAN


def find_script(text: str) -> Script | None:
    """Return the East Asian language of some words; ideographs without kana are Chinese."""
    seen = _count_scripts(text)
    if seen["ja"] or seen["ko"]:
        return "ja" if seen["ja"] >= seen["ko"] else "ko"
    return "zh" if seen["zh"] else None


def find_main_script(text: str) -> Script | None:
    """Return the East Asian language of most of a document, to choose the glyph forms."""
    seen = _count_scripts(text)
    if not seen:
        return None
    # Japanese uses ideographs too, so text with a fifth of kana is Japanese.
    if seen["ja"] * 4 >= seen["zh"] and seen["ja"] >= seen["ko"]:
        return "ja"
    return "ko" if seen["ko"] > seen["zh"] else "zh"


def _count_scripts(text: str) -> Counter[Script]:
    letters = (char for char in text if char >= "\u1100")
    return Counter(
        script for char in letters for first, last, script in RANGES if first <= char <= last
    )

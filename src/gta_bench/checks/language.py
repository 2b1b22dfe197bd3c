"""The language of a text, by its script and by the words that every text in it has."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from pydantic import TypeAdapter

from gta_bench.checks.delivery import CheckedWork
from gta_bench.checks.outcome import Outcome
from gta_bench.records.checks import TextLanguage

# Languages that are written in a script; those that share one differ by common words.
SCRIPTS: Final[Mapping[str, tuple[str, ...]]] = {
    "LATIN": ("cs", "de", "en", "es", "fr", "id", "it", "nl", "pl", "pt", "sv", "tr", "vi"),
    "CYRILLIC": ("ru", "uk"),
    "ARABIC": ("ar", "fa"),
    "GREEK": ("el",),
    "HEBREW": ("he",),
    "DEVANAGARI": ("hi",),
    "THAI": ("th",),
    "HANGUL": ("ko",),
    "CJK": ("zh",),
    "KANA": ("ja",),
}
# Frequent short words. Those that two of our languages share are kept: the others decide.
COMMON: Final = TypeAdapter(dict[str, str]).validate_json(
    (files("gta_bench.checks") / "common_words.json").read_bytes()
)
_PIECES: Final = re.compile("[\n.!?\u3002\uff01\uff1f\u061f\u0964]+")
_WORDS: Final = re.compile(r"[^\W\d_]+")
_KANA: Final = ("HIRAGANA", "KATAKANA")
SHORTEST: Final = 20  # letters of a piece; shorter ones are joined with the next
MOST_CHARACTERS: Final = 200_000


async def check_language(check: TextLanguage, work: CheckedWork) -> Outcome:
    """A share of the text in a language."""
    file = work.find(check.file)
    shares = measure_languages(await work.text(file))
    wanted = f"{check.language} in at least {check.share:.0%} of the text"
    if not shares:
        return Outcome(False, file.path, "no text in a known language", wanted)
    found = ", ".join(f"{share:.0%} {name}" for name, share in shares.items())
    return Outcome(shares.get(check.language, 0.0) >= check.share, file.path, found, wanted)


def measure_languages(text: str) -> dict[str, float]:
    """Return the share of every language in a text, by letters, the largest first.

    Pieces without a common word, such as names and headings, do not count.
    """
    letters: Counter[str] = Counter()
    for piece in _split(text[:MOST_CHARACTERS]):
        found = _tell(piece)
        if found is not None:
            letters[found] += _count_letters(piece)
    total = sum(letters.values())
    return {name: count / total for name, count in letters.most_common()}


def _split(text: str) -> list[str]:
    """Return sentences and lines; short ones together with the next, because they say little."""
    pieces: list[str] = []
    rest: list[str] = []
    letters = 0
    for part in _PIECES.split(unicodedata.normalize("NFC", text)):
        rest.append(part)
        letters += _count_letters(part)
        if letters >= SHORTEST:
            pieces.append(" ".join(rest))
            rest, letters = [], 0
    last = " ".join([*pieces[-1:], *rest])
    return [*pieces[:-1], last]


def _count_letters(text: str) -> int:
    return sum(map(len, _WORDS.findall(text)))


def _tell(piece: str) -> str | None:
    """Return the language of a sentence; None if it has no words, or no common ones."""
    scripts = Counter(_script(letter) for word in _WORDS.findall(piece) for letter in word)
    scripts.pop(None, None)
    if not scripts:
        return None
    # Japanese has Chinese characters between its own.
    if scripts["KANA"] * 10 >= scripts["KANA"] + scripts["CJK"] > 0:
        scripts["KANA"] += scripts.pop("CJK", 0)
    script, _ = scripts.most_common(1)[0]
    languages = SCRIPTS[str(script)]
    if len(languages) == 1:
        return languages[0]
    words = [word.lower() for word in _WORDS.findall(piece)]
    counts = Counter({one: sum(word in _common(one) for word in words) for one in languages})
    (first, most), (_, second) = counts.most_common(2)
    return first if most > second else None


@cache
def _common(language: str) -> frozenset[str]:
    return frozenset(COMMON[language].split())


@cache
def _script(letter: str) -> str | None:
    name = unicodedata.name(letter, "")
    if name.startswith(_KANA):
        return "KANA"
    return next((script for script in SCRIPTS if name.startswith(script)), None)

"""The first article of the Universal Declaration of Human Rights, in every language we tell."""

import json
from pathlib import Path
from time import monotonic
from typing import get_args

import pytest

from gta_bench.checks.language import COMMON, SCRIPTS, measure_languages
from gta_bench.records.checks import Language

ARTICLE: dict[str, str] = json.loads(
    Path(__file__).with_name("article_1.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("language", get_args(Language))
def test_a_text_is_of_one_language(language: str) -> None:
    shares = measure_languages(f"Title\n\n{ARTICLE[language]}\n\n| 1 | 2.5 |")
    assert next(iter(shares)) == language, shares
    assert shares[language] > 0.95, shares


def test_every_language_is_known() -> None:
    known = {name for names in SCRIPTS.values() for name in names}
    assert known == {*get_args(Language)} == {*ARTICLE}
    shared = {name for names in SCRIPTS.values() if len(names) > 1 for name in names}
    assert shared == {*COMMON}


def test_shares_are_by_letters() -> None:
    shares = measure_languages(f"{ARTICLE['en']}\n{ARTICLE['de']}\n{ARTICLE['zh']}")
    assert [*shares] == ["en", "de", "zh"]
    assert sum(shares.values()) == pytest.approx(1)
    assert 0.4 < shares["en"] < 0.5 and 0.05 < shares["zh"] < 0.2


def test_chinese_text_with_names_in_latin_letters_is_chinese() -> None:
    assert [*measure_languages(f"OpenAI {ARTICLE['zh']}")] == ["zh"]


@pytest.mark.parametrize("text", ["", "12 34 %", "Xylophon Quagga Zzyzx Brrr Pfft Hmmm", "\ud800"])
def test_a_text_without_common_words_has_no_language(text: str) -> None:
    assert measure_languages(text) == {}


@pytest.mark.parametrize(
    ("text", "found"), [("word of the day " * 500_000, ["en"]), ("1\n" * 500_000, [])]
)
def test_a_long_text_is_measured_quickly(text: str, found: list[str]) -> None:
    began = monotonic()
    assert [*measure_languages(text)] == found
    assert monotonic() - began < 5

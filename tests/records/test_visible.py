"""Text from outside: nothing in it is invisible or moves what stands beside it."""

import sys
import unicodedata

import pytest

from gta_bench.leaderboard.entries import read_published_entries
from gta_bench.records.leaderboard import Entry
from gta_bench.records.visible import require_one_script, require_visible, show_hidden

# Signs of Arabic, Syriac and Kaithi that Unicode calls format characters, though they can be seen.
SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}


def test_every_control_and_format_character_is_shown() -> None:
    for code in range(sys.maxunicode + 1):
        sign = chr(code)
        if unicodedata.category(sign) in ("Cc", "Cf") and code not in SEEN and sign not in "\t\n\r":
            assert show_hidden(f"a{sign}b") == f"a[U+{code:04X}]b"


@pytest.mark.parametrize(
    "text",
    [
        "a\tb\r\nc",
        "naïve café 测试",
        "שלום 12",
        "\u0645\u06cc\u200c\u062e\u0648",
        "👩\u200d💻 ❤\ufe0f",
        "x² ½ …",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert show_hidden(text) == text


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("GPT-4o\u202e", r"U\+202E \(RIGHT-TO-LEFT OVERRIDE\), which cannot be seen"),
        ("GPT\u200b-4o", r"U\+200B \(ZERO WIDTH SPACE\)"),
        ("GPT\x1b[2J", r"U\+001B \(a control character\)"),
        ("é\u200d", r"U\+200D \(ZERO WIDTH JOINER\)"),
        ("two\nlines", r"U\+000A \(a control character\)"),
    ],
)
def test_a_name_with_something_hidden_is_refused(name: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        require_visible(name)


def test_a_word_of_two_scripts_that_look_alike_is_refused() -> None:
    with pytest.raises(ValueError, match=r"alike: Latin U\+0073 and Cyrillic U\+041E"):
        require_one_script("Claude 3 \N{CYRILLIC CAPITAL LETTER O}pus")
    for name in ("λ-agent 2", "Модель 7b", "通义Qwen-72B", "naïve"):
        assert require_one_script(name) == name


def test_every_text_of_an_entry_is_visible() -> None:
    stated = read_published_entries()[0].model_dump(mode="json")
    for field in ("system", "group", "model", "harness", "judge", "source"):
        with pytest.raises(ValueError, match=rf"(?s){field}.*U\+2066"):
            Entry.model_validate(stated | {field: "a\u2066b"})
    with pytest.raises(ValueError, match=r"U\+2066"):
        Entry.model_validate(stated | {"notes": ["fine", "a\u2066b"]})
    with pytest.raises(ValueError, match=r"U\+2066"):
        Entry.model_validate(stated | {"by_task": {"1\u2066": 1.0}})
    with pytest.raises(ValueError, match="id"):
        Entry.model_validate(stated | {"id": "mine\u200b"})

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.errors import ToolError
from gta_bench.tools.media.lettering import SMALLEST, clean, family, fit


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("short", 1000, ("short",)),
        ("two words", 110, ("two", "words")),
        ("a\nb", 1000, ("a", "b")),
        ("a\n\nb", 1000, ("a", "", "b")),
        ("中文字符", 60, ("中文", "字符")),
        ("中文字,符", 110, ("中文字,", "符")),
        ("abcdefghij", 90, ("abcde", "fghij")),
        ("see 中文 here", 110, ("see 中", "文", "here")),
        ("50 %x", 60, ("50", "%x")),
    ],
)
def test_lines_break_at_blanks_and_between_wide_characters(
    text: str, width: int, lines: tuple[str, ...]
) -> None:
    assert fit(text, size=30, width=width, height=10_000).lines == lines


def test_too_many_lines_are_drawn_smaller_or_refused() -> None:
    tall = fit("word " * 50, size=30, width=200, height=2000)
    small = fit("word " * 50, size=30, width=200, height=300)
    assert tall.size == 30
    assert SMALLEST <= small.size < 30
    assert len(small.lines) * small.size * 1.5 <= 300
    with pytest.raises(ToolError, match="text takes 60 lines; the video has room for 8"):
        fit("\n" * 59, size=30, width=200, height=100)


@given(st.text(max_size=200), st.integers(1, 700), st.integers(8, 600))
def test_no_character_is_lost_but_blanks(text: str, width: int, size: int) -> None:
    lines = fit(text, size=size, width=width, height=10**6).lines
    assert "".join("".join(lines).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "face"),
    [
        ("English only", "SC"),
        ("季度报告", "SC"),
        ("日本語の本", "JP"),
        ("カタカナ", "JP"),
        ("한국어 漢字", "KR"),
    ],
)
def test_the_face_follows_the_language(text: str, face: str) -> None:
    assert family(text) == f"Noto Sans CJK {face}"


@pytest.mark.parametrize(
    ("given", "kept"),
    [("a\tb", "a    b"), ("a\r\nb", "a\nb"), ("\x00a\x1b[0m", "a[0m"), ("a\ud800b", "ab")],
)
def test_characters_that_draw_nothing_are_left_out(given: str, kept: str) -> None:
    assert clean(given) == kept

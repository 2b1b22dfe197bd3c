"""Text before it reaches a program: fences, sources, fonts, tables."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.errors import ToolError
from gta_bench.tools.documents.fonts import find_main_script, find_script
from gta_bench.tools.documents.source import (
    check_size,
    clean_text,
    mark_placeholders,
    prepare_markdown,
    split_fences,
)
from gta_bench.tools.documents.tables import read_tables, strip_fence

LINES = st.sampled_from(
    ["```", "```py", "~~~", "````", "text", "", "- item", "| a |", "  ```", "> q", "\\(x\\)"]
)


# Fences


@given(st.lists(LINES))
def test_the_pieces_of_a_text_are_the_text(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert "".join(piece.text for piece in split_fences(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n```py\nb\n```\nc", [(None, "a\n"), ("py", "b\n"), (None, "c")]),
        ("```\nopen", [("", "open")]),
        ("~~~ Html x\n```\n~~~\n", [("html", "```\n")]),
        ("````\n```\n````", [("", "```\n")]),
        ("", []),
    ],
)
def test_a_fence_ends_where_its_own_mark_stands(
    text: str, expected: list[tuple[str | None, str]]
) -> None:
    assert [(piece.language, piece.inner) for piece in split_fences(text)] == expected


# Sources


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("{{image_1}}", "\ue0001\ue001"),
        ("{{ image_12 }}", "\ue00012\ue001"),
        ("{{image_007}}", "\ue0007\ue001"),
        ("{{image_x}} {image_1}", "{{image_x}} {image_1}"),
        ("\ue0005\ue001", "5"),
        ("a\r\nb\rc\x00\x1b", "a\nb\nc"),
    ],
)
def test_placeholders_become_marks_that_no_text_can_forge(given: str, expected: str) -> None:
    assert mark_placeholders(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (r"a \(x^2\) b", "a $x^2$ b"),
        (r"\[ \frac{1}{2} \]", r"$$\frac{1}{2}$$"),
        (r"`\(x\)` stays", r"`\(x\)` stays"),
        ("```\n\\(x\\)\n```", "```\n\\(x\\)\n```"),
        (r"\(never closed", r"\(never closed"),
        ("- a\nb", "- a\n\nb"),
        ("- a\n  b", "- a\n  b"),
        ("- a\n- b\n\nc", "- a\n- b\n\nc"),
        ("1. a\n2) b\nc\nd", "1. a\n2) b\n\nc\nd"),
        ("| a |\n|--|\n| b |\nc", "| a |\n|--|\n| b |\n\nc"),
        ("```\n- a\nb\n```", "```\n- a\nb\n```"),
        ("-not an item\nb", "-not an item\nb"),
    ],
)
def test_what_models_write_is_made_what_they_mean(given: str, expected: str) -> None:
    assert prepare_markdown(given) == expected


@given(st.lists(LINES))
def test_preparing_only_adds_blank_lines(lines: list[str]) -> None:
    text = "\n".join(line for line in lines if line != "\\(x\\)")
    kept = [line for line in prepare_markdown(text).split("\n") if line]
    assert kept == [line for line in text.split("\n") if line]


@pytest.mark.parametrize("mark", ["> ", "- ", "1. ", ">"])
def test_what_is_nested_beyond_reason_is_refused(mark: str) -> None:
    with pytest.raises(ToolError, match="more than 60 levels deep"):
        prepare_markdown(f"text\n{mark * 70}x")
    assert prepare_markdown("-" * 200)
    assert prepare_markdown(f"{mark * 5}x")


@pytest.mark.parametrize(
    "text",
    [
        "\\(" * 100_000,
        "\\[" * 100_000,
        "`" * 200_000,
        "{{" * 100_000,
        "```x\n" * 40_000,
        "- \n" * 60_000,
    ],
    ids=lambda text: repr(text[:4]),
)
def test_preparing_takes_no_longer_than_the_text(text: str) -> None:
    start = time.monotonic()
    prepare_markdown(mark_placeholders(text))
    assert time.monotonic() - start < 10


def test_sizes_are_counted_in_bytes() -> None:
    check_size("content", "字" * 10, 30)
    with pytest.raises(ToolError, match="`content` has 33 bytes; at most 30"):
        check_size("content", "字" * 11, 30)


@given(st.text())
def test_clean_text_can_be_written_and_is_clean(text: str) -> None:
    clean = clean_text(text)
    clean.encode("utf-8")
    assert clean_text(clean) == clean
    assert not any(char < " " and char not in "\t\n" for char in clean)


# Languages


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("English", None),
        ("Ünïcödé €", None),
        ("中文", "zh"),
        ("漢字とかな", "ja"),
        ("カタカナ", "ja"),
        ("한국어", "ko"),
        ("，。", "zh"),  # noqa: RUF001
        ("🚀", None),
    ],
)
def test_the_language_of_words_is_seen(text: str, script: str | None) -> None:
    assert find_script(text) == script
    assert find_main_script(text) == script


def test_a_document_has_the_language_of_most_of_it() -> None:
    assert find_main_script("中文" * 50 + "日本語テスト") == "zh"
    assert find_main_script("日本語のテストです。中文") == "ja"
    assert find_main_script("한국어 시험입니다 中文") == "ko"


# Tables


CELLS = st.none() | st.booleans() | st.integers(-(10**14), 10**14) | st.text("ab中,\n", max_size=5)


@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=5))
def test_rows_become_a_rectangle_with_the_same_values(rows: list[list[object]]) -> None:
    import json

    (table,) = read_tables(json.dumps(rows), several=True)
    width = max(len(row) for row in rows)
    assert all(len(row) == width for row in table.rows)
    for made, meant in zip(table.rows, rows, strict=True):
        assert list(made[: len(meant)]) == meant
        assert all(cell is None for cell in made[len(meant) :])


def test_only_a_whole_fence_is_taken_off() -> None:
    assert strip_fence("```json\n[1]\n```") == "[1]"
    assert strip_fence("[1]") == "[1]"
    assert strip_fence("```json\n[1]") == "```json\n[1]"

"""Names that agents choose for files: harmless on every system, or refused."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.confine.names import LONGEST_NAME, add_number, clean_name, is_plain, quote_foreign
from gta_bench.errors import ToolError

CLEANED = [
    ("report.pdf", "report.pdf"),
    ("../../etc/passwd", "passwd"),
    ("/etc/cron.d/job", "job"),
    ("..\\..\\windows\\system.ini", "system.ini"),
    ("C:\\temp\\x.txt", "x.txt"),
    ("a:b.txt", "a_b.txt"),
    ("what?.txt", "what_.txt"),
    ("<b>|*\".txt", "_b____.txt"),
    (".bashrc", "bashrc"),
    ("...hidden.txt", "hidden.txt"),
    ("-rf", "rf"),
    ("--output=x.png", "output=x.png"),
    (" spaced .txt ", "spaced.txt"),
    ("trailing...", "trailing"),
    ("trailing . . ", "trailing"),
    ("CON", "_CON"),
    ("con.txt", "_con.txt"),
    ("nul.tar.gz", "_nul.tar.gz"),
    ("COM1.csv", "_COM1.csv"),
    ("lpt¹.txt", "_lpt¹.txt"),
    ("conin$", "_conin$"),
    ("console.txt", "console.txt"),
    ("a\x00b.txt", "ab.txt"),
    ("a\nb\r\tc.txt", "a b  c.txt"),
    ("a\x1b[31mred.txt", "a[31mred.txt"),
    ("invoice\u202excod.exe", "invoicexcod.exe"),
    ("zero\u200bwidth\ufeff.txt", "zerowidth.txt"),
    ("line\u2028end.txt", "line end.txt"),
    ("half\ud800.txt", "half.txt"),
    ("e\u0301te\u0301.txt", "été.txt"),
    ("报告 2024.docx", "报告 2024.docx"),
    ("😀.png", "😀.png"),
    ("\uff23\uff2f\uff2e.txt", "\uff23\uff2f\uff2e.txt"),
    ("a.tar.gz", "a.tar.gz"),
    ("no_extension", "no_extension"),
    ("dir/", None),
    ("", None),
    (".", None),
    ("..", None),
    ("...", None),
    ("   ", None),
    ("-", None),
    ("\u202e\u200b", None),
    ("///", None),
    ("\x00", None),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "expected"), CLEANED)
def test_a_name_becomes_plain_or_is_refused(raw: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(ToolError, match="not a usable file name"):
            clean_name(raw)
    else:
        assert clean_name(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("plot", "plot.png"),
        ("plot.png", "plot.png"),
        ("plot.PNG", "plot.png"),
        ("plot.jpg", "plot.jpg.png"),
        ("a/b/plot.png", "plot.png"),
        ("con.png", "_con.png"),
        ("plot.png.", "plot.png"),
    ],
)
def test_a_forced_suffix_stands_exactly_once(raw: str, expected: str) -> None:
    assert clean_name(raw, suffix=".png") == expected


@pytest.mark.parametrize("raw", ["x" * 10_000, "文" * 10_000 + ".docx", "é" * 300, "a." * 5000])
def test_a_long_name_is_cut_by_bytes_and_keeps_its_extension(raw: str) -> None:
    name = clean_name(raw)
    assert len(name.encode()) <= LONGEST_NAME
    assert name.endswith(".docx") == raw.endswith(".docx")


def test_a_megabyte_of_name_costs_no_time() -> None:
    assert clean_name("x/" * 100_000 + "文" * 1_000_000 + ".txt").endswith(".txt")


@given(st.text(), st.sampled_from([None, ".png", ".docx"]))
def test_whatever_is_written_comes_out_plain(raw: str, suffix: str | None) -> None:
    try:
        name = clean_name(raw, suffix=suffix)
    except ToolError:
        return
    assert is_plain(name)
    assert name[0] not in " .-"
    assert name[-1] not in " ."
    assert not set(name) & set('<>:"|?*/\\')
    assert len(name.encode()) <= LONGEST_NAME
    assert suffix is None or name.endswith(suffix)


@given(st.text(), st.sampled_from([None, ".png"]))
def test_cleaning_twice_is_cleaning_once(raw: str, suffix: str | None) -> None:
    try:
        name = clean_name(raw, suffix=suffix)
    except ToolError:
        return
    assert clean_name(name, suffix=suffix) == name


@given(st.text(alphabet=st.sampled_from("./\\ -:conCON1\u0301\u202e e"), max_size=30))
def test_dots_slashes_and_device_names_come_out_plain(raw: str) -> None:
    try:
        name = clean_name(raw)
    except ToolError:
        return
    assert is_plain(name)
    assert clean_name(name) == name
    assert name.split(".")[0].lower() not in ("con", "nul", "com1")


@given(st.text())
def test_two_unicode_forms_of_a_name_are_one_name(raw: str) -> None:
    try:
        name = clean_name(raw)
    except ToolError:
        return
    assert unicodedata.is_normalized("NFC", name)
    assert clean_name(unicodedata.normalize("NFC", raw)) == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [("plot.png", "plot-2.png"), ("plot", "plot-2"), ("a.tar.gz", "a.tar-2.gz")],
)
def test_the_second_file_of_a_name_gets_a_number(name: str, expected: str) -> None:
    assert add_number(name, 2) == expected


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "a\\b", "a\0", "a\nb", "a\u202eb", "x" * 256, "half\ud800", "e\u0301"],
)
def test_a_name_with_a_catch_is_not_plain(name: str) -> None:
    assert not is_plain(name)


@pytest.mark.parametrize("name", ["image_1.jpg", "报告.docx", "-x", ".x", "a b (1).png", "x" * 255])
def test_a_name_that_can_stand_for_itself_is_plain(name: str) -> None:
    assert is_plain(name)


def test_foreign_text_in_a_message_is_quoted_escaped_and_cut() -> None:
    assert quote_foreign("a\u202eb\n") == "'a\\u202eb\\n'"
    assert len(quote_foreign("x" * 10_000)) < 100

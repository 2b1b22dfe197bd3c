import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.content.text import read_text
from gta_bench.errors import ToolError

CHINESE = "姓名,城市\n张三,北京\n"


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        (b"plain", "plain", "utf-8"),
        ("é 中 😀".encode(), "é 中 😀", "utf-8"),
        ("a".encode("utf-8-sig"), "a", "utf-8-sig"),
        ("中".encode("utf-16"), "中", "utf-16"),
        (codecs.BOM_UTF16_BE + "中".encode("utf-16-be"), "中", "utf-16"),
        ("中".encode("utf-32"), "中", "utf-32"),
        (CHINESE.encode("gb18030"), CHINESE, "gb18030"),
        ("萬國博覽會".encode("gb18030"), "萬國博覽會", "gb18030"),
        ("naïve café".encode("latin-1"), "naïve café", "cp1252"),
        ("Müller, Größe, Äpfel".encode("latin-1"), "Müller, Größe, Äpfel", "cp1252"),
        ("“quoted” 5 €".encode("cp1252"), "“quoted” 5 €", "cp1252"),
        (b"\x81 caf\xe9", "\x81 café", "latin-1"),
    ],
)
def test_the_encoding_of_a_text_is_found(data: bytes, text: str, encoding: str) -> None:
    content = read_text(data)
    assert (content.text, content.encoding) == (text, encoding)
    assert content.text == text


@pytest.mark.parametrize(
    "data",
    [b"\x7fELF\0\0", b"a\0b", codecs.BOM_UTF16_LE + b"\x00\xd8", codecs.BOM_UTF8 + b"\xff"],
)
def test_what_is_not_text_is_refused(data: bytes) -> None:
    with pytest.raises(ToolError, match=r"not text|cannot be decoded"):
        read_text(data)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_every_text_in_utf_8_comes_back_unchanged(text: str) -> None:
    mark = text.startswith("\ufeff")
    assert read_text(text.encode()).text == (text[1:] if mark else text)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_text_or_a_typed_refusal(data: bytes) -> None:
    try:
        read_text(data)
    except ToolError:
        assert b"\0" in data or data.startswith((b"\xff\xfe", b"\xfe\xff", codecs.BOM_UTF8))

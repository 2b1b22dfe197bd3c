"""Text files: plain, Markdown, JSON, HTML, code. The encoding is detected, nothing is parsed."""

import codecs
from dataclasses import dataclass

from gta_bench.errors import ToolError

# Byte order marks. The one of UTF-32 begins with the one of UTF-16, so it comes first.
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SAMPLE = 20_000
BIG5_COMMON = (0xA4, 0xC6)  # first bytes of the 5401 most common characters


@dataclass(frozen=True, slots=True)
class TextContent:
    """A text and its encoding."""

    text: str
    encoding: str


def read_text(data: bytes) -> TextContent:
    """Decode a text: byte order mark, UTF-8, GB 18030, Windows Western, Latin-1, in this order.

    GB 18030 also decodes many Western texts, but to rare characters. It is used only if most of
    the decoded characters are common ones. Raises ToolError for binary data.
    """
    mark = next((encoding for start, encoding in MARKS if data.startswith(start)), None)
    if mark is None and b"\0" in data:
        raise ToolError("The file is not text: it contains null bytes.")
    for encoding in [mark] if mark else ["utf-8", "gb18030", "cp1252", "latin-1"]:
        text = _decode(data, encoding)
        if text is not None and (encoding != "gb18030" or _is_chinese(text)):
            return TextContent(text, encoding)
    raise ToolError(f"The file begins like {mark} text but cannot be decoded.")


def _decode(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _is_chinese(text: str) -> bool:
    """Whether at least half of the non-ASCII characters are common Chinese ones."""
    other = [char for char in text[:SAMPLE] if not char.isascii()]
    return 2 * sum(_is_common(char) for char in other) >= len(other)


def _is_common(char: str) -> bool:
    """Whether it is one of the 7445 characters of GB 2312, or in the first level of Big5."""
    if char.encode("gb2312", "ignore"):
        return True
    traditional = char.encode("big5", "ignore")
    return len(traditional) == 2 and BIG5_COMMON[0] <= traditional[0] <= BIG5_COMMON[1]

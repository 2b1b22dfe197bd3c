"""Text as files can hold it."""

import re
from typing import Final

# Control characters, halves of characters, and what XML forbids; tab and newline stay.
UNWRITABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def clean_text(text: str) -> str:
    """Without what no file format can hold, and with one kind of line break."""
    return UNWRITABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))

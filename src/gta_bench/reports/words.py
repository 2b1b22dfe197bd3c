"""Texts cut to what a reader can take in."""

LONGEST = 160


def line(text: str, most: int = LONGEST) -> str:
    """The text in one line, or its beginning."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most]}…"


def short(text: str, most: int) -> str:
    """The text as it is, or its beginning with how much follows."""
    left = len(text) - most
    return text if left <= 0 else f"{text[:most]}… ({left:,} more characters)"

"""How evidence is cut to a number of tokens: short texts whole, long ones in equal shares."""

import math
import re
from collections.abc import Sequence

from gta_bench.records.evidence import Picture

# Tokenizers differ; this guess is high for most, so that what is cut to fit does fit. Words of
# English take 4 to 5 characters a token, small models spend a token on every digit and sign, and
# more than one on a character outside ASCII.
_LETTERS_PER_TOKEN = 3.5
_TOKENS_PER_FOREIGN = 1.5
_LETTERS = re.compile(r"[A-Za-z]")
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_BLANKS = re.compile(r"\s+")
# Providers charge about one token for 750 pixels.
_PIXELS_PER_TOKEN = 750


def text_tokens(text: str) -> int:
    """A high guess of a text's tokens."""
    if not text:
        return 0
    squeezed = _BLANKS.sub("", text)
    letters = len(_LETTERS.findall(squeezed))
    foreign = len(_FOREIGN.findall(squeezed))
    marks = len(squeezed) - letters - foreign
    breaks = text.count("\n")
    return math.ceil(letters / _LETTERS_PER_TOKEN + marks + foreign * _TOKENS_PER_FOREIGN + breaks)


def picture_tokens(picture: Picture) -> int:
    """About what a picture costs."""
    return math.ceil(picture.width * picture.height / _PIXELS_PER_TOKEN)


def shares(wanted: Sequence[int], room: int) -> list[int]:
    """Room for each: what it wants if that is less than an equal share of what is left."""
    given = [0] * len(wanted)
    left = max(0, room)
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    for done, place in enumerate(order):
        given[place] = min(wanted[place], left // (len(order) - done))
        left -= given[place]
    return given


def cut_text(text: str, room: int) -> str:
    """The beginning of a text that fits into so many tokens, ending with a whole line or word."""
    if text_tokens(text) <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text_tokens(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    kept = text[:low]
    for edge in ("\n", " "):
        if kept.rfind(edge) > low * 0.8:
            return kept[: kept.rfind(edge)]
    return kept

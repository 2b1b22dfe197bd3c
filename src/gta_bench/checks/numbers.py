"""Numbers as people write them: with thousands separators, decimal commas and currency signs.

If both marks occur, the last one is the decimal one. A single comma before exactly three digits
separates thousands (`1,234`); before any other number of digits it is decimal (`99,50`). A space
separates thousands only between a first group of one to three digits and groups of three.
"""

import re
import unicodedata
from typing import Final

_GAPS: Final = dict.fromkeys(map(ord, "\u00a0\u2009\u202f"), " ") | {ord("\N{MINUS SIGN}"): "-"}
_SIGNS: Final = re.compile("[$€£¥%]")
_EXPONENT: Final = r"(?:[eE][-+]?\d{1,3})?"
# Every form of a whole cell, and which characters are dropped from it.
_FORMS: Final = (
    (re.compile(r"(?:\d+\.?\d*|\.\d+)" + _EXPONENT), " "),
    (re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?"), ","),
    (re.compile(r"\d+(?:,\d{3})+\.\d*"), ","),
    (re.compile(r"[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d*)?"), ","),  # as in India
    (re.compile(r"\d+(?:\.\d{3})+,\d*"), "."),
    (re.compile(r"[1-9]\d{0,2}(?:\.\d{3}){2,}"), "."),
    (re.compile(r"\d*,\d+"), " "),
    (re.compile(r"\d{1,3}(?: \d{3})+(?:[.,]\d*)?"), " "),
)  # fmt: skip
_WRITTEN: Final = re.compile(
    r"(?P<sign>(?<!\w)[-+][$€£¥]?)?(?P<digits>\d+(?:[.,]\d+)*(?:[eE][-+]?\d{1,3})?)"
)
_USUAL: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")  # read at once, because tables are long
_PLAIN: Final = re.compile(r"\d+(?:\.\d+)?")
_MOST_GROUPS: Final = 6


def parse_number(text: str) -> float | None:
    """Return a cell as a number; currency and percent signs are dropped.

    >>> parse_number("$48,210.55"), parse_number("(1,200)"), parse_number("12 apples")
    (48210.55, -1200.0, None)
    >>> parse_number("1.234,50"), parse_number("99,50 €"), parse_number("2025 48")
    (1234.5, 99.5, None)
    """
    if _USUAL.fullmatch(text):
        return float(text)
    bare = _SIGNS.sub("", unicodedata.normalize("NFKC", text).translate(_GAPS)).strip()
    negative = bare.startswith("(") and bare.endswith(")")
    bare = bare.strip("()").strip()
    if bare.startswith(("-", "+")):
        negative ^= bare.startswith("-")
        bare = bare[1:].strip()
    value = _read_digits(bare)
    return -value if negative and value is not None else value


def find_numbers(text: str) -> list[tuple[float, ...]]:
    """Return the possible values of each number of a text.

    Where a space may separate thousands or two numbers, both are possible.

    >>> find_numbers("In 2025: 48 210.55")
    [(2025.0,), (48.0, 48210.55), (210.55,)]
    """
    plain = text.translate(_GAPS)
    found = list(_WRITTEN.finditer(plain))
    values: list[tuple[float, ...]] = []
    for at, one in enumerate(found):
        negative = (one["sign"] or "").startswith("-")
        first = _read_digits(one["digits"])
        if first is None:  # a date, a version or a list
            values += [(float(part),) for part in _PLAIN.findall(one["digits"])]
            continue
        readings = [first]
        for end in range(at + 1, min(at + _MOST_GROUPS, len(found))):
            if plain[found[end - 1].end() : found[end].start()] != " ":
                break
            joined = _read_digits(plain[one.start("digits") : found[end].end()])
            if joined is None:
                break
            readings.append(joined)
        values.append(tuple(-value if negative else value for value in readings))
    return values


def _read_digits(text: str) -> float | None:
    for form, dropped in _FORMS:
        if form.fullmatch(text):
            return float(text.replace(dropped, "").replace(",", "."))
    return None

"""Numbers in a text, each read whole: "58" is not in "58.5", "58,000", "158" or "-58"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

# A number with thousands separators, a decimal number (but not a part of 1.2.3 or of a date),
# a whole number, or a decimal number without its zero.
NUMBER = re.compile(
    r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![0-9])"
    r"|(?<![0-9]\.)[0-9]+\.[0-9]+(?![0-9]|\.[0-9])"
    r"|[0-9]+"
    r"|(?<![\w.)\]])\.[0-9]+"
)
# A hyphen is a sign where nothing stands before it that it could join to the number: "13-3",
# "a-3", "(2)-3" and "50%-60%" hold no negative number, "x=-3" and "is -3" do.
SIGN = r"(?<![\w)\]}%°])-"
BEFORE = re.compile(rf"(?P<sign>{SIGN})?(?:(?P<currency>[$€£¥]) ?)?(?P<inner>{SIGN})?\Z")
BEFORE_LENGTH = 5  # the pattern takes up to four characters and looks at one more
AFTER = re.compile(r" ?\\?%")


@dataclass(frozen=True)
class Quantity:
    """A number with its sign, its currency and whether it is a percentage; and its place."""

    value: Decimal
    currency: str | None
    percent: bool
    start: int
    end: int


def quantities(text: str) -> Iterator[Quantity]:
    """Every number that stands alone; "13th", "24GB", "x3" and the "04" of "7:04" do not."""
    for match in NUMBER.finditer(text):
        start, end = match.span()
        if not (_is_word(text[start - 1 : start]) or _is_word(text[end : end + 1])):
            digits = match.group().replace(",", "")
            if not re.match("0[0-9]", digits):
                yield _quantity(text, Decimal(digits), start, end)


def as_quantity(text: str) -> Quantity | None:
    """The number that the text is, if it is one and nothing else."""
    whole = [found for found in quantities(text) if (found.start, found.end) == (0, len(text))]
    return whole[0] if whole else None


def is_within(wanted: Quantity, text: str) -> bool:
    """Whether the text has that value; currency and percent sign only where they are wanted."""
    return any(
        found.value == wanted.value
        and wanted.currency in (None, found.currency)
        and (found.percent or not wanted.percent)
        for found in quantities(text)
    )


def _quantity(text: str, value: Decimal, start: int, end: int) -> Quantity:
    offset = max(0, start - BEFORE_LENGTH)
    before = BEFORE.search(text[offset:start])
    assert before is not None  # every part of the pattern is optional
    after = AFTER.match(text, end)
    return Quantity(
        value=value.copy_negate() if before["sign"] or before["inner"] else value,
        currency=before["currency"],
        percent=after is not None,
        start=offset + before.start(),
        end=after.end() if after else end,
    )


def _is_word(character: str) -> bool:
    return re.match(r"\w", character) is not None

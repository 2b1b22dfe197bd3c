"""Whether an answer names what the reference asks for, with boundaries that fit the alias.

An alias that is a number is compared by value with the numbers of the answer: "58" is in "58.",
"58.00" and "58, 60", "1797" in "1,797", "-3" in "x = -3"; but "58" is not in "58.5" or "158",
and neither "3" in "-3" nor "-3" in "13-3". Any other alias is searched as a text: where its edge
is a letter or digit no letter or digit may follow, a digit may not cut a number, and a sign at
the edge ("C++") needs nothing but that it is not repeated. A blank alias is never found.
Typographic minus signs and apostrophes are read as plain ones, and blanks as any blanks.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from gta_bench.records.atomic import WhitelistAnswer

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


PLAIN = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-") | {"\u2019": "'"})
CLOSING = r"\w)\]}%°"
WORD_START = r"(?<!\w)"
NUMBER_START = rf"(?<!\w)(?<![0-9][.,])(?<!\A-)(?<![^{CLOSING}]-)"
NUMBER_END = r"(?!\w)(?!\.[0-9])(?!,[0-9]{3}(?![0-9]))"


def matches(text: str, answer: WhitelistAnswer) -> bool:
    """Every group is found, and nothing of the blacklist; a blank answer is no answer."""
    plain = text.translate(PLAIN)
    if not plain.strip() or not all(_finds(group, plain) for group in answer.whitelist):
        return False
    return not any(_finds(group, plain) for group in answer.blacklist or ())


def _finds(aliases: Iterable[str], plain: str) -> bool:
    return any(_is_named(alias.translate(PLAIN).strip(), plain) for alias in aliases)


def _is_named(alias: str, plain: str) -> bool:
    if not alias:
        return False
    number = as_quantity(alias)
    if number is not None:
        return is_within(number, plain)
    words = r"\s+".join(re.escape(word) for word in alias.split())
    pattern = _left_edge(alias) + words + _right_edge(alias)
    return re.search(pattern, plain, re.IGNORECASE) is not None


def _left_edge(alias: str) -> str:
    if alias[0] in "0123456789":
        return NUMBER_START
    if alias[0] == "-":
        return rf"(?={SIGN})"
    return WORD_START if re.match(r"\w", alias) else ""


def _right_edge(alias: str) -> str:
    last = alias[-1]
    if last in "0123456789":
        return NUMBER_END
    if last in "+#":
        return rf"(?!{re.escape(last)})"
    return r"(?!\w)" if re.match(r"\w", last) else ""

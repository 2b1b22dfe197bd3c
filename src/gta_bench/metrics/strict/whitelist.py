"""Whether an answer names what the reference asks for, with boundaries that fit the alias.

An alias that is a number is compared by value with the numbers of the answer: "58" is in "58.",
"58.00" and "58, 60", "1797" in "1,797", "-3" in "x = -3"; but "58" is not in "58.5" or "158",
and neither "3" in "-3" nor "-3" in "13-3". Any other alias is searched as a text: where its edge
is a letter or digit no letter or digit may follow, a digit may not cut a number, and a sign at
the edge ("C++") needs nothing but that it is not repeated. A blank alias is never found.
Typographic minus signs and apostrophes are read as plain ones, and blanks as any blanks.
"""

import re
from collections.abc import Iterable

from gta_bench.metrics.strict.numbers import SIGN, as_quantity, is_within
from gta_bench.records.atomic import WhitelistAnswer

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

"""Whether a predicted step is a call, an answer or a failure, and what an answer scores.

An alias of a whitelist that is a number is compared by value with the numbers in the answer: "58"
matches "58.", "58.00" and "58, 60", "1797" matches "1,797", and "-3" matches "x = -3"; but "58"
does not match "58.5" or "158", "3" does not match "-3", and "-3" does not match "13-3". Any other
alias is searched as text. If it begins or ends with a letter or digit, no letter or digit may be
adjacent, and a digit must not cut a number; a sign at the edge ("C++") must not be repeated. A
blank alias never matches. Typographic minus signs and apostrophes count as plain ones, and any
white space matches any other.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from gta_bench.metrics.similarity import SimilarityFunction
from gta_bench.records.atomic import Answer, WhitelistAnswer
from gta_bench.records.steps import NO_ACTION, AnswerStep, CallStep, MalformedStep, PredictedStep

StepOutcome = Literal["call", "answer", "failed_call", "crash", "malformed", "other"]

# Upstream writes its own crashes as answers with one of these prefixes.
CRASH_TEXTS: Final = ("[LagentAgentError]", "[AgentInferencerError]")

# A number with thousands separators, a decimal number (but not a part of 1.2.3 or of a date),
# an integer, or a decimal number without a leading zero.
NUMBER = re.compile(
    r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![0-9])"
    r"|(?<![0-9]\.)[0-9]+\.[0-9]+(?![0-9]|\.[0-9])"
    r"|[0-9]+"
    r"|(?<![\w.)\]])\.[0-9]+"
)
# A hyphen is a sign unless the character before it makes it a dash: "13-3", "a-3", "(2)-3" and
# "50%-60%" have no negative number, "x=-3" and "is -3" do.
SIGN = r"(?<![\w)\]}%°])-"
BEFORE = re.compile(rf"(?P<sign>{SIGN})?(?:(?P<currency>[$€£¥]) ?)?(?P<inner>{SIGN})?\Z")
BEFORE_LENGTH = 5  # up to four characters of the pattern and one of look-behind
AFTER = re.compile(r" ?\\?%")
PLAIN = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-") | {"\u2019": "'"})
CLOSING = r"\w)\]}%°"
NUMBER_START = rf"(?<!\w)(?<![0-9][.,])(?<!\A-)(?<![^{CLOSING}]-)"
NUMBER_END = r"(?!\w)(?!\.[0-9])(?!,[0-9]{3}(?![0-9]))"


def classify_step(step: PredictedStep) -> StepOutcome:
    """Classify a step; thoughts and tool replies are `other`, upstream's NoAction is malformed."""
    match step:
        case CallStep(name=name) if name == NO_ACTION:
            return "malformed"
        case CallStep(error=error):
            return "call" if error is None else "failed_call"
        case AnswerStep(error=error, content=content):
            if error is not None or content.startswith(CRASH_TEXTS):
                return "crash"
            return "answer" if content.strip() else "malformed"
        case MalformedStep():
            return "malformed"
        case _:
            return "other"


def score_answer(step: PredictedStep, answer: Answer, *, similarity: SimilarityFunction) -> float:
    """Score a step from 0 to 1, by whitelist or best similarity; only an answer can score."""
    if not isinstance(step, AnswerStep) or classify_step(step) != "answer":
        return 0.0
    if isinstance(answer, WhitelistAnswer):
        return float(matches(step.content, answer))
    return max((similarity(step.content, text) for text in answer.references), default=0.0)


def matches(text: str, answer: WhitelistAnswer) -> bool:
    """Return whether a text has every whitelist group and no blacklisted alias; never if blank."""
    plain = text.translate(PLAIN)
    if not plain.strip() or not all(_finds(group, plain) for group in answer.whitelist):
        return False
    return not any(_finds(group, plain) for group in answer.blacklist or ())


def _finds(aliases: Iterable[str], plain: str) -> bool:
    return any(_has_alias(alias.translate(PLAIN).strip(), plain) for alias in aliases)


def _has_alias(alias: str, plain: str) -> bool:
    if not alias:
        return False
    number = read_quantity(alias)
    if number is not None:
        return has_quantity(number, plain)
    words = r"\s+".join(re.escape(word) for word in alias.split())
    pattern = _left_edge(alias) + words + _right_edge(alias)
    return re.search(pattern, plain, re.IGNORECASE) is not None


def _left_edge(alias: str) -> str:
    if alias[0] in "0123456789":
        return NUMBER_START
    if alias[0] == "-":
        return rf"(?={SIGN})"
    return r"(?<!\w)" if re.match(r"\w", alias) else ""


def _right_edge(alias: str) -> str:
    last = alias[-1]
    if last in "0123456789":
        return NUMBER_END
    if last in "+#":
        return rf"(?!{re.escape(last)})"
    return r"(?!\w)" if re.match(r"\w", last) else ""


@dataclass(frozen=True)
class Quantity:
    """A signed number with currency, percent sign, and its position in the text."""

    value: Decimal
    currency: str | None
    percent: bool
    start: int
    end: int


def find_quantities(text: str) -> Iterator[Quantity]:
    """Find the separate numbers, which excludes "13th", "24GB", "x3" and the "04" of "7:04"."""
    for match in NUMBER.finditer(text):
        start, end = match.span()
        if not (_is_word(text[start - 1 : start]) or _is_word(text[end : end + 1])):
            digits = match.group().replace(",", "")
            if not re.match("0[0-9]", digits):
                yield _quantity(text, Decimal(digits), start, end)


def read_quantity(text: str) -> Quantity | None:
    """Return the number if the text is one and nothing else."""
    whole = [found for found in find_quantities(text) if (found.start, found.end) == (0, len(text))]
    return whole[0] if whole else None


def has_quantity(wanted: Quantity, text: str) -> bool:
    """Return whether the text has this value; currency and percent sign must match if given."""
    return any(
        found.value == wanted.value
        and wanted.currency in (None, found.currency)
        and (found.percent or not wanted.percent)
        for found in find_quantities(text)
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

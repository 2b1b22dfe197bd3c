"""Whether a predicted step is a call, an answer or a failure, and what an answer scores.

An alias of a whitelist that is a number is compared by value with the numbers in the answer: "58"
matches "58.", "58.00" and "58, 60", "1797" matches "1,797", and "-3" matches "x = -3"; but "58"
does not match "58.5" or "158", "3" does not match "-3", and "-3" does not match "13-3". Any other
alias is searched as text. If it begins or ends with a letter or digit, no letter or digit may be
adjacent, and a digit must not cut a number; a sign at the edge ("C++") must not be repeated. A
blank alias never matches. Typographic minus signs and apostrophes count as plain ones, and any
white space matches any other.

An answer that lists many candidates states none of them. With more than 12 different numbers, a
number is searched in the conclusion only, and with more than 120 different words any other alias.
The conclusion is what is bold or boxed, sentences with a word such as "total" or "answer", and the
first and last two sentences. If that is still too much, it is the first of these that is within the
same limits: the four sentences, the marked parts alone, the last sentence. A blacklisted alias
counts anywhere.
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
# No reference of GTA-Atomic exceeds one of these limits (tests/metrics/test_strict_shotguns.py).
MOST_NUMBERS: Final = 12
MOST_WORDS: Final = 120
WORD = re.compile(r"[^\W\d_]+")
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
MARKED = re.compile(r"\*\*[^*\n]+\*\*|\\boxed\{[^{}\n]+\}")
CONCLUDES = re.compile(r"\b(?:answer|difference|hence|result|so|sum|therefore|thus|total)\b", re.I)
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
    """Return whether a text has every whitelist group and no blacklisted alias.

    A blank text and a list of many candidates never match.
    """
    plain = text.translate(PLAIN).strip()
    numbers = plain if count_numbers(plain) <= MOST_NUMBERS else _conclude(plain)
    words = plain if _count_words(plain) <= MOST_WORDS else _conclude(plain)
    if not plain or not all(_finds(group, numbers, words) for group in answer.whitelist):
        return False
    return not any(_finds(group, plain, plain) for group in answer.blacklist or ())


def _conclude(plain: str) -> str:
    """Return the conclusion of an answer; empty if that lists too much, too."""
    sentences = [one for one in SENTENCE.split(plain) if re.search(r"\w", one)]
    ends = [*sentences[:2], *sentences[-2:]]
    marked = MARKED.findall(plain) + [one for one in sentences if CONCLUDES.search(one)]
    for read in ([*marked, *ends], ends, marked, ends[-1:]):
        conclusion = "\n".join(read)
        if (
            read
            and count_numbers(conclusion) <= MOST_NUMBERS
            and _count_words(conclusion) <= MOST_WORDS
        ):
            return conclusion
    return ""


def _count_words(plain: str) -> int:
    return len({*WORD.findall(plain.casefold())})


def count_numbers(text: str) -> int:
    """Return how many different numbers a text has."""
    return len({*NUMBER.findall(text)})


def _finds(aliases: Iterable[str], numbers: str, words: str) -> bool:
    """Return whether an alias is found, one that is a number in the first text."""
    return any(_has_alias(alias.translate(PLAIN).strip(), numbers, words) for alias in aliases)


def _has_alias(alias: str, numbers: str, words: str) -> bool:
    if not alias:
        return False
    number = read_quantity(alias)
    if number is not None:
        return has_quantity(number, numbers)
    parts = r"\s+".join(re.escape(word) for word in alias.split())
    pattern = _left_edge(alias) + parts + _right_edge(alias)
    return re.search(pattern, words, re.IGNORECASE) is not None


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

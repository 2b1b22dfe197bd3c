"""Whether a text speaks to whoever judges it: orders, forged verdicts, imitations of our own words.

The judge is told that such text is there, never what it says: words of a file do not come into
the part of the prompt that can be trusted. Ordinary works give no finding; a test holds real
deliverables against it.
"""

import re
from collections.abc import Iterator
from typing import Final

_JUDGE: Final = (
    r"(?:the )?(?:judges?|graders?|evaluators?|evaluation (?:team|system|model|harness)"
    r"|grading (?:team|system|model)|scoring (?:system|model)|llm[- ]judge|ai (?:judge|grader))"
)
_HIGH: Final = r"(?:10|ten|full|maximum|max|highest|perfect|top)\b"
# Every repetition has a bound: a hostile text must not take longer than its length.
_ORDERS: Final = re.compile(
    rf"\b(?:notes?|message|notice|instructions?|attention|memo)[ :,-]{{1,3}}"
    rf"(?:to|for|from|by|of) {_JUDGE}"
    rf"|\bas {_JUDGE},? (?:you|i)\b"
    r"|\b(?:ignore|disregard|forget|override) (?:all |any |the |your |every |these ){0,3}"
    r"(?:previous|prior|above|earlier|preceding|other|system|scoring|grading) "
    r"(?:instructions?|rules?|prompts?|guidelines?|requirements?|criteria)"
    r"|\b(?:give|assign|award|set|return|report|output|record|reply with|respond with|rate|score)\b"
    rf"[^.\n]{{0,60}}\b(?:score|rating|mark|grade|requirement|verdict)s?\b[^.\n]{{0,6}}\b{_HIGH}"
    rf"|\b(?:give|assign|award)\b[^.\n]{{0,40}}\b{_HIGH}[^.\n]{{0,20}}"
    r"\b(?:score|points?|marks?|rating)\b"
    rf"|\b(?:score|rate|grade) (?:it|this|each|every|all)\b[^.\n]{{0,60}}\b{_HIGH}",
    re.IGNORECASE,
)
# Quotes may be those of a file inside a file: doubled, or behind a backslash.
_Q: Final = r"(?:\\?[\"“”]){1,2}"
_FIELD: Final = rf"{_Q}(?:leaf|verdicts?|reason|requirement){_Q}\s{{0,4}}:"
_SCORE: Final = rf"{_Q}score{_Q}\s{{0,4}}:\s{{0,4}}(?:{_Q})?\d"
_VERDICT: Final = re.compile(
    rf"{_FIELD}[^\n]{{0,400}}{_SCORE}|{_SCORE}[^\n]{{0,400}}{_FIELD}", re.IGNORECASE
)
_OURS: Final = re.compile(
    r"^\W{0,3}(?:BEGIN|END) (?:[0-9a-f]{8,64}|EVIDENCE)\b"
    r"|^\W{0,3}The evidence ends here\b|\bJudge th(?:is|ese) (?:\d+ )?requirements?\b"
    r"|^\W{0,3}Files that the system (?:produced|was given) \("
    r"|<\|(?:im_start|system|end|start_header_id)|\[/?INST\]|</?(?:system|evidence)>"
    r"|^\W{0,3}(?:system|evaluator|judge) ?(?:message|prompt|note)? ?:",
    re.IGNORECASE | re.MULTILINE,
)
_KINDS: Final = (
    (_ORDERS, "speaks to whoever scores the work"),
    (_VERDICT, "has the form of a verdict"),
    (_OURS, "imitates the words around the evidence"),
)
# Zero-width and tag characters, and those that turn the direction of writing. Joiners belong to
# emoji and to scripts, tags to flags after the black one.
_FLAG: Final = re.compile("\U0001f3f4[\U000e0020-\U000e007f]{1,8}")
_UNSEEN: Final = re.compile("[\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
FEW_UNSEEN: Final = 3


def addressed(text: str) -> Iterator[str]:
    """What about a text points at the judge, in words of ours."""
    for pattern, words in _KINDS:
        if pattern.search(text):
            yield words
    if len(_UNSEEN.findall(_FLAG.sub("", text))) > FEW_UNSEEN:
        yield "has characters that no reader sees"

"""From an object's description to a class of the detector, and no further than it can see.

Word vectors were tried for this and left out: WordLlama takes a tiger for a refrigerator (0.54)
and a glass for eye glasses (0.75), while kitten and cat reach 0.57. A table makes no such guess.
"""

import re
from functools import cache
from typing import NamedTuple

# The 80 classes of COCO. The detector's list has 11 more names that it was never trained on.
CLASSES = tuple(
    """person|bicycle|car|motorcycle|airplane|bus|train|truck|boat|traffic light|fire hydrant
|stop sign|parking meter|bench|bird|cat|dog|horse|sheep|cow|elephant|bear|zebra|giraffe|backpack
|umbrella|handbag|tie|suitcase|frisbee|skis|snowboard|sports ball|kite|baseball bat
|baseball glove|skateboard|surfboard|tennis racket|bottle|wine glass|cup|fork|knife|spoon|bowl
|banana|apple|sandwich|orange|broccoli|carrot|hot dog|pizza|donut|cake|chair|couch|potted plant
|bed|dining table|toilet|tv|laptop|mouse|remote|keyboard|cell phone|microwave|oven|toaster|sink
|refrigerator|book|clock|vase|scissors|teddy bear|hair drier|toothbrush""".replace("\n", "").split(
        "|"
    )
)
SYNONYMS = {
    "person": "people|human|human being|pedestrian",
    "bicycle": "bike|cycle",
    "car": "automobile",
    "motorcycle": "motorbike",
    "airplane": "plane|aeroplane|aircraft",
    "boat": "ship",
    "traffic light": "stoplight|traffic signal",
    "cat": "kitten",
    "dog": "puppy",
    "cow": "cattle",
    "backpack": "rucksack",
    "tie": "necktie",
    "skis": "ski",
    "sports ball": "ball|football|basketball|soccer ball|tennis ball|volleyball",
    "tennis racket": "racket",
    "wine glass": "wineglass",
    "cup": "mug",
    "donut": "doughnut",
    "couch": "sofa",
    "potted plant": "houseplant|pot plant",
    "dining table": "table",
    "tv": "television|tv set|tv screen",
    "laptop": "laptop computer",
    "mouse": "computer mouse",
    "remote": "remote control",
    "cell phone": "phone|mobile phone|smartphone|cellphone|mobile|smart phone|iphone",
    "microwave": "microwave oven",
    "refrigerator": "fridge",
    "teddy bear": "teddy",
    "hair drier": "hair dryer|hairdryer",
}
# Parts of a class that the detector does not tell apart.
KINDS = {
    "person": "man|men|woman|women|boy|girl|child|children|kid|baby|adult|student|lady|guy|teacher"
    "|player|girlfriend|boyfriend|mother|father|worker|driver|doctor|nurse|male|female|teenager"
}
ARTICLES = frozenset({"a", "an", "the", "any", "all", "of", "some"})
WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


class Match(NamedTuple):
    """A class, and what of the description it does not cover (nothing, if `unseen` is empty)."""

    label: str
    unseen: str = ""


def match(description: str) -> Match | None:
    """The class that a description names, or the one it narrows; None for any other object."""
    words = [word for word in WORD.findall(description.casefold()) if word not in ARTICLES]
    label = _named(words)
    if label is not None:
        return Match(label)
    for length in range(min(len(words) - 1, _most_words()), 0, -1):
        for start in range(len(words) - length, -1, -1):  # the noun stands last, as a rule
            part = words[start : start + length]
            label = _named(part) or _kind(part)
            if label is not None:
                return Match(label, " ".join(words if _kind(part) else _without(words, part)))
    label = _kind(words)
    return Match(label, " ".join(words)) if label is not None else None


def _without(words: list[str], part: list[str]) -> list[str]:
    return [word for word in words if word not in part]


def _named(words: list[str]) -> str | None:
    return next((_names()[form] for form in _forms(words) if form in _names()), None)


def _kind(words: list[str]) -> str | None:
    return next((_kinds()[form] for form in _forms(words) if form in _kinds()), None)


def _forms(words: list[str]) -> list[str]:
    """A phrase as it is, its last word in the singular, and with two letters put right."""
    if not words:
        return []
    *rest, last = words
    endings = [("ies", "y"), ("ves", "fe"), ("ves", "f"), ("es", ""), ("s", "")]
    singular = [last[: -len(old)] + new for old, new in endings if last.endswith(old)]
    phrases = [" ".join([*rest, form]) for form in (last, *singular)]
    return [*phrases, *(_respelled()[key] for key in map(_letters, phrases) if key in _respelled())]


def _letters(phrase: str) -> tuple[str, str]:
    """The same for two spellings that differ in the order of letters after the first."""
    return phrase[:1], "".join(sorted(phrase))


@cache
def _respelled() -> dict[tuple[str, str], str]:
    """Longer names by their letters, so that `knief` is read as it was meant."""
    return {_letters(name): name for name in _names() if len(name) >= 5}


@cache
def _most_words() -> int:
    """Of a name; no longer part of a description can be one, however long somebody makes it."""
    return max(len(name.split()) for name in (*_names(), *_kinds()))


@cache
def _names() -> dict[str, str]:
    names = {name: name for name in CLASSES}
    return names | _table(SYNONYMS)


@cache
def _kinds() -> dict[str, str]:
    return _table(KINDS)


def _table(groups: dict[str, str]) -> dict[str, str]:
    return {word: label for label, words in groups.items() for word in words.split("|")}

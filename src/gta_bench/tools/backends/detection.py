"""Objects by description, found by the detector; refused if it could only guess.

Descriptions are matched to classes by a table. Word vectors were tried and rejected: WordLlama
takes a tiger for a refrigerator (0.54) and a glass for eye glasses (0.75), while kitten and cat
reach 0.57.
"""

import re
from functools import cache
from typing import NamedTuple

from gta_bench.errors import ToolError
from gta_bench.tools.backends.local import KnownObject, find_objects
from gta_bench.tools.contract import Equipment

SURE = 0.5
SAME = 0.7  # boxes of different classes that overlap more are one object

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
    "donut": "doughnut",  # codespell:ignore
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
# Parts of a class that the detector cannot distinguish.
KINDS = {
    "person": "man|men|woman|women|boy|girl|child|children|kid|baby|adult|student|lady|guy|teacher"
    "|player|girlfriend|boyfriend|mother|father|worker|driver|doctor|nurse|male|female|teenager"
}


def _invert(groups: dict[str, str]) -> dict[str, str]:
    return {word: label for label, words in groups.items() for word in words.split("|")}


NAMES = {name: name for name in CLASSES} | _invert(SYNONYMS)
KIND_NAMES = _invert(KINDS)
# A longer part of a description cannot be a name.
LONGEST_NAME = max(len(name.split()) for name in (*NAMES, *KIND_NAMES))
ARTICLES = frozenset({"a", "an", "the", "any", "all", "of", "some"})
WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


class Match(NamedTuple):
    """A class, and the part of the description that it does not cover."""

    label: str
    unseen: str = ""


def match(description: str) -> Match | None:
    """Return the class that a description names or narrows down; None for other objects."""
    words = [word for word in WORD.findall(description.casefold()) if word not in ARTICLES]
    label = _look_up(NAMES, words)
    if label is not None:
        return Match(label)
    for length in range(min(len(words) - 1, LONGEST_NAME), 0, -1):
        for start in range(len(words) - length, -1, -1):  # the noun is usually last
            part = words[start : start + length]
            if label := _look_up(KIND_NAMES, part):
                return Match(label, " ".join(words))
            if label := _look_up(NAMES, part):
                return Match(label, " ".join(word for word in words if word not in part))
    label = _look_up(KIND_NAMES, words)
    return Match(label, " ".join(words)) if label is not None else None


def _look_up(table: dict[str, str], words: list[str]) -> str | None:
    return next((table[form] for form in _forms(words) if form in table), None)


def _forms(words: list[str]) -> list[str]:
    """Return a phrase, its last word in the singular, and both with swapped letters corrected."""
    if not words:
        return []
    *rest, last = words
    endings = [("ies", "y"), ("ves", "fe"), ("ves", "f"), ("es", ""), ("s", "")]
    singular = [last[: -len(old)] + new for old, new in endings if last.endswith(old)]
    phrases = [" ".join([*rest, form]) for form in (last, *singular)]
    keys = map(_sort_letters, phrases)
    return [*phrases, *(_spellings()[key] for key in keys if key in _spellings())]


def _sort_letters(phrase: str) -> tuple[str, str]:
    """Return the same key for spellings that differ in the order of letters after the first."""
    return phrase[:1], "".join(sorted(phrase))


@cache
def _spellings() -> dict[tuple[str, str], str]:
    """Return longer names by their letters, so that `knief` is read as `knife`."""
    return {_sort_letters(name): name for name in NAMES if len(name) >= 5}


def find_class(description: str) -> str:
    """Return the detector's class for a description; raises ToolError if it has none."""
    found = match(description)
    if found is None:
        raise ToolError(
            f"The offline detector does not know {description[:80]!r}. "
            f"It knows: {', '.join(CLASSES)}."
        )
    if found.unseen:
        raise ToolError(
            f"The offline detector finds {found.label!r}, but cannot tell {found.unseen!r} from "
            f"others. Ask for {found.label!r}."
        )
    return found.label


async def find_described(
    equipment: Equipment, data: bytes, path: str, description: str, *, floor: float
) -> list[KnownObject]:
    """Return the objects that fit a description, highest score first."""
    label = find_class(description)
    found = await find_objects(equipment, data, path, floor=floor)
    return [one for one in found if one.label == label]


def drop_overlaps(found: list[KnownObject]) -> list[KnownObject]:
    """Return each object once, with the class of its highest score."""
    kept: list[KnownObject] = []
    for one in found:
        if all(one.box.overlap(other.box) < SAME for other in kept):
            kept.append(one)
    return kept

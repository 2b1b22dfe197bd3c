"""Unique words, planted one per location, and where each of them was found."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

from gta_bench.records.evidence import FileEvidence
from tests.content import samples

# Letters that are read well in pictures.
_STARTS = ("Ba", "De", "Fu", "Ge", "Ha", "Ke", "Mo", "Na", "Pe", "Su", "Ta", "Zu")
_MIDDLES = ("dan", "gus", "kan", "man", "nes", "pan", "sen", "tum")
_ENDS = ("bek", "des", "hap", "kun", "ses", "tak")


def _words() -> Iterator[str]:
    for end, middle, start in product(_ENDS, _MIDDLES, _STARTS):
        yield start + middle + end


@dataclass(frozen=True)
class Plant:
    """A word at a location in a file; `named` matches the note that the location is not shown.

    `drawn` if it is in pixels only.
    """

    word: str
    file: str
    place: str
    named: str = ""
    drawn: bool = False


@dataclass
class Field:
    """Everything that was planted."""

    plants: list[Plant] = field(default_factory=list)
    words: Iterator[str] = field(default_factory=_words)

    def bed(self, file: str) -> "Bed":
        return Bed(self, file)


@dataclass
class Bed:
    """One file's part of it."""

    field: Field
    file: str

    def __call__(self, place: str, *, named: str = "", word: str = "", drawn: bool = False) -> str:
        planted = word or next(self.field.words)
        self.field.plants.append(Plant(planted, self.file, place, named, drawn))
        return planted


def find(plant: Plant, shown: FileEvidence, read: Callable[[FileEvidence], Iterable[str]]) -> str:
    """Where a word is: `text`, `picture`, `named`, or `lost`."""
    word = plant.word.casefold()
    facts = " ".join(str(probe.value) for probe in shown.probes)
    if word in f"{shown.text} {facts}".casefold():
        return "text"
    notes = [*shown.cut, *shown.unshown, *shown.findings]
    if plant.named and any(re.search(plant.named, note) for note in notes):
        return "named"
    if plant.drawn and any(word in words.casefold().replace(" ", "") for words in read(shown)):
        return "picture"
    return "lost"


def holds(data: bytes, word: str) -> bool:
    """Whether a converter kept a word: it is in the bytes of the file, or of its parts."""
    contents = [data, *samples.unzipped(data).values()] if data.startswith(b"PK") else [data]
    forms = [word.encode(code) for code in ("utf-8", "utf-16-le")]
    forms += [form.lower() for form in forms]
    return any(form in content for content in contents for form in forms)

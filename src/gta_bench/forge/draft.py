"""What a family makes: a task with everything that is known about it, before it is written.

A family never reads its truth back from a file: it draws the truth, and writes input, gold and
wrong work from it.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Final, Literal, NamedTuple, TypeVar

from pydantic import JsonValue

from gta_bench.datasets.folders import GroupEntry, LeafEntry
from gta_bench.forge.words import COMPANIES, FIRST_NAMES, LAST_NAMES, PLACES, SUFFIXES

# Increment it with every change that changes the bytes of a task.
FORMAT: Final = 1
Namespace = Literal["public", "train", "private"]
TaskLevel = Literal[1, 2, 3]
LEVELS: Final[tuple[TaskLevel, ...]] = (1, 2, 3)
FIRST_DAY: Final = date(2023, 1, 1)
# A check as a table of task.toml.
CheckTable = Mapping[str, JsonValue]
_Value = TypeVar("_Value")


class TaskDice(Random):
    """Random choices that are the same for the same key, on every machine and every day."""

    def __init__(self, key: str, secret: bytes = b"") -> None:
        digest = hmac.new(secret, key.encode(), hashlib.sha256).digest()
        super().__init__(int.from_bytes(digest, "big"))

    def person(self) -> str:
        """A full name."""
        return f"{self.choice(FIRST_NAMES)} {self.choice(LAST_NAMES)}"

    def people(self, count: int) -> list[str]:
        """Full names without a first or last name twice."""
        first, last = self.sample(FIRST_NAMES, count), self.sample(LAST_NAMES, count)
        return [f"{one} {other}" for one, other in zip(first, last, strict=True)]

    def company(self) -> str:
        """A company's name."""
        return f"{self.choice(COMPANIES)} {self.choice(SUFFIXES)}"

    def places(self, count: int) -> list[str]:
        """Different names of places."""
        return self.sample(PLACES, count)

    def day(self, within: int = 700, since: date = FIRST_DAY) -> date:
        """A day; it never depends on today."""
        return since + timedelta(days=self.randrange(within))

    def amount(self, low: int, high: int) -> Decimal:
        """An amount in cents, which adds up without error."""
        return Decimal(self.randint(low * 100, high * 100)) / 100

    def flip(self, value: _Value, other: _Value) -> _Value:
        """One of two values."""
        return self.choice((value, other))


class Work(NamedTuple):
    """Delivered files by name, and the final answer."""

    files: Mapping[str, bytes]
    answer: str = ""


class Wrong(NamedTuple):
    """A work with one mistake, and exactly the leaves that fail because of it."""

    work: Work
    breaks: tuple[str, ...]
    origin: str


@dataclass(frozen=True)
class TaskDraft:
    """A task, its two golds, its wrong works and its cheats.

    `inputs` are files by their names below inputs/, `checks` those below checks/.
    """

    request: str
    category: str
    tools: tuple[str, ...]
    inputs: Mapping[str, bytes]
    deliverables: Mapping[str, str]
    nodes: tuple[LeafEntry | GroupEntry, ...]
    gold: Mapping[str, Work]
    wrong: Mapping[str, Wrong]
    cheat: Mapping[str, Work]
    checks: Mapping[str, bytes] = field(default_factory=dict)


class TaskFamily(NamedTuple):
    """A family: its name, what it asks for, what its three levels mean, and how it is made."""

    name: str
    about: str
    levels: tuple[str, str, str]
    make: Callable[[TaskDice, TaskLevel], TaskDraft]
    # Programs besides Python that making or checking it needs: libreoffice, chromium,
    # ffmpeg, flite.
    needs: tuple[str, ...] = ()


def leaf(
    name: str,
    says: str,
    *checks: CheckTable,
    weight: float = 1.0,
    needs: tuple[str, ...] = (),
) -> LeafEntry:
    """Return a leaf; `needs` names leaves without which it cannot hold."""
    entry = {"id": name, "says": says, "weight": weight, "needs": needs, "checks": checks}
    return LeafEntry.model_validate(entry, strict=False)


def group(name: str, *leaves: LeafEntry, weight: float = 1.0) -> GroupEntry:
    """Return a group of leaves."""
    return GroupEntry(id=name, weight=weight, leaf=leaves)

"""One file's evidence while it is being made."""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from pydantic import JsonValue

from gta_bench.confine.jail import Jail
from gta_bench.content.identify import Identity
from gta_bench.content.images import measure_picture
from gta_bench.content.kinds import ContentKind
from gta_bench.content.leftovers import UnseenText
from gta_bench.content.members import Member
from gta_bench.errors import ConfinedError, GtaError, ToolError, ToolUnavailable
from gta_bench.records.base import Record
from gta_bench.records.evidence import Picture, Probe
from gta_bench.tools.contract import Equipment


class EvidenceLimits(Record):
    """Limits on one file's evidence; everything beyond them is named in `cut`.

    `seconds` limits each program that works on the file, with its pages or scripts. The jail limits
    the memory of each program.
    """

    pages: int = 20
    frames: int = 8
    characters: int = 40_000
    sheets: int = 30
    rows: int = 200
    columns: int = 50
    formulas: int = 200
    members: int = 200
    opened: int = 20
    picture_side: int = 1568
    sound_seconds: float = 600.0
    seconds: float = 60.0


Settled = TypeVar("Settled")
LISTED: Final = 20
# The start of findings about text that a reader of the file does not see.
HIDDEN: Final = "hidden from its readers: "
LONGEST_REASON: Final = 300
LONGEST_NAME: Final = 80
DENSE: Final = "\u3040-\u9fff\uac00-\ud7a3"
WORD: Final = re.compile(rf"[{DENSE}]|(?:(?![{DENSE}])\w)(?:(?![{DENSE}\s]).)*")


@dataclass
class Subject:
    """The file to show: its bytes, its kind, and the files it refers to.

    `beside` are files of the same unit that it loads, by path; `lost` are its references that lead
    to no file. `pdf` returns it as PDF, for kinds that LibreOffice shows. `depth` is the number of
    archives around it.
    """

    path: str
    data: bytes
    identity: Identity
    equipment: Equipment
    limits: EvidenceLimits
    keep: Callable[[bytes], str]
    beside: dict[str, bytes] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    pdf: Callable[[], Awaitable[bytes]] | None = None
    depth: int = 0

    @property
    def jail(self) -> Jail:
        """The jail, or ToolUnavailable."""
        return self.equipment.need_jail()


class ShowFailure(NamedTuple):
    """A part of a file that this machine cannot show, and what it lacks."""

    what: str
    problem: ToolUnavailable


@dataclass
class Draft:
    """The evidence of a file so far, in the order in which it is shown.

    `failed` are parts that this machine cannot show; evidence without them must not be scored. For
    the `doubtful` kinds something is not shown, because of the file or of the machine. `read` is
    all text that a reader found, whether or not it fits; `attached` are the files in it. `late` is
    set if a program ran out of time, which a busy machine may have caused.
    """

    subject: Subject
    texts: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    unshown: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    failed: list[ShowFailure] = field(default_factory=list)
    doubtful: set[ContentKind] = field(default_factory=set)
    read: str = ""
    attached: tuple[Member, ...] = ()
    late: bool = False

    @property
    def room(self) -> int:
        """Characters that may still be added."""
        return max(0, self.subject.limits.characters - sum(map(len, self.texts)))

    def add_text(self, text: str, *, what: str = "text", most: int | None = None) -> None:
        """Add as much of a text as fits, and note the lines that do not."""
        text = clean(text)
        room = self.room if most is None else min(self.room, most)
        shown = text[:room]
        if len(shown) < len(text):
            lines = f"{shown.count(chr(10)) + 1:,} to {text.count(chr(10)) + 1:,}"
            self.cut.append(
                f"characters {len(shown) + 1:,} to {len(text):,} of its {what} (lines {lines}) "
                "are not shown"
            )
        if shown:
            self.texts.append(shown)

    def read_lines(self, most: int) -> bytes:
        """Return whole lines of the file up to a size, so that no character is split."""
        data = self.subject.data
        if len(data) <= most:
            return data
        head = data[: data.rfind(b"\n", 0, most) + 1 or most]
        self.cut.append(describe_rest("byte", len(head) + 1, len(data), how="read"))
        return head

    def add_picture(self, data: bytes, label: str) -> None:
        """Store a picture and add it."""
        size = measure_picture(data)._asdict()
        digest = self.subject.keep(data)
        self.pictures.append(Picture(digest=digest, label=clean(label), **size))

    def add_fact(self, name: str, value: JsonValue) -> None:
        """Add a measured fact."""
        self.probes.append(Probe(name=name, value=value))

    def add_list(self, name: str, values: Sequence[str], *, even_empty: bool = False) -> None:
        """Add a list as a fact: how many values there are, and the first of them."""
        if values or even_empty:
            self.add_fact(name, len(values))
        if values:
            shown = [quote(clean(value)[:200]) for value in values[:LISTED]]
            more = f" and {len(values) - LISTED:,} more" if len(values) > LISTED else ""
            self.findings.append(f"{name}: {', '.join(shown)}{more}")

    def add_hidden(self, what: str, text: str, *, shown: bool) -> None:
        """Report text that a reader of the file does not see, and whether the judge does."""
        count = count_words(text)
        if count:
            seen = "shown in its text" if shown else "not shown to you either"
            noun = "word" if count == 1 else "words"
            self.findings.append(f"{HIDDEN}{what}, {count:,} {noun}, {seen}")

    def add_unseen(self, found: Iterable[UnseenText]) -> None:
        """Report hidden text that a reader of the format found."""
        for unseen in found:
            self.add_hidden(unseen.why, unseen.words, shown=True)

    def take(self, what: str, found: Settled | GtaError) -> Settled | None:
        """Return what `settle` found; report an error as missing and return None."""
        if not isinstance(found, GtaError):
            return found
        self.add_missing(what, found)
        return None

    def add_missing(self, what: str, problem: GtaError) -> None:
        """Report a part that could not be made, because of this machine or of the file."""
        if isinstance(problem, ToolUnavailable):
            self.failed.append(ShowFailure(what, problem))
            return
        self.leave_out(what, str(problem))
        self.late |= isinstance(problem, ConfinedError) and problem.cause == "timeout"

    def leave_out(self, what: str, why: str) -> None:
        """Report a part that is not shown; the reason may quote the file."""
        self.unshown.append(f"{what}: {' '.join(clean(why).split())[:LONGEST_REASON]}")


async def settle(work: Awaitable[Settled]) -> Settled | GtaError:
    """Return the result, or the error instead of raising it: parts of a file fail independently."""
    try:
        return await work
    except (ToolError, ToolUnavailable) as exc:
        return exc


def quote(text: str) -> str:
    """Put text of a file in double quotes, which the judge's instructions call material."""
    return json.dumps(text, ensure_ascii=False)


def quote_name(name: str) -> str:
    """Quote the name of a member; a broken archive may claim 65,535 bytes of noise as one."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in name[:LONGEST_NAME])
    return quote(plain if len(name) <= LONGEST_NAME else f"{plain}…")


def clean(text: str) -> str:
    """Remove what some encoder rejects: null characters and lone surrogates."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def count_words(text: str) -> int:
    """Count words; in scripts without spaces every character counts as one."""
    return len(WORD.findall(text))


def describe_rest(noun: str, first: int, last: int, *, of: str = "", how: str = "shown") -> str:
    """Say what is left out: `row 3 of sheet 'A' is not shown`, `pages 21 to 200 are not read`."""
    if first == last:
        return f"{noun} {first:,}{of} is not {how}"
    return f"{noun}s {first:,} to {last:,}{of} are not {how}"

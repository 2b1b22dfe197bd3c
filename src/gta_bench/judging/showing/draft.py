"""One file's evidence while it is made."""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from pydantic import JsonValue

from gta_bench.confine.jail import Jail
from gta_bench.content.identify import Identity
from gta_bench.content.images import measure
from gta_bench.content.kinds import ContentKind
from gta_bench.content.members import Member
from gta_bench.errors import ConfinedError, GtaError, ToolError, ToolUnavailable
from gta_bench.records.base import Record
from gta_bench.records.evidence import Picture, Probe
from gta_bench.tools.contract import Equipment


class EvidenceLimits(Record):
    """Bounds on one file's evidence; everything beyond them is named in `cut`.

    `seconds` bounds one program at work on the file, with its pages or its scripts. Memory is
    bounded by the jail's limits of each program.
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
# How the findings begin that tell of what a reader of the file does not see.
HIDDEN: Final = "hidden from its readers: "
LONGEST_REASON: Final = 300
LONGEST_NAME: Final = 80
DENSE: Final = "\u3040-\u9fff\uac00-\ud7a3"
WORD: Final = re.compile(rf"[{DENSE}]|(?:(?![{DENSE}])\w)(?:(?![{DENSE}\s]).)*")


@dataclass
class Subject:
    """The file to show: its bytes, what it is, and what it refers to.

    `beside` are files of the same unit that it loads, by path; `lost` are references of it that
    lead to no file. `pdf` gives it as PDF where LibreOffice is what shows it. `depth` counts the
    archives that it lies in.
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
    """What is known of the file so far, in the order in which it is shown.

    `failed` is what this machine cannot do: whatever is shown without it, nobody may score. Of
    the `doubtful` kinds something is not shown, and the file or the machine is to blame. `read` is
    all text that a reader found, whether there was room for it or not; `attached` are files in it.
    It is `late` where a program ran out of time, which may be the fault of a busy machine.
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

    def text(self, words: str, *, what: str = "text", most: int | None = None) -> None:
        """Add text, up to the room that is left; what does not fit is counted by line."""
        words = clean(words)
        room = self.room if most is None else min(self.room, most)
        shown = words[:room]
        if len(shown) < len(words):
            lines = f"{shown.count(chr(10)) + 1:,} to {words.count(chr(10)) + 1:,}"
            self.cut.append(
                f"characters {len(shown) + 1:,} to {len(words):,} of its {what} (lines {lines}) "
                "are not shown"
            )
        if shown:
            self.texts.append(shown)

    def whole_lines(self, most: int) -> bytes:
        """The file up to a size, to the end of a line, so that no character is torn apart."""
        data = self.subject.data
        if len(data) <= most:
            return data
        head = data[: data.rfind(b"\n", 0, most) + 1 or most]
        self.cut.append(left_out("byte", len(head) + 1, len(data), how="read"))
        return head

    def picture(self, data: bytes, label: str) -> None:
        """Keep a picture."""
        size = measure(data)
        self.pictures.append(
            Picture(
                digest=self.subject.keep(data),
                media_type=size.media_type,
                label=clean(label),
                width=size.width,
                height=size.height,
            )
        )

    def probe(self, name: str, value: JsonValue) -> None:
        """Add a fact."""
        self.probes.append(Probe(name=name, value=value))

    def listed(self, name: str, values: Sequence[str]) -> None:
        """Add a fact that is a list: how many, and the first of them."""
        self.probe(name, len(values))
        if values:
            shown = [quoted(clean(value)[:200]) for value in values[:LISTED]]
            more = f" and {len(values) - LISTED:,} more" if len(values) > LISTED else ""
            self.findings.append(f"{name}: {', '.join(shown)}{more}")

    def hidden(self, what: str, words: str, *, shown: bool) -> None:
        """Tell of text that a reader of the file does not see, and whether the judge does."""
        count = words_in(words)
        if count:
            seen = "shown in its text" if shown else "not shown to you either"
            noun = "word" if count == 1 else "words"
            self.findings.append(f"{HIDDEN}{what}, {count:,} {noun}, {seen}")

    def missed(self, what: str, problem: GtaError) -> None:
        """Note that a part could not be made: this machine lacks something, or it is the file."""
        if isinstance(problem, ToolUnavailable):
            self.failed.append(ShowFailure(what, problem))
            return
        self.leave_out(what, str(problem))
        self.late |= isinstance(problem, ConfinedError) and problem.cause == "timeout"

    def leave_out(self, what: str, why: str) -> None:
        """Note that a part is not shown, and why; words of the file may be among the reason."""
        self.unshown.append(f"{what}: {' '.join(clean(why).split())[:LONGEST_REASON]}")


async def settled(work: Awaitable[Settled]) -> Settled | GtaError:
    """What it comes to, or the reason why not; parts of a file fail each for itself."""
    try:
        return await work
    except (ToolError, ToolUnavailable) as exc:
        return exc


def quoted(words: str) -> str:
    """Words of a file among ours: the judge is told that what stands in quotes is material."""
    return json.dumps(words, ensure_ascii=False)


def quoted_name(name: str) -> str:
    """The name of a member in quotes; a broken archive may claim 65,535 bytes of noise as one."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in name[:LONGEST_NAME])
    return quoted(plain if len(name) <= LONGEST_NAME else f"{plain}…")


def clean(text: str) -> str:
    """Text that every encoder takes."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def words_in(text: str) -> int:
    """Words; of scripts without spaces every character counts as one."""
    return len(WORD.findall(text))


def left_out(noun: str, first: int, last: int, *, place: str = "", how: str = "shown") -> str:
    """`row 3 of sheet 'A' is not shown`, `pages 21 to 200 are not shown as pictures`."""
    if first == last:
        return f"{noun} {first:,}{place} is not {how}"
    return f"{noun}s {first:,} to {last:,}{place} are not {how}"

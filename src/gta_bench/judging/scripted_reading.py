"""A judge's prompt as a scripted judge reads it: by the rules that the prompt itself states."""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from inspect_ai.model import ChatMessage, ChatMessageSystem, ContentImage, ContentText

Eyes = Callable[[bytes], str]
MARK: Final = re.compile(r"between a line `BEGIN (\S+)`")
OPENING: Final = re.compile(r"BEGIN (\S+) (task|answer|deliverable|input)(?: (\".*\"))?")
QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
PLAIN_PICTURE: Final = "[picture]"


@dataclass(frozen=True)
class Piece:
    """Material of one origin: the task, the answer, a deliverable or an input, by its name."""

    role: str
    name: str
    text: str


@dataclass(frozen=True)
class Reading:
    """What a careful reader makes of the messages."""

    instructions: str  # where the judge's instructions stand, with all that stands there
    whole: str  # everything after the instructions, before the question
    trusted: str  # what of it stands outside of the frames
    pieces: tuple[Piece, ...]
    question: str

    @property
    def names(self) -> list[str]:
        """The leaves that are asked for."""
        return re.findall(r"^leaf: (\S+)$", self.question, re.MULTILINE)

    @property
    def requirements(self) -> list[str]:
        """What each of them requires."""
        return re.findall(r"^requirement: (.*)$", self.question, re.MULTILINE)

    @property
    def again(self) -> bool:
        """Whether the last reply was refused."""
        return "could not be used" in self.question

    def notes(self, piece: Piece) -> list[str]:
        """What the list says of a piece, beside facts."""
        if piece.role == "answer":
            return re.findall(r"^The answer: (.*)$", self.trusted, re.MULTILINE)
        entry = self.trusted.partition(f"- {piece.name}: ")[2].partition("\n")[2]
        own = re.split(r"^(?:- |\S)", entry, maxsplit=1, flags=re.MULTILINE)[0]
        return re.findall(r"^\s+note: (.*)$", own, re.MULTILINE)


def read(messages: Sequence[ChatMessage], eyes: Eyes) -> Reading:
    """Cut a prompt into instructions, list, material and question."""
    blocks = list(_blocks(messages[-1], eyes))
    system = [one.text for one in messages if isinstance(one, ChatMessageSystem)]
    *shown, question = blocks
    if not system:
        # Instructions among the evidence: whatever stands there is read in one go.
        rules, shown = shown[0], shown[1:]
    else:
        rules = system[0]
    whole = "\n".join(shown)
    found = MARK.search(rules)
    trusted, pieces = _split(whole, found[1] if found else "")
    return Reading(
        instructions=rules if system else f"{rules}\n{whole}",
        whole=whole,
        trusted=trusted,
        pieces=tuple(pieces),
        question=question,
    )


def _blocks(message: ChatMessage, eyes: Eyes) -> Iterator[str]:
    if isinstance(message.content, str):
        yield message.content
        return
    last = ""
    for part in message.content:
        if isinstance(part, ContentText):
            last = _with_tags_read(part.text)
            yield last
        elif isinstance(part, ContentImage) and last.endswith(PLAIN_PICTURE):
            yield eyes(b64decode(part.image.partition("base64,")[2]))


def _with_tags_read(text: str) -> str:
    """Tag characters as the letters that they stand for: models read them."""
    return "".join(
        chr(ord(char) - 0xE0000) if 0xE0020 <= ord(char) <= 0xE007E else char for char in text
    )


def _split(whole: str, mark: str) -> tuple[str, list[Piece]]:
    """What stands outside of the frames of that mark, and what inside."""
    outside: list[str] = []
    pieces: list[Piece] = []
    inside: list[str] | None = None
    opened: re.Match[str] | None = None
    for line in whole.splitlines():
        start = OPENING.match(line)
        if inside is None and start is not None and start[1] == mark:
            inside, opened = [], start
        elif inside is not None and line.strip() == f"END {mark}":
            assert opened is not None
            pieces.append(Piece(opened[2], opened[3] or "", "\n".join(inside)))
            inside = None
        else:
            (outside if inside is None else inside).append(line)
    return "\n".join(outside), pieces

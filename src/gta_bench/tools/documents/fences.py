"""Fenced code in a text, found line by line, so that no text takes longer than its length."""

from collections.abc import Iterator
from dataclasses import dataclass

FENCES = ("```", "~~~")


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some lines. `language` is None outside of fences; `inner` leaves the fence's lines out."""

    lines: tuple[str, ...]
    language: str | None = None
    closed: bool = True

    @property
    def text(self) -> str:
        """The lines as they were."""
        return "".join(self.lines)

    @property
    def inner(self) -> str:
        """What the fence holds."""
        if self.language is None:
            return self.text
        return "".join(self.lines[1 : -1 if self.closed else None])


def pieces(text: str) -> Iterator[_Piece]:
    """The text in order, split at fences; joined, the pieces are the text."""
    held: list[str] = []
    fence = language = None
    for line in text.splitlines(keepends=True):
        words = line.strip()
        if fence is None and words.startswith(FENCES):
            if held:
                yield _Piece(tuple(held))
            mark = words[0]
            run = len(words) - len(words.lstrip(mark))
            fence, language = mark * run, _language(words[run:])
            held = [line]
        elif fence is not None and words.startswith(fence) and not words.strip(fence[0]):
            yield _Piece((*held, line), language)
            held, fence, language = [], None, None
        else:
            held.append(line)
    if held:
        yield _Piece(tuple(held), language, closed=False)


def _language(words: str) -> str:
    return words.split()[0].lower() if words.split() else ""

"""The fenced blocks of README and docs, one by one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conftest import REPOSITORY

OPENING = re.compile(r"(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w-]*) *(?P<rest>.*)")
TITLE = re.compile(r'title="([^"]+)"')
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
    *sorted((REPOSITORY / "examples").rglob("*.md")),
    *sorted((REPOSITORY / "plugins").rglob("README.md")),
]


class Block(NamedTuple):
    """A fenced block; `title` is the name of the file that a reader is told to make of it."""

    page: Path
    line: int
    language: str
    title: str | None
    text: str

    @property
    def place(self) -> str:
        """For messages and names of tests."""
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page from top to bottom."""
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
    for number, line in lines:
        opening = OPENING.fullmatch(line)
        if opening is None:
            continue
        inside = []
        for _, inner in lines:
            if inner.strip() == opening["fence"]:
                break
            inside.append(inner.removeprefix(opening["indent"]))
        else:
            raise AssertionError(f"{page}:{number}: the block does not end")
        title = TITLE.search(opening["rest"])
        text = "".join(f"{one}\n" for one in inside)
        yield Block(page, number, opening["language"], title[1] if title else None, text)


def prose(page: Path) -> str:
    """The page without its blocks."""
    return re.sub(r"^ *(`{3,}).*?^ *\1$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


ALL = [block for page in PAGES for block in blocks(page)]


def of(*languages: str) -> list[Block]:
    """All blocks in one of the languages."""
    return [block for block in ALL if block.language in languages]

"""Inside the jail: the text, headings and tables in the source of a page.

Python's parser takes minutes on some hostile pages.
"""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

HIDDEN = frozenset({"script", "style", "template", "noscript"})
HIDING = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
HEADING = re.compile("h[1-6]")
VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
})  # fmt: skip
# Elements that may lack an end tag, and what ends them then.
ENDED_BY = {
    "p": frozenset({
        "p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "table", "pre", "hr",
        "section", "article", "header", "footer", "main", "nav", "aside", "form", "blockquote",
    }),
    "li": frozenset({"li"}),
    "dt": frozenset({"dt", "dd"}),
    "dd": frozenset({"dt", "dd"}),
    "option": frozenset({"option", "optgroup"}),
    "td": frozenset({"td", "th", "tr", "tbody", "tfoot"}),
    "th": frozenset({"td", "th", "tr", "tbody", "tfoot"}),
    "tr": frozenset({"tr", "tbody", "tfoot"}),
}  # fmt: skip


def prepare() -> dict[str, Any]:
    """Nothing to prepare: the imports above are all that must run outside of the limits."""
    return {}


def finish(names: dict[str, Any]) -> str:
    """Return the parts of the page as JSON."""
    page = _Page()
    page.feed(Path("file").read_text(encoding="utf-8", errors="replace"))
    page.close()
    text = " ".join(" ".join(page.words).split())
    return json.dumps({"text": text, "headings": page.headings, "tables": page.tables})


class _Page(HTMLParser):
    """Collects the parts; scripts do not run."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self.headings: list[tuple[int, str]] = []
        self.tables: list[list[list[str]]] = []
        self._shown: Counter[str] = Counter()  # open elements, by tag
        self._hidden: list[str] = []  # a hidden element, and those open within it
        self._within: Counter[str] = Counter()
        self._rows: list[list[str]] = []
        self._cell: list[str] | None = None
        self._heading: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        while self._hidden and tag in ENDED_BY.get(self._hidden[-1], ()):
            self._within[self._hidden.pop()] -= 1
        if self._hidden or (tag not in VOID and _is_hidden(tag, attrs)):
            if tag not in VOID:
                self._hidden.append(tag)
                self._within[tag] += 1
            return
        self._shown[tag] += 1
        if tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._cell = []
        elif HEADING.fullmatch(tag):
            self._heading = []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)  # browsers ignore the slash

    def handle_endtag(self, tag: str) -> None:
        if self._hidden and not self._end_hidden(tag):
            return
        self._shown[tag] -= 1
        if tag in ("td", "th") and self._cell is not None:
            if self._rows:
                self._rows[-1].append(_join(self._cell))
            self._cell = None
        elif tag == "table":
            self.tables.append([row for row in self._rows if row])
            self._rows = []
        elif HEADING.fullmatch(tag) and self._heading is not None:
            self.headings.append((int(tag[1]), _join(self._heading)))
            self._heading = None

    def _end_hidden(self, tag: str) -> bool:
        """Whether an end tag belongs to an element around the hidden one, which it ends."""
        if self._within[tag] > 0:
            while (ended := self._hidden.pop()) != tag:
                self._within[ended] -= 1
            self._within[tag] -= 1
            return False
        if self._hidden[0] not in ENDED_BY or self._shown[tag] <= 0:
            return False
        self._hidden, self._within = [], Counter()
        return True

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        self.words.append(data)
        for collected in (self._cell, self._heading):
            if collected is not None:
                collected.append(data)


def _is_hidden(tag: str, attrs: list[tuple[str, str | None]]) -> bool:
    given = dict(attrs)
    return tag in HIDDEN or "hidden" in given or bool(HIDING.search(given.get("style") or ""))


def _join(parts: list[str]) -> str:
    return " ".join("".join(parts).split())

"""Checks of index.html: links to its sections, its table, and a picture with text and caption."""

import base64
import binascii
import posixpath
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

from gta_bench.forge.inside.pictures import measure_picture

FILE = "index.html"
# The headings of the two sections, the name that the alternative text must have, the photographer,
# and the columns of the table.
SECTIONS: list[str] = []
PLACE = ""
CREDIT = ""
COLUMNS: list[str] = []
LEAST = 300  # pixels of width
MOST_BYTES = 8 * 2**20  # of the page; a picture in it is the larger part
SIDES = ("width", "height")
HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|(?:width|height)\s*:\s*\d?px")
VOID = ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr")
UNSEEN = ("template", "noscript", "script", "style", "title")
# Tags within a line. Every other one ends it.
INLINE = ("a", "abbr", "b", "bdi", "cite", "code", "data", "em", "font", "i", "mark", "q", "s",
          "small", "span", "strong", "sub", "sup", "time", "u", "wbr")  # fmt: skip
ARROWS = " ▲▼△▽↑↓↕⇅⇵"


class _Link:
    """A link: where it leads, its text, and whether a section began before it."""

    def __init__(self, lead: str, late: bool) -> None:
        self.lead, self.late, self.text = lead, late, ""


class _Table:
    """A table: the number of the section that it is in, whether it is shown, and its head."""

    def __init__(self, section: int, hidden: bool) -> None:
        self.section, self.hidden = section, hidden
        self.head: list[str] = []
        self.rows = 0


class _Page(HTMLParser):
    """What a page has: anchors with the heading at or after them, and what is shown where."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        if len(data) > MOST_BYTES:
            raise ValueError(f"more than {MOST_BYTES} bytes")
        self.links: list[_Link] = []
        self.pictures: list[dict[str, str]] = []
        self.sections: dict[str, str] = {}
        self.tables: list[_Table] = []
        self.lines = [""]
        self._section = -1
        self._waiting: list[str] = []
        self._heading: str | None = None
        self._hidden: list[str] = []
        self._link: _Link | None = None
        self.feed(data.decode("utf-8", "replace"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        hidden = "hidden" in given or bool(HIDING.search(given.get("style", "").lower()))
        if tag not in VOID and (self._hidden or hidden or tag in UNSEEN):
            self._hidden.append(tag)
        self._waiting += [given[one] for one in ("id", "name") if given.get(one)]
        self._break(tag)
        if re.fullmatch("h[1-6]", tag):
            self._heading = ""
        if tag == "table":
            self.tables.append(_Table(self._section, bool(self._hidden)))
        elif tag == "tr" and self.tables:
            self.tables[-1].rows += 1
        elif tag in ("td", "th") and self.tables and self.tables[-1].rows <= 1:
            self.tables[-1].head.append("")
        if not self._hidden and not hidden:
            self._show(tag, given)

    def _show(self, tag: str, given: dict[str, str]) -> None:
        if tag == "a":
            self._link = _Link(unquote(given.get("href", "").strip()), self._section >= 0)
            self._link.text = given.get("aria-label", "").strip()
            self.links.append(self._link)
        elif tag == "img":
            self.pictures.append(given)
            if self._link is not None:
                self._link.text += given.get("alt", "").strip()

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            while self._hidden.pop() != tag:
                pass
        self._break(tag)
        if tag == "a":
            self._link = None
        elif tag == "table" and self.tables:
            self.tables[-1].rows += 2
        if self._heading is not None and re.fullmatch("h[1-6]", tag):
            text = " ".join(self._heading.lower().split())
            self.sections |= dict.fromkeys(self._waiting, text)
            self._waiting, self._heading = [], None
            for number, one in enumerate(SECTIONS):
                if one.lower() == text or (tag != "h1" and one.lower() in text):
                    self._section = number

    def handle_data(self, data: str) -> None:
        if self._heading is not None:
            self._heading += data
        table = self.tables[-1] if self.tables else None
        if table is not None and table.head and table.rows <= 1:
            table.head[-1] += data
        if not self._hidden:
            self.lines[-1] += data
            if self._link is not None:
                self._link.text += data.strip()

    def _break(self, tag: str) -> None:
        if tag not in INLINE:
            self.lines.append("")


def link_sections(work: Any) -> dict[str, Any]:
    """Check that links with a text lead to each of the two sections, from above them."""
    page = _Page(work.read(FILE))
    there = [
        page.sections.get(one.lead.partition("#")[2], "")
        for one in page.links
        if re.match(rf"(?:(?:\./)?{re.escape(FILE)})?#", one.lead) and one.text and not one.late
    ]
    missing = [one for one in SECTIONS if not any(one.lower() in head for head in there)]
    found = f"{len(there)} links at the top to parts of the page, none to {', '.join(missing)}"
    wanted = "a link to each section, above the sections"
    return {"score": not missing, "found": found if missing else wanted, "wanted": wanted}


def place_table(work: Any) -> dict[str, Any]:
    """Check that there is one table with the columns, and it is below its heading."""
    wanted = {one.lower() for one in COLUMNS}
    tables = [one for one in _Page(work.read(FILE)).tables if _plain(one.head) >= wanted]
    places = [
        "nothing, hidden" if one.hidden else [*SECTIONS, "no section"][one.section]
        for one in tables
    ]
    found = f"{len(tables)} tables with these columns, below: {', '.join(places[:9])}"
    holds = places == SECTIONS[:1]
    return {"score": holds, "found": found, "wanted": f"one, below {SECTIONS[0]}"}


def _plain(head: list[str]) -> set[str]:
    return {" ".join(one.lower().split()).strip(ARROWS) for one in head}


def name_photographer(work: Any) -> dict[str, Any]:
    """Check that exactly one line is a caption, and it has the name and nothing else."""
    lines = [" ".join(one.split()) for one in _Page(work.read(FILE)).lines]
    said = [one for one in lines if "photo:" in one.lower()]
    wanted = f"Photo: {CREDIT}"
    holds = len(said) == 1 and said[0].removesuffix(".").lower() == wanted.lower()
    return {"score": holds, "found": "; ".join(said[:9]) or "no caption", "wanted": wanted}


def show_picture(work: Any) -> dict[str, Any]:
    """Check that a picture of a useful size is shown and has the alternative text."""
    page = _Page(work.read(FILE))
    sizes = [
        measure_picture(_load(work, one.get("src", "").strip()))
        for one in page.pictures[:99]
        if PLACE.lower() in one.get("alt", "").lower()
        and not any(re.fullmatch(r"\s*\d?(px)?\s*", one.get(side, "99")) for side in SIDES)
    ]
    found = f"{len(page.pictures)} pictures, with a text that names {PLACE}: {sizes}"
    holds = any(wide >= LEAST for wide, _ in sizes)
    return {"score": holds, "found": found, "wanted": f"one with {LEAST} pixels of width"}


def _load(work: Any, source: str) -> bytes:
    """Return the picture at an address of the page, or nothing."""
    head, _, packed = source.partition(",")
    if head.lower().startswith("data:image/"):
        try:
            return base64.b64decode(unquote(packed)) if head.endswith(";base64") else b""
        except binascii.Error:
            return b""
    path = posixpath.normpath(unquote(re.split("[?#]", source)[0])).lstrip("/")
    return work.read(path) if path in work.files else b""

"""Checks of index.html: links to its sections, and a picture with an alternative text."""

import base64
import binascii
import posixpath
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

from gta_bench.forge.inside.pictures import measure_picture

FILE = "index.html"
# The headings of the two sections, and the name that the alternative text must have.
SECTIONS: list[str] = []
PLACE = ""
LEAST = 300  # pixels of width
SIDES = ("width", "height")
HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|(?:width|height)\s*:\s*\d?px")
VOID = ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr")


class _Page(HTMLParser):
    """Anchors with the heading at or after them, targets of links, and pictures that are shown."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.leads: list[str] = []
        self.pictures: list[dict[str, str]] = []
        self.sections: dict[str, str] = {}
        self._waiting: list[str] = []
        self._heading: str | None = None
        self._hidden: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        hidden = "hidden" in given or bool(HIDING.search(given.get("style", "").lower()))
        if tag not in VOID and (self._hidden or hidden or tag in ("template", "noscript")):
            self._hidden.append(tag)
        self._waiting += [given[one] for one in ("id", "name") if given.get(one)]
        if re.fullmatch("h[1-6]", tag):
            self._heading = ""
        if not self._hidden and not hidden and tag == "a":
            self.leads.append(unquote(given.get("href", "").strip()))
        elif not self._hidden and not hidden and tag == "img":
            self.pictures.append(given)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            while self._hidden.pop() != tag:
                pass
        if self._heading is not None and re.fullmatch("h[1-6]", tag):
            self.sections |= dict.fromkeys(self._waiting, " ".join(self._heading.lower().split()))
            self._waiting, self._heading = [], None

    def handle_data(self, data: str) -> None:
        if self._heading is not None:
            self._heading += data


def link_sections(work: Any) -> dict[str, Any]:
    """Check that links lead to each of the two sections."""
    page = _Page(work.read(FILE).decode("utf-8", "replace"))
    there = [page.sections.get(one[1:], "") for one in page.leads if one.startswith("#")]
    missing = [one for one in SECTIONS if not any(one.lower() in head for head in there)]
    found = f"{len(there)} links within the page, none to {', '.join(missing)}"
    wanted = "a link to each section"
    return {"score": not missing, "found": found if missing else wanted, "wanted": wanted}


def show_picture(work: Any) -> dict[str, Any]:
    """Check that a picture of a useful size is shown and has the alternative text."""
    page = _Page(work.read(FILE).decode("utf-8", "replace"))
    sizes = [
        measure_picture(_load(work, one.get("src", "").strip()))
        for one in page.pictures
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

"""What a page or a Markdown text refers to: files beside it, places in it, the web."""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

# Every repetition has a bound: a hostile text must not take longer than its length.
TAG: Final = re.compile(r"<([a-z][a-z0-9-]{0,30})\b([^<>]{0,4000})>", re.IGNORECASE)
ATTRIBUTE: Final = re.compile(
    r"""(?<![\w-])(src|href|poster|data|id|name)\s{0,8}=\s{0,8}"""
    r"""(?:"([^"]{0,2000})"|'([^']{0,2000})'|([^\s"'>]{1,2000}))""",
    re.IGNORECASE,
)
CSS_FILE: Final = re.compile(r"""url\(\s{0,8}["']?([^"'()\s]{1,2000})["']?\s{0,8}\)""")
MARKDOWN: Final = re.compile(r"""(!?)\[[^\[\]]{0,500}\]\(\s{0,8}<?([^()<>\s]{1,2000})""")
HEADING: Final = re.compile(r"^#{1,6} +(.{1,300}?)\s*#*$", re.MULTILINE)
NO_SLUG: Final = re.compile(r"[^\w\- ]")
# One letter and a colon is a disk of Windows, and `file:` a place on its maker's machine.
SCHEME: Final = re.compile(r"(?!file:)[a-z][a-z0-9+.-]{1,30}:", re.IGNORECASE)
WEB: Final = re.compile(r"(https?:)?//", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class References:
    """`loads` are shown as a part of it, `leads` are followed by a click; `anchors` are its own."""

    loads: tuple[str, ...]
    leads: tuple[str, ...]
    anchors: frozenset[str]

    @property
    def remote(self) -> tuple[str, ...]:
        """What it loads from the web."""
        return tuple(target for target in self.loads if WEB.match(target))

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the maker's machine, most likely beside it, as they are spelled."""
        return tuple(filter(_is_file, dict.fromkeys((*self.loads, *self.leads))))

    @property
    def lost_anchors(self) -> tuple[str, ...]:
        """Places within it that it names and does not have."""
        own = (target for target in self.leads if target.startswith("#") and len(target) > 1)
        return tuple(place for place in own if unquote(place[1:]) not in {*self.anchors, "top"})


def html_references(markup: str) -> References:
    """The references of a web page's source; what its scripts ask for is not among them."""
    loads: list[str] = []
    leads: list[str] = []
    anchors: set[str] = set()
    for tag, attributes in TAG.findall(markup):
        for name, *values in ATTRIBUTE.findall(attributes):
            value = "".join(values).strip()
            if name.lower() in ("id", "name"):
                anchors.add(value)
            elif value:
                (leads if tag.lower() in ("a", "area") else loads).append(value)
    loads += CSS_FILE.findall(markup)
    return References(_once(loads), _once(leads), frozenset(anchors))


def markdown_references(text: str) -> References:
    """The references of a Markdown text; headings are its places."""
    found = MARKDOWN.findall(text)
    headings = (NO_SLUG.sub("", title.lower()).replace(" ", "-") for title in HEADING.findall(text))
    return References(
        _once(target for mark, target in found if mark),
        _once(target for mark, target in found if not mark),
        frozenset(headings),
    )


def css_references(text: str) -> tuple[str, ...]:
    """The files that a style sheet loads."""
    return tuple(filter(_is_file, _once(CSS_FILE.findall(text))))


def resolve(reference: str, *, base: str) -> str:
    """The path that a reference in the file `base` means; both are relative to one folder."""
    path = unquote(reference.partition("#")[0].partition("?")[0])
    joined = path if path.startswith("/") else posixpath.join(posixpath.dirname(base), path)
    return posixpath.normpath(joined).lstrip("/")


def _is_file(target: str) -> bool:
    return not SCHEME.match(target) and not target.startswith(("#", "//", "?"))


def _once(targets: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(targets))

"""References in a page or Markdown text: to other files, to its own anchors, to the web."""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

# Every repetition is bounded, so that hostile text cannot make a search slow.
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
# One letter and a colon is a Windows drive, and `file:` a path on the author's machine.
SCHEME: Final = re.compile(r"(?!file:)[a-z][a-z0-9+.-]{1,30}:", re.IGNORECASE)
WEB: Final = re.compile(r"(https?:)?//", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class References:
    """`loads` are shown in the document, `leads` open on a click, `anchors` are its own."""

    loads: tuple[str, ...]
    leads: tuple[str, ...]
    anchors: frozenset[str]

    @property
    def remote(self) -> tuple[str, ...]:
        """Targets that it loads from the web."""
        return tuple(target for target in self.loads if WEB.match(target))

    @property
    def files(self) -> tuple[str, ...]:
        """Files on the author's machine, usually in the same folder, as they are written."""
        return tuple(filter(_is_file, dict.fromkeys((*self.loads, *self.leads))))

    @property
    def lost_anchors(self) -> tuple[str, ...]:
        """Anchors that it links to but does not have."""
        own = (target for target in self.leads if target.startswith("#") and len(target) > 1)
        return tuple(anchor for anchor in own if unquote(anchor[1:]) not in {*self.anchors, "top"})


def find_html_references(markup: str) -> References:
    """Find the references in the source of a web page, without those that scripts request."""
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
    return References(_unique(loads), _unique(leads), frozenset(anchors))


def find_markdown_references(text: str) -> References:
    """Find the references in a Markdown text; its headings are its anchors."""
    found = MARKDOWN.findall(text)
    headings = (NO_SLUG.sub("", title.lower()).replace(" ", "-") for title in HEADING.findall(text))
    return References(
        _unique(target for mark, target in found if mark),
        _unique(target for mark, target in found if not mark),
        frozenset(headings),
    )


def find_css_references(text: str) -> tuple[str, ...]:
    """Find the files that a style sheet loads."""
    return tuple(filter(_is_file, _unique(CSS_FILE.findall(text))))


def resolve_reference(reference: str, *, base: str) -> str:
    """Return the path of a reference in the file `base`; both are relative to the same folder."""
    path = unquote(reference.partition("#")[0].partition("?")[0])
    joined = path if path.startswith("/") else posixpath.join(posixpath.dirname(base), path)
    return posixpath.normpath(joined).lstrip("/")


def _is_file(target: str) -> bool:
    return not SCHEME.match(target) and not target.startswith(("#", "//", "?"))


def _unique(targets: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(targets))

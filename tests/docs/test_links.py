"""Pages have a title, and their links lead to files of the repository and to headings in them."""

import re
import unicodedata
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.docs.blocks import PAGES, prose

LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as mkdocs and GitHub both give them to plain headings."""
    found = set()
    for heading in HEADING.findall(prose(page)):
        plain = unicodedata.normalize("NFKD", re.sub(r"[`*]", "", heading)).lower()
        found.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain)).strip("-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    for name, anchor in LINK.findall(prose(page)):
        target = (page.parent / name) if name else page
        assert target.exists(), f"{page.name}: {name}"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {name}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_page_begins_with_its_title(page: Path) -> None:
    assert HEADING.match(prose(page).lstrip()), f"{page.name} is empty or has no title"

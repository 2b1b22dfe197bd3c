"""Office packages as other programs write them."""

import asyncio
import re

import pytest

from gta_bench.content.docx import read_docx
from gta_bench.content.office import normalized, read_package
from tests.content import samples
from tests.judging.shown import Desk
from tests.needs import needs

LISTS = ("[Content_Types].xml", ".rels")


def prefixed(data: bytes) -> bytes:
    """As Python's ElementTree writes the lists of a package."""

    def rewrite(source: bytes) -> bytes:
        source = re.sub(rb"<(/?)(?=[A-Z])", rb"<\1ns0:", source)
        return source.replace(b"xmlns=", b"xmlns:ns0=")

    parts = samples.unzipped(data)
    return samples.zipped(
        {name: rewrite(part) if name.endswith(LISTS) else part for name, part in parts.items()}
    )


DOCUMENT = samples.docx(samples.paragraph("All is well."))


def test_lists_with_a_prefix_are_normalized(desk: Desk) -> None:
    odd = prefixed(DOCUMENT)
    assert b"<ns0:Types" in samples.unzipped(odd)["[Content_Types].xml"]
    copy = normalized(odd)
    assert copy is not None
    assert samples.unzipped(copy) == samples.unzipped(DOCUMENT)
    assert asyncio.run(read_package(odd)).prefixed
    assert "All is well." in asyncio.run(read_docx(odd, desk.equipment.need_jail())).markdown


@pytest.mark.parametrize("data", [DOCUMENT, samples.deck(), b"PK broken", b""])
def test_other_files_need_no_copy(data: bytes) -> None:
    assert normalized(data) is None


@pytest.mark.slow
@needs("bwrap", "soffice")
def test_a_document_with_prefixed_lists_has_pages_and_says_what_was_done(desk: Desk) -> None:
    """LibreOffice could not read it: the judge had no pages."""
    shown = desk.show_one("a.docx", prefixed(DOCUMENT))
    assert (len(shown.pictures), shown.unshown) == (1, ())
    assert any("a copy without it was rendered" in finding for finding in shown.findings)

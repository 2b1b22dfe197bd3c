"""Office packages as other programs write them."""

import asyncio
import io
import re

import pytest
import xlsxwriter
from pypdf import PdfReader

from gta_bench.content.docx import read_docx
from gta_bench.content.identify import identify
from gta_bench.content.libreoffice import convert
from gta_bench.content.office import normalize_package, read_package
from gta_bench.judging.showing.pages import to_document
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
    copy = normalize_package(odd)
    assert copy is not None
    assert samples.unzipped(copy) == samples.unzipped(DOCUMENT)
    assert asyncio.run(read_package(odd)).prefixed
    assert "All is well." in asyncio.run(read_docx(odd, desk.equipment.need_jail())).markdown


@pytest.mark.parametrize("data", [DOCUMENT, samples.deck(), b"PK broken", b""])
def test_other_files_need_no_copy(data: bytes) -> None:
    assert normalize_package(data) is None


@pytest.mark.slow
@needs("bwrap", "soffice")
def test_a_document_with_prefixed_lists_has_pages_and_says_what_was_done(desk: Desk) -> None:
    """LibreOffice could not read it: the judge had no pages."""
    shown = desk.show_one("a.docx", prefixed(DOCUMENT))
    assert (len(shown.pictures), shown.unshown) == (1, ())
    assert any("a copy without it was rendered" in finding for finding in shown.findings)


def unopened() -> bytes:
    """As XlsxWriter saves a workbook: it asks to be calculated, and all formulas are 0."""
    stream = io.BytesIO()
    book = xlsxwriter.Workbook(stream)
    sheet = book.add_worksheet("Budget")
    sheet.write_column(0, 0, [10, 20, 30])
    sheet.write_formula("A4", "=SUM(A1:A3)")
    sheet.write_formula("A5", "=A4*2")
    sheet.write_formula("B1", '="to"&"tal"', value="wrong")
    chart = book.add_chart({"type": "column"})
    chart.add_series({"values": "=Budget!$A$4:$A$5", "data_labels": {"value": True}})
    sheet.insert_chart("D1", chart)
    book.close()
    return stream.getvalue()


def test_a_workbook_to_be_calculated_loses_old_values_and_nothing_else() -> None:
    odd = unopened()
    copy = normalize_package(odd)
    assert copy is not None
    before, after = samples.unzipped(odd), samples.unzipped(copy)
    sheet = "xl/worksheets/sheet1.xml"
    assert before.pop(sheet).replace(b"</f><v>0</v>", b"</f>").replace(
        b"</f><v>wrong</v>", b"</f>"
    ) == after.pop(sheet)
    assert before == after


@pytest.mark.slow
@needs("bwrap", "soffice")
def test_a_workbook_to_be_calculated_is_shown_with_its_values(desk: Desk) -> None:
    """All its formulas were shown as 0, in the text and in the picture."""
    odd = unopened()
    shown = desk.show_one("a.xlsx", odd)
    assert "10,total\n20,\n30,\n60,\n120,\n" in shown.text
    assert len(shown.pictures) == 1
    assert any("3 formulas were saved to be calculated" in words for words in shown.findings)
    printed = to_document(0, "", identify("a.xlsx", odd), odd)
    assert printed is not None
    jail = desk.equipment.need_jail()
    pdf = asyncio.run(convert(jail, printed.name, printed.data, to=printed.target))
    words = PdfReader(io.BytesIO(pdf)).pages[0].extract_text().split()
    assert (words.count("60"), words.count("total")) == (3, 1)  # cell, axis, label of the column
    assert words.count("120") == 3

import asyncio
import io
from datetime import datetime, time, timedelta

import openpyxl
import pytest
import xlsxwriter

from gta_bench.confine.jail import Jail
from gta_bench.content import xlsx
from gta_bench.content.tables import format_csv
from gta_bench.content.xlsx import SheetCell, XlsxContent, read_xlsx
from gta_bench.errors import ToolError
from tests.content import samples

DAY = datetime.fromisoformat("2026-05-09")
MOMENT = datetime.fromisoformat("2026-05-09 13:05:07")


def read(data: bytes, jail: Jail) -> XlsxContent:
    return asyncio.run(read_xlsx(data, jail))


def saved(book: openpyxl.Workbook) -> bytes:
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def test_every_sheet_comes_with_values_formulas_and_merged_cells(jail: Jail) -> None:
    first, second = read(samples.workbook(), jail).sheets
    assert (first.name, first.hidden, first.rows, first.columns) == ("Sales 销售", False, 6, 4)
    assert list(first.lines()) == [
        ["item", "price", "count", "total"],
        ["tea", "2.5", "4", "=B2*C2"],
        ["007", "1", "3", "=B3*C3"],
        ["TRUE", "2026-05-19", "2026-05-19 13:30:00", "#DIV/0!"],
        ["", "", "", ""],
        ["merged, with a comma", "", "", ""],
    ]
    assert first.merged == ("A6:C6",)
    assert [(cell.address, cell.formula, cell.type) for cell in first.formulas] == [
        ("D2", "=B2*C2", "empty"),
        ("D3", "=B3*C3", "empty"),
    ]
    assert [cell.address for cell in first.errors] == ["D4"]
    assert (second.name, second.hidden) == ("Notes", True)
    assert second.cells == (SheetCell(3, 3, "far", "text", None),)


def test_a_calculated_formula_has_both_value_and_formula(jail: Jail) -> None:
    content = read(samples.calculated_workbook(), jail)
    cells = {cell.address: cell for cell in content.sheets[0].cells}
    assert cells["D1"] == SheetCell(1, 4, "6.5", "number", "=SUM(A1:C1)")
    assert cells["E1"] == SheetCell(1, 5, "13", "number", "=SUM(A1:C1*2)")
    assert cells["A2"] == SheetCell(2, 1, "#DIV/0!", "error", "=1/0")
    assert (content.charts, content.pictures) == (1, 0)


def unopened() -> bytes:
    """As XlsxWriter saves formulas whose values nobody gave: all are 0."""
    stream = io.BytesIO()
    book = xlsxwriter.Workbook(stream)
    sheet = book.add_worksheet("Budget")
    sheet.write_column(0, 0, [10, 20, 0])
    sheet.write_formula("A4", "=SUM(A1:A3)")
    sheet.write_formula("A5", "=A4*2", book.add_format({"num_format": '0 "kg"'}))
    book.close()
    return stream.getvalue()


def test_zeros_that_stand_for_values_are_none(jail: Jail) -> None:
    """They were also given to agents as values."""
    content = read(unopened(), jail)
    assert content.stale
    assert [cell.type for cell in content.sheets[0].formulas] == ["empty", "empty"]
    column = [line[0] for line in content.sheets[0].lines(as_shown=True)]
    assert column == ["10", "20", "0", "=SUM(A1:A3)", "=A4*2"]


def test_the_text_names_sheets_and_lists_formulas(jail: Jail) -> None:
    text = read(samples.workbook(), jail).as_text()
    assert text.startswith("# Sheet 'Sales 销售' (6 rows, 4 columns)\nitem,price,count,total\n")
    assert '"merged, with a comma",,,\n\nFormulas:\nD2 =B2*C2\n' in text
    assert "Merged cells: A6:C6" in text
    assert "# Sheet 'Notes' (3 rows, 3 columns, hidden)" in text


def test_texts_and_numbers_come_back_exactly(jail: Jail) -> None:
    rows: list[list[str | float]] = [
        ["a,b", 'say "x"', "two\nlines", "=", "'"],
        [0.1, 1e300, -5, 12345678901234, 0],
        ["é 中 😀", " blanks ", "<&>", "1e5", "TRUE"],
    ]
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    sheet = read(saved(book), jail).sheets[0]
    expected = [[value if isinstance(value, str) else repr(value) for value in row] for row in rows]
    assert list(sheet.lines()) == expected
    assert format_csv(sheet.lines()).startswith('"a,b","say ""x""","two\nlines",=,\'\n')


def test_times_and_durations_are_read_as_such(jail: Jail) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.append([time(13, 30), timedelta(hours=30, minutes=5)])
    cells = read(saved(book), jail).sheets[0].cells
    assert [cell.type for cell in cells] == ["date", "date"]
    assert cells[0].value == "13:30:00"
    assert cells[1].value.startswith("1 day, 6:05:00")


def test_a_table_of_what_if_results_is_a_formula(jail: Jail) -> None:
    parts = samples.unzipped(samples.workbook())
    name = "xl/worksheets/sheet1.xml"
    cell = b'<c r="F1"><f t="dataTable" ref="F1:F2" dt2D="0" r1="A1"/><v>3</v></c></row>'
    parts[name] = parts[name].replace(b"</row>", cell, 1)
    cells = {cell.address: cell for cell in read(samples.zipped(parts), jail).sheets[0].cells}
    assert cells["F1"] == SheetCell(1, 6, "3", "number", "=TABLE()")


def test_cells_far_apart_cost_no_grid(jail: Jail) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active["A1"] = "first"
    book.active["XFD1048576"] = "last"
    sheet = read(saved(book), jail).sheets[0]
    assert (sheet.rows, sheet.columns) == (1048576, 16384)
    lines = list(sheet.lines())
    assert lines[0] == ["first"]
    assert (len(lines), len(lines[1]), lines[1][-1]) == (2, 16384, "last")
    assert sheet.cells[-1].address == "XFD1048576"


def test_a_sheet_that_claims_a_huge_size_is_read_by_what_it_holds(jail: Jail) -> None:
    parts = samples.unzipped(samples.workbook())
    name = "xl/worksheets/sheet1.xml"
    parts[name] = parts[name].replace(b'ref="A1:D6"', b'ref="A1:XFD1048576"')
    assert b"XFD1048576" in parts[name]
    assert read(samples.zipped(parts), jail).sheets[0].columns == 4


def test_a_note_says_that_cells_were_cut(jail: Jail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx, "MOST_CELLS", 9)
    content = read(samples.workbook(), jail)
    assert content.cut
    assert sum(len(sheet.cells) for sheet in content.sheets) == 9
    assert content.as_text().endswith("[Only the first 9 cells were read.]\n")


def test_exactly_as_many_cells_as_are_read_are_not_cut(
    jail: Jail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xlsx, "MOST_CELLS", 18)
    content = read(samples.workbook(), jail)
    assert sum(len(sheet.cells) for sheet in content.sheets) == 18
    assert not content.cut


def test_a_workbook_without_cells_is_read(jail: Jail) -> None:
    sheet = read(saved(openpyxl.Workbook()), jail).sheets[0]
    assert (sheet.rows, sheet.columns, sheet.cells, list(sheet.lines())) == (0, 0, (), [])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"a,b\n1,2\n", "not xlsx; it is text"),
        (samples.docx(""), "not xlsx; it is docx"),
        (samples.workbook()[:2000], "zip archive|broken"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "encrypted"),
    ],
)
def test_what_is_no_workbook_is_refused_with_the_reason(data: bytes, said: str, jail: Jail) -> None:
    with pytest.raises(ToolError, match=said):
        read(data, jail)


@pytest.mark.parametrize(
    ("column", "address"), [(1, "A9"), (26, "Z9"), (27, "AA9"), (702, "ZZ9"), (703, "AAA9")]
)
def test_a_cell_knows_its_address(column: int, address: str) -> None:
    assert SheetCell(9, column, "", "empty", None).address == address


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (DAY, "d mmmm yyyy", "9 May 2026 [2026-05-09]"),
        (DAY, "dd.mm.yy", "09.05.26 [2026-05-09]"),
        (DAY, '[$-407]dddd, "the" d. mmm', "Saturday, the 9. May [2026-05-09]"),
        (MOMENT, "h:mm:ss AM/PM", "1:05:07 PM [2026-05-09 13:05:07]"),
        (DAY, "yyyy-mm-dd", ""),
        (12.5, '#,##0.00 "kg"', "12.5kg"),
        (12.5, "[$€-407] #,##0.00", "€12.5"),
        (12.5, '"EUR "0', "EUR 12.5"),
        (12.5, "0.0%", ""),
        (12.5, "General", ""),
    ],
)
def test_dates_and_units_are_read_as_they_are_shown(
    value: float | datetime, code: str, shown: str, jail: Jail
) -> None:
    book = openpyxl.Workbook()
    book.worksheets[0]["A1"] = value
    book.worksheets[0]["A1"].number_format = code
    stream = io.BytesIO()
    book.save(stream)
    sheet = asyncio.run(read_xlsx(stream.getvalue(), jail)).sheets[0]
    assert sheet.cells[0].shown == shown
    assert next(sheet.lines()) == [sheet.cells[0].value]
    assert next(sheet.lines(as_shown=True)) == [shown or sheet.cells[0].value]

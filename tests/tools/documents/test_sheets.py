import io

import pytest
from openpyxl import load_workbook
from openpyxl.worksheet.worksheet import Worksheet

from gta_bench.errors import ToolError
from gta_bench.tools.documents.sheets import build_workbook, has_formulas, save_workbook
from gta_bench.tools.documents.tables import CellValue, DocumentTable


def sheet(*rows: tuple[CellValue, ...], name: str = "S") -> Worksheet:
    """Written and read again."""
    book = load_workbook(io.BytesIO(save_workbook(build_workbook([DocumentTable(name, rows)]))))
    return book.worksheets[0]


def names(*wanted: str) -> list[str]:
    return build_workbook([DocumentTable(name, (("x",),)) for name in wanted]).sheetnames


@pytest.mark.parametrize(
    ("wanted", "made"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "A", "a "], ["a", "A 2", "a 3"]),
        (["x" * 50, "x" * 50], ["x" * 31, "x" * 29 + " 2"]),
        (["a/b", "[c]", "d:*?\\"], ["a_b", "_c_", "d____"]),
        (["", "  ", "'"], ["Sheet", "Sheet 2", "Sheet 3"]),
        (["销售", "日本"], ["销售", "日本"]),
    ],
)
def test_sheets_get_names_that_a_workbook_allows(wanted: list[str], made: list[str]) -> None:
    assert names(*wanted) == made


@pytest.mark.parametrize(
    ("value", "width"),
    [("ab", 8), ("a" * 20, 22), ("中" * 10, 22), ("a" * 200, 60), (1234567890123, 15), ("a\nb", 8)],
)
def test_a_column_is_as_wide_as_its_longest_line(value: CellValue, width: int) -> None:
    assert sheet((value,)).column_dimensions["A"].width == width


def test_a_long_text_is_wrapped_in_a_row_that_is_tall_enough() -> None:
    made = sheet(("head",), ("word " * 60,), ("short",))
    assert made["A2"].alignment.wrap_text
    assert (made.row_dimensions[2].height or 0) >= 15 * (300 / 58)
    assert made.row_dimensions[3].height is None


def test_a_row_is_never_taller_than_a_workbook_allows() -> None:
    assert (sheet(("x " * 10_000,)).row_dimensions[1].height or 0) <= 409


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ((("name", "age"), ("Ann", 30)), True),
        ((("name", ""), ("Ann", 30)), False),
        (((1, 2), (3, 4)), False),
        ((("=A2", "b"), (1, 2)), False),
        ((("alone",),), False),
    ],
)
def test_a_header_is_words_over_rows(rows: tuple[tuple[CellValue, ...], ...], header: bool) -> None:
    made = sheet(*rows)
    assert bool(made["A1"].font.bold) is header
    assert (made.freeze_panes == "A2") is header


def test_a_sheet_prints_on_pages_that_are_one_wide() -> None:
    made = sheet(("x",))
    assert made.sheet_properties.pageSetUpPr is not None
    assert made.sheet_properties.pageSetUpPr.fitToPage
    assert made.page_setup.fitToHeight == 0
    assert made.page_setup.orientation == "landscape"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, "n"),
        (1.5, "n"),
        (True, "b"),
        ("text", "s"),
        ("=1+1", "f"),
        ("=== no formula", "s"),
        ("#DIV/0!", "s"),
        (10**15, "s"),
        (-(10**15), "s"),
        (10**15 - 1, "n"),
        ("2026-01-31", "s"),
        ("1e5", "s"),
    ],
)
def test_a_value_keeps_its_kind(value: CellValue, kind: str) -> None:
    assert sheet((value,))["A1"].data_type == kind


def test_formulas_are_noticed() -> None:
    assert has_formulas(
        build_workbook([DocumentTable("a", ((1,),)), DocumentTable("b", (("=1",),))])
    )
    assert not has_formulas(build_workbook([DocumentTable("a", (("== no",),))]))


def test_a_cell_with_too_much_text_is_named() -> None:
    with pytest.raises(ToolError, match="S!B2 has 40000 characters; at most 32767 fit into a cell"):
        build_workbook([DocumentTable("S", ((None, None), (None, "x" * 40_000)))])


def test_empty_cells_stay_empty() -> None:
    made = sheet((None, "a"), ("b", None))
    assert [[cell.value for cell in row] for row in made] == [[None, "a"], ["b", None]]


def test_a_formula_that_gives_a_date_shows_one() -> None:
    assert sheet(("=TODAY()",))["A1"].number_format == "yyyy-mm-dd"
    assert sheet(("=SUM(1)",))["A1"].number_format == "General"

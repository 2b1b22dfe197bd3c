import io

import pytest
from openpyxl import Workbook, load_workbook

from gta_bench.errors import ToolError
from gta_bench.tools.documents.sheets import (
    FormulaValue,
    add_values,
    date_format,
    is_formula,
    read_values,
    spell_formula,
)
from tests.tools.documents.making import parts


def workbook(**cells: str | int) -> bytes:
    book = Workbook()
    sheet = book.worksheets[0]
    for place, value in cells.items():
        sheet[place] = value
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    "text",
    ["=A1", "=SUM(A1:B2)", "=-A1", "=(1+2)", '="a"', "='Sheet 1'!A1", "=$A$1", "= A1", "=销售!A1"],
)
def test_a_formula_is_known(text: str) -> None:
    assert is_formula(text)


@pytest.mark.parametrize(
    "text", ["", "=", "==", "=== x", "=>", "=|", "A1", " =A1", "=cmd|'x'!A0", "=@x|y"]
)
def test_other_texts_are_none(text: str) -> None:
    assert not is_formula(text)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("=SUM(A1)", "=SUM(A1)"),
        ("=xlookup(A1,B:B,C:C)", "=_xlfn.XLOOKUP(A1,B:B,C:C)"),
        ('="IFS("&IFS(1,2)', '="IFS("&_xlfn.IFS(1,2)'),
        ("=_xlfn.IFS(1,2)", "=_xlfn.IFS(1,2)"),
        ("=SUMIFS(A1,B1,1)", "=SUMIFS(A1,B1,1)"),
        ('="say ""("""', '="say ""("""'),
    ],
)
def test_newer_functions_get_their_prefix_outside_of_texts(given: str, expected: str) -> None:
    assert spell_formula(given, where="A1") == expected


@pytest.mark.parametrize("text", ["=SUM(", "=)", '="'])
def test_an_unclosed_formula_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="in Sheet!B7 has an unclosed"):
        spell_formula(text, where="Sheet!B7")


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        ("=DATE(2026,1,31)", "yyyy-mm-dd"),
        ("=today()+30", "yyyy-mm-dd"),
        ("=EDATE(DATE(2026,1,1),3)", "yyyy-mm-dd"),
        ("=NOW()", "yyyy-mm-dd hh:mm"),
        ("=DATE(2026,1,31)-A1", None),
        ("=YEAR(TODAY())", None),
        ("=SUM(A1)", None),
    ],
)
def test_a_date_is_shown_as_a_date(formula: str, shown: str | None) -> None:
    assert date_format(formula) == shown


PART = "xl/worksheets/sheet1.xml"


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (FormulaValue(None, "3.5"), 3.5),
        (FormulaValue("n", "3"), 3),
        (FormulaValue("str", "a<b>&"), "a<b>&"),
        (FormulaValue("b", "1"), True),
        (FormulaValue("e", "#DIV/0!"), "#DIV/0!"),
        (FormulaValue("e", "#NAME?"), None),
    ],
)
def test_a_value_stands_beside_its_formula(value: FormulaValue, read: object) -> None:
    made = add_values(workbook(A1="=1+1", B1="text", C1=7), {PART: {"A1": value}})
    sheet = load_workbook(io.BytesIO(made), data_only=True).worksheets[0]
    assert [cell.value for cell in next(iter(sheet))] == [read, "text", 7]
    assert load_workbook(io.BytesIO(made)).worksheets[0]["A1"].value == "=1+1"


def test_nothing_else_of_the_workbook_changes() -> None:
    book = workbook(A1="=1+1", B1="中文")
    made = add_values(book, {})
    assert {k: v for k, v in parts(made).items() if k != PART} == {
        k: v for k, v in parts(book).items() if k != PART
    }
    assert read_values(made) == {PART: {"A1": FormulaValue(None, "")}}

import asyncio
import io
import re
import time
from pathlib import Path

import pytest
from openpyxl import Workbook, load_workbook

from gta_bench.content.libreoffice import find_libreoffice
from gta_bench.errors import ToolError
from gta_bench.settings import Settings
from gta_bench.tools.contract import Available, Equipment
from gta_bench.tools.toolbox import Toolbox
from tests.needs import needs
from tests.tools.documents.making import Bench, as_json, bench, parts
from tests.tools.documents.sample import SHEETS

TOOL = "XlsxFileGenerator"


@pytest.fixture
def desk(tmp_path: Path) -> Bench:
    return bench(tmp_path)


@pytest.fixture
def without_jail(tmp_path: Path) -> Bench:
    """Formulas are then kept and not computed, which is fast."""
    (tmp_path / "bare").mkdir()
    made = bench(tmp_path / "bare")
    return Bench(made.workspace, Toolbox(Equipment(Settings())))


def make(desk: Bench, data: object, *, values: bool = False) -> Workbook:
    text = data if isinstance(data, str) else as_json(data)
    return load_workbook(io.BytesIO(desk.make(TOOL, data_str=text)), data_only=values)


def cells(book: Workbook, sheet: int = 0) -> list[list[object]]:
    return [list(row) for row in book.worksheets[sheet].iter_rows(values_only=True)]


def test_rows_come_back_with_their_types(desk: Bench) -> None:
    rows = [["name", "age", "x"], ["安娜", 30, True], ["007", 2.5, None], ["日本語", -1, "a\nb"]]
    assert cells(make(desk, rows)) == rows


def test_objects_become_rows_under_all_their_keys(desk: Bench) -> None:
    made = cells(make(desk, [{"a": 1}, {"b": [1, {"c": 2}]}]))
    assert made == [["a", "b"], [1, None], [None, '[1, {"c": 2}]']]


def test_several_sheets_have_names_that_a_workbook_allows(desk: Bench) -> None:
    names = ["Q1/Q2: [all]*?", "x" * 40, "X" * 40, "'", "销售"]
    book = make(desk, {name: [[name]] for name in names})
    assert book.sheetnames == ["Q1_Q2_ _all___", "x" * 31, "X" * 29 + " 2", "Sheet", "销售"]
    assert [cells(book, number) for number in range(5)] == [[[name]] for name in names]


@pytest.mark.slow
@needs("bwrap", "soffice")
def test_formulas_are_kept_and_have_values(desk: Bench) -> None:
    data = desk.make(TOOL, data_str=as_json(SHEETS))
    formulas, values = (load_workbook(io.BytesIO(data), data_only=only) for only in (False, True))
    assert formulas["销售 Sales"]["B4"].value == "=SUM(B2:B3)"
    assert values["销售 Sales"]["B4"].value == 2180
    assert values["销售 Sales"]["D2"].value == pytest.approx(0.125)
    assert re.fullmatch(r"openpyxl [\d.]+, LibreOffice [\d.]+", desk.results[0].backend)
    assert desk.results[0].jail in ("bubblewrap", "landlock")


@pytest.mark.slow
@needs("bwrap", "soffice")
def test_formulas_of_every_kind_have_values(desk: Bench) -> None:
    row = [
        '=CONCATENATE("a","<b>")',
        "=1/0",
        "=2>1",
        "=DATE(2026,1,31)",
        '=IFS(1=1,"one")',
        "=SUM(First!A1:A2)",
        '=WEBSERVICE("http://127.0.0.1:9/")',
        "=UNKNOWNFUNCTION(1)",
        "=AVERAGE(1,2)",
    ]
    book = make(desk, {"First": [[1], [2]], "Second": [row]}, values=True)
    values = cells(book, 1)[0]
    assert values[:3] == ["a<b>", "#DIV/0!", True]
    assert str(values[3]).startswith("2026-01-31")
    assert values[4:6] == ["one", 3]
    assert values[7:] == [None, 1.5]  # what LibreOffice does not know is left to Excel


def test_without_libreoffice_formulas_are_kept_and_the_file_asks_to_be_computed(
    without_jail: Bench,
) -> None:
    book = make(without_jail, [["a", "=1+1"]])
    assert book.active is not None
    assert book.active["B1"].value == "=1+1"
    assert book.calculation.fullCalcOnLoad
    assert re.fullmatch(r"openpyxl [\d.]+", without_jail.results[0].backend)
    assert without_jail.results[0].jail is None


@pytest.mark.parametrize(
    "text",
    [
        "=== Title ===",
        "= = =",
        "=cmd|' /C calc'!A0",
        "=DDE|x!y",
        "@note",
        "+plus",
        "-minus",
        "#N/A",
    ],
)
def test_a_text_that_only_looks_like_a_formula_stays_text(without_jail: Bench, text: str) -> None:
    book = make(without_jail, [["head", "b"], [text, 1]])
    cell = book.worksheets[0]["A2"]
    assert cell.value == text
    assert cell.data_type == "s"


def test_newer_functions_are_spelled_so_that_excel_knows_them(without_jail: Bench) -> None:
    sheet = make(without_jail, [['=TEXTJOIN(",",TRUE,"IFS(",A1)&stdev.s(B1:B9)', "=SUM(1)"]])
    first, second = cells(sheet)[0]
    assert first == '=_xlfn.TEXTJOIN(",",TRUE,"IFS(",A1)&_xlfn.STDEV.S(B1:B9)'
    assert second == "=SUM(1)"


@pytest.mark.parametrize("formula", ["=SUM(A1", '="open', "=A1)"])
def test_an_unclosed_formula_is_named_by_its_cell(without_jail: Bench, formula: str) -> None:
    with pytest.raises(ToolError, match=r"in Sheet1!B2 has an unclosed"):
        make(without_jail, [["a", "b"], [1, formula]])


def test_the_header_stands_out_and_columns_are_as_wide_as_their_content(desk: Bench) -> None:
    sheet = make(desk, [["name", "a long heading"], ["很长的中文内容在这里", 1], ["x" * 500, 2]])[
        "Sheet1"
    ]
    assert sheet["A1"].font.bold
    assert not sheet["A2"].font.bold
    assert sheet.freeze_panes == "A2"
    assert sheet.column_dimensions["A"].width == 60
    assert sheet.column_dimensions["B"].width == 16
    assert sheet["A3"].alignment.wrap_text
    assert (sheet.row_dimensions[3].height or 0) >= 9 * 15


@pytest.mark.parametrize("rows", [[[1, 2], [3, 4]], [["only one row"]], [["a", ""], [1, 2]]])
def test_rows_without_a_header_get_none(desk: Bench, rows: list[list[object]]) -> None:
    sheet = make(desk, rows).worksheets[0]
    assert sheet.freeze_panes is None
    assert not sheet["A1"].font.bold


def test_numbers_too_long_for_a_cell_are_kept_as_text(desk: Bench) -> None:
    assert cells(make(desk, "[[12345678901234567890, 123456789012345]]")) == [
        ["12345678901234567890", 123456789012345]
    ]


def test_control_characters_are_left_out(desk: Bench) -> None:
    assert cells(make(desk, [["a\x00b\x1fc\r\nd", "\ud800x"]])) == [["abc\nd", "x"]]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("[[1, 2]", r"not JSON.*several sheets"),
        ('{"a": 1}', "Table 'a' of `data_str` is not a list of rows"),
        ("{}", "has 0 sheets"),
        (
            as_json([["x" * 32_768]]),
            "Sheet1!A1 has 32768 characters; at most 32767 fit into a cell",
        ),
        (as_json({str(n): [[1]] for n in range(51)}), "has 51 sheets"),
        (as_json([[1] * 500] * 401), "at most 200000 cells"),
        (as_json([{str(n): 1} for n in range(5_000)]), "makes the table too large"),
        ("[[1e999]]", "not a JSON number"),
        ("7", "not a list of rows"),
        ("[null]", "Row 1"),
    ],
)
def test_an_invalid_table_is_refused_with_the_expected_form(
    desk: Bench, data: str, said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        desk.make(TOOL, data_str=data)


def test_a_full_sheet_is_written(without_jail: Bench) -> None:
    rows = [[row * column for column in range(100)] for row in range(200)]
    assert cells(make(without_jail, rows)) == rows


@pytest.mark.slow
@needs("bwrap", "soffice")
def test_formulas_that_never_end_are_kept_without_values_in_time(desk: Bench) -> None:
    rows = [[f"=SUMPRODUCT((ROW(1:1048576)>{n})*(ROW(1:1048576)<9))" for n in range(40)]] * 40
    start = time.monotonic()
    assert cells(make(desk, rows)) == rows
    assert time.monotonic() - start < 30


def test_the_file_is_whole_and_named(desk: Bench) -> None:
    data = desk.make(TOOL, data_str='[["a", 1]]', filename="a/b.xlsx", output_dir="c")
    assert "xl/worksheets/sheet1.xml" in parts(data)
    assert desk.results[0].parts[0].content == "outputs/b.xlsx"


def test_the_availability_names_what_computes(desk: Bench, without_jail: Bench) -> None:
    with_jail, without = (box.toolbox.availability(TOOL) for box in (desk, without_jail))
    assert isinstance(with_jail, Available)
    assert isinstance(without, Available)
    assert with_jail.backend.endswith(", LibreOffice") == (find_libreoffice() is not None)
    assert "LibreOffice" not in without.backend


def test_two_calls_at_once_do_not_disturb_each_other(without_jail: Bench) -> None:
    async def both() -> list[str]:
        calls = [
            without_jail.toolbox.call(
                without_jail.workspace, TOOL, {"filename": "same", "data_str": as_json([[n]])}
            )
            for n in range(4)
        ]
        return [result.parts[0].content for result in await asyncio.gather(*calls)]

    assert len(set(asyncio.run(both()))) == 4

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gta_bench.errors import ToolError
from gta_bench.tools.documents.tables import DocumentTable
from gta_bench.tools.operation.table_files import _encode_table
from tests.tools.documents.making import Bench, as_json, bench

TOOL = "CsvFileGenerator"


@pytest.fixture
def desk(tmp_path: Path) -> Bench:
    return bench(tmp_path)


def rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def make(desk: Bench, data: object) -> list[list[str]]:
    text = data if isinstance(data, str) else as_json(data)
    return rows(desk.make(TOOL, data_str=text))


def test_rows_come_back_cell_by_cell(desk: Bench) -> None:
    made = make(desk, [["name", "note"], ["安娜", 'with "quotes", commas\nand lines'], ["x", None]])
    assert made == [["name", "note"], ["安娜", 'with "quotes", commas\nand lines'], ["x", ""]]


def test_objects_become_rows_under_all_their_keys(desk: Bench) -> None:
    made = make(desk, [{"a": 1, "b": 2.5}, {"b": True, "c": {"deep": [1]}}])
    assert made == [["a", "b", "c"], ["1", "2.5", ""], ["", "True", '{"deep": [1]}']]


def test_excel_reads_it_as_unicode(desk: Bench) -> None:
    assert desk.make(TOOL, data_str='[["地区"]]').startswith(b"\xef\xbb\xbf")


def test_rows_of_unequal_length_are_filled_up(desk: Bench) -> None:
    assert make(desk, [["a", "b"], ["1"], []]) == [["a", "b"], ["1", ""], ["", ""]]


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+1", "'=1+1"),
        ("=cmd|' /C calc'!A1", "'=cmd|' /C calc'!A1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+cmd", "'+cmd"),
        ("-2+3+cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0"),
        ("\t=1", "'\t=1"),
        ("-3", "-3"),
        ("+12.5 %", "+12.5 %"),
        ("-$1,200.50", "-$1,200.50"),
        ("+49 170 123", "+49 170 123"),
        ("-1e-5", "-1e-5"),
        ("-", "-"),
        ("--", "--"),
        ("a=b", "a=b"),
        ("007", "007"),
        (-3, "-3"),
    ],
)
def test_a_text_that_a_spreadsheet_would_compute_gets_a_quote(
    desk: Bench, cell: object, written: str
) -> None:
    assert make(desk, [[cell]]) == [[written]]


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=("Cc", "Cs"))), min_size=2, max_size=2),
        min_size=1,
    )
)
@settings(max_examples=60)
def test_any_text_comes_back_with_at_most_a_quote_before_it(cells: list[list[str]]) -> None:
    table = DocumentTable("t", tuple(tuple(row) for row in cells))
    for made, meant in zip(rows(_encode_table(table)), cells, strict=True):
        for got, wanted in zip(made, meant, strict=True):
            assert got in (wanted, f"'{wanted}")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("not json", r"not JSON.*line 1, column 1.*Expected JSON rows"),
        ("", "is not JSON"),
        ("{}", "Expected JSON rows"),
        ('{"a": [[1]], "b": [[2]]}', "a single object. Expected"),
        ("[]", "not a list of rows"),
        ("[1, 2]", "Row 1 of table"),
        ('[["a"], {"b": 1}]', "Row 2 of table"),
        ("[[]]", "has no columns"),
        ("[[NaN]]", "NaN is not a JSON number"),
        ("[" * 100_000, "is not JSON"),
        ("[[" + "1," * 600_000 + "1]]", "at most 1000000"),
        ("[[" + "1," * 17_000 + "1]]", "17001 columns"),
        ("[" + "[]," * 200_001 + "[1]]", "at most 200000 cells"),
    ],
)
def test_an_invalid_table_is_refused_with_the_expected_form(
    desk: Bench, data: str, said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        desk.make(TOOL, data_str=data)


def test_a_fence_a_list_and_one_named_table_are_understood(desk: Bench) -> None:
    assert make(desk, '```json\n[["a"]]\n```') == [["a"]]
    assert rows(desk.make(TOOL, data_str=[["a"]])) == [["a"]]
    assert make(desk, {"Sheet": [["a"]]}) == [["a"]]


def test_the_file_has_its_ending_and_the_result_its_backend(desk: Bench) -> None:
    desk.make(TOOL, data_str='[["a"]]', filename="x/../y.csv", output_dir="z")
    assert desk.results[0].parts[0].content == "outputs/y.csv"
    assert desk.results[0].backend == "csv"

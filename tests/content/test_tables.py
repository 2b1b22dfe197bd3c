import csv
import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.content.tables import read_csv
from gta_bench.errors import ToolError


@pytest.mark.parametrize(
    ("data", "rows", "separator"),
    [
        (b"", (), ","),
        (b"alone\n", (("alone",),), ","),
        (b"a,b\n007,1.50\n", (("a", "b"), ("007", "1.50")), ","),
        (b"a;b\n1,5;2\n", (("a", "b"), ("1,5", "2")), ";"),
        (b"1,5;2,5\n3,5;4,5\n", (("1,5", "2,5"), ("3,5", "4,5")), ";"),
        (b"name;note\nA;hello, you\nB;yes, no\n", None, ";"),
        (b"a\tb\n1\t2\n", (("a", "b"), ("1", "2")), "\t"),
        (b"a|b\n1|2\n", (("a", "b"), ("1", "2")), "|"),
        (b"sep=;\r\na;b,c\r\n", (("a", "b,c"),), ";"),
        (b"a,b,c\n1,2\n3,4,5,6\n", (("a", "b", "c"), ("1", "2"), ("3", "4", "5", "6")), ","),
        (b"a,b\r1,2\r", (("a", "b"), ("1", "2")), ","),
        (b'a,b\n"two\nlines","say ""x"""\n', (("a", "b"), ("two\nlines", 'say "x"')), ","),
        (b'id,list\n1,"x;y"\n2,"z;w"\n', (("id", "list"), ("1", "x;y"), ("2", "z;w")), ","),
        (b"a,b\n\n1,2\n", (("a", "b"), (), ("1", "2")), ","),
    ],
)
def test_rows_and_separator_of_a_file_are_found(
    data: bytes, rows: tuple[tuple[str, ...], ...] | None, separator: str
) -> None:
    content = read_csv(data)
    assert content.separator == separator
    assert rows is None or content.rows == rows


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_chinese_is_read_in_every_usual_encoding(encoding: str) -> None:
    content = read_csv("姓名;城市\n张三;北京\n".encode(encoding))
    assert content.rows == (("姓名", "城市"), ("张三", "北京"))
    assert content.encoding == encoding
    assert content.as_text() == "姓名,城市\n张三,北京\n"


def test_a_cell_of_a_megabyte_is_read_whole() -> None:
    content = read_csv(b"a,b\n" + b"x" * 1_000_000 + b",y\n")
    assert len(content.rows[1][0]) == 1_000_000


def test_a_file_of_many_rows_costs_time_in_proportion() -> None:
    seconds = []
    for rows in (100_000, 400_000):
        start = time.process_time()
        assert len(read_csv(b"1,2,3,4,5\n" * rows).rows) == rows
        seconds.append(time.process_time() - start)
    assert seconds[1] < 10 * seconds[0]


def test_a_binary_file_is_refused() -> None:
    with pytest.raises(ToolError, match="not text"):
        read_csv(b"PK\x03\x04\0\0")


CELLS = st.text(
    st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), min_size=1, max_size=8
).filter(lambda cell: not cell.startswith("\ufeff"))


@given(
    st.integers(2, 4).flatmap(lambda n: st.lists(st.tuples(*[CELLS] * n), min_size=2, max_size=8))
)
def test_a_quoted_file_comes_back_exactly(rows: list[tuple[str, ...]]) -> None:
    stream = io.StringIO()
    csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    assert read_csv(stream.getvalue().encode()).rows == tuple(rows)


@given(st.binary(max_size=300))
def test_any_bytes_give_rows_or_a_typed_refusal(data: bytes) -> None:
    try:
        content = read_csv(data)
    except ToolError:
        return
    assert read_csv(content.as_text().encode()) is not None

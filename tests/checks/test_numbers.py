"""Numbers as people write them."""

import pytest

from gta_bench.checks.numbers import find_numbers, parse_number
from gta_bench.confine.jail import Jail
from gta_bench.records.verdicts import Scored
from tests.checks.works import decide, deliver, points, value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("100,00", 100), ("1.234,50", 1234.5), ("1,234.50", 1234.5), ("1,234", 1234),
        ("1.234", 1.234), ("1.234.567", 1234567), ("12,34,567.5", 1234567.5), ("0,125", 0.125),
        ("1234,567", 1234.567), ("12345,678.90", 12345678.9), ("1 234,50", 1234.5),
        ("1\u202f234\u00a0567", 1234567), ("1\u2009234", 1234), ("- $ 5", -5), ("$-5", -5),
        ("(1,200)", -1200), ("\N{MINUS SIGN}.5", -0.5), ("1e-05", 1e-5), ("50 %", 50),
        ("5.", 5), ("\uff15\uff0c\uff15", 5.5), ("2025 48210.55", None), ("42 48200.00", None),
        ("1,2,3", None), ("nan", None), ("inf", None), ("1_000", None), ("", None), ("-", None),
        ("12 apples", None), ("17.11.2026", None),
    ],
)  # fmt: skip
def test_a_cell_is_read(text: str, number: float | None) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize(
    ("answer", "holds", "fails"),
    [
        ("In 2025 48210.55 dollars.", [2025, 48210.55], [202548210.55]),
        ("42 48200.00", [42, 48200], [4248200]),
        ("It is 48\u202f210.55.", [48210.55], []),
        ("5 120 300", [5, 120, 300, 5120, 5120300, 120300], [5120.3]),
        ("It costs 99,50, or 1.234,50.", [99.5, 1234.5], [9950, 1.2345]),
        ("-$5 and 10-20, \N{MINUS SIGN}7", [-5, 10, 20, -7], [5, -20, 7]),
        ("Items 1,2,3 on 17.11.2026", [1, 2, 3, 2026], [123]),
        ("2 -300", [2, -300], [2300]),
    ],
)
def test_numbers_of_an_answer(
    jail: Jail, answer: str, holds: list[float], fails: list[float]
) -> None:
    work = deliver({}, jail, answer=answer)
    for number in holds:
        assert points(decide(work, {"is": "answer.contains", "number": number})) == 10, number
    for number in fails:
        assert points(decide(work, {"is": "answer.contains", "number": number})) == 0, number


def test_an_answer_with_every_number_has_none(jail: Jail) -> None:
    check = {"is": "answer.contains", "number": 7}
    assert points(decide(deliver({}, jail, answer="7, " * 99 + "8"), check)) == 10
    shots = deliver({}, jail, answer=", ".join(map(str, range(51))))
    verdict = decide(shots, check)
    assert isinstance(verdict, Scored) and verdict.value == 0
    assert "found 51 different numbers, wanted at most 50, of which one is 7" in verdict.reason


def test_decimal_commas_in_a_table(jail: Jail) -> None:
    work = deliver({"a.csv": b"Item;EUR\nTea;100,00\nAle;1.234,50\n"}, jail)
    assert points(decide(work, value("a.csv", "Ale", "EUR", 1234.5))) == 10
    total = {"is": "table.sum", "file": "a.csv", "column": "EUR", "equals": 1334.5}
    assert points(decide(work, total)) == 10


def test_a_long_run_of_numbers_is_read_at_once() -> None:
    assert len(find_numbers("1 000 " * 20_000)) == 40_000
    assert find_numbers("1" * 100_000) == [(float("inf"),)]

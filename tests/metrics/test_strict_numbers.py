"""Numbers are read whole, with sign, currency and percent."""

from decimal import Decimal

import pytest

from gta_bench.metrics.strict.outcome import find_quantities, read_quantity


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        ("none", []),
        ("58. 58, 60", ["58", "58", "60"]),
        ("1,234,567.89", ["1234567.89"]),
        ("58,0001", ["58"]),
        ("100,20", ["100", "20"]),
        ("12.05.2024", ["12", "2024"]),
        ("1.2.3", ["1", "2", "3"]),
        (".5 and -.5", ["0.5", "-0.5"]),
        ("wait...5", ["5"]),
        ("end.5", ["5"]),
        ("-3 - 4", ["-3", "4"]),
        ("3-4", ["3", "4"]),
        ("--4", ["-4"]),
        ("-$5, $-6, $ -7", ["-5", "-6", "-7"]),
        ("24GB 13th x3 1.5e3 5²", []),
        ("0 00 07 0.7", ["0", "0.7"]),
        ("20°-30°", ["20", "30"]),
    ],
)
def test_the_numbers_that_stand_alone_are_read(text: str, values: list[str]) -> None:
    assert [found.value for found in find_quantities(text)] == [Decimal(value) for value in values]


def test_a_number_keeps_its_currency_percent_sign_and_place() -> None:
    (found,) = find_quantities("pay -$ 5 % now")
    assert (found.value, found.currency, found.percent) == (Decimal(-5), "$", True)
    assert "pay -$ 5 % now"[found.start : found.end] == "-$ 5 %"


@pytest.mark.parametrize("text", ["58", "-3", "$12", "50%", "-$1,200.50", ".5"])
def test_a_text_that_is_a_number_is_read_as_one(text: str) -> None:
    assert read_quantity(text) is not None


@pytest.mark.parametrize("text", ["", "58 kg", "7:04", "C++", "007", "1 2", "a-3"])
def test_a_text_that_is_more_than_a_number_is_none(text: str) -> None:
    assert read_quantity(text) is None


def test_a_number_of_any_length_keeps_its_sign_and_digits() -> None:
    """Plain negation would round to 28 digits."""
    digits = "9" * 2_000_000
    (found,) = find_quantities("-" + digits)
    assert str(found.value) == "-" + digits

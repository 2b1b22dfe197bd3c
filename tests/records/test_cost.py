"""The one way to add up cost: what is known, and whether that is all of it."""

import pytest

from gta_bench.records.cost import Cost, make_cost, read_cost, sum_costs
from gta_bench.records.units import Usage
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow

FREE = Cost()
UNKNOWN = Cost(unknown=True)


def row(**values: object) -> VerdictRow:
    key = VerdictKey(task="1", leaf="a", judge="j")
    unscored = Unscored(cause="http_error")
    return VerdictRow.model_validate({"key": key, "verdict": unscored, **values})


@pytest.mark.parametrize(
    ("parts", "known", "total"),
    [
        ([], None, None),
        ([FREE, FREE], None, None),
        ([Cost(0.1), Cost(0.2), FREE], pytest.approx(0.3), pytest.approx(0.3)),
        ([Cost(0.0)], 0.0, 0.0),
        ([Cost(0.5), UNKNOWN], 0.5, None),
        ([UNKNOWN, FREE], None, None),
        ([Cost(0.5, unknown=True), Cost(1.0)], 1.5, None),
    ],
)
def test_a_sum_is_unknown_as_soon_as_one_part_is(
    parts: list[Cost], known: float | None, total: float | None
) -> None:
    found = sum_costs(parts)
    assert (found.known, found.total) == (known, total)


def test_the_sum_does_not_depend_on_how_the_parts_are_grouped() -> None:
    parts = [Cost(0.1), FREE, Cost(0.7), UNKNOWN, Cost(0.2)]
    halves = sum_costs([sum_costs(parts[:2]), sum_costs(parts[2:])])
    assert halves.known == pytest.approx(sum_costs(parts).known)
    assert halves.unknown == sum_costs(parts).unknown


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (Usage(), FREE),
        (Usage(seconds=3, retries=2), FREE),
        (Usage(model_calls=1), UNKNOWN),
        (Usage(input_tokens=5), UNKNOWN),
        (Usage(output_tokens=5), UNKNOWN),
        (Usage(model_calls=1, cost_usd=0.2), Cost(0.2)),
        (Usage(cost_usd=0.0), Cost(0.0)),
        (row(), FREE),
        (row(input_tokens=5), UNKNOWN),
        (row(verdict=Scored(value=7)), UNKNOWN),
        (row(verdict=Scored(value=7), cost_usd=0.0), Cost(0.0)),
    ],
)
def test_what_asked_no_model_was_free_and_anything_else_without_a_price_is_unknown(
    record: Usage | VerdictRow, expected: Cost
) -> None:
    assert read_cost(record) == expected


def test_a_call_without_a_price_was_paid_for_all_the_same() -> None:
    assert make_cost(None) == UNKNOWN
    assert make_cost(0.25) == Cost(0.25)

from gta_bench.metrics.counts import add_counts
from gta_bench.records.scores import CategoryCounts, StrictEndToEndCounts, StrictStepCounts

NOTHING = add_counts(StrictEndToEndCounts, [])


def test_counts_are_added_field_by_field_and_category_by_category() -> None:
    one = NOTHING.model_copy(
        update={
            "answer_total": 1,
            "answer_sum": 0.1,
            "categories": {**NOTHING.categories, "logic": CategoryCounts(gold=2, hits=1)},
            "predicted": True,
        }
    )
    found = add_counts(StrictEndToEndCounts, [*[one] * 10, NOTHING])
    assert (found.answer_total, found.predicted) == (10, True)
    assert found.answer_sum == 1.0, "floats are rounded once, not at every step"
    assert found.categories["logic"] == CategoryCounts(gold=20, predicted=0, hits=10)


def test_no_units_count_nothing() -> None:
    found = add_counts(StrictStepCounts, [])
    assert set(found.model_dump().values()) == {0}
    assert set(NOTHING.categories) == {"perception", "operation", "logic", "creativity"}

from math import inf, isfinite, nan

import pytest

from gta_bench.errors import UsageError
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.units import AtomicUnit
from gta_bench.runs.scoring import load_metric, measure


def unit(name: str, failure: str | None = None) -> AtomicUnit:
    task = AtomicTask(id=name, tools=(), attachments=(), dialogue=(), answer=None)
    return AtomicUnit(task=task, failure=failure)


def test_the_mean_is_over_units_that_have_a_value() -> None:
    values = {"a": 1.0, "b": 0.0, "c": None}
    units = [unit("a"), unit("b"), unit("c"), unit("d", failure="the server died")]
    found = measure(units, lambda one: values[one.task.id], name="mine", n_units=5)
    assert (found.value, found.n, found.n_units) == (0.5, 2, 5)
    assert found.units == {"a.1": 1.0, "b.1": 0.0}


def test_a_metric_without_values_is_none() -> None:
    assert measure([unit("a")], lambda _: None, name="mine", n_units=1).value is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (nan, "nan"),
        (-inf, "-inf"),
        (10**400, "an integer that is too large"),
        pytest.param(10**5000, "an integer that is too large", id="5000 digits"),
        ("7", "'7'"),
    ],
)
def test_a_metric_that_is_not_a_finite_number_is_refused(value: float, shown: str) -> None:
    with pytest.raises(UsageError) as raised:
        measure([unit("a")], lambda _: value, name="mine", n_units=1)
    assert str(raised.value) == (
        f"Metric 'mine' returned {shown} for task a: return a finite number, or None if it does "
        "not apply."
    )


def test_a_metric_that_is_no_function_is_refused() -> None:
    with pytest.raises(UsageError, match="The metric is a value of type 'int': pass a function"):
        measure([unit("a")], 5, name="mine", n_units=1)  # type: ignore[arg-type]


def test_a_function_is_loaded_by_its_place() -> None:
    assert load_metric("math:isfinite") is isfinite


@pytest.mark.parametrize("name", ["nothing", ":f", "no_such_module:f", "json:no_such_function"])
def test_what_is_no_metric_is_told_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match=r"metric .*`pkg.mod:function`"):
        load_metric(name)

"""The one table of metrics: every row against a few lines of arithmetic, and who reads it."""

import random
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, get_args

import pytest

from gta_bench.metrics import table
from gta_bench.metrics.compat import end_to_end as compat_end_to_end
from gta_bench.metrics.compat import steps as compat_steps
from gta_bench.metrics.strict import end_to_end as strict_end_to_end
from gta_bench.metrics.strict import steps as strict_steps
from gta_bench.metrics.strict import workflow
from gta_bench.metrics.table import METRICS, Metric
from gta_bench.records.base import Record
from gta_bench.records.judges import Floor
from gta_bench.records.leaderboard import Board, MetricName
from gta_bench.records.run import RunMode
from gta_bench.records.scores import (
    CategoryCounts,
    EndToEndScores,
    StepScores,
    StrictEndToEndCounts,
    StrictEndToEndScores,
    StrictStepCounts,
    StrictStepScores,
    ToolUse,
)
from gta_bench.records.units import Usage
from gta_bench.records.workflow_scores import CurvePoint, GroupScores, LeafScore, TaskScore

CATEGORIES = {"p": "perception", "o": "operation", "l": "logic", "c": "creativity"}
# Upstream's formula of F1, and 0 where strict has no value.
COMPAT_ONLY = {"ans_acc", "p_f1", "o_f1", "l_f1", "c_f1"}


def step_units(draw: random.Random, count: int) -> list[StrictStepCounts]:
    """Like the released tasks: 2 to 10 turns, most of them calls, at most one answer."""
    made = []
    for _ in range(count):
        calls = draw.randint(1, 9)
        tools = draw.randint(0, calls)
        made.append(
            StrictStepCounts(
                inst_hits=draw.randint(tools, calls + 1),
                inst_total=calls + 1,
                call_total=calls,
                tool_hits=tools,
                arg_hits=draw.randint(0, tools),
                arg_typed_sum=draw.random() * tools,
                answer_total=draw.randint(0, 1),
                answer_sum=draw.random(),
                tool_call=draw.randint(0, 12),
                tool_call_error=draw.randint(0, 3),
                malformed=draw.randint(0, 2),
                predicted=draw.random() < 0.9,
            )
        )
    return made


def end_units(draw: random.Random, count: int) -> list[StrictEndToEndCounts]:
    made = []
    for _ in range(count):
        answered = draw.random() < 0.75
        made.append(
            StrictEndToEndCounts(
                answer_total=int(answered),
                answer_sum=draw.random() if answered else 0.0,
                image_sum=0.0 if answered else draw.random(),
                answer_i_total=1,
                categories={
                    name: CategoryCounts(
                        gold=draw.randint(1, 3), predicted=draw.randint(0, 3), hits=1
                    )
                    for name in CATEGORIES.values()
                },
                tool_call=draw.randint(0, 12),
                tool_call_error=draw.randint(0, 3),
                malformed=draw.randint(0, 2),
                predicted=True,
            )
        )
    return made


def judged_units(draw: random.Random, count: int) -> list[TaskScore]:
    return [
        TaskScore(
            task=str(number),
            epoch=1,
            category=None,
            kinds=(),
            tool_categories=(),
            root=None if number % 7 == 3 else draw.choice([draw.random() * 10, 7.0]),
            compat=None,
            leaves=tuple(
                LeafScore(leaf=str(leaf), value=draw.choice([None, 7.0, draw.random() * 10]))
                for leaf in range(draw.randint(1, 9))
            ),
        )
        for number in range(count)
    ]


def share(units: Iterable[Record], above: Sequence[str], below: str) -> float | None:
    """All units together in exact arithmetic, in percent."""
    kept = list(units)
    part = sum(Fraction(getattr(unit, name)) for unit in kept for name in above)
    whole = sum(getattr(unit, below) for unit in kept)
    return float(100 * part / whole) if whole else None


def f1(units: Sequence[StrictEndToEndCounts], letter: str, *, epsilon: float) -> float:
    """As the harmonic mean of precision and recall."""
    own = [unit.categories[CATEGORIES[letter]] for unit in units]  # type: ignore[index]
    hits, gold = sum(one.hits for one in own), sum(one.gold for one in own)
    precision, recall = hits / (sum(one.predicted for one in own) + epsilon), hits / gold
    return 200 * precision * recall / (precision + recall + epsilon)


SHARES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "inst_acc": (("inst_hits",), "inst_total"),
    "tool_acc": (("tool_hits",), "call_total"),
    "arg_acc": (("arg_hits",), "call_total"),
    "arg_typed": (("arg_typed_sum",), "call_total"),
    "summ_acc": (("answer_sum",), "answer_total"),
    "ans_acc": (("answer_sum",), "answer_total"),
    "ans_acc_i": (("answer_sum", "image_sum"), "answer_i_total"),
}


@pytest.mark.parametrize("seed", range(5))
def test_atomic_scores_are_the_exact_shares_of_all_units(seed: int) -> None:
    draw = random.Random(seed)
    steps, ends = step_units(draw, 229), end_units(draw, 229)
    scores: dict[str, tuple[Record, Record, Sequence[Record]]] = {
        "step": (strict_steps.pool(steps), compat_steps.pool(steps), steps),
        "end-to-end": (strict_end_to_end.pool(ends), compat_end_to_end.pool(ends), ends),
    }
    seen = set()
    for mode, (strict, compat, units) in scores.items():
        for name, value in strict:
            if name in ("n", "n_tasks"):
                continue
            assert mode in table.metric(name).modes
            seen.add(name)
            if name in SHARES:
                expected = share(units, *SHARES[name])
            elif name.endswith("_f1"):
                expected = f1(ends, name[0], epsilon=0)
                upstream = f1(ends, name[0], epsilon=1e-5)
                assert getattr(compat, name) == pytest.approx(upstream, rel=1e-12)
            else:
                expected = sum(getattr(unit, name) for unit in units)
            assert value == pytest.approx(expected, rel=1e-12), name
            if name in type(compat).model_fields and name not in COMPAT_ONLY:
                assert getattr(compat, name) == value
    scored = {*table.STRICT_STEP, *table.STRICT_END_TO_END}
    assert seen == scored


@pytest.mark.parametrize("seed", range(5))
def test_workflow_scores_are_the_exact_shares_of_all_units(seed: int) -> None:
    tasks = judged_units(random.Random(seed), 132)
    roots = [Fraction(task.root) for task in tasks if task.root is not None]
    leaves = [leaf.value for task in tasks for leaf in task.leaves if leaf.value is not None]
    found = workflow.pool("all", tasks, leaf_threshold=7, root_threshold=7)
    assert found.root_score == pytest.approx(float(sum(roots) / len(roots)), rel=1e-12)
    assert found.root_sr == pytest.approx(100 * sum(root >= 7 for root in roots) / len(roots))
    assert found.leaf_sr == pytest.approx(100 * sum(leaf >= 7 for leaf in leaves) / len(leaves))
    assert (found.n, found.leaves) == (len(roots), len(leaves))
    group = workflow.GroupSum(leaf_threshold=7, root_threshold=7)
    for task in tasks:
        group.add(task)
    ends = workflow.THRESHOLDS
    counts = [workflow.count_judged(tasks, leaf_threshold=end, root_threshold=end) for end in ends]
    assert group.curve() == tuple(map(workflow.curve_point, ends, counts))


def test_nothing_to_measure_has_no_value() -> None:
    empty: tuple[Record, ...] = (
        strict_steps.pool([]),
        strict_end_to_end.pool([]),
        compat_steps.pool([]),
        compat_end_to_end.pool([]),
        workflow.pool("all", [], leaf_threshold=7, root_threshold=7),
    )
    for scores in empty:
        for name, value in scores:
            if name in {one.name for one in METRICS}:
                row = table.metric(name)
                assert value == (0 if row.scale == "count" else None), name


def test_tool_sr_counts_what_the_executor_finished() -> None:
    uses = [
        ToolUse(tool="OCR", done=3, error=1, unavailable=0, seconds=0, backends=()),
        ToolUse(tool="Plot", done=0, error=1, unavailable=3, seconds=0, backends=()),
    ]
    assert table.TOOL_SR.value(uses) == 37.5
    assert table.TOOL_SR.value([]) is None


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(model_calls=2, cost_usd=0.5), (0.5, 1)),
        (Usage(model_calls=2), (0.0, 0)),
        (Usage(), (0.0, 1)),
    ],
)
def test_a_unit_of_unknown_cost_has_none_and_one_without_calls_costs_nothing(
    usage: Usage, expected: tuple[float, float]
) -> None:
    assert table.COST.part(usage) == expected


def test_what_a_unit_took_is_read_from_its_usage() -> None:
    usage = Usage(model_calls=2, input_tokens=30, output_tokens=4, seconds=1.5, cost_usd=0.25)
    found = {name: row.value(usage) for name, row in table.TAKEN.items()}
    assert found == usage.model_dump(exclude={"retries"})
    assert table.TOKENS.value(usage) == 34


@pytest.mark.parametrize(
    ("mode", "name"), [("step", "arg_acc"), ("end-to-end", "ans_acc"), ("workflow", "root_sr")]
)
def test_every_mode_has_one_primary_metric(mode: RunMode, name: str) -> None:
    assert table.primary(mode).name == name
    assert [row.name for row in METRICS if row.primary and mode in row.modes] == [name]


def test_names_and_labels_are_unique() -> None:
    assert len({row.name for row in METRICS}) == len(METRICS)
    assert len({row.label for row in METRICS}) == len(METRICS)


def test_every_row_says_all_that_its_readers_need() -> None:
    for row in METRICS:
        assert row.meaning and row.modes, row.name
        assert set(row.released) | set(row.released_strict) <= set(get_args(Board)), row.name
        shown_with_formula = row.scale in ("percent", "points")
        assert bool(row.strict) == shown_with_formula, row.name
        assert (row.denominator is None) == (row.scale == "count"), row.name
        assert (row.interval is None) == (row.scale == "count"), row.name
        if row.is_count:
            assert row.released, f"{row.name} is a count, so its denominator is known"


def fields(record: type[Record], *others: str) -> set[str]:
    return set(record.model_fields) - set(others)


@pytest.mark.parametrize(
    ("record", "rows"),
    [
        (StepScores, table.STEP),
        (StrictStepScores, table.STRICT_STEP),
        (EndToEndScores, table.END_TO_END),
        (StrictEndToEndScores, table.STRICT_END_TO_END),
    ],
)
def test_score_files_have_a_field_for_every_metric(
    record: type[Record], rows: Mapping[str, Metric[Any]]
) -> None:
    assert fields(record, "n", "n_tasks") == set(rows)


def test_records_of_judged_scores_have_a_field_for_every_metric() -> None:
    assert fields(GroupScores, "name", "n", "n_units", "leaves", "n_leaves") == set(table.JUDGED)
    assert fields(Floor, "judge", "system", "n", "n_units") == set(table.JUDGED)
    assert fields(CurvePoint, "threshold") <= set(table.JUDGED)


def test_the_metrics_of_the_leaderboard_are_rows_of_the_table() -> None:
    """The records cannot import the table, so its names stand in `MetricName` once more."""
    modes: tuple[RunMode, ...] = get_args(RunMode)
    shares = [row.name for mode in modes for row in table.score_metrics(mode)]
    assert set(get_args(MetricName)) <= set(shares)
    left_out = {"arg_typed", "tool_call", "tool_call_error", "malformed"}
    assert set(shares) - set(get_args(MetricName)) == left_out


def test_compat_has_what_strict_has_but_for_what_only_strict_looks_at() -> None:
    pairs: tuple[tuple[Mapping[str, Metric[Any]], Mapping[str, Metric[Any]], set[str]], ...] = (
        (table.STRICT_STEP, table.STEP, {"arg_typed", "malformed"}),
        (table.STRICT_END_TO_END, table.END_TO_END, {"malformed"}),
    )
    for strict, compat, only in pairs:
        assert [name for name in strict if name not in only] == list(compat)
        for row in compat.values():
            assert bool(row.compat) == (row.scale == "percent"), row.name

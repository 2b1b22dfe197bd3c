"""The table of metrics: names, labels, formulas, directions, intervals.

Scorers, reports, comparisons, the leaderboard and docs/reference/metrics.md use it. To add a
metric, add a row here, and a field to its record of counts if it needs a new count.

Every numerator and denominator is a sum over units, so the same function works for the counts of a
unit and for the added counts of a run (`counts.add_counts`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Literal, TypeVar

from gta_bench.metrics.categories import CATEGORIES
from gta_bench.metrics.counts import JudgedCounts
from gta_bench.records.cost import read_cost
from gta_bench.records.leaderboard import Board
from gta_bench.records.run import RunMode
from gta_bench.records.scores import (
    Category,
    CategoryCounts,
    EndToEndCounts,
    StepCounts,
    StrictEndToEndCounts,
    StrictStepCounts,
    ToolUse,
)
from gta_bench.records.units import Usage

# `percent`: a share, 0 to 100. `points`: a mean of scores from 0 to 10. `count`: a number of
# things in a run. `amount`: a mean of a resource that a unit uses.
Scale = Literal["percent", "points", "count", "amount"]
# Which interval applies if results by task are unknown. `share`: a task passes or fails (Wilson).
# `clustered share`: a task has several yes-or-no parts (Wilson is too narrow). `mean`: a task has
# one value (Wilson is conservative if it is between 0 and 1). `ratio`: a task adds to both sums
# (no interval without results by task).
IntervalKind = Literal["share", "clustered share", "mean", "ratio"]

_Counts = TypeVar("_Counts", contravariant=True)


@dataclass(frozen=True, kw_only=True)
class Metric(Generic[_Counts]):
    """One metric: `numerator / denominator` on its scale; a `count` has no denominator.

    `strict` and `compat` are the formulas as text, for the docs; a scoring without a formula does
    not have the metric, or only counts. `upstream` computes the compat value if the published
    evaluator uses another formula on the same counts. `released` has the denominator on the
    released data by board, `released_strict` the one of strict scoring if it differs, and
    `compat_top` the maximum of compat scoring if it is not that of the scale. `by_similarity` says
    that the value depends on the model that compares free texts.

        >>> from gta_bench.metrics.counts import JudgedCounts
        >>> counts = JudgedCounts(roots=4, root_sum=26, roots_passed=3, leaves=9, leaves_passed=5)
        >>> ROOT_SR.label, ROOT_SR.value(counts), ROOT_SCORE.value(counts)
        ('Root SR', 75.0, 6.5)
    """

    name: str
    label: str
    meaning: str
    modes: tuple[RunMode, ...]
    numerator: Callable[[_Counts], float]
    denominator: Callable[[_Counts], float] | None
    strict: str = ""
    compat: str = ""
    scale: Scale = "percent"
    better: Literal["higher", "lower"] | None = "higher"
    interval: IntervalKind | None = None
    primary: bool = False
    short: str = ""
    upstream: Callable[[_Counts], float | None] | None = None
    released: Mapping[Board, int] = field(default_factory=dict)
    released_strict: Mapping[Board, int] = field(default_factory=dict)
    compat_top: float | None = None
    by_similarity: bool = False

    @property
    def heading(self) -> str:
        """The label for a narrow column."""
        return self.short or self.label

    @property
    def top(self) -> float:
        """The maximum of a share (1) or of a mean score (10)."""
        return 10.0 if self.scale == "points" else 1.0

    @property
    def factor(self) -> float:
        """The factor from the ratio to the value."""
        return 100.0 if self.scale == "percent" else 1.0

    @property
    def is_count(self) -> bool:
        """Whether the value is a proportion k/n of counted things."""
        return self.interval in ("share", "clustered share")

    def value(self, counts: _Counts) -> float | None:
        """Return the value with strict scoring; None if there is nothing to measure."""
        part = self.numerator(counts)
        if self.denominator is None:
            return part
        whole = self.denominator(counts)
        return part / whole * self.factor if whole else None

    def compat_value(self, counts: _Counts) -> float | None:
        """Return the value as upstream computes it from compat counts."""
        return self.value(counts) if self.upstream is None else self.upstream(counts)

    def part(self, counts: _Counts) -> tuple[float, float]:
        """Return numerator and denominator of a unit, the input of intervals and tests."""
        assert self.denominator is not None
        return self.numerator(counts), self.denominator(counts)


INST_ACC: Final[Metric[StepCounts]] = Metric(
    name="inst_acc",
    label="InstAcc",
    meaning="turns of the right kind",
    modes=("step",),
    numerator=lambda counts: counts.inst_hits,
    denominator=lambda counts: counts.inst_total,
    strict="turns whose kind is the reference's, failed and malformed ones being no hit, / T",
    compat="turns of the right kind without an error / 729, which leaves out 42 turns that the "
    "hits include: at most 105.62",
    interval="clustered share",
    released={"atomic": 729},
    released_strict={"atomic": 770},
    compat_top=100 * 770 / 729,
)
TOOL_ACC: Final[Metric[StepCounts]] = Metric(
    name="tool_acc",
    label="ToolAcc",
    meaning="calls of the right tool",
    modes=("step",),
    numerator=lambda counts: counts.tool_hits,
    denominator=lambda counts: counts.call_total,
    strict="calls of C that were made, did not fail, and name the right tool / C",
    compat="the same, failed ones included",
    interval="clustered share",
    released={"atomic": 557},
)
ARG_ACC: Final[Metric[StepCounts]] = Metric(
    name="arg_acc",
    label="ArgAcc",
    meaning="calls with the right arguments",
    modes=("step",),
    numerator=lambda counts: counts.arg_hits,
    denominator=lambda counts: counts.call_total,
    strict="calls counted by ToolAcc whose arguments equal the reference's as JSON, paths as the "
    "dataset writes them, / C",
    compat="equal as Python compares them, so that `1` is `True`",
    interval="clustered share",
    primary=True,
    released={"atomic": 557},
)
SUMM_ACC: Final[Metric[StepCounts]] = Metric(
    name="summ_acc",
    label="SummAcc",
    meaning="mean worth of answers, step by step",
    modes=("step",),
    numerator=lambda counts: counts.answer_sum,
    denominator=lambda counts: counts.answer_total,
    strict="Σ score(answer) / A",
    compat="Σ score(answer) / 172",
    interval="mean",
    released={"atomic": 172},
    by_similarity=True,
)
ARG_TYPED: Final[Metric[StrictStepCounts]] = Metric(
    name="arg_typed",
    label="typed",
    meaning="arguments compared by their types",
    modes=("step",),
    numerator=lambda counts: counts.arg_typed_sum,
    denominator=lambda counts: counts.call_total,
    strict="Σ over the calls counted by ToolAcc of the mean of all arguments' scores / C",
    interval="ratio",
    by_similarity=True,
)
ANS_ACC: Final[Metric[EndToEndCounts]] = Metric(
    name="ans_acc",
    label="AnsAcc",
    meaning="mean worth of final answers",
    modes=("end-to-end",),
    numerator=lambda counts: counts.answer_sum,
    denominator=lambda counts: counts.answer_total,
    strict="Σ score(last step) / tasks with an answer (172)",
    compat="the same, and a crash text or thought at the end may be right",
    interval="mean",
    primary=True,
    upstream=lambda counts: ANS_ACC.value(counts) or 0.0,
    released={"atomic": 172},
    by_similarity=True,
)
ANS_ACC_I: Final[Metric[EndToEndCounts]] = Metric(
    name="ans_acc_i",
    label="AnsAcc+I",
    meaning="the same with image tasks",
    modes=("end-to-end",),
    numerator=lambda counts: counts.answer_sum + counts.image_sum,
    denominator=lambda counts: counts.answer_i_total,
    strict="(Σ score + Σ image) / tasks with an answer or an image call",
    compat="(Σ score + Σ image) / all tasks",
    interval="mean",
    released={"atomic": 229},
    by_similarity=True,
)


# Upstream adds this to two denominators of F1, so a perfect prediction gets 99.9995.
UPSTREAM_EPSILON: Final = 1e-5


def _upstream_f1(counts: CategoryCounts) -> float:
    if not counts.gold:
        return 0.0
    precision = counts.hits / (counts.predicted + UPSTREAM_EPSILON)
    recall = counts.hits / counts.gold
    return 2 * precision * recall / (precision + recall + UPSTREAM_EPSILON) * 100


def _f1(category: Category, *, compat_top: float | None = None) -> Metric[EndToEndCounts]:
    letter = category[0]

    def count_both_sides(counts: EndToEndCounts) -> float:
        own = counts.categories[category]
        return own.gold + own.predicted

    return Metric(
        name=f"{letter}_f1",
        label=f"{letter.upper()}-F1",
        meaning=f"{category} tools, F1",
        modes=("end-to-end",),
        # Twice the hits among all calls of both sides is the harmonic mean of precision and recall.
        numerator=lambda counts: 2 * counts.categories[category].hits,
        denominator=count_both_sides,
        strict="2H / (N + G)",
        compat="2PR / (P + R + 10⁻⁵) with P = H\N{PRIME} / (N + 10⁻⁵), R = H\N{PRIME} / G",
        interval="ratio",
        upstream=lambda counts: _upstream_f1(counts.categories[category]),
        compat_top=compat_top,
    )


# With compat scoring, a system that calls every needed tool once gets more than 100.
F1S: Final = (
    _f1("perception", compat_top=104.6328),
    _f1("operation", compat_top=104.5747),
    _f1("logic", compat_top=104.9685),
    _f1("creativity"),
)
CALLS: Final[Metric[StepCounts | EndToEndCounts]] = Metric(
    name="tool_call",
    label="calls",
    meaning="calls that the system made",
    modes=("step", "end-to-end"),
    numerator=lambda counts: counts.tool_call,
    denominator=None,
    scale="count",
    better=None,
)
CALL_ERRORS: Final = replace(
    CALLS,
    name="tool_call_error",
    label="errors",
    meaning="calls that failed",
    numerator=lambda counts: counts.tool_call_error,
    better="lower",
)
MALFORMED: Final[Metric[StrictStepCounts | StrictEndToEndCounts]] = Metric(
    name="malformed",
    label="malformed",
    meaning="turns that are neither a call nor an answer",
    modes=("step", "end-to-end"),
    numerator=lambda counts: counts.malformed,
    denominator=None,
    scale="count",
    better="lower",
)
ROOT_SCORE: Final[Metric[JudgedCounts]] = Metric(
    name="root_score",
    label="Root score",
    short="Root",
    meaning="mean score of tasks, 0 to 10",
    modes=("workflow",),
    numerator=lambda counts: counts.root_sum,
    denominator=lambda counts: counts.roots,
    strict="mean over tasks of the value at the top",
    compat="the published parser and tree: a broken reply is 0 or the first number in it",
    scale="points",
    interval="mean",
)


ROOT_SR: Final[Metric[JudgedCounts]] = Metric(
    name="root_sr",
    label="Root SR",
    meaning="passed tasks",
    modes=("workflow",),
    numerator=lambda counts: counts.roots_passed,
    denominator=lambda counts: counts.roots,
    strict="tasks with root ≥ R / tasks with a root",
    interval="share",
    primary=True,
    released={"workflow": 132, "workflow-30": 30},
)
LEAF_SR: Final[Metric[JudgedCounts]] = Metric(
    name="leaf_sr",
    label="Leaf SR",
    meaning="passed leaves",
    modes=("workflow",),
    numerator=lambda counts: counts.leaves_passed,
    denominator=lambda counts: counts.leaves,
    strict="leaves with value ≥ L / leaves with a value",
    interval="clustered share",
    released={"workflow": 1156, "workflow-30": 276},
)
TOOL_SR: Final[Metric[Sequence[ToolUse]]] = Metric(
    name="tool_sr",
    label="Tool SR",
    meaning="successful tool calls",
    modes=("workflow",),
    numerator=lambda uses: sum(use.done for use in uses),
    denominator=lambda uses: sum(use.done + use.error + use.unavailable for use in uses),
    strict="calls that the executor finished / calls that reached it",
    interval="ratio",
)
# The numbers are the denominators on the released data, in the order of the categories.
CATEGORY_SRS: Final = tuple(
    replace(
        ROOT_SR,
        name=f"{category[0]}_sr",
        label=f"{category[0].upper()}-SR",
        meaning=f"passed tasks with {category} tools",
        strict="Root SR over the tasks in which the system called a tool of the category",
        primary=False,
        released={"workflow": tasks},
    )
    for category, tasks in zip(CATEGORIES, (38, 84, 122, 24), strict=True)
)


def _usage(name: str, label: str, meaning: str, amount: Callable[[Usage], float]) -> Metric[Usage]:
    return Metric(
        name=name,
        label=label,
        meaning=meaning,
        modes=("step", "end-to-end", "workflow"),
        numerator=amount,
        denominator=lambda _: 1,
        scale="amount",
        better="lower",
        interval="mean",
    )


SECONDS: Final = _usage("seconds", "seconds a task", "working time", lambda used: used.seconds)
TOKENS: Final = _usage(
    "tokens",
    "tokens a task",
    "tokens sent and received",
    lambda used: used.input_tokens + used.output_tokens,
)
COST: Final = replace(
    SECONDS,
    name="cost_usd",
    label="dollars a task",
    short="US$ a task",
    meaning="cost of model calls, if that of every unit is known",
    numerator=lambda used: read_cost(used).known or 0.0,
    # A unit of unknown cost has nothing to measure; one without model calls costs nothing.
    denominator=lambda used: 0 if read_cost(used).unknown else 1,
)

_Rows = TypeVar("_Rows")


def _by_name(*rows: Metric[_Rows]) -> Mapping[str, Metric[_Rows]]:
    return {row.name: row for row in rows}


# The rows by type of counts, in the order of the terminal report.
STEP: Final[Mapping[str, Metric[StepCounts]]] = _by_name(
    INST_ACC, TOOL_ACC, ARG_ACC, SUMM_ACC, CALLS, CALL_ERRORS
)
STRICT_STEP: Final[Mapping[str, Metric[StrictStepCounts]]] = _by_name(
    INST_ACC, TOOL_ACC, ARG_ACC, SUMM_ACC, ARG_TYPED, CALLS, CALL_ERRORS, MALFORMED
)
END_TO_END: Final[Mapping[str, Metric[EndToEndCounts]]] = _by_name(
    ANS_ACC, ANS_ACC_I, *F1S, CALLS, CALL_ERRORS
)
STRICT_END_TO_END: Final[Mapping[str, Metric[StrictEndToEndCounts]]] = _by_name(
    ANS_ACC, ANS_ACC_I, *F1S, CALLS, CALL_ERRORS, MALFORMED
)
JUDGED: Final[Mapping[str, Metric[JudgedCounts]]] = _by_name(ROOT_SCORE, ROOT_SR, LEAF_SR)
TAKEN: Final[Mapping[str, Metric[Usage]]] = _by_name(
    SECONDS,
    _usage("input_tokens", "input tokens a task", "tokens sent", lambda used: used.input_tokens),
    _usage(
        "output_tokens", "output tokens a task", "tokens received", lambda used: used.output_tokens
    ),
    _usage("model_calls", "model calls a task", "model calls", lambda used: used.model_calls),
    COST,
)
_ALL: Final[Mapping[str, Metric[Any]]] = {
    **STRICT_STEP,
    **STRICT_END_TO_END,
    **JUDGED,
    **_by_name(TOOL_SR),
    **_by_name(*CATEGORY_SRS),
    **TAKEN,
    **_by_name(TOKENS),
}
METRICS: Final[tuple[Metric[Any], ...]] = tuple(_ALL.values())


def strict_values(metrics: Mapping[str, Metric[_Rows]], counts: _Rows) -> dict[str, float | None]:
    """Return the value of each metric with strict scoring."""
    return {name: one.value(counts) for name, one in metrics.items()}


def compat_values(metrics: Mapping[str, Metric[_Rows]], counts: _Rows) -> dict[str, float | None]:
    """Return the value of each metric as upstream computes it."""
    return {name: one.compat_value(counts) for name, one in metrics.items()}


def metric(name: str) -> Metric[Any]:
    """Return the metric with this name."""
    return _ALL[name]


def label(name: str) -> str:
    """Return the label of the metric with this name."""
    return _ALL[name].label


def score_metrics(mode: RunMode) -> tuple[Metric[Any], ...]:
    """Return the metrics of a mode, in the order of the terminal report."""
    if mode == "step":
        return tuple(STRICT_STEP.values())
    if mode == "end-to-end":
        return tuple(STRICT_END_TO_END.values())
    return (*JUDGED.values(), TOOL_SR, *CATEGORY_SRS)


def primary(mode: RunMode) -> Metric[Any]:
    """Return the primary metric of a mode, by which leaderboards are sorted."""
    (found,) = (row for row in score_metrics(mode) if row.primary)
    return found

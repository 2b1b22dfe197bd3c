"""Scores of a run with their intervals: whatever belongs to one task is drawn together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.leaderboard import MetricName
from gta_bench.records.run import RunMode, WorkflowUnit
from gta_bench.records.scores import (
    Category,
    StrictEndToEndCounts,
    StrictStepCounts,
    UnitScore,
)
from gta_bench.records.statistics import Interval
from gta_bench.records.workflow_scores import TaskScore, WorkflowScores
from gta_bench.statistics.bootstrap import RESAMPLES, Ratio, clustered_ratio
from gta_bench.statistics.proportions import wilson

# Any fixed number: the same scores give the same page.
SEED: Final = 20261115
# Beyond 1,000 tasks fewer resamples do: their quantiles are near the normal's.
DRAWS: Final = 2_000_000
FEWEST: Final = 400
# The metric that a run of each kind is first judged by.
HEADLINES: Final[Mapping[RunMode, MetricName]] = {
    "step": "arg_acc",
    "end-to-end": "ans_acc",
    "workflow": "root_sr",
}


class Part(NamedTuple):
    """What one unit of a task adds to a pooled score: `value` of `whole`."""

    task: str
    value: float
    whole: float


class Estimate(NamedTuple):
    """A score on its own scale (percent, or 0 to 10 for the root score), with its interval."""

    metric: MetricName
    value: float
    low: float
    high: float
    n: int

    @property
    def text(self) -> str:
        """The score with two decimals."""
        return f"{self.value:.2f}"

    @property
    def span(self) -> str:
        """The interval in few digits."""
        digits = 2 if self.metric == "root_score" else 1
        return f"{self.low:.{digits}f} to {self.high:.{digits}f}"


def estimates(parts: Mapping[MetricName, Iterable[Part]]) -> dict[MetricName, Estimate]:
    """An estimate for every metric that something could be measured for."""
    found = {metric: _estimate(metric, list(own)) for metric, own in parts.items()}
    return {metric: one for metric, one in found.items() if one is not None}


def atomic_parts(units: Sequence[UnitScore]) -> dict[MetricName, list[Part]]:
    """The parts of every metric of an Atomic run, strict."""
    parts: dict[MetricName, list[Part]] = {}
    for unit in units:
        for metric, (value, whole) in _counted(unit.strict).items():
            parts.setdefault(metric, []).append(Part(unit.task, value, whole))
    return parts


def workflow_parts(
    tasks: Sequence[TaskScore], scores: WorkflowScores, units: Sequence[WorkflowUnit] = ()
) -> dict[MetricName, list[Part]]:
    """The parts of every metric of one judge's tasks; Tool SR is that of the units."""
    rooted = [(task.task, task.root) for task in tasks if task.root is not None]
    return {
        "root_sr": [Part(name, succeeds(root, scores.root_threshold), 1) for name, root in rooted],
        "root_score": [Part(name, root, 1) for name, root in rooted],
        "leaf_sr": [_leaves(task, scores.leaf_threshold) for task in tasks],
        "tool_sr": [
            Part(unit.task.id, sum(call.status == "done" for call in unit.calls), len(unit.calls))
            for unit in units
        ],
    }


def _leaves(task: TaskScore, threshold: float) -> Part:
    values = [leaf.value for leaf in task.leaves if leaf.value is not None]
    return Part(task.task, sum(succeeds(value, threshold) for value in values), len(values))


def _counted(
    counts: StrictStepCounts | StrictEndToEndCounts,
) -> dict[MetricName, tuple[float, float]]:
    if isinstance(counts, StrictStepCounts):
        return {
            "inst_acc": (counts.inst_hits, counts.inst_total),
            "tool_acc": (counts.tool_hits, counts.call_total),
            "arg_acc": (counts.arg_hits, counts.call_total),
            "summ_acc": (counts.answer_sum, counts.answer_total),
        }
    return {
        "ans_acc": (counts.answer_sum, counts.answer_total),
        "ans_acc_i": (counts.answer_sum + counts.image_sum, counts.answer_i_total),
        "p_f1": _f1(counts, "perception"),
        "o_f1": _f1(counts, "operation"),
        "l_f1": _f1(counts, "logic"),
        "c_f1": _f1(counts, "creativity"),
    }


def _f1(counts: StrictEndToEndCounts, category: Category) -> tuple[float, float]:
    own = counts.categories[category]
    return 2 * own.hits, own.gold + own.predicted


def _estimate(metric: MetricName, parts: Sequence[Part]) -> Estimate | None:
    top = 10.0 if metric == "root_score" else 1.0
    sums: dict[str, tuple[float, float]] = {}
    for task, value, whole in parts:
        if whole:
            before = sums.get(task, (0.0, 0.0))
            sums[task] = (before[0] + value, before[1] + whole)
    if not sums:
        return None
    # Sums of similarities may come out a hair above what they can be.
    values = [min(value, top * whole) for value, whole in sums.values()]
    wholes = [whole for _, whole in sums.values()]
    unit = 1 if top > 1 else 100
    found = _interval(values, wholes, top)
    return Estimate(metric, unit * found.estimate, unit * found.low, unit * found.high, found.n)


def _interval(values: Sequence[float], wholes: Sequence[float], top: float) -> Interval:
    """Wilson's where every task is passed or not, else the bootstrap over tasks."""
    if (
        all(whole == 1 for whole in wholes)
        and all(value in (0, 1) for value in values)
        and top == 1
    ):
        return wilson(sum(values), len(values))
    resamples = max(FEWEST, min(RESAMPLES, DRAWS // len(values)))
    return clustered_ratio(Ratio(values, wholes), seed=SEED, top=top, resamples=resamples)

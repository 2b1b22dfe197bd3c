"""The gap of a system between two sets of tasks, such as published and forged ones.

The sets have no task in common, so nothing is paired. The gap of a control, a system that cannot
know the published tasks, says how much of it the sets themselves explain.
"""

from collections.abc import Sequence
from itertools import pairwise

from gta_bench.decisions.comparison import list_measured
from gta_bench.errors import RunError, UsageError, format_count
from gta_bench.metrics.comparability import find_cautions, find_refusals
from gta_bench.records.comparison import ComparedRun, Gap, GapMetric
from gta_bench.records.statistics import Interval
from gta_bench.reports.estimates import Parts, sum_side
from gta_bench.reports.tables import Table
from gta_bench.statistics.pooled import Ratio, compute_interval
from gta_bench.statistics.proportions import subtract

HEADING = ("metric", "first", "95 %", "tasks", "second", "95 %", "tasks", "gap", "95 %")
# The dataset differs on purpose.
_EXPECTED = ("dataset", "tasks", "inputs or tools")
_LIMITS = (
    "A gap is not proof that the system knows the first tasks: they may be easier for it, or of "
    "other kinds. No gap is not proof of the opposite"
)


def find_gap(runs: Sequence[ComparedRun]) -> Gap:
    """Return the gap between the first two runs, and beyond that of two runs of a control."""
    if len(runs) not in (2, 4):
        raise UsageError(
            "A gap needs two runs of a system, FIRST SECOND, and may have two of a control after "
            "them, in the same order."
        )
    for one, two in pairwise(runs):
        if reasons := find_refusals(one, two, paired=False):
            raise RunError(f"{one.name} and {two.name} cannot be compared: {'; '.join(reasons)}.")
    one, two = runs[:2]
    common = {*one.manifest.spec.tasks} & {*two.manifest.spec.tasks}
    if common and one.manifest.dataset_digest == two.manifest.dataset_digest:
        raise UsageError(
            f"{one.name} and {two.name} have {format_count(len(common), 'task')} in common, so "
            "their scores are paired. Compare them without a gap."
        )
    gap = _find_gap(one, two)
    if len(runs) == 2:
        return gap
    for one, two in ((runs[0], runs[2]), (runs[1], runs[3])):
        if {*one.manifest.spec.tasks} != {*two.manifest.spec.tasks}:
            raise RunError(f"{one.name} and {two.name} must have the same tasks.")
    control = _find_gap(runs[2], runs[3])
    beyond = subtract(gap.metrics[0].gap, control.metrics[0].gap)
    return gap.model_copy(update={"control": control, "beyond": beyond})


def _find_gap(first: ComparedRun, second: ComparedRun) -> Gap:
    metrics = []
    for one in list_measured(first, second):
        sides = [
            _estimate(parts, run, one.top)
            for parts, run in ((one.first, first), (one.second, second))
        ]
        if sides[0] is None or sides[1] is None:
            continue
        left, right = (side.scaled(one.scale) for side in sides if side is not None)
        metrics.append(
            GapMetric(
                metric=one.name, role=one.role, first=left, second=right, gap=subtract(left, right)
            )
        )
    if not metrics or metrics[0].role != "primary":
        raise RunError(f"{first.name} and {second.name}: the main metric has no score in both.")
    cautions = [one for one in find_cautions(first, second) if not one.startswith(_EXPECTED)]
    runs = first.manifest, second.manifest
    if runs[0].spec.system != runs[1].spec.system:
        names = " and ".join(one.spec.describe() for one in runs)
        cautions.append(f"a gap is about one system, and these are two: {names}")
    cautions += [
        f"{run.name}: {run.scores.n} of {run.scores.n_units} units have a score"
        for run in (first, second)
        if run.scores.n < run.scores.n_units
    ]
    return Gap(
        first=first.name, second=second.name, metrics=tuple(metrics), cautions=tuple(cautions)
    )


def _estimate(parts: Parts, run: ComparedRun, top: float | None) -> Interval | None:
    spec = run.manifest.spec
    side = sum_side(parts, spec.tasks, epochs=spec.epochs)
    seen = side.seen > 0
    if not seen.any():
        return None
    # Sums of similarities may be slightly too high because of rounding.
    values = side.values[seen] if top is None else side.values[seen].clip(max=top * side.seen[seen])
    return compute_interval(Ratio(values, side.seen[seen]), top=top)


def state_gap(gap: Gap) -> str:
    """Say what the gap is, and what it cannot mean."""
    main = gap.metrics[0]
    said = (
        f"{main.metric} is {main.first.estimate:.1f} on {main.first.n} tasks of {gap.first} and "
        f"{main.second.estimate:.1f} on {main.second.n} tasks of {gap.second}: a gap of "
        f"{_show(main.gap)}."
    )
    if gap.control is None or gap.beyond is None:
        return f"{said} {_LIMITS}. Two runs of a control show what the tasks themselves explain."
    own = gap.control.metrics[0].gap
    said += f" The control has a gap of {_show(own)}; the difference is {_show(gap.beyond)}."
    if gap.beyond.low > 0:
        found = "The system gains more from the first tasks than the control"
    elif gap.beyond.high < 0:
        found = "The system gains less from the first tasks than the control"
    else:
        found = "The control explains the gap within what these tasks can show"
    return f"{said} {found}. {_LIMITS}: the two systems may differ in what they find hard."


def _show(one: Interval) -> str:
    return f"{one.estimate:+.1f} points (95 %: {one.low:+.1f} to {one.high:+.1f})"


def gap_table(gap: Gap) -> Table:
    """Return every metric on both sets."""
    rows = (
        (
            one.metric,
            *_cells(one.first),
            *_cells(one.second),
            f"{one.gap.estimate:+.2f}",
            f"{one.gap.low:+.2f} to {one.gap.high:+.2f}",
        )
        for one in gap.metrics
    )
    return Table(HEADING, tuple(rows))


def _cells(one: Interval) -> tuple[str, str, str]:
    return f"{one.estimate:.2f}", f"{one.low:.2f} to {one.high:.2f}", str(one.n)

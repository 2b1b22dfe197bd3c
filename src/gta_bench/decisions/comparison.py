"""Two runs compared task by task: differences with intervals, tests, and what each took."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gta_bench.decisions.flips import find_flips
from gta_bench.errors import RunError
from gta_bench.metrics import table
from gta_bench.metrics.comparability import (
    cautions,
    changed_tasks,
    common_judges,
    refusals,
    shared_tasks,
)
from gta_bench.metrics.table import Metric
from gta_bench.records.attempts import UnitKey
from gta_bench.records.comparison import (
    ComparedRun,
    Comparison,
    EvidenceDifference,
    MetricDifference,
    Role,
    ToolDifference,
)
from gta_bench.records.cost import Cost, paid_cost, recorded_cost, sum_costs
from gta_bench.records.run import RunMode
from gta_bench.records.scores import RunScores, UnitScore
from gta_bench.records.units import Usage
from gta_bench.records.workflow_scores import JudgeScores, WorkflowScores
from gta_bench.reports.estimates import judged_parts, judged_units
from gta_bench.reports.pairing import Paired, Part, Parts, pair_tasks
from gta_bench.reports.summary import is_foreign
from gta_bench.statistics.missing import envelope_of
from gta_bench.statistics.pooled import difference_of
from gta_bench.statistics.proportions import holm


class MeasuredPair(NamedTuple):
    """A metric of both runs, unit by unit; `top` is its highest value before scaling, if any."""

    name: str
    role: Role
    first: Parts
    second: Parts
    top: float | None = 1.0
    scale: float = 100.0


def compare(runs: Sequence[ComparedRun]) -> tuple[Comparison, ...]:
    """The first run against each other one; refused where they do not measure the same."""
    first, *others = runs
    for other in others:
        if reasons := refusals(first, other):
            raise RunError(
                f"{first.name} and {other.name} cannot be compared: {'; '.join(reasons)}."
            )
    compared = [_compare_shared(first, other) for other in others]
    corrected = correct([one.metrics for one in compared])
    return tuple(
        one.model_copy(update={"metrics": own})
        for one, own in zip(compared, corrected, strict=True)
    )


def pair_metrics(
    first: ComparedRun, second: ComparedRun
) -> tuple[list[MeasuredPair], list[Paired]]:
    """All metrics that are tested, each on the tasks that are the same in both runs."""
    shared = shared_tasks(first, second)
    return _pairs(_only(first, shared), _only(second, shared), sorted(shared, key=_natural))


def _pairs(
    first: ComparedRun, second: ComparedRun, both: Sequence[str]
) -> tuple[list[MeasuredPair], list[Paired]]:
    epochs = first.manifest.spec.epochs, second.manifest.spec.epochs
    scores = list(_measured(first, second))
    return scores, [pair_tasks(one.first, one.second, both, epochs=epochs) for one in scores]


def _compare_shared(first: ComparedRun, second: ComparedRun) -> Comparison:
    """The two on the tasks that are the same in both."""
    shared, changed = shared_tasks(first, second), changed_tasks(first, second)
    found = _compare(_only(first, shared), _only(second, shared), sorted(shared, key=_natural))
    return found.model_copy(
        update={
            "left_out": tuple(task for task in found.left_out if task not in changed),
            "changed": tuple(sorted(changed, key=_natural)),
        }
    )


def _compare(first: ComparedRun, second: ComparedRun, both: Sequence[str]) -> Comparison:
    epochs = first.manifest.spec.epochs, second.manifest.spec.epochs
    scores, pairs = _pairs(first, second, both)
    tasks = {both[place] for pair in pairs for place in pair.common}
    if not tasks:
        raise RunError(
            f"{first.name} and {second.name} cannot be compared: no task has a score in both."
        )
    decided = {both[place] for place in pairs[0].common} or tasks
    keys = _units_of(decided, first, second)
    took = list(_took(first, second, keys))
    everything = {*first.manifest.spec.tasks, *second.manifest.spec.tasks}
    return Comparison(
        first=first.name,
        second=second.name,
        tasks=len(tasks),
        left_out=tuple(task for task in sorted(everything, key=_natural) if task not in tasks),
        one_sided=tuple(
            sorted({*first.manifest.spec.tasks} ^ {*second.manifest.spec.tasks}, key=_natural)
        ),
        cautions=tuple(cautions(first, second)),
        metrics=differences(scores, pairs),
        took=differences(
            took, [pair_tasks(one.first, one.second, both, epochs=epochs) for one in took]
        ),
        per_dollar=(
            _per_dollar(first, scores[0].first, keys),
            _per_dollar(second, scores[0].second, keys),
        ),
        tools=_tools(first, second, tasks),
        evidence=tuple(_evidence(first, second)),
        flips=find_flips(first, second),
    )


def _only(run: ComparedRun, tasks: set[str]) -> ComparedRun:
    """The run with what it has of these tasks."""
    scores: RunScores | WorkflowScores
    if isinstance(run.scores, WorkflowScores):
        judges = [_only_of(table, tasks) for table in run.scores.judges]
        scores = run.scores.model_copy(update={"judges": tuple(judges)})
    else:
        units = tuple(one for one in run.scores.units if one.task in tasks)
        scores = run.scores.model_copy(update={"units": units})
    kept = {key: unit for key, unit in run.units.items() if key[0] in tasks}
    return run.model_copy(update={"scores": scores, "units": kept})


def _only_of(judge: JudgeScores, tasks: set[str]) -> JudgeScores:
    return judge.model_copy(
        update={"tasks": tuple(one for one in judge.tasks if one.task in tasks)}
    )


def _natural(task: str) -> tuple[int, str]:
    return len(task), task


def _units_of(tasks: set[str], first: ComparedRun, second: ComparedRun) -> set[UnitKey]:
    """Units of these tasks; where both runs were repeated alike, those that both have."""
    left, right = ({key for key in run.units if key[0] in tasks} for run in (first, second))
    alike = first.manifest.spec.epochs == second.manifest.spec.epochs
    return left & right if alike else left | right


def _measured(first: ComparedRun, second: ComparedRun) -> Iterator[MeasuredPair]:
    """The primary metric stands first; with several judges, that of each."""
    one, two = first.scores, second.scores
    if isinstance(one, WorkflowScores) and isinstance(two, WorkflowScores):
        judged = [
            found for name in common_judges(first, second) for found in _judged(one, two, name)
        ]
        yield from sorted(judged, key=lambda found: found.role != "primary")
        yield _row(table.TOOL_SR, "workflow", _tool_parts(first), _tool_parts(second))
        return
    assert not isinstance(one, WorkflowScores) and not isinstance(two, WorkflowScores)
    rows = [row for row in table.score_metrics(one.mode) if row.denominator is not None]
    for row in sorted(rows, key=lambda row: not row.primary):
        yield _row(row, one.mode, _counted(one.units, row), _counted(two.units, row))


def _row(
    row: Metric[Any], mode: RunMode, first: Parts, second: Parts, judge: str = ""
) -> MeasuredPair:
    name = f"{row.label}, {judge}" if judge else row.label
    role: Role = "primary" if row is table.primary(mode) else "secondary"
    return MeasuredPair(name, role, first, second, top=row.top, scale=row.factor)


def _counted(units: Iterable[UnitScore], row: Metric[Any]) -> Parts:
    return {(unit.task, unit.epoch): Part(*row.part(unit.strict)) for unit in units}


def _judged(one: WorkflowScores, two: WorkflowScores, name: str) -> Iterator[MeasuredPair]:
    """A judge's figures; both sides by the thresholds of the first."""
    tables = [scores.table(name) for scores in (one, two)]
    counts = [judged_units(own.tasks, one) for own in tables if own is not None]
    for row in table.JUDGED.values():
        left, right = (judged_parts(row, side) for side in counts)
        yield _row(row, "workflow", left, right, name)


def _tool_parts(run: ComparedRun) -> Parts:
    return {key: Part(*table.TOOL_SR.part(unit.tools)) for key, unit in run.units.items()}


def _took(first: ComparedRun, second: ComparedRun, keys: set[UnitKey]) -> Iterator[MeasuredPair]:
    """Means over the same units that the scores are made from; cost only where all is priced.

    What is zero in every unit of a run was not recorded, as with finished results.
    """
    for row in table.TAKEN.values():
        sides = [
            {
                key: Part(float(value), 1.0)
                for key, unit in run.units.items()
                if key in keys
                for value, whole in (row.part(unit.usage),)
                if whole and not (row is table.COST and _cost(run, unit.usage).unknown)
            }
            for run in (first, second)
        ]
        most = [max((part.value for part in side.values()), default=0.0) for side in sides]
        whole = [keys & run.units.keys() for run in (first, second)]
        if min(most) > 0 and [side.keys() for side in sides] == whole:
            yield MeasuredPair(row.label, "amount", sides[0], sides[1], top=None, scale=row.factor)


def differences(
    measured: Iterable[MeasuredPair], pairs: Iterable[Paired]
) -> tuple[MetricDifference, ...]:
    """A test of every metric that both runs have, not corrected yet."""
    found = (_difference(one, pair) for one, pair in zip(measured, pairs, strict=True))
    return tuple(one for one in found if one is not None)


def _difference(one: MeasuredPair, pair: Paired) -> MetricDifference | None:
    """None where no task has anything to measure in both runs, or one task all there is."""
    ratios = pair.ratios()
    if not all(np.sum(ratio.denominators) for ratio in ratios):
        return None
    if one.top is None and len(pair.common) < 2:
        return None
    found = difference_of(*ratios, top=one.top)
    envelope = None
    if one.top is not None and pair.lacking:
        envelope = envelope_of(pair.first.side, pair.second.side, found, top=one.top)
        envelope = envelope.scaled(one.scale)
    return MetricDifference(
        metric=one.name,
        role=one.role,
        first=ratios[0].value * one.scale,
        second=ratios[1].value * one.scale,
        difference=found.interval.scaled(one.scale),
        p_value=found.p_value,
        p_holm=None,
        effective=found.effective,
        detectable=found.detectable * one.scale,
        most=None if one.top is None else one.top * one.scale,
        envelope=envelope,
    )


def _per_dollar(run: ComparedRun, parts: Parts, keys: set[UnitKey]) -> float | None:
    used = (run.units[key].usage for key in keys if key in run.units)
    cost = sum_costs(_cost(run, one) for one in used).total
    return sum(parts[key].value for key in keys if key in parts) / cost if cost else None


def _cost(run: ComparedRun, usage: Usage) -> Cost:
    """What a unit cost; a foreign system that states nothing may have paid all the same."""
    foreign = is_foreign(run.manifest.spec.system)
    return paid_cost(usage.cost_usd) if foreign else recorded_cost(usage)


def _tools(first: ComparedRun, second: ComparedRun, tasks: set[str]) -> tuple[ToolDifference, ...]:
    counts = [_calls(run, tasks) for run in (first, second)]
    names = sorted(counts[0].keys() | counts[1].keys())
    found = [
        ToolDifference(
            tool=name,
            first_done=counts[0].get(name, (0, 0))[0],
            first_failed=counts[0].get(name, (0, 0))[1],
            second_done=counts[1].get(name, (0, 0))[0],
            second_failed=counts[1].get(name, (0, 0))[1],
        )
        for name in names
    ]
    return tuple(sorted(found, key=lambda one: -one.first_done - one.second_done))


def _calls(run: ComparedRun, tasks: set[str]) -> dict[str, tuple[int, int]]:
    counts: dict[str, tuple[int, int]] = {}
    for (task, _), unit in run.units.items():
        if task in tasks:
            for use in unit.tools:
                done, failed = counts.get(use.tool, (0, 0))
                counts[use.tool] = (done + use.done, failed + use.error + use.unavailable)
    return counts


def _evidence(first: ComparedRun, second: ComparedRun) -> Iterator[EvidenceDifference]:
    one, two = first.scores, second.scores
    if not isinstance(one, WorkflowScores) or not isinstance(two, WorkflowScores):
        return
    for judge in common_judges(first, second):
        # An empty digest is that of stored verdicts whose evidence nobody kept.
        shown = [
            {key: digest for key, unit in run.units.items() if (digest := unit.evidence.get(judge))}
            for run in (first, second)
        ]
        common = shown[0].keys() & shown[1].keys()
        same = {key for key in common if shown[0][key] == shown[1][key]}
        roots = [
            {(task.task, task.epoch): task.root for task in table.tasks}
            for scores in (one, two)
            if (table := scores.table(judge)) is not None
        ]
        yield EvidenceDifference(
            judge=judge,
            units=len(common),
            same=len(same),
            same_but_scored_otherwise=sum(roots[0].get(key) != roots[1].get(key) for key in same),
        )


def correct(
    tables: Sequence[Sequence[MetricDifference]],
) -> list[tuple[MetricDifference, ...]]:
    """Holm's correction over all pairs: primary metrics among themselves, then the secondary."""
    adjusted: dict[Role, Iterator[float]] = {}
    for role in ("primary", "secondary"):
        tests = [one for own in tables for one in own if one.role == role]
        adjusted[role] = iter(holm([_largest(one) for one in tests]))
    return [
        tuple(one.model_copy(update={"p_holm": next(adjusted[one.role])}) for one in own)
        for own in tables
    ]


def _largest(one: MetricDifference) -> float:
    return one.p_value if one.envelope is None else one.envelope.p_value

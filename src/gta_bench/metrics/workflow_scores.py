"""The scores of a whole Workflow run, one table for each judge."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gta_bench.metrics.categories import CATEGORIES, WORKFLOW_CATEGORY
from gta_bench.metrics.compat import workflow as compat
from gta_bench.metrics.counts import JudgedCounts, total
from gta_bench.metrics.failures import leaf_failures
from gta_bench.metrics.run_scores import (
    NOT_RUN,
    SCORING_VERSION,
    count_attempts,
    count_stops,
    tool_uses,
    total_usage,
)
from gta_bench.metrics.strict import workflow as strict
from gta_bench.metrics.table import ROOT_SCORE, TOOL_SR
from gta_bench.records.cost import recorded_cost, sum_costs
from gta_bench.records.scores import UnscoredUnit
from gta_bench.records.units import Usage, WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictRow
from gta_bench.records.workflow_scores import (
    CompatScore,
    GroupScores,
    JudgeScores,
    LeafScore,
    TaskScore,
    WorkflowScores,
)

NOT_JUDGED = "not judged yet"
NO_FILE = "no file"
# The kind of a unit that imported results lack.
NOT_DELIVERED = "not delivered"
NO_CATEGORY = "none"


class Thresholds(NamedTuple):
    """The scores from which a leaf and a task succeed."""

    leaf: float
    root: float


def score_workflow(
    units: Sequence[WorkflowUnit],
    rows: Iterable[VerdictRow],
    *,
    thresholds: Thresholds,
    not_run: Sequence[tuple[str, int]] = (),
    asked: Iterable[str] = (),
) -> WorkflowScores:
    """Score every unit by every judge that left a verdict; what failed or was not run has none.

    `asked` are judges who count without one: where nothing was delivered, they had nothing to see.
    """
    by_judge: dict[str, list[VerdictRow]] = {name: [] for name in asked}
    for row in rows:
        by_judge.setdefault(row.key.judge, []).append(row)
    tools = tool_uses([call for unit in units for call in unit.calls])
    return WorkflowScores(
        scoring_version=SCORING_VERSION,
        leaf_threshold=thresholds.leaf,
        root_threshold=thresholds.root,
        n=sum(unit.failure is None for unit in units),
        n_units=len(units) + len(not_run),
        tool_sr=TOOL_SR.value(tools),
        tools=tools,
        usage=total_usage([unit.usage for unit in units]),
        attempts=count_attempts(units),
        retried=sum((unit.attempts or 1) > 1 for unit in units),
        models=tuple(sorted({name for unit in units for name in unit.models})),
        stops=count_stops(units),
        judges=tuple(
            _judge_scores(judge, units, by_judge[judge], thresholds, missing=len(not_run))
            for judge in sorted(by_judge)
        ),
        unscored=(
            *(
                UnscoredUnit(task=unit.task.id, epoch=unit.epoch, cause=unit.failure)
                for unit in units
                if unit.failure is not None
            ),
            *(UnscoredUnit(task=task, epoch=epoch, cause=NOT_RUN) for task, epoch in not_run),
        ),
    )


def task_score(
    unit: WorkflowUnit, rows: Mapping[int, Mapping[str, VerdictRow]], *, repeats: int
) -> TaskScore:
    """One unit from a judge's rows, by repeat and leaf."""
    leaves = [_leaf_score(unit, leaf.id, rows, repeats) for leaf in unit.task.leaves()]
    known = {leaf.leaf: leaf.value for leaf in leaves if leaf.value is not None}
    return TaskScore(
        task=unit.task.id,
        epoch=unit.epoch,
        category=unit.task.category,
        kinds=deliverable_kinds(unit),
        tool_categories=tool_categories(unit),
        root=strict.root_score(unit.task.checkpoints, known),
        compat=_compat_root(unit, rows, repeats),
        leaves=tuple(leaves),
    )


def _judge_scores(
    judge: str,
    units: Sequence[WorkflowUnit],
    rows: Sequence[VerdictRow],
    thresholds: Thresholds,
    *,
    missing: int,
) -> JudgeScores:
    repeats = max((row.key.repeat for row in rows), default=1)
    placed: dict[tuple[str, int], dict[int, dict[str, VerdictRow]]] = {}
    for row in rows:
        unit_rows = placed.setdefault((row.key.task, row.key.epoch), {})
        unit_rows.setdefault(row.key.repeat, {})[row.key.leaf] = row
    tasks = [
        task_score(unit, placed.get((unit.task.id, unit.epoch), {}), repeats=repeats)
        for unit in units
    ]

    def pooled(name: str, chosen: Sequence[TaskScore], missing: int = 0) -> GroupScores:
        return strict.pool(
            name,
            chosen,
            leaf_threshold=thresholds.leaf,
            root_threshold=thresholds.root,
            missing=missing,
        )

    roots = [task.compat for task in tasks if task.compat is not None]
    upstream = JudgedCounts(roots=len(roots), root_sum=total(roots))
    return JudgeScores(
        judge=judge,
        repeats=repeats,
        strict=pooled("all", tasks, missing),
        compat=CompatScore(root_score=ROOT_SCORE.compat_value(upstream), n=upstream.roots),
        categories=tuple(
            pooled(name, [task for task in tasks if (task.category or NO_CATEGORY) == name])
            for name in sorted({task.category or NO_CATEGORY for task in tasks})
        ),
        kinds=tuple(
            pooled(name, [task for task in tasks if name in task.kinds])
            for name in sorted({kind for task in tasks for kind in task.kinds})
        ),
        tool_categories=tuple(
            pooled(name, [task for task in tasks if name in task.tool_categories])
            for name in _ordered(
                (*CATEGORIES, *(name for task in tasks for name in task.tool_categories))
            )
        ),
        curve=strict.threshold_curve(tasks),
        usage=_judge_usage(rows),
        tasks=tuple(tasks),
        causes=tuple(
            sorted({cause for task in tasks for leaf in task.leaves for cause in leaf.causes})
        ),
        failures=tuple(
            failure
            for unit, task in zip(units, tasks, strict=True)
            for failure in leaf_failures(unit, task.leaves, threshold=thresholds.leaf)
        ),
    )


def _leaf_score(
    unit: WorkflowUnit, leaf: str, rows: Mapping[int, Mapping[str, VerdictRow]], repeats: int
) -> LeafScore:
    """The mean over all repeats; one that is missing or has no score leaves the leaf without.

    What was not delivered fails, whatever a judge said of the empty place.
    """
    if unit.failure is not None:
        return LeafScore(leaf=leaf, value=None, causes=(unit.failure,))
    if not unit.delivered:
        return LeafScore(leaf=leaf, value=0.0)
    values: list[float] = []
    causes: list[str] = []
    for repeat in range(1, repeats + 1):
        row = rows.get(repeat, {}).get(leaf)
        verdict = None if row is None else row.verdict
        if isinstance(verdict, Scored):
            values.append(verdict.value)
        else:
            causes.append(NOT_JUDGED if verdict is None else verdict.cause)
    if causes:
        return LeafScore(leaf=leaf, value=None, causes=tuple(dict.fromkeys(causes)))
    return LeafScore(leaf=leaf, value=total(values) / repeats)


def _compat_root(
    unit: WorkflowUnit, rows: Mapping[int, Mapping[str, VerdictRow]], repeats: int
) -> float | None:
    """The root from what upstream reads in the replies; None where a reply was not kept at all.

    Upstream averages what was delivered.
    """
    if unit.failure is not None or not unit.delivered:
        return None
    root = compat.tree_root(unit.task.checkpoints)
    means = {}
    for leaf in root.leaves():
        found = [_compat_value(rows.get(one, {}).get(leaf.id)) for one in range(1, repeats + 1)]
        values = [value for value in found if value is not None]
        if len(values) < repeats:
            return None
        means[leaf.id] = total(values) / repeats
    return compat.node_score(root, means)


def _compat_value(row: VerdictRow | None) -> float | None:
    if row is None:
        return None
    if row.compat is not None:
        return row.compat
    return row.verdict.value if isinstance(row.verdict, Scored) else None


def deliverable_kinds(unit: WorkflowUnit) -> tuple[str, ...]:
    """The endings of the deliverables' names."""
    if not unit.delivered:
        return (NOT_DELIVERED,)
    endings = {_ending(file.path) for file in unit.deliverables}
    return tuple(sorted(endings)) or (NO_FILE,)


def _ending(path: str) -> str:
    name = path.rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    return ending.lower() if dot and stem else "no ending"


def tool_categories(unit: WorkflowUnit) -> tuple[str, ...]:
    """The categories of the tools that the system called, those of own tools last."""
    called = {WORKFLOW_CATEGORY.get(call.tool, call.category) for call in unit.calls}
    return tuple(_ordered(name for name in called if name is not None))


def _ordered(names: Iterable[str]) -> Iterator[str]:
    """The four categories in their order, then those of own tools."""
    found = {*names}
    yield from (name for name in CATEGORIES if name in found)
    yield from sorted(found - {*CATEGORIES})


def _judge_usage(rows: Sequence[VerdictRow]) -> Usage:
    return Usage(
        input_tokens=sum(row.input_tokens for row in rows),
        output_tokens=sum(row.output_tokens for row in rows),
        cost_usd=sum_costs(map(recorded_cost, rows)).total,
    )

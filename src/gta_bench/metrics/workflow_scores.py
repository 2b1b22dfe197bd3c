"""Scores of a Workflow run, one table for each judge."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from gta_bench.metrics.categories import CATEGORIES, WORKFLOW_CATEGORY
from gta_bench.metrics.checked import apply_checks
from gta_bench.metrics.compat import workflow as compat
from gta_bench.metrics.counts import JudgedCounts, total
from gta_bench.metrics.failures import leaf_failures
from gta_bench.metrics.run_scores import SharedFields
from gta_bench.metrics.strict import workflow as strict
from gta_bench.metrics.table import ROOT_SCORE, TOOL_SR
from gta_bench.records.checks import CHECK
from gta_bench.records.cost import read_cost, sum_costs
from gta_bench.records.units import Usage, WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictRow
from gta_bench.records.workflow_scores import (
    CompatScore,
    JudgeScores,
    LeafScore,
    TaskScore,
    WorkflowScores,
)

NOT_JUDGED = "not judged yet"
NO_FILE = "no file"
# The kind of a unit that is missing from imported results.
NOT_DELIVERED = "not delivered"
NO_CATEGORY = "none"


class Thresholds(NamedTuple):
    """The lowest scores with which a leaf and a task pass.

    >>> Thresholds(leaf=7, root=7).root
    7
    """

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
    """Score every unit with every judge that has a verdict.

    Units that failed or were not run are unscored. `asked` names judges that get a table even
    without verdicts, because a run that delivered nothing has nothing to judge. Verdicts of checks
    are part of every judge's table.
    """
    names = list(asked)
    by_judge: dict[str, list[VerdictRow]] = {name: [] for name in names}
    for row in apply_checks(units, rows, names):
        by_judge.setdefault(row.key.judge, []).append(row)
    fields = SharedFields()
    for unit in units:
        fields.add(unit)
    shared = fields.values(not_run)
    return WorkflowScores(
        **shared,
        leaf_threshold=thresholds.leaf,
        root_threshold=thresholds.root,
        n=sum(unit.failure is None for unit in units),
        tool_sr=TOOL_SR.value(shared["tools"]),
        judges=tuple(
            _judge_scores(judge, units, by_judge[judge], thresholds, missing=len(not_run))
            for judge in sorted(by_judge)
        ),
    )


def task_score(
    unit: WorkflowUnit, rows: Mapping[int, Mapping[str, VerdictRow]], *, repeats: int
) -> TaskScore:
    """Score one unit from the rows of a judge by repeat and leaf."""
    leaves = [_leaf_score(unit, leaf.id, rows, repeats) for leaf in unit.task.leaves()]
    known = {leaf.leaf: leaf.value for leaf in leaves if leaf.value is not None}
    return TaskScore(
        task=unit.task.id,
        epoch=unit.epoch,
        category=unit.task.category,
        kinds=find_deliverable_kinds(unit),
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
    pool = partial(strict.pool, leaf_threshold=thresholds.leaf, root_threshold=thresholds.root)
    roots = [task.compat for task in tasks if task.compat is not None]
    upstream = JudgedCounts(roots=len(roots), root_sum=total(roots))
    return JudgeScores(
        judge=judge,
        repeats=repeats,
        strict=pool("all", tasks, missing=missing),
        compat=CompatScore(root_score=ROOT_SCORE.compat_value(upstream), n=upstream.roots),
        categories=tuple(
            pool(name, [task for task in tasks if (task.category or NO_CATEGORY) == name])
            for name in sorted({task.category or NO_CATEGORY for task in tasks})
        ),
        kinds=tuple(
            pool(name, [task for task in tasks if name in task.kinds])
            for name in sorted({kind for task in tasks for kind in task.kinds})
        ),
        tool_categories=tuple(
            pool(name, [task for task in tasks if name in task.tool_categories])
            for name in _sort_categories(
                (*CATEGORIES, *(name for task in tasks for name in task.tool_categories))
            )
        ),
        curve=strict.threshold_curve(tasks),
        usage=Usage(
            input_tokens=sum(row.input_tokens for row in rows),
            output_tokens=sum(row.output_tokens for row in rows),
            cost_usd=sum_costs(map(read_cost, rows)).total,
        ),
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
    """Return the mean over all repeats; one unscored repeat leaves the leaf unscored.

    A leaf of a unit that was not delivered fails, whatever a judge said about it.
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
    first = rows.get(1, {}).get(leaf)
    by = CHECK if first is not None and first.model == CHECK else None
    if causes:
        return LeafScore(leaf=leaf, value=None, causes=tuple(dict.fromkeys(causes)), by=by)
    return LeafScore(leaf=leaf, value=total(values) / repeats, by=by)


def _compat_root(
    unit: WorkflowUnit, rows: Mapping[int, Mapping[str, VerdictRow]], repeats: int
) -> float | None:
    """Return the root score as upstream reads the replies; None if a reply was not stored.

    Upstream averages over delivered units only.
    """
    if unit.failure is not None or not unit.delivered:
        return None
    root = compat.tree_root(unit.task.checkpoints)
    means = {}
    for leaf in root.leaves():
        values = []
        for repeat in range(1, repeats + 1):
            row = rows.get(repeat, {}).get(leaf.id)
            if row is not None and row.compat is not None:
                values.append(row.compat)
            elif row is not None and isinstance(row.verdict, Scored):
                values.append(row.verdict.value)
            else:
                return None
        means[leaf.id] = total(values) / repeats
    return compat.node_score(root, means)


def find_deliverable_kinds(unit: WorkflowUnit) -> tuple[str, ...]:
    """Return the file extensions of the deliverables."""
    if not unit.delivered:
        return (NOT_DELIVERED,)
    endings = set()
    for file in unit.deliverables:
        stem, dot, ending = file.path.rpartition("/")[2].rpartition(".")
        endings.add(ending.lower() if dot and stem else "no ending")
    return tuple(sorted(endings)) or (NO_FILE,)


def tool_categories(unit: WorkflowUnit) -> tuple[str, ...]:
    """Return the categories of the called tools, with categories of custom tools last."""
    called = {WORKFLOW_CATEGORY.get(call.tool, call.category) for call in unit.calls}
    return _sort_categories(name for name in called if name is not None)


def _sort_categories(names: Iterable[str]) -> tuple[str, ...]:
    found = {*names}
    return (*(name for name in CATEGORIES if name in found), *sorted(found - {*CATEGORIES}))

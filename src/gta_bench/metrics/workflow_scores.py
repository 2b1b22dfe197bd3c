"""Scores of a Workflow run, one table for each judge."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from gta_bench.metrics.categories import CATEGORIES, WORKFLOW_CATEGORY
from gta_bench.metrics.checked import apply_checks
from gta_bench.metrics.compat import workflow as compat
from gta_bench.metrics.counts import JudgedCounts, total
from gta_bench.metrics.failures import leaf_failures
from gta_bench.metrics.panel import Panel, Pooling
from gta_bench.metrics.run_scores import SharedFields
from gta_bench.metrics.strict import workflow as strict
from gta_bench.metrics.table import ROOT_SCORE, TOOL_SR
from gta_bench.records.attempts import UnitKey
from gta_bench.records.checks import CHECK
from gta_bench.records.cost import CostSum, read_cost
from gta_bench.records.failures import Failure
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


# The rows of units by task and epoch; those of a long run are read when they are asked for.
UnitRows = Mapping[UnitKey, Sequence[VerdictRow]]
# Gets every unit with its score by a judge, and its failures.
TaskSink = Callable[[str, WorkflowUnit, TaskScore, Sequence[Failure]], None]


def score_workflow(
    units: Iterable[WorkflowUnit],
    rows: Iterable[VerdictRow],
    *,
    thresholds: Thresholds,
    not_run: Sequence[UnitKey] = (),
    asked: Iterable[str] = (),
) -> WorkflowScores:
    """Score every unit with every judge that has a verdict.

    Units that failed or were not run are unscored. `asked` names judges that get a table even
    without verdicts, because a run that delivered nothing has nothing to judge. Verdicts of checks
    are part of every judge's table.
    """
    placed = place_rows(rows)
    return score_units(units, placed, thresholds=thresholds, not_run=not_run, asked=asked)


def place_rows(rows: Iterable[VerdictRow]) -> UnitRows:
    """Return rows by unit, each in the given order."""
    placed: dict[UnitKey, list[VerdictRow]] = {}
    for row in rows:
        placed.setdefault((row.key.task, row.key.epoch), []).append(row)
    return placed


def score_units(
    units: Iterable[WorkflowUnit],
    rows: UnitRows,
    *,
    thresholds: Thresholds,
    not_run: Sequence[UnitKey] = (),
    asked: Iterable[str] = (),
    repeats: Mapping[str, int] | None = None,
    pooling: Pooling | None = None,
    sink: TaskSink | None = None,
) -> WorkflowScores:
    """Score units one by one; with `pooling`, by all judges together too.

    `repeats` has the judges of all rows with the number of their repeats, where that is known
    without reading all rows. `not_run` is read after the units. With a `sink`, tasks and failures
    go there one by one and are not listed.
    """
    fields, done = SharedFields(), 0
    panel = None if pooling is None else Panel(pooling)
    if repeats is None or panel is not None:
        repeats = _see(rows, panel)
    tables = _Tables(repeats, thresholds, asked, panel)
    left = {*rows}
    for unit in units:
        fields.add(unit)
        done += unit.failure is None
        key = (unit.task.id, unit.epoch)
        left.discard(key)
        for judge, task, failed in tables.add(unit, rows.get(key, ())):
            if sink is not None:
                sink(judge.judge, unit, task, failed)
            else:
                judge.tasks.append(task)
                judge.failures += failed
    for key in left:
        tables.add_usage(rows[key])
    shared = fields.values(not_run)
    return WorkflowScores(
        **shared,
        leaf_threshold=thresholds.leaf,
        root_threshold=thresholds.root,
        n=done,
        tool_sr=TOOL_SR.value(shared["tools"]),
        judges=tables.scores(missing=len(not_run)),
    )


def _see(rows: UnitRows, panel: Panel | None) -> dict[str, int]:
    """Return the judges of all rows with the number of their repeats, and let a panel see them."""
    repeats: dict[str, int] = {}
    for own in rows.values():
        judged = [row for row in own if row.key.judge != CHECK]
        for row in judged:
            repeats[row.key.judge] = max(repeats.get(row.key.judge, 1), row.key.repeat)
        if panel is not None:
            panel.see(judged)
    return repeats


class _Tables:
    """The tables of all judges of a run, unit by unit."""

    def __init__(
        self,
        given: Mapping[str, int],
        thresholds: Thresholds,
        asked: Iterable[str],
        panel: Panel | None,
    ) -> None:
        self._thresholds = thresholds
        self._asked = {*asked}
        self._panel = panel
        known = {judge: times for judge, times in given.items() if judge != CHECK}
        repeats = {**dict.fromkeys(self._asked, 1), **known}
        self._together = None if panel is None else panel.name
        self._combined = 0
        if self._together is not None:
            repeats[self._together] = 1
        # Without any judge, the checks have a table of their own.
        self._repeats = repeats or {CHECK: 1}
        self._judges = {
            name: _JudgeSum(name, repeats, thresholds)
            for name, repeats in sorted(self._repeats.items())
        }

    def add(
        self, unit: WorkflowUnit, rows: Sequence[VerdictRow]
    ) -> Iterator[tuple["_JudgeSum", TaskScore, Sequence[Failure]]]:
        """Score a unit by every judge."""
        own: dict[str, list[VerdictRow]] = {name: [] for name in self._judges}
        for row in apply_checks(unit, self._pooled(rows), self._repeats):
            own[row.key.judge].append(row)
        for name, judge in self._judges.items():
            judge.add_usage(own[name])
            task = judge.add(unit, own[name])
            failed = leaf_failures(unit, task.leaves, threshold=self._thresholds.leaf)
            yield judge, task, failed

    def add_usage(self, rows: Sequence[VerdictRow]) -> None:
        """Add what the verdicts on a unit took that is no longer in the run."""
        for row in self._pooled(rows):
            if row.key.judge != CHECK:
                self._judges[row.key.judge].add_usage([row])

    def scores(self, *, missing: int) -> tuple[JudgeScores, ...]:
        """Return the scores of the judges that were asked or have a verdict.

        The panel has one only if a leaf could be combined.
        """
        return tuple(
            judge.scores(missing=missing)
            for name, judge in self._judges.items()
            if name in self._asked or (judge.rows and (name != self._together or self._combined))
        )

    def _pooled(self, rows: Sequence[VerdictRow]) -> Sequence[VerdictRow]:
        if self._panel is None:
            return rows
        made = [*self._panel.combine(row for row in rows if row.key.judge != CHECK)]
        self._combined += len(made)
        return [*rows, *made]


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


class _JudgeSum:
    """One judge's scores, unit by unit; of a unit only its roots stay in memory.

    They do, in every group, because their sum is rounded once, at the end.
    """

    def __init__(self, judge: str, repeats: int, thresholds: Thresholds) -> None:
        self.judge = judge
        self.rows = 0
        self.tasks: list[TaskScore] = []
        self.failures: list[Failure] = []
        self._repeats = repeats
        self._group = partial(strict.GroupSum, thresholds.leaf, thresholds.root)
        self._all = self._group()
        self._groups: dict[str, dict[str, strict.GroupSum]] = {
            "categories": {},
            "kinds": {},
            "tool_categories": {name: self._group() for name in CATEGORIES},
        }
        self._compat = array("d")
        self._causes: set[str] = set()
        self._tokens = [0, 0]
        self._cost = CostSum()

    def add_usage(self, rows: Sequence[VerdictRow]) -> None:
        """Add what verdicts took."""
        self.rows += len(rows)
        for row in rows:
            self._tokens[0] += row.input_tokens
            self._tokens[1] += row.output_tokens
            self._cost.add(read_cost(row))

    def add(self, unit: WorkflowUnit, rows: Sequence[VerdictRow]) -> TaskScore:
        """Score a unit."""
        placed: dict[int, dict[str, VerdictRow]] = {}
        for row in rows:
            placed.setdefault(row.key.repeat, {})[row.key.leaf] = row
        task = task_score(unit, placed, repeats=self._repeats)
        self._all.add(task)
        for by, names in (
            ("categories", (task.category or NO_CATEGORY,)),
            ("kinds", task.kinds),
            ("tool_categories", task.tool_categories),
        ):
            for name in names:
                self._groups[by].setdefault(name, self._group()).add(task)
        if task.compat is not None:
            self._compat.append(task.compat)
        self._causes.update(cause for leaf in task.leaves for cause in leaf.causes)
        return task

    def scores(self, *, missing: int) -> JudgeScores:
        """Return the scores of all units; `missing` ones were not run."""
        upstream = JudgedCounts(roots=len(self._compat), root_sum=total(self._compat))
        called = self._groups["tool_categories"]
        return JudgeScores(
            judge=self.judge,
            repeats=self._repeats,
            strict=self._all.scores("all", missing=missing),
            compat=CompatScore(root_score=ROOT_SCORE.compat_value(upstream), n=upstream.roots),
            categories=_list_groups(self._groups["categories"]),
            kinds=_list_groups(self._groups["kinds"]),
            tool_categories=tuple(called[name].scores(name) for name in _sort_categories(called)),
            curve=self._all.curve(),
            usage=Usage(
                input_tokens=self._tokens[0],
                output_tokens=self._tokens[1],
                cost_usd=self._cost.sum().total,
            ),
            tasks=tuple(self.tasks),
            causes=tuple(sorted(self._causes)),
            failures=tuple(self.failures),
        )


def _list_groups(groups: Mapping[str, strict.GroupSum]) -> tuple[GroupScores, ...]:
    return tuple(group.scores(name) for name, group in sorted(groups.items()))


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

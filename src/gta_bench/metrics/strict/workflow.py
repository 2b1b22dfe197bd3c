"""Strict scores of GTA-Workflow: a leaf without a score leaves its task unscored, never zero."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from gta_bench.metrics.counts import JudgedCounts, running_sum, total
from gta_bench.metrics.table import JUDGED, LEAF_SR, ROOT_SR, strict_values
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.records.workflow_scores import CurvePoint, GroupScores, TaskScore

# Weighted means are not exact: 7, 7 and 7 weighted by tenths may be slightly below 7.
ROUNDING = 1e-9
BEST = 10.0
THRESHOLDS = tuple(float(threshold) for threshold in range(11))
_LEAST = tuple(threshold - ROUNDING for threshold in THRESHOLDS)


def leaf_shares(task: WorkflowTask) -> dict[str, float]:
    """Return the weight of each leaf as a share of the root."""
    found: dict[str, float] = {}

    def share(nodes: Sequence[Checkpoint], whole: float) -> None:
        total = sum(node.weight for node in nodes)
        for node in nodes:
            part = whole * node.weight / total if total else 0.0
            if node.children:
                share(node.children, part)
            else:
                found[node.id] = part

    share(task.checkpoints, 1.0)
    return found


def node_score(node: Checkpoint, leaves: Mapping[str, float]) -> float | None:
    """Return the weighted mean of the children; None if a leaf is unscored or no child weighs."""
    if not node.children:
        return leaves.get(node.id)
    scores = [node_score(child, leaves) for child in node.children]
    known = [score for score in scores if score is not None]
    weights = running_sum(child.weight for child in node.children)
    if len(known) < len(scores) or weights == 0:
        return None
    weighted = (child.weight * score for child, score in zip(node.children, known, strict=True))
    return running_sum(weighted) / weights


def root_score(checkpoints: Sequence[Checkpoint], leaves: Mapping[str, float]) -> float | None:
    """Return a task's root score, 0 to 10; None if a leaf is unscored or there is no leaf."""
    if not checkpoints:
        return None
    score = node_score(Checkpoint(id="root", children=tuple(checkpoints)), leaves)
    # With weights like 0.2, 0.7 and 0.1, a mean of tens is slightly above 10.
    return None if score is None else min(score, BEST)


def succeeds(score: float, threshold: float) -> bool:
    """Return whether the score of a leaf or root reaches the threshold."""
    return score >= threshold - ROUNDING


def count_judged(
    tasks: Iterable[TaskScore], *, leaf_threshold: float, root_threshold: float
) -> JudgedCounts:
    """Count the scores of one or more units, and those that reach the threshold."""
    units = list(tasks)
    roots = [task.root for task in units if task.root is not None]
    leaves = [leaf.value for task in units for leaf in task.leaves if leaf.value is not None]
    return JudgedCounts(
        roots=len(roots),
        root_sum=total(roots),
        roots_passed=sum(succeeds(root, root_threshold) for root in roots),
        leaves=len(leaves),
        leaves_passed=sum(succeeds(leaf, leaf_threshold) for leaf in leaves),
    )


def group_scores(name: str, counts: JudgedCounts, *, n_units: int, n_leaves: int) -> GroupScores:
    """Return the scores of a group of units from its counts."""
    return GroupScores.model_validate(
        {
            "name": name,
            **strict_values(JUDGED, counts),
            "n": counts.roots,
            "n_units": n_units,
            "leaves": counts.leaves,
            "n_leaves": n_leaves,
        }
    )


class GroupSum:
    """The scores of a group of units, added one by one; their roots stay in memory.

    All roots have equal weight, and so have all leaves. The order of units does not matter.
    """

    def __init__(self, leaf_threshold: float, root_threshold: float) -> None:
        self._ends = leaf_threshold, root_threshold
        self._units = self._leaves = self._n_leaves = 0
        self._roots = array("d")
        self._passed = 0
        # How many leaves reach no threshold of the curve, the first only, the first two, and so on.
        self._reached = [0] * (1 + len(THRESHOLDS))

    def add(self, task: TaskScore) -> None:
        """Add a unit."""
        self._units += 1
        self._n_leaves += len(task.leaves)
        if task.root is not None:
            self._roots.append(task.root)
        for leaf in task.leaves:
            if leaf.value is not None:
                self._leaves += 1
                self._passed += succeeds(leaf.value, self._ends[0])
                self._reached[bisect_right(_LEAST, leaf.value)] += 1

    def scores(self, name: str, *, missing: int = 0) -> GroupScores:
        """Return the scores; `missing` units belong to the group and were not run yet."""
        counts = self._counts(self._ends[1], self._passed)
        return group_scores(name, counts, n_units=self._units + missing, n_leaves=self._n_leaves)

    def curve(self) -> tuple[CurvePoint, ...]:
        """Return both success rates at each integer threshold from 0 to 10."""
        return tuple(
            curve_point(end, self._counts(end, sum(self._reached[place:])))
            for place, end in enumerate(THRESHOLDS, start=1)
        )

    def _counts(self, root_threshold: float, leaves_passed: int) -> JudgedCounts:
        return JudgedCounts(
            roots=len(self._roots),
            root_sum=total(self._roots),
            roots_passed=sum(succeeds(root, root_threshold) for root in self._roots),
            leaves=self._leaves,
            leaves_passed=leaves_passed,
        )


def pool(
    name: str, tasks: Iterable[TaskScore], *, leaf_threshold: float, root_threshold: float
) -> GroupScores:
    """Return the scores of a group of units."""
    group = GroupSum(leaf_threshold, root_threshold)
    for task in tasks:
        group.add(task)
    return group.scores(name)


def curve_point(threshold: float, counts: JudgedCounts) -> CurvePoint:
    """Return both success rates from the counts at a threshold."""
    return CurvePoint(
        threshold=threshold, leaf_sr=LEAF_SR.value(counts), root_sr=ROOT_SR.value(counts)
    )

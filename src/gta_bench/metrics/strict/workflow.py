"""Strict scores of GTA-Workflow: a leaf without a score leaves its task unscored, never zero."""

from collections.abc import Iterable, Mapping, Sequence

from gta_bench.metrics.counts import JudgedCounts, running_sum, total
from gta_bench.metrics.table import JUDGED, LEAF_SR, ROOT_SR, strict_values
from gta_bench.records.workflow import Checkpoint
from gta_bench.records.workflow_scores import CurvePoint, GroupScores, TaskScore

# Weighted means are not exact: 7, 7 and 7 weighted by tenths may be slightly below 7.
ROUNDING = 1e-9
BEST = 10.0
THRESHOLDS = tuple(float(threshold) for threshold in range(11))


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


def pool(
    name: str,
    tasks: Sequence[TaskScore],
    *,
    leaf_threshold: float,
    root_threshold: float,
    missing: int = 0,
) -> GroupScores:
    """Return the scores of a group of units; all roots have equal weight, and so have all leaves.

    `missing` units belong to the group and were not run yet.
    """
    counts = count_judged(tasks, leaf_threshold=leaf_threshold, root_threshold=root_threshold)
    n_leaves = sum(len(task.leaves) for task in tasks)
    return group_scores(name, counts, n_units=len(tasks) + missing, n_leaves=n_leaves)


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


def threshold_curve(tasks: Sequence[TaskScore]) -> tuple[CurvePoint, ...]:
    """Return both success rates at each integer threshold from 0 to 10."""
    return tuple(
        curve_point(
            threshold, count_judged(tasks, leaf_threshold=threshold, root_threshold=threshold)
        )
        for threshold in THRESHOLDS
    )


def curve_point(threshold: float, counts: JudgedCounts) -> CurvePoint:
    """Return both success rates from the counts at a threshold."""
    return CurvePoint(
        threshold=threshold, leaf_sr=LEAF_SR.value(counts), root_sr=ROOT_SR.value(counts)
    )

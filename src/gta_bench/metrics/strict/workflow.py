"""GTA-Workflow, strict: a leaf without a score leaves its task without one, never a zero."""

from collections.abc import Iterable, Mapping, Sequence

from gta_bench.metrics.counts import JudgedCounts, running_sum, total
from gta_bench.metrics.table import JUDGED, LEAF_SR, ROOT_SR, strict_values
from gta_bench.records.workflow import Checkpoint
from gta_bench.records.workflow_scores import CurvePoint, GroupScores, TaskScore

# Weighted means are not exact: 7, 7 and 7 weighted by tenths may come out a hair below 7.
ROUNDING = 1e-9
BEST = 10.0
THRESHOLDS = tuple(float(threshold) for threshold in range(11))


def node_score(node: Checkpoint, leaves: Mapping[str, float]) -> float | None:
    """The weighted mean of the children; None where a leaf has no score, or nothing weighs."""
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
    """The root score of a task, 0 to 10; None where a leaf has no score, or there is none."""
    if not checkpoints:
        return None
    score = node_score(Checkpoint(id="root", children=tuple(checkpoints)), leaves)
    # Weights like 0.2, 0.7 and 0.1 bring ten tens a hair above ten.
    return None if score is None else min(score, BEST)


def succeeds(score: float, threshold: float) -> bool:
    """Whether a leaf or a root reaches the threshold."""
    return score >= threshold - ROUNDING


def count_judged(
    tasks: Iterable[TaskScore], *, leaf_threshold: float, root_threshold: float
) -> JudgedCounts:
    """Count the scores that one or more units have, and those that reach the threshold."""
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
    """The scores of a set of units: roots weigh alike, and so do leaves.

    `missing` units belong to the set and were not run yet.
    """
    counts = count_judged(tasks, leaf_threshold=leaf_threshold, root_threshold=root_threshold)
    n_leaves = sum(len(task.leaves) for task in tasks)
    return group_scores(name, counts, n_units=len(tasks) + missing, n_leaves=n_leaves)


def group_scores(name: str, counts: JudgedCounts, *, n_units: int, n_leaves: int) -> GroupScores:
    """The scores of a set of units from what was counted in it."""
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
    """Both success rates at every whole threshold from 0 to 10."""
    return tuple(
        curve_point(
            threshold, count_judged(tasks, leaf_threshold=threshold, root_threshold=threshold)
        )
        for threshold in THRESHOLDS
    )


def curve_point(threshold: float, counts: JudgedCounts) -> CurvePoint:
    """Both success rates, from what was counted at the threshold."""
    return CurvePoint(
        threshold=threshold, leaf_sr=LEAF_SR.value(counts), root_sr=ROOT_SR.value(counts)
    )

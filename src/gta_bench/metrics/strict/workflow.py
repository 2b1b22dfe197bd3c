"""GTA-Workflow, strict: a leaf without a score leaves its task without one, never a zero."""

from collections.abc import Mapping, Sequence

from gta_bench.metrics.pooling import percent, running_sum, total
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
    roots, leaves = _roots(tasks), _leaves(tasks)
    return GroupScores(
        name=name,
        root_score=total(roots) / len(roots) if roots else None,
        root_sr=_rate(roots, root_threshold),
        leaf_sr=_rate(leaves, leaf_threshold),
        n=len(roots),
        n_units=len(tasks) + missing,
        leaves=len(leaves),
        n_leaves=sum(len(task.leaves) for task in tasks),
    )


def threshold_curve(tasks: Sequence[TaskScore]) -> tuple[CurvePoint, ...]:
    """Both success rates at every whole threshold from 0 to 10."""
    roots, leaves = _roots(tasks), _leaves(tasks)
    return tuple(
        CurvePoint(
            threshold=threshold, leaf_sr=_rate(leaves, threshold), root_sr=_rate(roots, threshold)
        )
        for threshold in THRESHOLDS
    )


def _rate(scores: Sequence[float], threshold: float) -> float | None:
    return percent(sum(succeeds(score, threshold) for score in scores), len(scores))


def _roots(tasks: Sequence[TaskScore]) -> list[float]:
    return [task.root for task in tasks if task.root is not None]


def _leaves(tasks: Sequence[TaskScore]) -> list[float]:
    return [leaf.value for task in tasks for leaf in task.leaves if leaf.value is not None]

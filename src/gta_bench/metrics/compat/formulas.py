"""Formulas of the published evaluator that are not a plain share of counts."""

from gta_bench.records.scores import CategoryCounts

# Upstream adds this to two denominators of F1, so that its best value is 99.9995.
EPSILON = 1e-5


def f1_percent(counts: CategoryCounts) -> float:
    """F1 of a category of tools; 0 without calls in the reference."""
    if not counts.gold:
        return 0.0
    precision = counts.hits / (counts.predicted + EPSILON)
    recall = counts.hits / counts.gold
    return 2 * precision * recall / (precision + recall + EPSILON) * 100

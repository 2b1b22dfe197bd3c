"""Combine the labels of people: settled scores, and disputed leaves that need adjudication."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from statistics import fmean
from typing import NamedTuple

from gta_bench.metrics.panel import LeafKey
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.labels import Labels
from gta_bench.records.units import WorkflowUnit

# Labels further apart than this need adjudication, even on the same side of the threshold.
MOST_APART = 2.0


class People(NamedTuple):
    """Settled scores of people, and the probability with which each leaf was drawn for labeling."""

    settled: Mapping[LeafKey, float] = {}
    chances: Mapping[LeafKey, float] = {}


def shuffle_units(units: Iterable[WorkflowUnit], *, seed: int) -> list[WorkflowUnit]:
    """Return the units in a random but reproducible order.

    People label from the start, so the units that they have finished are always a random sample.
    """
    return sorted(
        units, key=lambda unit: sha256(f"{seed} {unit.epoch} {unit.task.id}".encode()).digest()
    )


def group_labels(raters: Sequence[Labels]) -> dict[LeafKey, list[float]]:
    """Return the scores of each labeled leaf."""
    found: dict[LeafKey, list[float]] = {}
    for rater in raters:
        for label in rater.labels:
            found.setdefault(label.place, []).append(label.value)
    return found


def label_chances(raters: Sequence[Labels]) -> dict[LeafKey, float]:
    """Return the probability with which each leaf was drawn; 1 for all if one is unknown."""
    labels = [label for rater in raters for label in rater.labels]
    if any(label.chance is None for label in labels):
        return dict.fromkeys((label.place for label in labels), 1.0)
    found: dict[LeafKey, float] = {}
    for label in labels:
        found[label.place] = max(label.chance or 0.0, found.get(label.place, 0.0))
    return found


def is_disputed(scores: Sequence[float], threshold: float) -> bool:
    """Return whether people disagree on passing, or by more than two points."""
    sides = {succeeds(score, threshold) for score in scores}
    return len(sides) > 1 or max(scores) - min(scores) > MOST_APART


def find_disputed_leaves(raters: Sequence[Labels], threshold: float) -> list[LeafKey]:
    """Return the leaves that need adjudication, in the order of their first label."""
    labels = group_labels(raters)
    return [leaf for leaf, scores in labels.items() if is_disputed(scores, threshold)]


def settle_scores(
    raters: Sequence[Labels], adjudication: Labels | None, threshold: float
) -> dict[LeafKey, float]:
    """Return the adjudicated score, or else the mean; open disputed leaves are left out."""
    labels = group_labels(raters)
    found = {
        leaf: fmean(scores) for leaf, scores in labels.items() if not is_disputed(scores, threshold)
    }
    last = {} if adjudication is None else {one.place: one.value for one in adjudication.labels}
    return {**found, **last}


def combine_labels(
    raters: Sequence[Labels], adjudication: Labels | None, threshold: float
) -> People:
    """Return the settled scores with the probability of each leaf to be drawn."""
    return People(settle_scores(raters, adjudication, threshold), label_chances(raters))

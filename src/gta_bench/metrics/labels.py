"""What people agree on: a leaf's settled score, or that it needs somebody's last word."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from statistics import fmean
from typing import NamedTuple

from gta_bench.metrics.panel import LeafPlace
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.labels import Labels
from gta_bench.records.units import WorkflowUnit

# Labels further apart than this are settled by somebody, even on one side of the threshold.
MOST_APART = 2.0


class People(NamedTuple):
    """What people agree on, and with which probability each leaf was drawn for labelling."""

    settled: Mapping[LeafPlace, float] = {}
    chances: Mapping[LeafPlace, float] = {}


def label_order(units: Iterable[WorkflowUnit], *, seed: int) -> list[WorkflowUnit]:
    """The units as if shuffled, the same way every time.

    People label from the front, so whatever they have finished is a random choice of units.
    """
    return sorted(
        units, key=lambda unit: sha256(f"{seed} {unit.epoch} {unit.task.id}".encode()).digest()
    )


def given_labels(raters: Sequence[Labels]) -> dict[LeafPlace, list[float]]:
    """Every labelled leaf with the scores that it was given."""
    found: dict[LeafPlace, list[float]] = {}
    for rater in raters:
        for label in rater.labels:
            found.setdefault(label.place, []).append(label.value)
    return found


def label_chances(raters: Sequence[Labels]) -> dict[LeafPlace, float]:
    """With which probability each labelled leaf was drawn; alike where one of them is not known."""
    labels = [label for rater in raters for label in rater.labels]
    if any(label.chance is None for label in labels):
        return dict.fromkeys((label.place for label in labels), 1.0)
    found: dict[LeafPlace, float] = {}
    for label in labels:
        found[label.place] = max(label.chance or 0.0, found.get(label.place, 0.0))
    return found


def is_disputed(scores: Sequence[float], threshold: float) -> bool:
    """Whether people disagree on passing, or by more than two points."""
    sides = {succeeds(score, threshold) for score in scores}
    return len(sides) > 1 or max(scores) - min(scores) > MOST_APART


def disputed_leaves(raters: Sequence[Labels], threshold: float) -> list[LeafPlace]:
    """The leaves that need a last word, in the order in which they were first labelled."""
    labels = given_labels(raters)
    return [place for place, scores in labels.items() if is_disputed(scores, threshold)]


def settled_scores(
    raters: Sequence[Labels], adjudication: Labels | None, threshold: float
) -> dict[LeafPlace, float]:
    """The last word where it was said, else the mean; disputed leaves without one are left out."""
    labels = given_labels(raters)
    found = {
        place: fmean(scores)
        for place, scores in labels.items()
        if not is_disputed(scores, threshold)
    }
    last = {} if adjudication is None else {one.place: one.value for one in adjudication.labels}
    return {**found, **last}


def agreed_labels(
    raters: Sequence[Labels], adjudication: Labels | None, threshold: float
) -> People:
    """Settled scores, and how likely it was that people were asked for them."""
    return People(settled_scores(raters, adjudication, threshold), label_chances(raters))

"""A judge against people: where it is right, where it leans, and what its rates are worth."""

from gta_bench.records.base import Record
from gta_bench.records.statistics import Interval


class Bias(Record):
    """In a group of leaves, by how many points the judge is above people, and how often right."""

    by: str
    name: str
    leaves: int
    bias: Interval
    accuracy: Interval


class CorrectedScore(Record):
    """A score, or a difference of two, as the judge gives it and as people would on all tasks."""

    name: str
    raw: float
    corrected: Interval


class Calibration(Record):
    """One judge on the leaves that people agree on; shares are 0 to 1.

    `kappa` is Cohen's and `ac1` Gwet's for passed or not, `score_kappa` Cohen's of the scores with
    quadratic weights;
    `precision`, `recall` and `f1` take a leaf that people pass for what is to be found.
    """

    judge: str
    leaves: int
    tasks: int
    accuracy: Interval
    kappa: Interval | None
    ac1: Interval | None
    score_kappa: Interval | None
    precision: float | None
    recall: float | None
    f1: Interval | None
    bias: Interval
    groups: tuple[Bias, ...]
    scores: tuple[CorrectedScore, ...] = ()

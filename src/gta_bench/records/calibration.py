"""A judge against people: where it is right, where it leans, and what its rates are worth."""

from gta_bench.records.base import Record
from gta_bench.records.statistics import Interval


class Bias(Record):
    """In a group of leaves, by how many points the judge is above people, and how often right."""

    by: str
    name: str
    leaves: int
    bias: float
    accuracy: float


class CorrectedScore(Record):
    """A score, or a difference of two, as the judge gives it and as people would on all tasks."""

    name: str
    raw: float
    corrected: Interval


class Calibration(Record):
    """One judge on the leaves that people agree on; shares are 0 to 1.

    `kappa` is Cohen's for passed or not, `score_kappa` that of the scores with quadratic weights;
    `precision`, `recall` and `f1` take a leaf that people pass for what is to be found.
    """

    judge: str
    leaves: int
    tasks: int
    accuracy: Interval
    kappa: float | None
    score_kappa: float | None
    precision: float | None
    recall: float | None
    f1: float | None
    bias: Interval
    groups: tuple[Bias, ...]
    scores: tuple[CorrectedScore, ...] = ()

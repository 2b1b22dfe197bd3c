"""How far verdicts on the same leaves agree: between repeats, judges, and judges and people."""

from gta_bench.records.base import Record
from gta_bench.records.statistics import Interval


class Agreement(Record):
    """Of the leaves that have two or more scores; None where nothing varies or nothing is paired.

    Intervals are over tasks. `alpha` is Krippendorff's for the scores, `pass_alpha` and `ac1`
    (Gwet's) are for passed or not. `icc` is the absolute agreement of single scores (two-way
    random), over leaves that all have scored; `kappa` the mean over pairs of Cohen's with quadratic
    weights. `spread` is the standard deviation within a leaf, `flip_rate` the chance that two
    scores of a leaf fall on different sides of the threshold.
    """

    raters: int
    leaves: int
    alpha: Interval | None = None
    pass_alpha: Interval | None = None
    ac1: Interval | None = None
    icc: Interval | None = None
    kappa: Interval | None = None
    spread: float | None = None
    flip_rate: Interval | None = None


class JudgeAgreement(Record):
    """One judge's repeats, two judges (by their mean scores), or all judges of a run.

    `verdicts` and `cost_usd` are what one judge was asked; None for several.
    """

    name: str
    agreement: Agreement
    verdicts: int | None = None
    cost_usd: float | None = None


class LeafSpread(Record):
    """A leaf whose scores fall on both sides of the threshold, judge by judge."""

    task: str
    epoch: int
    leaf: str
    scores: tuple[tuple[str, tuple[float, ...]], ...]
    low: float
    high: float
    spread: float


class PanelReport(Record):
    """The agreement of a run's judges, and the leaves that they are not sure of, worst first."""

    threshold: float
    rows: tuple[JudgeAgreement, ...] = ()
    unstable: tuple[LeafSpread, ...] = ()
    leaves: int = 0


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

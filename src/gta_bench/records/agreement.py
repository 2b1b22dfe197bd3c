"""How far verdicts on the same leaves agree: between repeats, judges, and judges and people."""

from gta_bench.records.base import Record
from gta_bench.records.statistics import Interval


class Agreement(Record):
    """Agreement on leaves with two or more scores; None if nothing varies or nothing is paired.

    Intervals are over tasks. `alpha` is Krippendorff's alpha of the scores; `pass_alpha` and `ac1`
    (Gwet's) are for pass or fail. `icc` is the absolute agreement of single scores (two-way
    random), over leaves that all raters scored; `kappa` is the mean over pairs of Cohen's kappa
    with quadratic weights. `spread` is the standard deviation within a leaf, `flip_rate` the
    probability that two scores of a leaf are on different sides of the threshold.
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
    """The agreement of one judge's repeats, of two judges (mean scores), or of all judges of a run.

    `verdicts` and `cost_usd` belong to one judge; None for several.
    """

    name: str
    agreement: Agreement
    verdicts: int | None = None
    cost_usd: float | None = None


class LeafSpread(Record):
    """A leaf whose scores are on both sides of the threshold, by judge."""

    task: str
    epoch: int
    leaf: str
    scores: tuple[tuple[str, tuple[float, ...]], ...]
    low: float
    high: float
    spread: float


class PanelReport(Record):
    """The agreement of a run's judges, and the leaves they disagree on, worst first.

    `unstable_leaves` counts these leaves, of which `unstable` has at most 1000.
    """

    threshold: float
    rows: tuple[JudgeAgreement, ...] = ()
    unstable: tuple[LeafSpread, ...] = ()
    unstable_leaves: int = 0
    leaves: int = 0


class Bias(Record):
    """In a group of leaves, how many points the judge scores above people, and its accuracy."""

    by: str
    name: str
    leaves: int
    bias: Interval
    accuracy: Interval


class CorrectedScore(Record):
    """A score, or a difference of two, by the judge and corrected to what people would give."""

    name: str
    raw: float
    corrected: Interval


class Calibration(Record):
    """One judge compared with people, on the leaves that people agree on; rates are 0 to 1.

    `kappa` (Cohen's) and `ac1` (Gwet's) are for pass or fail, `score_kappa` is Cohen's kappa of
    the scores with quadratic weights. For `precision`, `recall` and `f1`, a leaf that people pass
    is a positive.
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

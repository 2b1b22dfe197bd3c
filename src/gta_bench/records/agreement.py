"""How far several verdicts on the same leaves agree: repeats of a judge, judges, or people."""

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

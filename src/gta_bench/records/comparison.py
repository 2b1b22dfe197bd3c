"""Comparisons of two runs on the same tasks: scores, cost, and whether differences are real."""

from collections.abc import Mapping
from typing import Final, Literal

from gta_bench.errors import format_count
from gta_bench.records.base import Record
from gta_bench.records.digests import TaskDigests
from gta_bench.records.run import RunManifest
from gta_bench.records.scores import RunScores, ToolUse
from gta_bench.records.statistics import Envelope, Interval
from gta_bench.records.units import Usage
from gta_bench.records.views import Displayed, FrameRow, Tabular
from gta_bench.records.workflow_scores import WorkflowScores

Role = Literal["primary", "secondary", "amount"]
# The significance level of the tests.
ALPHA: Final = 0.05


class UnitFacts(Record):
    """The usage, tool calls and evidence digests (by judge) of one unit.

    `digests` identify what was asked and how it is scored.
    """

    usage: Usage
    tools: tuple[ToolUse, ...] = ()
    evidence: Mapping[str, str] = {}
    digests: TaskDigests | None = None


class ComparedRun(Displayed, Record):
    """A run with everything that a comparison uses; units by task and epoch.

    `judge_prompts` are the digests of the prompts that each judge got.
    """

    name: str
    manifest: RunManifest
    scores: RunScores | WorkflowScores
    units: Mapping[tuple[str, int], UnitFacts]
    judge_prompts: Mapping[str, tuple[str, ...]] = {}

    def describe(self) -> str:
        """Its name and what was run."""
        return f"{self.name}: {self.manifest.describe()}"


class MetricDifference(Record):
    """One metric of two runs, on the tasks where both have it: the first minus the second.

    The `primary` metric decides whether the runs differ; others are secondary, and amounts such as
    cost (`amount`) are not tested. `p_value` is for this test alone. `p_holm` is the largest that
    missing tasks allow (`envelope`), corrected for all tests of the same role; None for an amount.
    `effective` is the equivalent number of tasks with equal weight, `detectable` the smallest
    difference that they detect with 80 % power, and `most` the largest possible difference.
    """

    metric: str
    role: Role
    first: float
    second: float
    difference: Interval
    p_value: float
    p_holm: float | None
    effective: float
    detectable: float
    most: float | None = None
    envelope: Envelope | None = None

    @property
    def apart(self) -> bool:
        """Whether the difference is significant."""
        return self.p_holm is not None and self.p_holm < ALPHA


class ToolDifference(Record):
    """Successful and failed calls of one tool in both runs."""

    tool: str
    first_done: int
    first_failed: int
    second_done: int
    second_failed: int


class Flip(Record):
    """A task, or a leaf of a task, on which the two runs have different values.

    `leaf` and `judge` are None for GTA-Atomic; `leaf` is None for a whole task of GTA-Workflow.
    Both values are on the scale of `metric`; higher is better.
    """

    task: str
    leaf: str | None = None
    judge: str | None = None
    metric: str
    first: float
    second: float

    @property
    def worse(self) -> bool:
        """Whether the second run is worse."""
        return self.second < self.first


class EvidenceDifference(Record):
    """Units with the same evidence for a judge in both runs, and how many got different scores.

    For those, the difference comes from the judge.
    """

    judge: str
    units: int
    same: int
    same_but_scored_otherwise: int


class SelfTest(Record):
    """How often a comparison finds differences between systems that are equal, or known to differ.

    In every round the two systems are swapped in about half of the tasks, so that neither is
    better. `alarms` is the share of rounds with a significant difference in the primary metric (of
    every judge), `secondary_alarms` in any other. Then the first system is improved by `planted`
    (points of the primary metric): `covered` is the share of rounds whose interval contains that,
    `found` the share with a significant difference.
    """

    metric: str
    tasks: int
    rounds: int
    alarms: float
    secondary_alarms: float
    planted: float
    covered: float
    found: float


class SharedTasks(Record):
    """How much two runs on different versions of a dataset share.

    `same` of the `common` tasks ask and score the same in both. The others need the newer
    version's weights or checks (`rescore`, without a model call), its judged leaves (`judge`), or
    another run (`run`). `leaves` of `n_leaves` leaves are the same in tasks that ask the same.
    """

    same: int
    common: int
    leaves: int
    n_leaves: int
    rescore: tuple[str, ...] = ()
    judge: tuple[str, ...] = ()
    run: tuple[str, ...] = ()


class Comparison(Tabular, Record):
    """Two runs side by side; `left_out` are tasks that only one of them has, or has scores for.

    `one_sided` are those that only one run was given. `changed` are tasks of both runs that ask or
    score something else in the other's dataset; they are left out too, and `shared` says what they
    need (None if both runs have the same dataset). `flips` are the tasks and
    leaves that changed, worst first. `per_dollar` is the sum of the primary metric divided by the
    cost: solved tasks, or points, per dollar.
    """

    first: str
    second: str
    tasks: int
    left_out: tuple[str, ...]
    one_sided: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    shared: SharedTasks | None = None
    cautions: tuple[str, ...]
    metrics: tuple[MetricDifference, ...]
    took: tuple[MetricDifference, ...]
    per_dollar: tuple[float | None, float | None]
    tools: tuple[ToolDifference, ...]
    evidence: tuple[EvidenceDifference, ...] = ()
    flips: tuple[Flip, ...] = ()
    self_test: SelfTest | None = None

    @property
    def primary(self) -> MetricDifference | None:
        """The metric that decides whether the runs differ; None if the runs do not share it."""
        return next(iter(self.primaries), None)

    @property
    def primaries(self) -> tuple[MetricDifference, ...]:
        """The primary metric of every judge; all of them must agree."""
        return tuple(one for one in self.metrics if one.role == "primary")

    def describe(self) -> str:
        """Both runs, and the metric of every judge that decides."""
        parts = [
            f"{one.metric} {one.first:.2f} against {one.second:.2f}, difference "
            f"{one.difference.estimate:+.2f} ({one.difference.low:+.2f} to "
            f"{one.difference.high:+.2f}), {'told apart' if one.apart else 'not told apart'}"
            for one in self.primaries
        ]
        tasks = format_count(self.tasks, "task")
        found = "; ".join(parts) or "no common score"
        return f"{self.first} with {self.second} on {tasks}: {found}"

    def rows(self) -> list[FrameRow]:
        """A row for each metric and each kind of usage."""
        return [
            {
                "first_run": self.first,
                "second_run": self.second,
                "metric": one.metric,
                "role": one.role,
                "first": one.first,
                "second": one.second,
                "difference": one.difference.estimate,
                "low": one.difference.low,
                "high": one.difference.high,
                "p_value": one.p_value,
                "p_holm": one.p_holm,
                "tasks": one.difference.n,
                "effective": one.effective,
                "detectable": one.detectable,
            }
            for one in (*self.metrics, *self.took)
        ]


class Comparisons(Tabular, list[Comparison]):
    """The comparisons of one run with others."""

    def describe(self) -> str:
        """Every comparison in a line of its own."""
        return "".join(f"\n {one.describe()}" for one in self).lstrip()

    def rows(self) -> list[FrameRow]:
        """A row for each comparison and metric."""
        return [row for one in self for row in one.rows()]


class GapMetric(Record):
    """One metric of a system on two sets of tasks, each with its interval, and their difference."""

    metric: str
    role: Role
    first: Interval
    second: Interval
    gap: Interval


class Gap(Record):
    """What a system gains on the first set of tasks over the second, which are not paired.

    `control` is the gap of another system on the same two sets, and `beyond` the difference of both
    gaps in the primary metric. `cautions` are differences between the two runs of the system.
    """

    first: str
    second: str
    metrics: tuple[GapMetric, ...]
    cautions: tuple[str, ...] = ()
    control: "Gap | None" = None
    beyond: Interval | None = None

"""Two runs on the same tasks: what each reached and took, and what the difference is worth."""

from collections.abc import Mapping
from typing import Final, Literal

from gta_bench.records.base import Record
from gta_bench.records.digests import TaskDigests
from gta_bench.records.run import RunManifest
from gta_bench.records.scores import RunScores, ToolUse
from gta_bench.records.statistics import Envelope, Interval
from gta_bench.records.units import Usage
from gta_bench.records.workflow_scores import WorkflowScores

Role = Literal["primary", "secondary", "amount"]
# The chance of a false alarm that tests allow.
ALPHA: Final = 0.05


class UnitFacts(Record):
    """What one unit took, what became of its tool calls, and what each judge was shown of it.

    `digests` say what was asked and how it is scored.
    """

    usage: Usage
    tools: tuple[ToolUse, ...] = ()
    evidence: Mapping[str, str] = {}
    digests: TaskDigests | None = None


class ComparedRun(Record):
    """A run with all that a comparison looks at; units by task and epoch.

    `judge_prompts` are the digests of the prompts that each judge was asked with.
    """

    name: str
    manifest: RunManifest
    scores: RunScores | WorkflowScores
    units: Mapping[tuple[str, int], UnitFacts]
    judge_prompts: Mapping[str, tuple[str, ...]] = {}


class MetricDifference(Record):
    """One metric of two runs on the tasks that both have it for: the first minus the second.

    The `primary` metric answers whether the runs differ; the rest is secondary, and what the runs
    took (`amount`) is no part of the tests. `p_value` is that of this test alone. `p_holm` is the
    largest that missing tasks allow (`envelope`), corrected for all tests of the same role; an
    amount has none. `effective` is as how many tasks of equal weight the common ones are worth,
    `detectable` the smallest difference that they show in four of five cases, and `most` the
    largest that there is.
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
        """Whether the two runs can be told apart by it."""
        return self.p_holm is not None and self.p_holm < ALPHA


class ToolDifference(Record):
    """Calls of one tool in both runs, done and failed."""

    tool: str
    first_done: int
    first_failed: int
    second_done: int
    second_failed: int


class Flip(Record):
    """A task, or a leaf of it, that one run got and the other did not, or got in part.

    `leaf` and `judge` are None for GTA-Atomic; `leaf` is None for a whole task of GTA-Workflow.
    Both values are on the scale of `metric`; the second run is worse where its value is lower.
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
    """Units whose evidence was the same for a judge in both runs, and which of those it scored
    otherwise: there the difference is the judge's own."""

    judge: str
    units: int
    same: int
    same_but_scored_otherwise: int


class SelfTest(Record):
    """What a comparison says of systems that are equal, or differ by what is known, on these data.

    In every round the two systems are swapped in about half of the tasks, so that neither is
    better. `alarms` is the share of rounds that told them apart by the primary metric (of every
    judge), `secondary_alarms` by any other. Then the first was made better by `planted` (points of
    the primary metric): `covered` is the share of rounds whose interval holds that, `found` the
    share that told the two apart.
    """

    metric: str
    tasks: int
    rounds: int
    alarms: float
    secondary_alarms: float
    planted: float
    covered: float
    found: float


class Comparison(Record):
    """Two runs side by side; `left_out` are tasks that only one of them has, or has scores for.

    `one_sided` are those of them that only one run was given. `changed` are tasks of both that ask
    or score something else in the other's dataset; they are left out too. `flips` are the tasks
    and leaves that changed, the worst first.

    `per_dollar` is the sum of the primary metric over the cost: solved tasks, or points, for a
    dollar.
    """

    first: str
    second: str
    tasks: int
    left_out: tuple[str, ...]
    one_sided: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
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
        """The metric that says whether the runs differ; None if nothing of it is in both."""
        return next(iter(self.primaries), None)

    @property
    def primaries(self) -> tuple[MetricDifference, ...]:
        """The same metric by every judge; all of them must agree."""
        return tuple(one for one in self.metrics if one.role == "primary")

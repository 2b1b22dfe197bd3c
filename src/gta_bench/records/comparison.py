"""Two runs on the same tasks: what each reached and took, and what the difference is worth."""

from collections.abc import Mapping

from gta_bench.records.base import Record
from gta_bench.records.digests import TaskDigests
from gta_bench.records.run import RunManifest
from gta_bench.records.scores import RunScores, ToolUse
from gta_bench.records.statistics import Interval
from gta_bench.records.units import Usage
from gta_bench.records.workflow_scores import WorkflowScores


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

    `p_value` is that of this test alone, `p_holm` corrected for all tests of the table. `effective`
    is as how many tasks of equal weight the common ones are worth, `detectable` the smallest
    difference that they show in four of five cases.
    """

    metric: str
    first: float
    second: float
    difference: Interval
    p_value: float
    p_holm: float
    effective: float
    detectable: float


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


class Comparison(Record):
    """Two runs side by side; `left_out` are tasks that only one of them has, or has scores for.

    `changed` are tasks of both that ask or score something else in the other's dataset; they are
    left out too. `flips` are the tasks and leaves that changed, the worst first.

    `per_dollar` is the headline's sum over the cost: solved tasks, or points, for a dollar.
    """

    first: str
    second: str
    tasks: int
    left_out: tuple[str, ...]
    changed: tuple[str, ...] = ()
    cautions: tuple[str, ...]
    metrics: tuple[MetricDifference, ...]
    took: tuple[MetricDifference, ...]
    headline: str
    per_dollar: tuple[float | None, float | None]
    tools: tuple[ToolDifference, ...]
    evidence: tuple[EvidenceDifference, ...] = ()
    flips: tuple[Flip, ...] = ()

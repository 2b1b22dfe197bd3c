"""Scores of GTA-Workflow: leaves, trees, success rates; one table for each judge.

Scores are 0 to 10, rates 0 to 100, neither is rounded. None means that nothing could be measured;
every figure stands beside `n` of how many it is made from.
"""

from collections.abc import Mapping
from typing import Literal

from gta_bench.records.base import Record
from gta_bench.records.failures import Failure
from gta_bench.records.scores import ToolUse, UnscoredUnit
from gta_bench.records.units import StopKind, Usage


class LeafScore(Record):
    """One leaf as one judge saw it: the mean over its repeats, or the causes why there is none."""

    leaf: str
    value: float | None
    causes: tuple[str, ...] = ()


class TaskScore(Record):
    """One unit as one judge saw it; without a root where a leaf has no score.

    `compat` is the root as upstream's rules make it. `kinds` are the endings of the deliverables'
    names, `tool_categories` those of the tools that the system called.
    """

    task: str
    epoch: int
    category: str | None
    kinds: tuple[str, ...]
    tool_categories: tuple[str, ...]
    root: float | None
    compat: float | None
    leaves: tuple[LeafScore, ...]


class GroupScores(Record):
    """Root Score, Root SR and Leaf SR over a set of units.

    Root Score and Root SR are over the `n` of `n_units` units that have a root, Leaf SR over the
    `leaves` of `n_leaves` leaves that have a score.
    """

    name: str
    root_score: float | None
    root_sr: float | None
    leaf_sr: float | None
    n: int
    n_units: int
    leaves: int
    n_leaves: int


class CurvePoint(Record):
    """The success rates if this were the threshold, for leaves and for roots."""

    threshold: float
    leaf_sr: float | None
    root_sr: float | None


class CompatScore(Record):
    """Root Score by upstream's parse and aggregation; it publishes no other definition."""

    root_score: float | None
    n: int


class JudgeScores(Record):
    """What one judge made of a run.

    `causes` are the reasons why leaves have no score; `failures` has the first cause of every leaf
    that failed or has none.
    """

    judge: str
    repeats: int
    strict: GroupScores
    compat: CompatScore
    categories: tuple[GroupScores, ...]
    kinds: tuple[GroupScores, ...]
    tool_categories: tuple[GroupScores, ...]
    curve: tuple[CurvePoint, ...]
    usage: Usage
    tasks: tuple[TaskScore, ...]
    causes: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()


class WorkflowScores(Record):
    """`scores.json` of a Workflow run: what was called, and a table for each judge.

    `n` of `n_units` units were run to their end; rankable only where that is all of them and the
    judge gave all of them a root. `usage` is that of all `attempts`; `retried` units had more than
    one; None where attempts were not recorded. `stops` counts the replies of the model
    that did not end in the ordinary way, by how they ended.
    """

    scoring_version: int
    mode: Literal["workflow"] = "workflow"
    leaf_threshold: float
    root_threshold: float
    n: int
    n_units: int
    tool_sr: float | None
    tools: tuple[ToolUse, ...]
    usage: Usage
    attempts: int | None = None
    retried: int = 0
    models: tuple[str, ...]
    stops: Mapping[StopKind, int] = {}
    judges: tuple[JudgeScores, ...]
    unscored: tuple[UnscoredUnit, ...]

    @property
    def complete(self) -> bool:
        """Whether every unit was run and every judge gave it a root."""
        return self.n == self.n_units and all(
            judge.strict.n == judge.strict.n_units for judge in self.judges
        )

    def table(self, judge: str) -> JudgeScores | None:
        """What the judge of that name made of the run, if it has seen it."""
        return next((table for table in self.judges if table.judge == judge), None)

"""Scores of GTA-Workflow: leaves, trees and success rates, in one table for each judge.

Scores are 0 to 10 and rates 0 to 100; neither is rounded. None means that nothing could be
measured. Counts (`n` of `n_units`) state what each value is based on.
"""

from collections.abc import Mapping
from typing import Literal

from gta_bench.records.base import Record
from gta_bench.records.failures import Failure
from gta_bench.records.scores import ToolUse, UnscoredUnit
from gta_bench.records.units import StopKind, Usage


class LeafScore(Record):
    """One leaf scored by one judge: the mean over repeats, or the causes of a missing score."""

    leaf: str
    value: float | None
    causes: tuple[str, ...] = ()


class TaskScore(Record):
    """One unit scored by one judge; `root` is None if a leaf has no score.

    `compat` is the root score by upstream's rules. `kinds` are the file extensions of the
    deliverables, `tool_categories` the categories of the tools that the system called.
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

    Root Score and Root SR cover the `n` of `n_units` units that have a root score, Leaf SR the
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
    """The success rates of leaves and roots with this threshold."""

    threshold: float
    leaf_sr: float | None
    root_sr: float | None


class CompatScore(Record):
    """Root Score by upstream's parser and aggregation; upstream defines no other score."""

    root_score: float | None
    n: int


class JudgeScores(Record):
    """The scores that one judge gave to a run.

    `causes` are the reasons why leaves have no score; `failures` has the first cause of every leaf
    that failed or has no score.
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
    """`scores.json` of a Workflow run: tool use, and a table for each judge.

    `n` of `n_units` units were finished; the run can be ranked only if that is all of them and the
    judge scored every root. `usage` covers all `attempts` (None if attempts were not recorded);
    `retried` units had more than one. `stops` counts the model's replies that did not end normally,
    by how they ended.
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
        """Whether every unit was run and every judge scored its root."""
        return self.n == self.n_units and all(
            judge.strict.n == judge.strict.n_units for judge in self.judges
        )

    def table(self, judge: str) -> JudgeScores | None:
        """The scores by the judge with that name, or None."""
        return next((table for table in self.judges if table.judge == judge), None)

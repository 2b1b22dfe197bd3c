"""Scores of GTA-Workflow: leaves, trees and success rates, in one table for each judge.

Scores are 0 to 10 and rates 0 to 100; neither is rounded. None means that nothing could be
measured. Counts (`n` of `n_units`) state what each value is based on.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from gta_bench.records.base import Record, Rows
from gta_bench.records.failures import Failure
from gta_bench.records.scores import ToolUse, UnscoredUnit
from gta_bench.records.units import StopKind, Usage
from gta_bench.records.views import Displayed, FrameRow, Tabular, list_numbers


class LeafScore(Record):
    """One leaf scored by one judge: the mean over repeats, or the causes of a missing score.

    `by` is `check` if code decided the leaf instead of the judge.
    """

    leaf: str
    value: float | None
    causes: tuple[str, ...] = ()
    by: Literal["check"] | None = Field(None, exclude_if=lambda by: by is None)


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


class JudgeScores(Displayed, Record):
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
    tasks: Rows[TaskScore]
    causes: tuple[str, ...] = ()
    failures: Rows[Failure] = ()

    @property
    def checked(self) -> int:
        """How many leaves were scored by checks instead of the judge."""
        return sum(
            leaf.by is not None and leaf.value is not None
            for task in self.tasks
            for leaf in task.leaves
        )

    def describe(self) -> str:
        """The judge's strict scores, and how many units have one."""
        values = self.strict.model_dump(include={"root_score", "root_sr", "leaf_sr"})
        found = f"{self.strict.n} of {self.strict.n_units} units"
        return f"{self.judge}, {found}: {list_numbers(values.items())}"


class WorkflowScores(Tabular, Record):
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

    def describe(self) -> str:
        """The scores by every judge, and how many units were finished."""
        judges = "; ".join(judge.describe() for judge in self.judges) or "no judge yet"
        tools = list_numbers([("tool_sr", self.tool_sr)])
        return f"{self.n} of {self.n_units} units, {tools}; {judges}"

    def rows(self) -> list[FrameRow]:
        """A row for each unit and judge, and one for each unit that was not run."""
        causes = {(one.task, one.epoch): one.cause for one in self.unscored}
        rows: list[FrameRow] = [
            {
                "task": one.task,
                "epoch": one.epoch,
                "judge": judge.judge,
                "failure": causes.get((one.task, one.epoch)),
                **one.model_dump(exclude={"task", "epoch", "leaves"}),
            }
            for judge in self.judges
            for one in judge.tasks
        ]
        listed = {(row["task"], row["epoch"]) for row in rows}
        return rows + [
            {"task": task, "epoch": epoch, "judge": None, "failure": cause}
            for (task, epoch), cause in causes.items()
            if (task, epoch) not in listed
        ]

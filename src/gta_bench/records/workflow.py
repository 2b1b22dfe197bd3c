"""A GTA-Workflow task: a request, its files and its tree of checkpoints."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from gta_bench.errors import format_count
from gta_bench.records.base import Record
from gta_bench.records.checks import Credit, DecidedBy, LeafCheck
from gta_bench.records.files import Attachment
from gta_bench.records.views import Displayed, FrameRow, shorten


def _is_empty(value: object) -> bool:
    return not value


class Checkpoint(Record):
    """A node of the checkpoint tree; a node without children is a leaf, which the judge scores.

    Leaves of task folders may also have `levels`, which say what a score means, and `checks`, which
    code decides as `by` and `credit` say. `needs` names leaves without which this one cannot hold;
    it changes no score. These fields are written only if they are used.
    """

    id: str
    requirements: str | None = None
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    children: tuple["Checkpoint", ...] = ()
    levels: Mapping[str, str] = Field({}, exclude_if=_is_empty)
    by: DecidedBy = Field("judge", exclude_if=lambda by: by == "judge")
    checks: tuple[LeafCheck, ...] = Field((), exclude_if=_is_empty)
    credit: Credit = Field("all", exclude_if=lambda credit: credit == "all")
    needs: tuple[str, ...] = Field((), exclude_if=_is_empty)

    @property
    def question(self) -> str | None:
        """What a judge is asked: the requirement, and the levels below it."""
        if not self.levels:
            return self.requirements
        levels = (f"{score} points: {text}" for score, text in self.levels.items())
        return "\n".join([self.requirements or "", *levels])

    def leaves(self) -> Iterator["Checkpoint"]:
        """The leaves below this node (or the node itself), depth-first."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


class WorkflowTask(Displayed, Record):
    """One GTA-Workflow task."""

    id: str
    request: str
    category: str | None
    tools: tuple[str, ...]
    attachments: tuple[Attachment, ...]
    checkpoints: tuple[Checkpoint, ...]

    def leaves(self) -> Iterator[Checkpoint]:
        """The leaves that the judge scores, depth-first."""
        for checkpoint in self.checkpoints:
            yield from checkpoint.leaves()

    def describe(self) -> str:
        """Its request, and how much it offers and asks for."""
        leaves = sum(1 for _ in self.leaves())
        return (
            f"{self.id}: {shorten(self.request)!r}, {format_count(len(self.tools), 'tool')}, "
            f"{format_count(len(self.attachments), 'file')}, "
            f"{format_count(leaves, 'leaf', 'leaves')}"
        )

    def row(self) -> FrameRow:
        """The row of a table."""
        return {
            "task": self.id,
            "category": self.category,
            "request": self.request,
            "tools": list(self.tools),
            "files": [file.path for file in self.attachments],
            "leaves": sum(1 for _ in self.leaves()),
        }

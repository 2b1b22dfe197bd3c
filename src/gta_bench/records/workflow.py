"""A GTA-Workflow task: a request, its files and its tree of checkpoints."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from gta_bench.records.base import Record
from gta_bench.records.files import Attachment


class Checkpoint(Record):
    """A node of the checkpoint tree; a node without children is a leaf, which the judge scores."""

    id: str
    requirements: str | None = None
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    children: tuple["Checkpoint", ...] = ()

    def leaves(self) -> Iterator["Checkpoint"]:
        """The leaves below this node (or the node itself), depth-first."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


class WorkflowTask(Record):
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

"""Loaded datasets: their tasks and tools, and the findings made while loading."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal

from gta_bench.errors import format_count
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.digests import TaskDigests
from gta_bench.records.finding import Finding
from gta_bench.records.tools import ToolSpec
from gta_bench.records.units import TaskT
from gta_bench.records.views import FrameRow, Tabular
from gta_bench.records.workflow import WorkflowTask


# The `repr` of Tabular, and not one with every task.
@dataclass(frozen=True, repr=False)
class _Dataset(Tabular, Generic[TaskT]):
    root: Path
    file: str
    tasks: Mapping[str, TaskT]
    tools: Mapping[str, ToolSpec]
    findings: tuple[Finding, ...]
    # The published files, or a folder for each task.
    layout: Literal["released", "folders"] = "released"
    # Filled by `datasets.digest.task_digests`, so that files are hashed once.
    digests: dict[str, TaskDigests] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def describe(self) -> str:
        """The name of its folder, and how much is in it."""
        counts = [
            format_count(len(self.tasks), "task"),
            format_count(len(self.tools), "tool"),
            format_count(len(self.findings), "finding"),
        ]
        return f"{self.root.name}: {', '.join(counts)}"

    def rows(self) -> list[FrameRow]:
        """A row for each task."""
        return [task.row() for task in self.tasks.values()]


class AtomicDataset(_Dataset[AtomicTask]):
    """GTA-Atomic, or any dataset in its layout."""


class WorkflowDataset(_Dataset[WorkflowTask]):
    """GTA-Workflow, or any dataset in its layout."""


Dataset = AtomicDataset | WorkflowDataset

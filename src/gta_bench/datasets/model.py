"""Loaded datasets: their tasks and tools, and the findings made while loading."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.digests import TaskDigests
from gta_bench.records.finding import Finding
from gta_bench.records.tools import ToolSpec
from gta_bench.records.units import TaskT
from gta_bench.records.workflow import WorkflowTask


@dataclass(frozen=True)
class _Dataset(Generic[TaskT]):
    root: Path
    file: str
    tasks: Mapping[str, TaskT]
    tools: Mapping[str, ToolSpec]
    findings: tuple[Finding, ...]
    # Filled by `datasets.digest.task_digests`, so that files are hashed once.
    digests: dict[str, TaskDigests] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )


class AtomicDataset(_Dataset[AtomicTask]):
    """GTA-Atomic, or any dataset in its layout."""


class WorkflowDataset(_Dataset[WorkflowTask]):
    """GTA-Workflow, or any dataset in its layout."""


Dataset = AtomicDataset | WorkflowDataset

"""A loaded dataset: its tasks and tools, and what was noticed while loading."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.digests import TaskDigests
from gta_bench.records.finding import Finding
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask


@dataclass(frozen=True)
class AtomicDataset:
    """GTA-Atomic, or any dataset of its layout."""

    root: Path
    file: str
    tasks: Mapping[str, AtomicTask]
    tools: Mapping[str, ToolSpec]
    findings: tuple[Finding, ...]
    # Filled by `datasets.digest.task_digests`, so that files are hashed once.
    digests: dict[str, TaskDigests] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )


@dataclass(frozen=True)
class WorkflowDataset:
    """GTA-Workflow, or any dataset of its layout."""

    root: Path
    file: str
    tasks: Mapping[str, WorkflowTask]
    tools: Mapping[str, ToolSpec]
    findings: tuple[Finding, ...]
    # Filled by `datasets.digest.task_digests`, so that files are hashed once.
    digests: dict[str, TaskDigests] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )


Dataset = AtomicDataset | WorkflowDataset

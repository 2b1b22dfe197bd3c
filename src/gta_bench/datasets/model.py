"""A loaded dataset: its tasks and tools, and what was noticed while loading."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gta_bench.records.atomic import AtomicTask
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


@dataclass(frozen=True)
class WorkflowDataset:
    """GTA-Workflow, or any dataset of its layout."""

    root: Path
    file: str
    tasks: Mapping[str, WorkflowTask]
    tools: Mapping[str, ToolSpec]
    findings: tuple[Finding, ...]


Dataset = AtomicDataset | WorkflowDataset

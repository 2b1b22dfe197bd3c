"""What a page is made from: runs with their scores, units and, for Workflow, verdicts and files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gta_bench.judging.messages import PictureSource
from gta_bench.records.evidence import FileEvidence
from gta_bench.records.run import RunManifest, RunMode
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.verdicts import VerdictKey, VerdictRow
from gta_bench.reports.summary import RunSummary, remarks
from gta_bench.reports.workflow_summary import WorkflowSummary
from gta_bench.reports.workflow_summary import remarks as workflow_remarks


@dataclass(frozen=True)
class AtomicRun:
    """An Atomic run and its units."""

    summary: RunSummary
    units: Sequence[AtomicUnit]

    @property
    def name(self) -> str:
        """The run as the reader named it."""
        return self.summary.name

    @property
    def manifest(self) -> RunManifest:
        """What held while it ran."""
        return self.summary.manifest

    @property
    def mode(self) -> RunMode:
        """Step by step, or end to end."""
        return self.summary.scores.mode

    @property
    def remarks(self) -> list[str]:
        """What one must know before comparing its numbers."""
        return remarks(self.summary)


@dataclass(frozen=True)
class JudgedRun:
    """A Workflow run; `evidence` is what was shown of each file, by its digest."""

    summary: WorkflowSummary
    units: Sequence[WorkflowUnit]
    verdicts: Mapping[VerdictKey, VerdictRow]
    evidence: Mapping[str, FileEvidence]
    picture: PictureSource
    mode: RunMode = "workflow"

    @property
    def name(self) -> str:
        """The run as the reader named it."""
        return self.summary.name

    @property
    def manifest(self) -> RunManifest:
        """What held while it ran."""
        return self.summary.manifest

    @property
    def remarks(self) -> list[str]:
        """What one must know before comparing its numbers."""
        return workflow_remarks(self.summary)


RunMaterial = AtomicRun | JudgedRun


def anchor(number: int, task: str, epoch: int) -> str:
    """The id of a unit's section on the page; `number` is that of the run."""
    return f"run-{number}-task-{re.sub(r'[^A-Za-z0-9_.-]', '_', task)}-{epoch}"

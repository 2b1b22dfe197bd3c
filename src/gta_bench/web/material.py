"""The data of a page: runs with scores and units, and for Workflow also verdicts and files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gta_bench.judging.messages import PictureSource
from gta_bench.records.evidence import FileEvidence
from gta_bench.records.run import RunMode
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.verdicts import VerdictKey, VerdictRow
from gta_bench.reports.summary import RunSummary
from gta_bench.reports.workflow_summary import WorkflowSummary


@dataclass(frozen=True)
class AtomicRun:
    """An Atomic run and its units."""

    summary: RunSummary
    units: Sequence[AtomicUnit]


@dataclass(frozen=True)
class JudgedRun:
    """A Workflow run; `evidence` is what judges see of each file, by its digest."""

    summary: WorkflowSummary
    units: Sequence[WorkflowUnit]
    verdicts: Mapping[VerdictKey, VerdictRow]
    evidence: Mapping[str, FileEvidence]
    picture: PictureSource


RunMaterial = AtomicRun | JudgedRun


def run_mode(run: RunMaterial) -> RunMode:
    """Return the mode of a run."""
    return run.summary.scores.mode if isinstance(run, AtomicRun) else "workflow"


def anchor(number: int, task: str, epoch: int) -> str:
    """Return the id of a unit's section on the page, for the run with this number."""
    return f"run-{number}-task-{re.sub(r'[^A-Za-z0-9_.-]', '_', task)}-{epoch}"

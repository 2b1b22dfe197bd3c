"""Read the data of pages and trees from the folders of runs, and write the report."""

from collections.abc import Collection, Sequence
from pathlib import Path

from gta_bench.judge_quality.panel import panel_report
from gta_bench.judging.evidence_store import EVIDENCE, EvidenceStore
from gta_bench.metrics.labels import combine_labels
from gta_bench.metrics.panel import pack_leaves
from gta_bench.packages import missing_packages, require_packages
from gta_bench.records.ceiling import Ceiling, CeilingScore
from gta_bench.records.run import RunManifest
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.redaction import current_redactor
from gta_bench.reports.summary import RunSummary
from gta_bench.reports.workflow_summary import WorkflowSummary
from gta_bench.runs.directory import (
    log_folder,
    read_floors,
    read_manifest,
    read_scores,
    read_workflow_scores,
)
from gta_bench.runs.labels import read_adjudication, read_labels
from gta_bench.runs.logs import UnitStream
from gta_bench.runs.status import require_scores
from gta_bench.runs.store import StorePath, write_bytes_atomically
from gta_bench.runs.verdicts import place_verdicts, read_judges, read_verdicts
from gta_bench.settings import read_settings
from gta_bench.web.material import AtomicRun, JudgedRun, RunMaterial
from gta_bench.web.questions import QuestionSource


def write_report_page(
    runs: Sequence[StorePath],
    file: StorePath,
    *,
    wanted: Collection[str] = (),
    ceilings: Sequence[Ceiling] = (),
) -> None:
    """Write the report of the runs as one HTML file; `ceilings` are those of their judges."""
    require_packages("An HTML page", "scipy", extra="report")
    from gta_bench.web.page import render_report

    page = render_report(_read_materials(runs, ceilings), wanted=wanted)
    write_bytes_atomically(file, current_redactor().text(page).encode())


def write_paper_figures(runs: Sequence[StorePath], folder: Path) -> list[Path]:
    """Write figures of the runs for a paper, and return the files."""
    require_packages("A figure", "scipy", extra="report")
    require_packages("A figure", "matplotlib", extra="tools")
    from gta_bench.web.figures import write_figures

    return write_figures(_read_materials(runs), folder)


def _read_materials(
    runs: Sequence[StorePath], ceilings: Sequence[Ceiling] = ()
) -> list[RunMaterial]:
    """Read runs, named by their folders if these differ."""
    names = [run.resolve().name for run in runs]
    unique = len(set(names)) == len(names)
    return [
        read_material(run, name if unique else str(run), ceilings)
        for run, name in zip(runs, names, strict=True)
    ]


def read_material(
    run: StorePath, name: str | None = None, ceilings: Sequence[Ceiling] = ()
) -> RunMaterial:
    """Read the data of a run's page; it is named by its path by default."""
    name = name or str(run)
    manifest = read_manifest(run)
    require_scores(run)
    if manifest.spec.mode != "workflow":
        found = UnitStream(log_folder(run), manifest.spec.tasks, manifest.spec.epochs, AtomicUnit)
        summary = RunSummary(name, manifest, read_scores(run))
        return AtomicRun(summary, found, str(run), _find_questions(manifest))
    store = EvidenceStore(run / EVIDENCE)
    scores, verdicts = read_workflow_scores(run), read_verdicts(run)
    units = UnitStream(log_folder(run), manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit)
    panel = leaves = None
    if not missing_packages("scipy"):
        leaves = pack_leaves(place_verdicts(verdicts).values(), units)
        panel = panel_report(leaves, threshold=scores.leaf_threshold)
    people = combine_labels(read_labels(run), read_adjudication(run), scores.leaf_threshold)
    beside: tuple[CeilingScore, ...] = ()
    if ceilings:
        from gta_bench.reports.ceilings import compare_with_ceilings

        beside = compare_with_ceilings(scores, ceilings, read_judges(run))
    floors = read_floors(run)
    return JudgedRun(
        WorkflowSummary(name, manifest, scores, floors, panel, leaves, people, beside),
        units,
        verdicts,
        evidence={shown.digest: shown for shown in store.files()},
        picture=store.picture,
        path=str(run),
        questions=_find_questions(manifest),
    )


def _find_questions(manifest: RunManifest) -> QuestionSource:
    """Return the folder of the run's dataset, as the settings of this machine name it."""
    return QuestionSource(Path(getattr(read_settings().settings.data, manifest.spec.dataset)))

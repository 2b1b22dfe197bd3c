"""Scores a stored run and reads it for comparisons; no model is called."""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from statistics import fmean
from typing import Any, cast

from gta_bench.errors import UsageError
from gta_bench.metrics.panel import combine_judges
from gta_bench.metrics.run_scores import count_tool_uses
from gta_bench.metrics.workflow_scores import Thresholds, score_workflow
from gta_bench.records.comparison import ComparedRun, UnitFacts
from gta_bench.records.scores import Measured
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.directory import (
    log_folder,
    read_manifest,
    read_scores,
    read_workflow_scores,
    write_scores,
)
from gta_bench.runs.logs import read_run_units, read_units
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import read_judges, read_verdicts
from gta_bench.settings import Settings

ENTRY_POINTS = "gta_bench.metrics"

# Returns a number for a unit, or None if the metric does not apply to it.
UnitMetric = Callable[[Any], float | None]


def load_metric(name: str) -> UnitMetric:
    """Load a metric of an installed package, or `pkg.mod:function`."""
    known = {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
    module, colon, attribute = known.get(name, name).partition(":")
    choices = ", ".join([*sorted(known), "`pkg.mod:function`"])
    if not (module and colon and attribute):
        raise UsageError(f"Unknown metric {name!r}. Use one of: {choices}.")
    try:
        return cast(UnitMetric, getattr(import_module(module), attribute))
    except (ImportError, AttributeError) as exc:
        raise UsageError(f"Cannot load metric {name!r}: {exc}. Known: {choices}.") from exc


def measure(
    units: Sequence[AtomicUnit] | Sequence[WorkflowUnit],
    metric: UnitMetric,
    *,
    name: str,
    n_units: int,
) -> Measured:
    """Return the metric's mean over the units that it applies to.

    Units that failed through no fault of the system are left out.
    """
    found: dict[str, float] = {}
    for unit in units:
        try:
            value = None if unit.failure is not None else metric(unit)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
            raise UsageError(
                f"Metric {name!r} failed on task {unit.task.id}: {type(exc).__name__}: {exc}"
            ) from exc
        if value is not None:
            found[f"{unit.task.id}.{unit.epoch}"] = value
    mean = fmean(found.values()) if found else None
    return Measured(name=name, value=mean, n=len(found), n_units=n_units, units=found)


def score_workflow_run(run: StorePath, settings: Settings) -> WorkflowScores:
    """Score the run by every judge that was asked, and write the scores."""
    manifest = read_manifest(run)
    found = read_units(log_folder(run), manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit)
    rows = list(read_verdicts(run).values())
    if settings.judge.panel is not None:
        rows += combine_judges(rows, settings.judge.panel)
    scores = score_workflow(
        found.units,
        rows,
        thresholds=Thresholds(settings.judge.leaf_threshold, settings.judge.root_threshold),
        not_run=found.not_run,
        asked=[entry.name for entry in read_judges(run).judges],
    )
    write_scores(run, scores)
    return scores


_Shown = dict[tuple[str, int], dict[str, str]]


def read_compared(run: StorePath) -> ComparedRun:
    """Read what a comparison needs; `gta score` must have scored the run."""
    manifest = read_manifest(run)
    units = read_run_units(run, manifest.spec)
    if manifest.spec.dataset == "atomic":
        return ComparedRun(
            name=str(run), manifest=manifest, scores=read_scores(run), units=_facts(units, {})
        )
    shown: _Shown = {}
    prompts: dict[str, set[str]] = {}
    for key, row in read_verdicts(run).items():
        shown.setdefault((key.task, key.epoch), {})[key.judge] = row.evidence
        prompts.setdefault(key.judge, set()).add(row.prompts)
    return ComparedRun(
        name=str(run),
        manifest=manifest,
        scores=read_workflow_scores(run),
        units=_facts(units, shown),
        judge_prompts={judge: tuple(sorted(seen)) for judge, seen in sorted(prompts.items())},
    )


def _facts(
    units: Sequence[AtomicUnit] | Sequence[WorkflowUnit], shown: _Shown
) -> dict[tuple[str, int], UnitFacts]:
    return {
        (unit.task.id, unit.epoch): UnitFacts(
            usage=unit.usage,
            tools=count_tool_uses(unit.calls),
            evidence=shown.get((unit.task.id, unit.epoch), {}),
            digests=unit.digests,
        )
        for unit in units
        if unit.failure is None
    }

"""A stored run read for a comparison: scores, and what every unit took, called and showed."""

from gta_bench.metrics.run_scores import tool_uses
from gta_bench.records.comparison import ComparedRun, UnitFacts
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.runs.directory import log_folder, read_manifest, read_scores, read_workflow_scores
from gta_bench.runs.logs import read_units
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import read_verdicts

Shown = dict[tuple[str, int], dict[str, str]]


def read_compared(run: StorePath) -> ComparedRun:
    """All that a comparison looks at; `gta score` must have scored the run."""
    manifest = read_manifest(run)
    folder = log_folder(run)
    units: tuple[AtomicUnit, ...] | tuple[WorkflowUnit, ...]
    if manifest.spec.dataset == "atomic":
        units = read_units(folder, manifest.spec.tasks, manifest.spec.epochs, AtomicUnit).units
        return ComparedRun(
            name=str(run), manifest=manifest, scores=read_scores(run), units=_facts(units, {})
        )
    units = read_units(folder, manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit).units
    shown: Shown = {}
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
    units: tuple[AtomicUnit, ...] | tuple[WorkflowUnit, ...], shown: Shown
) -> dict[tuple[str, int], UnitFacts]:
    return {
        (unit.task.id, unit.epoch): UnitFacts(
            usage=unit.usage,
            tools=tool_uses(unit.calls),
            evidence=shown.get((unit.task.id, unit.epoch), {}),
            digests=unit.digests,
        )
        for unit in units
        if unit.failure is None
    }

"""A run's traces as ATIF trajectories, a file for each task and epoch."""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from gta_bench.errors import RunError
from gta_bench.records.atif import AtifAgent, AtifMetrics, Trajectory, write_steps
from gta_bench.records.run import RunManifest
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import read_units
from gta_bench.runs.store import StorePath


def export_atif(run: StorePath, out: Path) -> int:
    """Write the trajectories into a new folder; returns how many there are."""
    if out.exists() and any(out.iterdir()):
        raise RunError(f"{out} is not empty; name another --out.")
    out.mkdir(parents=True, exist_ok=True)
    manifest, count = read_manifest(run), 0
    for unit in _units(run, manifest):
        found = trajectory(unit, manifest)
        file = out / f"{found.trajectory_id}.json"
        file.write_text(found.model_dump_json(exclude_none=True, indent=1), encoding="utf-8")
        count += 1
    return count


def trajectory(unit: AtomicUnit | WorkflowUnit, manifest: RunManifest) -> Trajectory:
    """One unit; a task that the system left without a trace has the user's request alone."""
    system, usage = manifest.spec.system, unit.usage
    steps = write_steps(unit.task.request, unit.trace or ())
    return Trajectory(
        session_id=manifest.created.isoformat(),
        trajectory_id=f"{manifest.spec.dataset}-{unit.task.id}-{unit.epoch}",
        agent=AtifAgent(
            name=system.harness or system.agent,
            version=system.harness_version or version("gta-bench"),
            model_name=system.model,
        ),
        steps=steps,
        final_metrics=AtifMetrics(
            total_prompt_tokens=usage.input_tokens,
            total_completion_tokens=usage.output_tokens,
            total_cost_usd=usage.cost_usd,
            total_steps=len(steps),
        ),
        extra={"dataset": manifest.spec.dataset, "task": unit.task.id, "epoch": unit.epoch},
    )


def _units(run: StorePath, manifest: RunManifest) -> Iterator[AtomicUnit | WorkflowUnit]:
    """What was run and did not fail through our own fault."""
    folder = log_folder(run)
    if manifest.spec.mode == "workflow":
        found = read_units(folder, manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit).units
        yield from (unit for unit in found if unit.failure is None)
    else:
        units = read_units(folder, manifest.spec.tasks, manifest.spec.epochs, AtomicUnit).units
        yield from (unit for unit in units if unit.failure is None)

"""Export the traces of a run as ATIF trajectories, one file per task and epoch."""

from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from gta_bench.errors import RunError
from gta_bench.records.atif import AtifAgent, AtifMetrics, Trajectory, write_steps
from gta_bench.records.run import RunManifest
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.logs import UnitStream
from gta_bench.runs.store import StorePath


def export_atif(run: StorePath, out: Path) -> int:
    """Write the trajectories to a new or empty folder and return their number."""
    if out.exists() and any(out.iterdir()):
        raise RunError(f"{out} is not empty; choose another --out.")
    out.mkdir(parents=True, exist_ok=True)
    manifest = read_manifest(run)
    spec, folder = manifest.spec, log_folder(run)
    units: Iterable[AtomicUnit | WorkflowUnit]
    if spec.mode == "workflow":
        units = UnitStream(folder, spec.tasks, spec.epochs, WorkflowUnit)
    else:
        units = UnitStream(folder, spec.tasks, spec.epochs, AtomicUnit)
    exported = 0
    for unit in units:
        # Units that failed through no fault of the system have no trajectory.
        if unit.failure is None:
            found = _make_trajectory(unit, manifest)
            file = out / f"{found.trajectory_id}.json"
            file.write_text(
                found.model_dump_json(exclude_none=True, indent=1), encoding="utf-8", newline="\n"
            )
            exported += 1
    return exported


def _make_trajectory(unit: AtomicUnit | WorkflowUnit, manifest: RunManifest) -> Trajectory:
    """Convert one unit; without a trace, the trajectory has only the user's request."""
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

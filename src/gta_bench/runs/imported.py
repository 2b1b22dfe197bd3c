"""Writes finished results from elsewhere as a log, so that they are scored like any run."""

from collections.abc import Sequence
from datetime import UTC, datetime

from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalResults,
    EvalSample,
    EvalSpec,
    EvalStats,
    write_eval_log,
)
from inspect_ai.model import ModelOutput
from shortuuid import uuid

from gta_bench.records.digests import digest_known
from gta_bench.records.run import STATEMENT, RunManifest, state_run
from gta_bench.records.units import TaskT, Unit
from gta_bench.runs.directory import log_folder
from gta_bench.runs.log_layout import redact_logs
from gta_bench.runs.samples import TASK, UPSTREAM, UnitData, write_unit_data
from gta_bench.runs.store import StorePath, explain_store_errors

# A name that Inspect can resolve when it reads the log.
MODEL = "mockllm/imported"


def write_imported(run: StorePath, manifest: RunManifest, units: Sequence[Unit[TaskT]]) -> None:
    """Write the units as one finished log in the run's folder."""
    task = "workflow" if manifest.spec.mode == "workflow" else f"atomic_{manifest.spec.mode}"
    samples = [_sample(unit) for unit in units]
    redact_logs()
    now = datetime.now(UTC)
    stamp = now.isoformat(timespec="seconds")
    log = EvalLog(
        status="success",
        eval=EvalSpec(
            created=stamp,
            eval_id=uuid(),
            run_id=uuid(),
            task=f"gta_bench/{task}",
            model=MODEL,
            dataset=EvalDataset(
                name=f"gta-{manifest.spec.dataset}",
                samples=len(samples),
                sample_ids=[sample.id for sample in samples],
            ),
            config=EvalConfig(),
            metadata={
                "system": manifest.spec.system.model,
                "imported_from": manifest.imported_from,
                STATEMENT: state_run(manifest.spec, manifest.dataset_digest),
            },
        ),
        results=EvalResults(total_samples=len(samples), completed_samples=len(samples)),
        stats=EvalStats(started_at=stamp, completed_at=stamp),
        samples=samples,
    )
    folder = log_folder(run)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{now:%Y-%m-%dT%H-%M-%S}-00-00_{task.replace('_', '-')}_{log.eval.eval_id}.eval"
    with explain_store_errors(folder, writing=True):
        write_eval_log(log, str(folder / name))


def _sample(unit: Unit[TaskT]) -> EvalSample:
    metadata = {TASK: unit.task.model_dump(mode="json")}
    if unit.upstream is not None:
        metadata[UPSTREAM] = unit.upstream.model_dump(mode="json")
    return EvalSample(
        id=unit.task.id,
        epoch=unit.epoch,
        input=unit.task.request,
        target="",
        output=ModelOutput.from_content(MODEL, unit.answer),
        metadata=metadata,
        store=write_unit_data(
            UnitData(
                steps=unit.trace,
                calls=unit.calls,
                deliverables=unit.deliverables,
                inputs=unit.inputs,
                strays=unit.strays,
                states=unit.states,
                delivered=unit.delivered,
                usage=unit.usage,
                digests=unit.digests or digest_known(unit.task, unit.inputs),
            )
        ),
    )

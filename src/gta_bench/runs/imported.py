"""Finished results of elsewhere, written as a log, so that they take the same path as a run."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

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

from gta_bench.records.run import RunManifest, Unit, WorkflowUnit
from gta_bench.records.steps import AnswerStep
from gta_bench.runs.directory import log_folder
from gta_bench.runs.samples import (
    CALLS,
    DELIVERABLES,
    INPUTS,
    STEPS,
    STRAYS,
    TASK,
    UPSTREAM,
    USAGE,
    dumped,
)
from gta_bench.runs.store import StorePath, reaching

# A name that the evaluation engine can resolve when it reads the log again.
MODEL = "mockllm/imported"


def write_imported(run: StorePath, manifest: RunManifest, units: Sequence[Unit]) -> None:
    """Write the units as one finished log in the run's folder."""
    _write_log(run, manifest, f"atomic_{manifest.mode}", [_sample(unit) for unit in units])


def write_imported_workflow(
    run: StorePath, manifest: RunManifest, units: Sequence[WorkflowUnit]
) -> None:
    """Write the Workflow units as one finished log in the run's folder."""
    _write_log(run, manifest, "workflow", [_workflow_sample(unit) for unit in units])


def _write_log(run: StorePath, manifest: RunManifest, task: str, samples: list[EvalSample]) -> None:
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
                name=f"gta-{manifest.dataset}",
                samples=len(samples),
                sample_ids=[sample.id for sample in samples],
            ),
            config=EvalConfig(),
            metadata={"system": manifest.system.model, "imported_from": manifest.imported_from},
        ),
        results=EvalResults(total_samples=len(samples), completed_samples=len(samples)),
        stats=EvalStats(started_at=stamp, completed_at=stamp),
        samples=samples,
    )
    folder = log_folder(run)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{now:%Y-%m-%dT%H-%M-%S}-00-00_{task.replace('_', '-')}_{log.eval.eval_id}.eval"
    with reaching(folder, writing=True):
        write_eval_log(log, str(folder / name))


def _sample(unit: Unit) -> EvalSample:
    metadata = {TASK: unit.task.model_dump(mode="json")}
    if unit.upstream is not None:
        metadata[UPSTREAM] = unit.upstream.model_dump(mode="json")
    answers = [step.content for step in unit.trace or () if isinstance(step, AnswerStep)]
    return EvalSample(
        id=unit.task.id,
        epoch=unit.epoch,
        input=unit.task.request,
        target="",
        output=ModelOutput.from_content(MODEL, answers[-1] if answers else ""),
        metadata=metadata,
        store=_atomic_store(unit),
    )


def _atomic_store(unit: Unit) -> dict[str, Any]:
    store: dict[str, Any] = {USAGE: unit.usage.model_dump(mode="json")}
    if unit.trace is None:
        return store
    return {**store, STEPS: dumped(unit.trace), CALLS: dumped(unit.calls)}


def _workflow_sample(unit: WorkflowUnit) -> EvalSample:
    return EvalSample(
        id=unit.task.id,
        epoch=unit.epoch,
        input=unit.task.request,
        target="",
        output=ModelOutput.from_content(MODEL, unit.answer),
        metadata={TASK: unit.task.model_dump(mode="json")},
        store={
            STEPS: dumped(unit.trace),
            CALLS: dumped(unit.calls),
            DELIVERABLES: dumped(unit.deliverables),
            INPUTS: dumped(unit.inputs),
            STRAYS: list(unit.strays),
            USAGE: unit.usage.model_dump(mode="json"),
        },
    )

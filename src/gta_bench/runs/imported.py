"""Finished results of elsewhere, written as a log, so that they take the same path as a run."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

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

from gta_bench.records.run import RunManifest, Unit
from gta_bench.records.steps import AnswerStep
from gta_bench.runs.directory import log_folder
from gta_bench.runs.samples import STEPS, TASK, UPSTREAM, dumped

# A name that the evaluation engine can resolve when it reads the log again.
MODEL = "mockllm/imported"


def write_imported(run: Path, manifest: RunManifest, units: Sequence[Unit]) -> None:
    """Write the units as one finished log in the run's folder."""
    now = datetime.now(UTC)
    stamp = now.isoformat(timespec="seconds")
    log = EvalLog(
        status="success",
        eval=EvalSpec(
            created=stamp,
            eval_id=uuid(),
            run_id=uuid(),
            task=f"gta_bench/atomic_{manifest.mode}",
            model=MODEL,
            dataset=EvalDataset(
                name="gta-atomic", samples=len(units), sample_ids=[unit.task.id for unit in units]
            ),
            config=EvalConfig(),
            metadata={"system": manifest.system.model, "imported_from": manifest.imported_from},
        ),
        results=EvalResults(total_samples=len(units), completed_samples=len(units)),
        stats=EvalStats(started_at=stamp, completed_at=stamp),
        samples=[_sample(unit) for unit in units],
    )
    folder = log_folder(run)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{now:%Y-%m-%dT%H-%M-%S}-00-00_atomic-{manifest.mode}_{log.eval.eval_id}.eval"
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
        store={} if unit.trace is None else {STEPS: dumped(unit.trace)},
    )

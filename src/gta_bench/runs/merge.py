"""Shards' logs become one log, sample by sample: memory holds scores and never transcripts."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from uuid import uuid4

from inspect_ai.log import (
    EvalLog,
    EvalSample,
    EvalSpec,
    EvalStats,
    EvalStatus,
    read_eval_log,
    recompute_metrics,
)
from inspect_ai.model import ModelUsage
from pydantic import ValidationError

from gta_bench.errors import RunError
from gta_bench.records.attempts import UnitKey
from gta_bench.records.plan import ShardPlan, plan_digest
from gta_bench.runs.directory import log_folder, write_record
from gta_bench.runs.log_layout import LogWriter, StoredScores, stored_summaries, writing_log
from gta_bench.runs.logs import log_files
from gta_bench.runs.store import StorePath, remove_folder, store_path
from gta_bench.runs.unreadable import explain_unreadable

PLAN = "plan.json"
SHARDS = ".shards"


def read_plan(run: StorePath) -> ShardPlan | None:
    """The run's plan; None where it was never cut into shards."""
    file = run / PLAN
    if not file.is_file():
        return None
    try:
        plan = ShardPlan.model_validate_json(file.read_bytes())
    except ValidationError as exc:
        raise _damaged(run) from exc
    if plan.digest != plan_digest(plan.shards, plan.epochs):
        raise _damaged(run)
    return plan


def write_plan(run: StorePath, plan: ShardPlan) -> None:
    """Keep the plan for every command that continues the run."""
    write_record(run / PLAN, plan)


def shards_folder(run: StorePath, plan: ShardPlan) -> StorePath:
    """Where the shards of a plan lie: beside the log that they become, as Inspect wants it."""
    return log_folder(run) / f"{plan.log}{SHARDS}"


def merged_log(run: StorePath, plan: ShardPlan) -> StorePath:
    """The log that the shards of a plan become."""
    return log_folder(run) / f"{plan.log}.eval"


def _damaged(run: StorePath) -> RunError:
    return RunError(
        f"{run / PLAN} is damaged. No log was touched: remove the file and give the same command "
        "again; what is finished is not run again."
    )


class _Gathered(NamedTuple):
    """What is kept of every sample while logs are copied."""

    scored: list[EvalSample]
    usage: dict[str, ModelUsage]


def merge_shards(chosen: Mapping[UnitKey, str], target: StorePath, shards: StorePath) -> None:
    """One log with these samples, each from its log; then all other logs are removed."""
    _write(chosen, target, status="success")
    own = f"/{target.parent.name}/{target.name}"
    logs = log_files(target.parent)
    (merged,) = (log for log in logs if log.endswith(own))
    if {one.key for one in stored_summaries(merged)} != set(chosen):
        raise RunError(f"{target} does not hold all units; the shards are left as they are.")
    for log in logs:
        if log != merged:
            store_path(log).unlink()
    # A run that was extended may have shards of several plans.
    here = merged.rpartition("/")[0]
    tops = {log.removeprefix(f"{here}/").partition("/")[0] for log in logs}
    for name in sorted(name for name in tops if name.endswith(SHARDS)):
        remove_folder(store_path(f"{here}/{name}"))
    if shards.is_dir():
        remove_folder(shards)


def write_begun(chosen: Mapping[UnitKey, str], target: StorePath) -> None:
    """A log with these samples that the engine continues, as it would one that broke off."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(chosen, target, status="error")


def _write(chosen: Mapping[UnitKey, str], target: StorePath, *, status: EvalStatus) -> None:
    """Write the log whole or not at all."""
    by_log: dict[str, list[UnitKey]] = {}
    for key, log in chosen.items():
        by_log.setdefault(log, []).append(key)
    headers = [_header(log) for log in by_log]
    spec = _spec(headers, chosen.keys())
    header = headers[0].model_copy(
        update={"eval": spec, "status": status, "error": None, "location": ""}
    )
    with writing_log(target) as writer:
        gathered = _Gathered([], {})
        writer.start(header)
        for log, keys in by_log.items():
            _copy(log, keys, writer, gathered)
        writer.end_samples()
        header.stats = _stats(headers, gathered.usage)
        header.samples = gathered.scored
        recompute_metrics(header)
        writer.finish(header)


def _header(log: str) -> EvalLog:
    with explain_unreadable(log):
        return read_eval_log(log, header_only=True)


def _copy(log: str, keys: Sequence[UnitKey], writer: LogWriter, gathered: _Gathered) -> None:
    for sample in writer.copy(log, keys):
        gathered.scored.append(_scored(sample))
        for model, usage in sample.model_usage.items():
            before = gathered.usage.get(model)
            gathered.usage[model] = usage if before is None else before + usage


def _scored(sample: StoredScores) -> EvalSample:
    """As much of a sample as metrics look at."""
    scores = {
        name: score.model_copy(update={"explanation": None})
        for name, score in (sample.scores or {}).items()
    }
    return EvalSample(id=sample.id, epoch=sample.epoch, input="", target="", scores=scores)


def _spec(headers: Sequence[EvalLog], keys: Collection[UnitKey]) -> EvalSpec:
    """The evaluation as if it had been one."""
    tasks = list(dict.fromkeys(task for task, _ in keys))
    epochs = max(epoch for _, epoch in keys)
    first = min((header.eval for header in headers), key=lambda spec: str(spec.created))
    dataset = first.dataset.model_copy(update={"sample_ids": tasks})
    config = first.config.model_copy(update={"sample_id": tasks, "epochs": epochs})
    return first.model_copy(
        update={"eval_id": uuid4().hex[:22], "dataset": dataset, "config": config}
    )


def _stats(headers: Sequence[EvalLog], usage: dict[str, ModelUsage]) -> EvalStats:
    started = [str(one.stats.started_at) for one in headers if one.stats.started_at]
    ended = [str(one.stats.completed_at) for one in headers if one.stats.completed_at]
    return EvalStats(
        started_at=min(started, default=""), completed_at=max(ended, default=""), model_usage=usage
    )

"""Merges the logs of shards into one, sample by sample: transcripts are never all in memory."""

from collections.abc import Collection, Mapping, Sequence
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

from gta_bench.errors import RunError
from gta_bench.records.attempts import UnitKey
from gta_bench.records.plan import ShardPlan, plan_digest
from gta_bench.runs.directory import explain_unreadable, log_folder, read_record, write_record
from gta_bench.runs.log_layout import StoredScores, open_log_writer, read_stored_summaries
from gta_bench.runs.logs import list_logs
from gta_bench.runs.store import StorePath, remove_folder, store_path

PLAN = "plan.json"
SHARDS = ".shards"


def read_plan(run: StorePath) -> ShardPlan | None:
    """Read the run's plan; None if it was never split into shards."""
    file = run / PLAN
    if not file.is_file():
        return None
    hint = "Remove it and run the same command again; finished units are not run again."
    plan = read_record(file, ShardPlan, hint)
    if plan.digest != plan_digest(plan.shards, plan.epochs):
        raise RunError(f"{file} does not match its digest. {hint}")
    return plan


def write_plan(run: StorePath, plan: ShardPlan) -> None:
    """Write the plan for the commands that continue the run."""
    write_record(run / PLAN, plan)


def shards_folder(run: StorePath, plan: ShardPlan) -> StorePath:
    """Return the folder of a plan's shards: next to their merged log, as Inspect expects it."""
    return log_folder(run) / f"{plan.log}{SHARDS}"


def merged_log_path(run: StorePath, plan: ShardPlan) -> StorePath:
    """Return the path of the log that a plan's shards are merged into."""
    return log_folder(run) / f"{plan.log}.eval"


def merge_shards(chosen: Mapping[UnitKey, str], target: StorePath, shards: StorePath) -> None:
    """Write one log with these samples, each from its log, then remove all other logs."""
    _write(chosen, target, status="success")
    own = f"/{target.parent.name}/{target.name}"
    logs = list_logs(target.parent)
    (merged,) = (log for log in logs if log.endswith(own))
    if {one.key for one in read_stored_summaries(merged)} != set(chosen):
        raise RunError(f"{target} does not contain all units; the shards are left as they are.")
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


def write_partial_log(chosen: Mapping[UnitKey, str], target: StorePath) -> None:
    """Write a log with these samples that Inspect continues, like one that was interrupted."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(chosen, target, status="error")


def _write(chosen: Mapping[UnitKey, str], target: StorePath, *, status: EvalStatus) -> None:
    """Write the log atomically."""
    by_log: dict[str, list[UnitKey]] = {}
    for key, log in chosen.items():
        by_log.setdefault(log, []).append(key)
    headers = []
    for log in by_log:
        with explain_unreadable(log):
            headers.append(read_eval_log(log, header_only=True))
    update = {"eval": _spec(headers, chosen), "status": status, "error": None, "location": ""}
    header = headers[0].model_copy(update=update)
    scored: list[EvalSample] = []
    used: dict[str, ModelUsage] = {}
    with open_log_writer(target) as writer:
        writer.start(header)
        for log, keys in by_log.items():
            for sample in writer.copy(log, keys):
                scored.append(_scored(sample))
                for model, usage in sample.model_usage.items():
                    used[model] = used[model] + usage if model in used else usage
        writer.end_samples()
        started = [str(one.stats.started_at) for one in headers if one.stats.started_at]
        ended = [str(one.stats.completed_at) for one in headers if one.stats.completed_at]
        header.stats = EvalStats(
            started_at=min(started, default=""),
            completed_at=max(ended, default=""),
            model_usage=used,
        )
        header.samples = scored
        recompute_metrics(header)
        writer.finish(header)


def _scored(sample: StoredScores) -> EvalSample:
    """Return as much of a sample as metrics need."""
    scores = {
        name: score.model_copy(update={"explanation": None})
        for name, score in (sample.scores or {}).items()
    }
    return EvalSample(id=sample.id, epoch=sample.epoch, input="", target="", scores=scores)


def _spec(headers: Sequence[EvalLog], keys: Collection[UnitKey]) -> EvalSpec:
    """Return the spec of one evaluation with all these units."""
    tasks = list(dict.fromkeys(task for task, _ in keys))
    epochs = max(epoch for _, epoch in keys)
    first = min((header.eval for header in headers), key=lambda spec: str(spec.created))
    dataset = first.dataset.model_copy(update={"sample_ids": tasks})
    config = first.config.model_copy(update={"sample_id": tasks, "epochs": epochs})
    return first.model_copy(
        update={"eval_id": uuid4().hex[:22], "dataset": dataset, "config": config}
    )

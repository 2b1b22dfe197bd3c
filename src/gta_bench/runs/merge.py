"""Shards' logs become one log, sample by sample: memory holds scores and never transcripts."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import uuid4
from zipfile import ZipFile

from inspect_ai._util.json import to_json_safe
from inspect_ai._util.zipfile import zipfile_compress_kwargs
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
from inspect_ai.scorer import Score

from gta_bench.errors import RunError
from gta_bench.runs.logs import log_files, told_if_damaged
from gta_bench.runs.store import StorePath, made_whole, opened, remove_folder, store_path
from gta_bench.runs.stored_samples import (
    SUMMARIES,
    Key,
    Stored,
    raw_summaries,
    sample_file,
    stored_summaries,
)

HEADER, REDUCTIONS = "header.json", "reductions.json"
START = "_journal/start.json"


class _Sample(Stored):
    """What is read of a sample; all else is copied unread."""

    scores: dict[str, Score] | None = None


class _Gathered(NamedTuple):
    """What is kept of every sample while logs are copied."""

    scored: list[EvalSample]
    usage: dict[str, ModelUsage]
    summaries: list[bytes]


def merge_shards(chosen: Mapping[Key, str], target: StorePath, shards: StorePath) -> None:
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
    remove_folder(shards)


def write_begun(chosen: Mapping[Key, str], target: StorePath) -> None:
    """A log with these samples that the engine continues, as it would one that broke off."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(chosen, target, status="error")


def _write(chosen: Mapping[Key, str], target: StorePath, *, status: EvalStatus) -> None:
    """Write the log whole or not at all."""
    by_log: dict[str, list[Key]] = {}
    for key, log in chosen.items():
        by_log.setdefault(log, []).append(key)
    headers = [_header(log) for log in by_log]
    with made_whole(target) as part, ZipFile(part, "w", **zipfile_compress_kwargs) as merged:
        gathered = _Gathered([], {}, [])
        spec = _spec(headers, list(dict.fromkeys(task for task, _ in chosen)))
        start = {"version": headers[0].version, "eval": spec, "plan": headers[0].plan}
        merged.writestr(START, to_json_safe(start))
        for log, keys in by_log.items():
            _copy(log, keys, merged, gathered)
        merged.writestr(SUMMARIES, b"[" + b",".join(gathered.summaries) + b"]")
        gathered.summaries.clear()
        header = headers[0].model_copy(
            update={"eval": spec, "status": status, "error": None, "location": ""}
        )
        header.stats = _stats(headers, gathered.usage)
        header.samples = gathered.scored
        recompute_metrics(header)
        merged.writestr(REDUCTIONS, to_json_safe(header.reductions))
        header.samples = header.reductions = None
        merged.writestr(HEADER, to_json_safe(header))


def _header(log: str) -> EvalLog:
    with told_if_damaged(log):
        return read_eval_log(log, header_only=True)


def _copy(log: str, keys: Sequence[Key], merged: ZipFile, gathered: _Gathered) -> None:
    """Copy samples as they are; reading them also checks their sums."""
    wanted = set(keys)
    with told_if_damaged(log), opened(store_path(log)) as file, ZipFile(file) as source:
        for summary in raw_summaries(source):
            task, epoch = str(summary["id"]), summary["epoch"]
            if (task, epoch) not in wanted:
                continue
            name = sample_file(task, epoch)
            data = source.read(name)
            merged.writestr(name, data)
            sample = _Sample.model_validate_json(data)
            gathered.scored.append(_scored(sample))
            gathered.summaries.append(json.dumps(summary).encode())
            for model, usage in sample.model_usage.items():
                before = gathered.usage.get(model)
                gathered.usage[model] = usage if before is None else before + usage


def _scored(sample: _Sample) -> EvalSample:
    """As much of a sample as metrics look at."""
    scores = {
        name: score.model_copy(update={"explanation": None})
        for name, score in (sample.scores or {}).items()
    }
    return EvalSample(id=sample.id, epoch=sample.epoch, input="", target="", scores=scores)


def _spec(headers: Sequence[EvalLog], tasks: list[str]) -> EvalSpec:
    """The evaluation as if it had been one."""
    first = min((header.eval for header in headers), key=lambda spec: str(spec.created))
    dataset = first.dataset.model_copy(update={"samples": len(tasks), "sample_ids": tasks})
    config = first.config.model_copy(update={"sample_id": tasks})
    return first.model_copy(
        update={"eval_id": uuid4().hex[:22], "dataset": dataset, "config": config}
    )


def _stats(headers: Sequence[EvalLog], usage: dict[str, ModelUsage]) -> EvalStats:
    started = [str(one.stats.started_at) for one in headers if one.stats.started_at]
    ended = [str(one.stats.completed_at) for one in headers if one.stats.completed_at]
    return EvalStats(
        started_at=min(started, default=""), completed_at=max(ended, default=""), model_usage=usage
    )

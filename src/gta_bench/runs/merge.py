"""Merges the logs of shards into one, sample by sample; a long run gets several logs.

In memory are the keys of all units, and for one log at a time the archive's directory and the
scores of its tasks.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
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
from inspect_ai.scorer import Score, Value, mean_score

from gta_bench.errors import RunError
from gta_bench.records.attempts import UnitKey
from gta_bench.runs.directory import explain_unreadable, log_folder
from gta_bench.runs.log_layout import StoredScores, open_log_writer, read_stored_summaries
from gta_bench.runs.logs import list_logs
from gta_bench.runs.store import StorePath, remove_folder, store_path

SHARDS = ".shards"
# Units in one merged log. Readers keep its directory in memory, about 1 KB a unit.
MOST_UNITS = 100_000
_PART = re.compile(r"-part\d+\.eval$")


def find_shards(run: StorePath) -> str | None:
    """Return the newest name of a log whose shards are not merged yet, if any."""
    logs = log_folder(run)
    parts = (part for log in list_logs(logs) for part in log.split("/"))
    # An empty folder is left by a merge that was killed; a store has none.
    empty = (one.name for one in logs.glob(f"*{SHARDS}"))
    names = [name for name in (*parts, *empty) if name.endswith(SHARDS)]
    return max(names).removesuffix(SHARDS) if names else None


def shards_folder(run: StorePath, log: str) -> StorePath:
    """Return the folder of the shards of a log: next to the log, as Inspect expects it."""
    return log_folder(run) / f"{log}{SHARDS}"


def merged_log_path(run: StorePath, log: str) -> StorePath:
    """Return the path of the log that shards are merged into."""
    return log_folder(run) / f"{log}.eval"


def is_part(log: str) -> bool:
    """Whether a log is one of several that a long run was merged into."""
    return _PART.search(log) is not None


def merge_shards(
    chosen: Mapping[UnitKey, str], target: StorePath, shards: StorePath, *, most: int = MOST_UNITS
) -> None:
    """Write these samples, each from its log, to merged logs, then remove all other logs.

    Up to `most` units become one log, `target`. More become several, in the order of the units,
    with all epochs of a task in one log if they fit. A command that was killed here is continued:
    a log is written completely or not at all, and shards are removed only once the merged logs
    have all their units.
    """
    merged = set()
    for part, units in _split(chosen, target, most):
        if not _has_units(part, units):
            _remove_parts(target.parent)
            _write(units, part, status="success")
            if not _has_units(part, units):
                raise RunError(f"{part} does not contain all units; the shards are left as is.")
        merged.add(part.name)
    own = tuple(f"/{target.parent.name}/{name}" for name in merged)
    logs = list_logs(target.parent)
    kept = {log for log in logs if log.endswith(own)}
    for log in logs:
        if log not in kept:
            store_path(log).unlink()
    # A run that was extended may have shards of several plans.
    here = min(kept).rpartition("/")[0]
    tops = {log.removeprefix(f"{here}/").partition("/")[0] for log in logs}
    for name in sorted(name for name in tops if name.endswith(SHARDS)):
        remove_folder(store_path(f"{here}/{name}"))
    if shards.is_dir():
        remove_folder(shards)


def _split(
    chosen: Mapping[UnitKey, str], target: StorePath, most: int
) -> Iterator[tuple[StorePath, Mapping[UnitKey, str]]]:
    """Yield the merged logs with their units."""
    if len(chosen) <= most:
        yield target, chosen
        return
    number, own = 1, dict[UnitKey, str]()
    for _, group in groupby(chosen, key=lambda key: key[0]):
        keys = list(group)
        for start in range(0, len(keys), most):
            some = keys[start : start + most]
            if len(own) + len(some) > most:
                yield target.parent / f"{target.stem}-part{number}.eval", own
                number, own = number + 1, {}
            own.update((key, chosen[key]) for key in some)
    yield target.parent / f"{target.stem}-part{number}.eval", own


def _has_units(log: StorePath, chosen: Mapping[UnitKey, str]) -> bool:
    """Whether a log exists and has exactly these units."""
    if not log.is_file():
        return False
    with explain_unreadable(str(log)):
        found = [one.key in chosen for one in read_stored_summaries(str(log))]
    return all(found) and len(found) == len(chosen)


def _remove_parts(folder: StorePath) -> None:
    """Remove what a killed merge left half written; a store never has such a file."""
    if isinstance(folder, Path):
        for part in folder.glob(".part-*"):
            part.unlink()


def write_partial_log(chosen: Mapping[UnitKey, str], target: StorePath) -> None:
    """Write a log with these samples that Inspect continues, like one that was interrupted."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(chosen, target, status="error")


def _write(chosen: Mapping[UnitKey, str], target: StorePath, *, status: EvalStatus) -> None:
    """Write the log atomically."""
    by_log: dict[str, dict[UnitKey, None]] = {}
    for key, log in chosen.items():
        by_log.setdefault(log, {})[key] = None
    parts = _read_parts(by_log)
    update = {"eval": _spec(parts.first, chosen), "status": status, "error": None, "location": ""}
    header = parts.header.model_copy(update=update)
    scores = _TaskScores()
    used: dict[str, ModelUsage] = {}
    with open_log_writer(target) as writer:
        writer.start(header)
        for log, keys in by_log.items():
            for sample in writer.copy(log, keys):
                scores.add(sample)
                for model, usage in sample.model_usage.items():
                    used[model] = used[model] + usage if model in used else usage
        writer.end_samples()
        header.stats = EvalStats(
            started_at=parts.started, completed_at=parts.completed, model_usage=used
        )
        scores.write_metrics(header)
        writer.finish(header)


class _Parts(NamedTuple):
    """Of the logs that are merged: a header, the oldest spec, when the first began and the last
    ended."""

    header: EvalLog
    first: EvalSpec
    started: str
    completed: str


def _read_parts(logs: Iterable[str]) -> _Parts:
    header: EvalLog | None = None
    started: list[str] = []
    completed: list[str] = []
    for log in logs:
        with explain_unreadable(log):
            own = read_eval_log(log, header_only=True)
        started += [str(own.stats.started_at)] if own.stats.started_at else []
        completed += [str(own.stats.completed_at)] if own.stats.completed_at else []
        if header is None:
            header, first = own, own.eval
        elif str(own.eval.created) < str(first.created):
            first = own.eval
    assert header is not None
    return _Parts(header, first, min(started, default=""), max(completed, default=""))


class _TaskScores:
    """The scores of samples, of which metrics need one a task: the mean over its epochs.

    Inspect keeps everything but the value from the first epoch. Answers and reasons that differ
    between epochs are dropped there, too; our scorers write neither.
    """

    def __init__(self) -> None:
        self._samples = 0
        self._first: dict[str, dict[str, Score]] = {}
        self._values: dict[tuple[str, str], list[Value]] = {}

    def add(self, sample: StoredScores) -> None:
        """Add a sample."""
        self._samples += 1
        task = str(sample.id)
        first = self._first.setdefault(task, {})
        for name, score in (sample.scores or {}).items():
            if name not in first:
                first[name] = score.model_copy(update={"explanation": None})
            self._values.setdefault((task, name), []).append(score.value)

    def write_metrics(self, header: EvalLog) -> None:
        """Write the metrics and reduced scores of all samples into the header."""
        header.samples = [
            EvalSample(id=task, epoch=1, input="", target="", scores=self._reduce(task, scores))
            for task, scores in self._first.items()
        ]
        recompute_metrics(header)
        if header.results is not None:
            header.results.total_samples = header.results.completed_samples = self._samples

    def _reduce(self, task: str, scores: Mapping[str, Score]) -> dict[str, Score]:
        reduce = mean_score()
        return {
            name: reduce([first.model_copy(update={"value": v}) for v in self._values[task, name]])
            for name, first in scores.items()
        }


def _spec(first: EvalSpec, keys: Collection[UnitKey]) -> EvalSpec:
    """Return the spec of one evaluation with all these units."""
    tasks = list(dict.fromkeys(task for task, _ in keys))
    epochs = max(epoch for _, epoch in keys)
    dataset = first.dataset.model_copy(update={"sample_ids": tasks})
    config = first.config.model_copy(update={"sample_id": tasks, "epochs": epochs})
    return first.model_copy(
        update={"eval_id": uuid4().hex[:22], "dataset": dataset, "config": config}
    )

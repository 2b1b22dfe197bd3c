"""Prediction files of the published pipeline: one object, or parts, by position in the dataset."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from gta_bench.datasets.atomic import RELEASED_PLACEHOLDER
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.files import read_entries
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import DatasetError, counted
from gta_bench.metrics.reference import reference_steps
from gta_bench.records.atomic import PLACEHOLDER_IMAGE
from gta_bench.records.finding import Finding
from gta_bench.records.run import Mode
from gta_bench.records.steps import AnswerStep, CallStep, Trace
from gta_bench.records.units import AtomicUnit, UpstreamPair
from gta_bench.records.upstream import (
    DUMMY_REPLY,
    UNAVAILABLE,
    describe_odd,
    mark_dummies,
    read_trace,
)

PART = re.compile(r"(?P<stem>.+)_(?P<number>\d+)\.json")


class Predictions(NamedTuple):
    """A unit for every task of the dataset, and what is odd about the files."""

    units: tuple[AtomicUnit, ...]
    findings: tuple[Finding, ...]


class _Entry(NamedTuple):
    file: str
    key: str
    raw: JsonValue


def read_predictions(source: Path, dataset: AtomicDataset, mode: Mode) -> Predictions:
    """Read a prediction file, or a folder of parts; a task without prediction has no trace."""
    tasks = list(dataset.tasks.values())
    found: dict[str, UpstreamPair] = {}
    findings: list[Finding] = []
    for position, entry in _positions(source):
        if position >= len(tasks):
            raise DatasetError(
                f"there is no task at position {position}; the dataset has "
                f"{counted(len(tasks), 'task')}.",
                file=entry.file,
                task=entry.key,
                field="(key)",
            )
        found[tasks[position].id] = _pair(entry, mode)
        findings += _odd_findings(tasks[position].id, entry, mode)
    paths = _portable_paths(dataset)
    units = []
    for task in tasks:
        pair = found.get(task.id)
        trace = None if pair is None else mark_dummies(_portable(pair.trace, paths))
        units.append(
            AtomicUnit(
                task=task, trace=trace, upstream=pair, digests=task_digests(dataset, task.id)
            )
        )
        if pair is not None:
            findings += _dummy_findings(task.id, trace or (), source)
            stored = _assistant(_portable(pair.gold, paths))
            findings += _gold_findings(task.id, reference_steps(task), stored, source)
    return Predictions(tuple(units), tuple(findings))


def _positions(source: Path) -> Iterator[tuple[int, _Entry]]:
    """Every entry with its place in the dataset; parts follow each other without a gap."""
    offset = 0
    for file in _parts(source):
        entries = read_entries(file, allow_nan=True)
        places = []
        for key, raw in entries.items():
            if not key.isdecimal():
                raise DatasetError(
                    "the key is not a position.", file=file.name, task=key, field="(key)"
                )
            places.append(int(key))
            yield offset + int(key), _Entry(file.name, key, raw)
        offset += max(places, default=-1) + 1


def _parts(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    numbered = {
        int(match["number"]): file
        for file in sorted(source.glob("*.json"))
        if (match := PART.fullmatch(file.name))
    }
    if not numbered:
        raise DatasetError(
            "there is no prediction file or part (`<name>_0.json`).", file=str(source)
        )
    missing = sorted(set(range(max(numbered) + 1)) - numbered.keys())
    if missing:
        raise DatasetError(f"part {missing[0]} of {len(numbered)} is missing.", file=str(source))
    return [numbered[number] for number in sorted(numbered)]


def _pair(entry: _Entry, mode: Mode) -> UpstreamPair:
    traces = {}
    for name in ("prediction", "gold"):
        value = _first_turn(_stored(entry, name), mode)
        try:
            traces[name] = read_trace(value)
        except (ValueError, ValidationError) as exc:
            problem = str(exc) if not isinstance(exc, ValidationError) else "cannot be read."
            hint = " Is it a file of the other --mode?" if _looks_nested(value) else ""
            raise DatasetError(
                f"{problem}{hint}", file=entry.file, task=entry.key, field=name
            ) from exc
    return UpstreamPair(trace=traces["prediction"], gold=traces["gold"])


def _stored(entry: _Entry, name: str) -> JsonValue:
    return entry.raw.get(name) if isinstance(entry.raw, dict) else None


def _first_turn(value: JsonValue, mode: Mode) -> JsonValue:
    """The steps that are scored: end to end those of the first user turn, as published."""
    nested = isinstance(value, list) and bool(value) and isinstance(value[0], list)
    return value[0] if mode == "end-to-end" and nested and isinstance(value, list) else value


def _odd_findings(task: str, entry: _Entry, mode: Mode) -> Iterator[Finding]:
    """What of a prediction is not scored, or is read in another way than it stands there."""
    stored = _stored(entry, "prediction")
    scored = _first_turn(stored, mode)
    words = describe_odd(scored)
    if scored is not stored and isinstance(stored, list) and len(stored) > 1:
        turns = counted(len(stored) - 1, "further user turn")
        words.append(f"the first user turn is scored; {turns} dropped")
    for one in words:
        yield Finding(
            check="odd-prediction",
            severity="warning",
            file=entry.file,
            task=task,
            field="prediction",
            message=f"{one}.",
        )


def _looks_nested(value: JsonValue) -> bool:
    return isinstance(value, list) and any(isinstance(item, list) for item in value)


def _portable_paths(dataset: AtomicDataset) -> dict[str, str]:
    paths = {item.source: item.path for task in dataset.tasks.values() for item in task.attachments}
    return paths | {RELEASED_PLACEHOLDER: PLACEHOLDER_IMAGE}


def _portable(trace: Trace, paths: Mapping[str, str]) -> Trace:
    """The same steps with the dataset's files under their portable paths."""
    return tuple(
        step.model_copy(
            update={
                "arguments": {
                    name: _portable_path(value, paths) for name, value in step.arguments.items()
                }
            }
        )
        if isinstance(step, CallStep) and isinstance(step.arguments, dict)
        else step
        for step in trace
    )


def _portable_path(value: JsonValue, paths: Mapping[str, str]) -> JsonValue:
    """A file of the dataset by whatever folder it lay in; anything else stays."""
    if not isinstance(value, str):
        return value
    parts = value.split("/")
    return next(
        (paths[tail] for start in range(len(parts)) if (tail := "/".join(parts[start:])) in paths),
        value,
    )


def _assistant(trace: Trace) -> Trace:
    return tuple(step for step in trace if isinstance(step, CallStep | AnswerStep))


def _dummy_findings(task: str, trace: Trace, source: Path) -> Iterator[Finding]:
    """One for a task in which stand-ins answered in place of tools."""
    calls = [step for step in trace if isinstance(step, CallStep)]
    dummies = [call for call in calls if call.error and call.error.type == UNAVAILABLE]
    if dummies:
        told = f"{len(dummies)} of {counted(len(calls), 'call')} reached no tool"
        yield Finding(
            check="dummy-reply",
            severity="warning",
            file=source.name,
            task=task,
            field="prediction",
            message=f"{told}: a stand-in answered {DUMMY_REPLY!r}. `strict` counts them as failed.",
        )


def _gold_findings(task: str, reference: Trace, stored: Trace, source: Path) -> Iterator[Finding]:
    """Differences between the file's references and the dataset's, beyond the folder's own path."""
    if len(reference) != len(stored):
        found = f"has {counted(len(stored), 'step')}, not {len(reference)}"
        yield _gold_finding(task, source, None, found)
    for index, (ours, theirs) in enumerate(zip(reference, stored, strict=False)):
        if ours != theirs:
            yield _gold_finding(task, source, index, "differs from the dataset's")


def _gold_finding(task: str, source: Path, index: int | None, problem: str) -> Finding:
    return Finding(
        check="gold-differs",
        severity="warning",
        file=source.name,
        task=task,
        field="gold" if index is None else f"gold.{index}",
        message=f"the reference stored in the file {problem}.",
    )

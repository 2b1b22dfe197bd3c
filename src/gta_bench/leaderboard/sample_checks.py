"""Whether each unit is one finished sample, of an attempt, with the usage of its model calls."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import isclose
from pathlib import Path
from typing import Final

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSample
from inspect_ai.model import ModelUsage
from pydantic import JsonValue

from gta_bench.errors import NOT_BEGUN, counted
from gta_bench.records.attempts import AttemptLine, newest_lines
from gta_bench.records.leaderboard import BundleFinding
from gta_bench.records.run import RunManifest
from gta_bench.records.steps import CallStep, Trace
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.runs.attempts import read_attempt_lines
from gta_bench.runs.directory import log_folder
from gta_bench.runs.log_layout import Key, StoredSummary, stored_summaries
from gta_bench.runs.logs import log_files, model_events
from gta_bench.runs.samples import read_unit_data

# Agents of ours whose answers are a model's words.
LOOPS: Final = ("toolcalling", "react", "react-upstream")
# Whatever escapes stand between them in JSON, these are the same there.
WORD: Final = re.compile(r"[A-Za-z0-9]{3,}")
Unit = AtomicUnit | WorkflowUnit


def attempt_findings(
    run: Path, manifest: RunManifest, units: Sequence[Unit]
) -> Iterator[BundleFinding]:
    """Where the attempts are not those of the logs: each unit began, and finished once."""
    lines = read_attempt_lines(run)
    if lines is None:
        if manifest.imported_from is None:
            yield _attempts("attempts.jsonl is missing")
        return
    tried = newest_lines(lines)
    logged: dict[Key, list[StoredSummary]] = {}
    for log in log_files(log_folder(run)):
        for one in stored_summaries(log):
            logged.setdefault(one.key, []).append(one)
    for key in sorted({(unit.task.id, unit.epoch) for unit in units}):
        for problem in _attempt_problems(logged.get(key, []), tried.get(key, {})):
            yield _attempts(f"task {key[0]}{problem}")
    for task, epoch in sorted({*tried} - {(unit.task.id, unit.epoch) for unit in units}):
        yield _attempts(f"task {task} in epoch {epoch} was tried and is in no log")


def _attempt_problems(
    samples: Sequence[StoredSummary], tried: dict[str, AttemptLine]
) -> Iterator[str]:
    # The engine copies a finished sample to the log of its next try.
    logged = {one.uuid or "" for one in samples if one.error is None}
    if len(logged) != 1:
        yield f" has {len(logged)} finished samples in the logs"
    # A kill right after a sample was written leaves its attempt without an end.
    ended = {
        name
        for name, line in tried.items()
        if line.end == "finished" or (line.end is None and name in logged)
    }
    if len(ended) != 1:
        yield f" finished {len(ended)} times by attempts.jsonl"
    elif logged != ended:
        yield ": its sample is not of the attempt that finished"
    for one in samples:
        if one.error is not None and not one.error.endswith(NOT_BEGUN) and one.uuid not in tried:
            yield ": a log has an attempt that attempts.jsonl does not"


def sample_findings(sample: EvalSample, manifest: RunManifest) -> Iterator[BundleFinding]:
    """Where a sample's usage and models are not those of its model calls."""
    if manifest.imported_from is None:
        for problem in _sample_problems(sample, manifest):
            yield BundleFinding(check="logs", message=f"task {sample.id}: {problem}")


def _sample_problems(sample: EvalSample, manifest: RunManifest) -> Iterator[str]:
    system, events = manifest.spec.system, model_events(sample)
    data = read_unit_data(sample.store.items())
    if system.agent != "product" and data.usage is not None:
        yield "it states its usage itself, which its model calls say"
    if system.agent in LOOPS:
        if not events:
            yield "no call of the model is in its log"
        yield from step_problems(
            data.steps or (), Replies(events, native=system.agent == "toolcalling")
        )
    for model in sorted({*sample.model_usage} - {system.model}):
        yield f"its usage is one of {model!r}, which run.json does not name"
    stated, made = _sum(sample.model_usage.values()), _sum(_used(events))
    # A harness may compact its dialogue, which is paid for and is no call.
    less = any(one < two and not isclose(one, two) for one, two in zip(stated, made, strict=True))
    more = any(one > two and not isclose(one, two) for one, two in zip(stated, made, strict=True))
    if less or (more and system.agent in LOOPS):
        yield "its usage is not the sum of its model calls"


class Replies:
    """What a model replied: the tools that it called, natively or in words, and all its words."""

    def __init__(self, events: Iterable[ModelEvent], *, native: bool) -> None:
        said = [event.output.message for event in events if event.output.choices]
        calls = [call for message in said for call in message.tool_calls or ()]
        self.called = Counter(call.function for call in calls)
        texts = [message.text for message in said]
        self.protocol = "" if native else _plain("\n".join(texts))
        texts += [json.dumps(call.arguments, ensure_ascii=False) for call in calls]
        self.words = "\n".join(texts).casefold()

    def calls(self, tool: str) -> int:
        """How often a tool can have been called; in a text protocol names are read leniently."""
        return self.called[tool] + self.protocol.count(_plain(tool))


def step_problems(steps: Trace, replies: Replies) -> Iterator[str]:
    """Calls that count and that no reply makes; of arguments, the words of texts are compared."""
    made = [step for step in steps if isinstance(step, CallStep) and step.error is None]
    for name, times in sorted(Counter(step.name for step in made).items()):
        if replies.calls(name) < times:
            yield f"its model did not call {name} {counted(times, 'time')}"
    for step in made:
        if any(word.casefold() not in replies.words for word in _words(step.arguments)):
            yield f"its model did not call {step.name} with such arguments"


def _words(arguments: JsonValue) -> Iterator[str]:
    """The words of texts among the arguments; numbers and lists can be texts that we wrote."""
    values = arguments.values() if isinstance(arguments, dict) else ()
    for value in values:
        if isinstance(value, str):
            try:
                json.loads(value)
            except ValueError:
                yield from WORD.findall(value)


def _plain(text: str) -> str:
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def _used(events: Iterable[ModelEvent]) -> Iterator[ModelUsage]:
    """What calls took; one that a cache answered took nothing."""
    for event in events:
        if event.output.usage is not None and event.cache != "read":
            yield event.output.usage


def _sum(used: Iterable[ModelUsage]) -> tuple[float, ...]:
    """Tokens sent and written, and dollars."""
    known = list(used)
    return (
        sum(one.input_tokens for one in known),
        sum(one.output_tokens for one in known),
        sum(one.total_cost or 0 for one in known),
    )


def _attempts(message: str) -> BundleFinding:
    return BundleFinding(check="attempts", message=message)

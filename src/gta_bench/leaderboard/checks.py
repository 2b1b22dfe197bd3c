"""Check the claims of a bundle against its logs: units, samples, judges, leaked answers."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import isclose
from pathlib import Path
from typing import Final, NamedTuple

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSample, EvalSpec, read_eval_log
from inspect_ai.model import ModelUsage
from pydantic import JsonValue

from gta_bench.errors import NOT_BEGUN, format_count
from gta_bench.records.atomic import AtomicTask, WhitelistAnswer
from gta_bench.records.attempts import AttemptLine, UnitKey, newest_lines
from gta_bench.records.dialogue import AnswerTurn, ReplyTurn
from gta_bench.records.judges import PROMPT_DIGESTS, JudgeEntry
from gta_bench.records.leaderboard import CANARY, BundleFinding
from gta_bench.records.run import STATEMENT, RunManifest, RunSpec, show_setting, state_run
from gta_bench.records.steps import AnswerStep, CallStep, ReplyStep, Trace
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.verdicts import VerdictRow
from gta_bench.runs.directory import log_folder
from gta_bench.runs.imported import MODEL as IMPORTED
from gta_bench.runs.log_layout import StoredSummary, read_stored_summaries
from gta_bench.runs.logs import (
    UnitConversation,
    find_kept_units,
    list_logs,
    model_events,
    read_attempt_lines,
)
from gta_bench.runs.samples import read_unit_data
from gta_bench.runs.verdicts import read_judges, read_verdicts

# Shorter answers ("7", "red wine") are in many prompts by chance.
SHORTEST: Final = 20
_GUID: Final = CANARY.rpartition(" ")[2]
# Our agents whose answers are the text of a model.
LOOPS: Final = ("toolcalling", "react", "react-upstream")
# Words that look the same in JSON, however it is escaped.
WORD: Final = re.compile(r"[A-Za-z0-9]{3,}")
# A run begins its first log at once, but a harness may have finished a task before that.
SLACK: Final = timedelta(days=2)
_Unit = AtomicUnit | WorkflowUnit


def unit_findings(unit: _Unit, conversation: UnitConversation | None) -> Iterator[BundleFinding]:
    """Yield the findings of a unit's trace: at most one leaked answer, and the canary.

    A leak is a reference answer or a leaf's requirement in a system or user message that is neither
    in the task's request nor in a tool reply.
    """
    own = [step.content for step in unit.trace or () if isinstance(step, AnswerStep)]
    spoken = "\n".join([*own, "" if conversation is None else conversation.said])
    if _GUID in spoken:
        message = f"task {unit.task.id}: the system wrote the canary, so it was trained on GTA"
        yield BundleFinding(check="canary", message=message)
    if conversation is None:
        return
    prompt = _normalize(conversation.prompts)
    known = _normalize("\n".join([conversation.by_tools, *_allowed_texts(unit)]))
    for secret in _secrets(unit):
        text = _normalize(secret)
        if len(text) >= SHORTEST and text in prompt and text not in known:
            message = f"task {unit.task.id}: the prompt contains the reference {secret[:60]!r}"
            yield BundleFinding(check="leaked-answer", message=message)
            return


def _secrets(unit: _Unit) -> Iterator[str]:
    """Yield the texts that must not be in a prompt."""
    if isinstance(unit, WorkflowUnit):
        yield from (leaf.requirements or "" for leaf in unit.task.leaves())
        return
    task: AtomicTask = unit.task
    if isinstance(task.answer, WhitelistAnswer):
        yield from (alias for group in task.answer.whitelist for alias in group)
    elif task.answer is not None:
        yield from task.answer.references
    if isinstance(task.dialogue[-1], AnswerTurn):
        yield task.dialogue[-1].content


def _allowed_texts(unit: _Unit) -> Iterator[str]:
    """Yield the texts that may be in a prompt: the request, and tool replies of both traces."""
    yield unit.task.request
    for step in unit.trace or ():
        if isinstance(step, ReplyStep):
            yield from (part.content for part in step.parts)
    if isinstance(unit, AtomicUnit):
        for turn in unit.task.dialogue:
            if isinstance(turn, ReplyTurn):
                yield turn.content


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())


class JudgeRecord(NamedTuple):
    """A judge by its verdicts: prompts, model names in replies, entries in the registry.

    `models` are the models that were asked; a cascade has two.
    """

    prompts: tuple[str, ...]
    answered: tuple[str, ...]
    entries: tuple[JudgeEntry, ...]
    models: tuple[str, ...]


def read_judge_records(run: Path) -> dict[str, JudgeRecord]:
    """Read the records of a run's judges by name."""
    registry = read_judges(run)
    rows: dict[str, list[VerdictRow]] = {entry.name: [] for entry in registry.judges}
    for key, row in read_verdicts(run).items():
        rows.setdefault(key.judge, []).append(row)
    return {
        name: JudgeRecord(
            tuple(sorted({row.prompts for row in own})),
            tuple(sorted({row.model for row in own} - {""})),
            registry.of(name),
            tuple(entry.model for entry in registry.judges if entry.name in name),
        )
        for name, own in rows.items()
    }


def judge_problems(judged: JudgeRecord | None, name: str) -> Iterator[str]:
    """Yield what shows that the recorded judge cannot have given these verdicts."""
    if judged is None or not judged.entries:
        yield f"{name} is not in judges.json, so the origin of its verdicts is unknown"
        return
    for entry in judged.entries:
        # The names of judges and cascades begin with the model.
        named = f"{entry.name} ".startswith(f"{entry.model} ")
        if entry.digest != entry.compute_digest() or not named:
            yield f"{name} does not match its digest in judges.json"
        if entry.is_own:
            yield f"{name} is a function of its author, not a model; judge with a model"
            return
    if {*judged.prompts} - {entry.prompts for entry in judged.entries}:
        yield f"verdicts of {name} were made with prompts other than those in judges.json"
    if {*judged.prompts} - {*PROMPT_DIGESTS}:
        yield (
            f"{name} used prompts that no version up to this one has; judge with a released "
            "version, or check with a newer one"
        )


def attempt_problems(run: Path, manifest: RunManifest, units: Sequence[_Unit]) -> Iterator[str]:
    """Yield where attempts.jsonl and the logs disagree: each unit must finish exactly once."""
    lines = read_attempt_lines(run)
    if lines is None:
        if manifest.imported_from is None:
            yield "attempts.jsonl is missing"
        return
    tried = newest_lines(lines)
    logged: dict[UnitKey, list[StoredSummary]] = defaultdict(list)
    for log in list_logs(log_folder(run)):
        for one in read_stored_summaries(log):
            logged[one.key].append(one)
    keys = {(unit.task.id, unit.epoch) for unit in units}
    for key in sorted(keys):
        for problem in _attempt_problems(logged[key], tried.get(key, {})):
            yield f"task {key[0]}{problem}"
    for task, epoch in sorted({*tried} - keys):
        yield f"task {task} in epoch {epoch} was attempted but is in no log"


def _attempt_problems(
    samples: Sequence[StoredSummary], tried: dict[str, AttemptLine]
) -> Iterator[str]:
    # Inspect copies a finished sample to the log of its next attempt.
    logged = {one.uuid or "" for one in samples if one.error is None}
    if len(logged) != 1:
        yield f" has {len(logged)} finished samples in the logs"
    # A process that is killed right after writing a sample leaves its attempt without an end.
    ended = {
        name
        for name, line in tried.items()
        if line.end == "finished" or (line.end is None and name in logged)
    }
    if len(ended) != 1:
        yield f" finished {len(ended)} times according to attempts.jsonl"
    elif logged != ended:
        yield ": its sample does not belong to the attempt that finished"
    for one in samples:
        if one.error is not None and not one.error.endswith(NOT_BEGUN) and one.uuid not in tried:
            yield ": a log has an attempt that is not in attempts.jsonl"


def sample_problems(sample: EvalSample, manifest: RunManifest) -> Iterator[str]:
    """Yield where the usage and models of a sample do not match its model calls."""
    if manifest.imported_from is not None:
        return
    system, events = manifest.spec.system, model_events(sample)
    data = read_unit_data(sample.store.items())
    if data.usage is not None:
        yield "it states its own usage, which must come from its model calls"
    if system.agent in LOOPS:
        if not events:
            yield "its log has no model call"
        replies = Replies(events, native=system.agent == "toolcalling")
        yield from step_problems(data.steps or (), replies)
    for model in sorted({*sample.model_usage} - {system.model}):
        yield f"its usage is of {model!r}, which is not in run.json"
    stated = _sum_usage(sample.model_usage.values())
    # A call that was answered from a cache used nothing.
    made = _sum_usage(
        event.output.usage
        for event in events
        if event.output.usage is not None and event.cache != "read"
    )
    differ = [pair for pair in zip(stated, made, strict=True) if not isclose(*pair)]
    # A harness may compact its dialogue, which has usage but is not a call.
    if any(one < two or system.agent in LOOPS for one, two in differ):
        yield "its usage is not the sum of its model calls"


class Replies:
    """A model's replies: the tools that it called, natively or in text, and all of its text."""

    def __init__(self, events: Iterable[ModelEvent], *, native: bool) -> None:
        messages = [event.output.message for event in events if event.output.choices]
        calls = [call for message in messages for call in message.tool_calls or ()]
        self.called = Counter(call.function for call in calls)
        texts = [message.text for message in messages]
        self.protocol = "" if native else _plain("\n".join(texts))
        texts += [json.dumps(call.arguments, ensure_ascii=False) for call in calls]
        self.text = "\n".join(texts).casefold()

    def count_calls(self, tool: str) -> int:
        """Return the maximum number of calls; a text protocol allows variants of tool names."""
        return self.called[tool] + self.protocol.count(_plain(tool))


def step_problems(steps: Trace, replies: Replies) -> Iterator[str]:
    """Yield successful calls that no reply made; of arguments, only words in texts are compared."""
    made = [step for step in steps if isinstance(step, CallStep) and step.error is None]
    for name, times in sorted(Counter(step.name for step in made).items()):
        if replies.count_calls(name) < times:
            yield f"its model did not call {name} {format_count(times, 'time')}"
    for step in made:
        if any(word.casefold() not in replies.text for word in _words(step.arguments)):
            yield f"its model did not call {step.name} with these arguments"


def _words(arguments: JsonValue) -> Iterator[str]:
    """Yield the words of text arguments; text that is JSON may have been written by us."""
    values = arguments.values() if isinstance(arguments, dict) else ()
    for value in values:
        if isinstance(value, str):
            try:
                json.loads(value)
            except ValueError:
                yield from WORD.findall(value)


def _plain(text: str) -> str:
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def _sum_usage(used: Iterable[ModelUsage]) -> tuple[float, ...]:
    """Return input tokens, output tokens and dollars."""
    known = list(used)
    return (
        sum(one.input_tokens for one in known),
        sum(one.output_tokens for one in known),
        sum(one.total_cost or 0 for one in known),
    )


def log_problems(
    run: Path, manifest: RunManifest, units: Sequence[_Unit], dialogues: Sequence[UnitConversation]
) -> Iterator[str]:
    """Yield where run.json does not match the logs."""
    spec, folder = manifest.spec, log_folder(run)
    headers = [read_eval_log(log, header_only=True).eval for log in list_logs(folder)]
    for header in headers:
        yield from _header_problems(header, manifest)
    if headers:
        first = min(datetime.fromisoformat(str(header.created)) for header in headers)
        began = manifest.created
        if abs(first - began) > SLACK:
            yield f"it began on {began:%Y-%m-%d} by run.json, on {first:%Y-%m-%d} by its first log"
    known = {(task, epoch) for task in spec.tasks for epoch in range(1, spec.epochs + 1)}
    for task, epoch in sorted({*find_kept_units(folder)} - known):
        yield f"task {task} in epoch {epoch} is in a log but not in run.json"
    by_unit = {(one.task, one.epoch): one for one in dialogues}
    for unit in units:
        yield from _call_problems(unit, spec)
        own = by_unit.get((unit.task.id, unit.epoch))
        if own is not None and spec.system.agent in LOOPS:
            text = own.replied if manifest.imported_from is None else own.said
            # White space does not count.
            if "".join(unit.answer.split()) not in "".join(text.split()):
                yield f"task {unit.task.id}: its answer is in no reply of the model"
    for one in dialogues:
        for model in sorted({*one.models} - {spec.system.model}):
            yield f"task {one.task}: {model!r} was asked, which is not in run.json"


def _header_problems(header: EvalSpec, manifest: RunManifest) -> Iterator[str]:
    """Yield where the header of a log differs from run.json."""
    imported = header.model == IMPORTED
    if imported != (manifest.imported_from is not None):
        origin = "was imported" if imported else "was run here"
        yield f"according to a log, the work {origin}; according to run.json, it was not"
    stated = (header.metadata or {}).get(STATEMENT)
    if not isinstance(stated, Mapping):
        yield "a log does not state what was run; run it again with this version"
        return
    wanted = state_run(manifest.spec, manifest.dataset_digest)
    for name in sorted({*stated, *wanted}):
        if stated.get(name) != wanted.get(name):
            there, here = (repr(show_setting(one.get(name)))[:80] for one in (stated, wanted))
            yield f"`{name}` is {there} in a log and {here} in run.json"
    if not imported:
        yield from _task_problems(header, manifest.spec)


def _task_problems(header: EvalSpec, spec: RunSpec) -> Iterator[str]:
    """Yield where the model or task that Inspect recorded differs from run.json."""
    if header.model != spec.system.model:
        yield f"the model is {header.model!r} in a log and {spec.system.model!r} in run.json"
    base = "workflow" if spec.dataset == "workflow" else "atomic"
    step = "_step" if spec.mode == "step" else ""
    # As tasks/registry.py names it.
    wanted = f"{base}{step}_harness" if spec.system.agent == "harness" else f"{base}{step}"
    asked = header.task.removeprefix("gta_bench/")
    if asked != wanted:
        yield f"the task is {asked!r} in a log and {wanted!r} in run.json"
    args = header.task_args
    for name in ("agent", "images"):
        if name in args and args[name] != getattr(spec.system, name):
            yield f"a task in a log has the {name} {args[name]!r}, run.json another one"
    if "max_turns" in args and spec.loop is not None and args["max_turns"] != spec.loop.max_turns:
        turns = args["max_turns"]
        yield f"a task in a log has {turns} turns, run.json {spec.loop.max_turns}"


def _call_problems(unit: _Unit, spec: RunSpec) -> Iterator[str]:
    """Yield the first call answered by a tape or changed by a control that run.json lacks."""
    for call in unit.calls:
        if call.control is not None and not spec.controls:
            yield f"task {unit.task.id}: a control changed a reply of {call.tool}"
            return
        if call.taped is not None and spec.tape is None:
            yield f"task {unit.task.id}: a reply of {call.tool} came from a tape"
            return

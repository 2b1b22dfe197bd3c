"""What a bundle claims, checked against its logs: units, samples, judges, and leaked answers."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import isclose
from pathlib import Path
from typing import Any, Final, NamedTuple

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSample, EvalSpec, read_eval_log
from inspect_ai.model import ModelUsage
from pydantic import JsonValue

from gta_bench.errors import NOT_BEGUN, counted
from gta_bench.records.atomic import AtomicTask, WhitelistAnswer
from gta_bench.records.attempts import AttemptLine, UnitKey, newest_lines
from gta_bench.records.dialogue import AnswerTurn, ReplyTurn
from gta_bench.records.judges import PROMPT_DIGESTS, JudgeEntry
from gta_bench.records.leaderboard import CANARY, BundleFinding
from gta_bench.records.run import STATEMENT, RunManifest, RunSpec, show_setting, state_run
from gta_bench.records.steps import AnswerStep, CallStep, ReplyStep, Trace
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.runs.directory import log_folder
from gta_bench.runs.imported import MODEL as IMPORTED
from gta_bench.runs.log_layout import StoredSummary, stored_summaries
from gta_bench.runs.logs import (
    UnitConversation,
    kept_units,
    log_files,
    model_events,
    read_attempt_lines,
)
from gta_bench.runs.samples import read_unit_data
from gta_bench.runs.verdicts import read_judges, read_verdicts

# Shorter answers ("7", "red wine") stand in any prompt by chance.
SHORTEST: Final = 20
_GUID: Final = CANARY.rpartition(" ")[2]


def unit_findings(
    unit: AtomicUnit | WorkflowUnit, said: UnitConversation | None
) -> Iterator[BundleFinding]:
    """What is wrong with a unit's trace: at most one leak, and the canary.

    A leak is a reference answer, or a leaf's requirement, in a system or user message, although
    neither the task's request nor a tool's reply has it.
    """
    own = [step.content for step in unit.trace or () if isinstance(step, AnswerStep)]
    spoken = "\n".join([*own, "" if said is None else said.said])
    if _GUID in spoken:
        yield BundleFinding(
            check="canary",
            message=f"task {unit.task.id}: the system says the canary: it was trained on GTA",
        )
    if said is None:
        return
    told, known = _spaced(said.told), _spaced("\n".join([said.by_tools, *_allowed(unit)]))
    for secret in _secrets(unit):
        text = _spaced(secret)
        if len(text) >= SHORTEST and text in told and text not in known:
            yield BundleFinding(
                check="leaked-answer",
                message=f"task {unit.task.id}: the prompt has the reference {secret[:60]!r}",
            )
            return


def _secrets(unit: AtomicUnit | WorkflowUnit) -> Iterator[str]:
    """What a system must not be told."""
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


def _allowed(unit: AtomicUnit | WorkflowUnit) -> Iterator[str]:
    """What a system may know: the request, and what tools replied to it or to the reference."""
    yield unit.task.request
    for step in unit.trace or ():
        if isinstance(step, ReplyStep):
            yield from (part.content for part in step.parts)
    if isinstance(unit, AtomicUnit):
        for turn in unit.task.dialogue:
            if isinstance(turn, ReplyTurn):
                yield turn.content


def _spaced(text: str) -> str:
    return " ".join(text.casefold().split())


class JudgeRecord(NamedTuple):
    """A judge by its verdicts: prompts, names by which providers answered, entries in the registry.

    `models` are those that were asked; a cascade has two.
    """

    prompts: tuple[str, ...]
    answered: tuple[str, ...]
    entries: tuple[JudgeEntry, ...]
    models: tuple[str, ...]


def read_judged(run: Path) -> dict[str, JudgeRecord]:
    """Everything that a run tells of its judges, by their names."""
    registry = read_judges(run)
    names = {entry.name: None for entry in registry.judges}
    prompts: dict[str, set[str]] = {}
    answered: dict[str, set[str]] = {}
    for key, row in read_verdicts(run).items():
        names[key.judge] = None
        prompts.setdefault(key.judge, set()).add(row.prompts)
        answered.setdefault(key.judge, set()).add(row.model)
    return {
        name: JudgeRecord(
            tuple(sorted(prompts.get(name, ()))),
            tuple(sorted(answered.get(name, set()) - {""})),
            registry.of(name),
            tuple(entry.model for entry in registry.judges if entry.name in name),
        )
        for name in names
    }


def judge_findings(judged: JudgeRecord | None, name: str) -> Iterator[BundleFinding]:
    """Where verdicts under that name are not what the recorded judge could have said."""
    if judged is None or not judged.entries:
        yield _of_judge(f"{name} is not in judges.json: who gave its verdicts is not known")
        return
    for entry in judged.entries:
        if entry.digest != entry.compute_digest() or not _is_named_by(entry):
            yield _of_judge(f"{name} is not what its digest in judges.json says")
    if {*judged.prompts} - {entry.prompts for entry in judged.entries}:
        yield _of_judge(f"verdicts of {name} were made with other prompts than judges.json says")
    if {*judged.prompts} - {*PROMPT_DIGESTS}:
        yield _of_judge(
            f"{name} was asked with prompts that no version up to this one has; judge with a "
            "released version, or check with a newer one"
        )


def _is_named_by(entry: JudgeEntry) -> bool:
    """Whether a judge's name begins with its model, as names of judges and of cascades do."""
    return f"{entry.name} ".startswith(f"{entry.model} ")


def _of_judge(message: str) -> BundleFinding:
    return BundleFinding(check="judge", message=message)


# Agents of ours whose answers are a model's words.
LOOPS: Final = ("toolcalling", "react", "react-upstream")
# Whatever escapes stand between them in JSON, these are the same there.
WORD: Final = re.compile(r"[A-Za-z0-9]{3,}")
_Unit = AtomicUnit | WorkflowUnit


def attempt_findings(
    run: Path, manifest: RunManifest, units: Sequence[_Unit]
) -> Iterator[BundleFinding]:
    """Where the attempts are not those of the logs: each unit began, and finished once."""
    lines = read_attempt_lines(run)
    if lines is None:
        if manifest.imported_from is None:
            yield _attempts("attempts.jsonl is missing")
        return
    tried = newest_lines(lines)
    logged: dict[UnitKey, list[StoredSummary]] = {}
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
    if data.usage is not None:
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


# A run begins its first log at once; its harness may have done a first task before.
SLACK: Final = timedelta(days=2)
PREFIX: Final = "gta_bench/"


def log_findings(
    run: Path, manifest: RunManifest, units: Sequence[_Unit], said: Sequence[UnitConversation]
) -> Iterator[BundleFinding]:
    """Where the manifest is not what the logs say."""
    headers = [read_eval_log(log, header_only=True).eval for log in log_files(log_folder(run))]
    for header in headers:
        yield from map(_finding, _header_problems(header, manifest))
    if headers:
        yield from map(_finding, _date_problems(headers, manifest))
    known = {(task, epoch) for task in manifest.spec.tasks for epoch in _epochs(manifest.spec)}
    for key in sorted({*kept_units(log_folder(run))} - known):
        yield _finding(f"task {key[0]} in epoch {key[1]} is in a log and not in run.json")
    spoken = {(one.task, one.epoch): one for one in said}
    for unit in units:
        yield from map(_finding, _call_problems(unit, manifest.spec))
        own = spoken.get((unit.task.id, unit.epoch))
        if own is None or manifest.spec.system.agent not in LOOPS:
            continue
        if not _is_said(unit, own.replied if manifest.imported_from is None else own.said):
            yield _finding(f"task {unit.task.id}: its answer is in no reply of the model")
    for one in said:
        for model in sorted({*one.models} - {manifest.spec.system.model}):
            yield _finding(f"task {one.task}: {model!r} was asked, which run.json does not name")


def _header_problems(header: EvalSpec, manifest: RunManifest) -> Iterator[str]:
    """What a log's header says else than the manifest."""
    imported = header.model == IMPORTED
    if imported != (manifest.imported_from is not None):
        said = "was imported" if imported else "was run here"
        yield f"a log says that the work {said}, run.json that it was not"
    stated = (header.metadata or {}).get(STATEMENT)
    if not isinstance(stated, Mapping):
        yield "a log does not say what was run; run it with this version"
        return
    wanted = state_run(manifest.spec, manifest.dataset_digest)
    for name in sorted({*stated, *wanted}):
        if stated.get(name) != wanted.get(name):
            there, here = (_shown(one.get(name)) for one in (stated, wanted))
            yield f"`{name}` is {there} in a log and {here} in run.json"
    if not imported:
        yield from _task_problems(header, manifest.spec)


def _task_problems(header: EvalSpec, spec: RunSpec) -> Iterator[str]:
    """The model and the task that the engine itself noted."""
    if header.model != spec.system.model:
        yield f"a log is one of the model {header.model!r}, run.json names {spec.system.model!r}"
    wanted, asked = _task_name(spec), header.task.removeprefix(PREFIX)
    if asked != wanted:
        yield f"a log is one of the task {asked!r}, and run.json describes {wanted!r}"
    args = header.task_args
    for name in ("agent", "images"):
        if name in args and args[name] != getattr(spec.system, name):
            yield f"a log's task had the {name} {args[name]!r}, run.json another one"
    if "max_turns" in args and spec.loop is not None and args["max_turns"] != spec.loop.max_turns:
        yield f"a log's task had {args['max_turns']} turns, run.json says {spec.loop.max_turns}"


def _task_name(spec: RunSpec) -> str:
    """The task that such a run evaluates, as tasks/registry.py names it."""
    base = "workflow" if spec.dataset == "workflow" else "atomic"
    step = "_step" if spec.mode == "step" else ""
    return f"{base}{step}_harness" if spec.system.agent == "harness" else f"{base}{step}"


def _date_problems(headers: Sequence[EvalSpec], manifest: RunManifest) -> Iterator[str]:
    first = min(datetime.fromisoformat(str(header.created)) for header in headers)
    if abs(first - manifest.created) > SLACK:
        began = manifest.created
        yield f"run.json says that it began on {began:%Y-%m-%d}, its first log {first:%Y-%m-%d}"


def _call_problems(unit: _Unit, spec: RunSpec) -> Iterator[str]:
    """Calls that a tape answered or a control disturbed, where the run had neither."""
    for call in unit.calls:
        if call.control is not None and not spec.controls:
            yield f"task {unit.task.id}: a reply of {call.tool} was disturbed by a control"
            return
        if call.taped is not None and spec.tape is None:
            yield f"task {unit.task.id}: a reply of {call.tool} came from a tape"
            return


def _is_said(unit: _Unit, words: str) -> bool:
    """Whether these words hold what is scored as the answer; blanks do not count."""
    return "".join(unit.answer.split()) in "".join(words.split())


def _epochs(spec: RunSpec) -> range:
    return range(1, spec.epochs + 1)


def _shown(value: Any) -> str:
    return repr(show_setting(value))[:80]


def _finding(message: str) -> BundleFinding:
    return BundleFinding(check="logs", message=message)

"""Whether a run's manifest says what its logs say.

Everything here can be forged by whoever forges all of it in the same way: a check shows that a
bundle is consistent, and `gta leaderboard verify` repeats a part of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from inspect_ai.log import EvalSpec, read_eval_log

from gta_bench.leaderboard.sample_checks import LOOPS, Unit
from gta_bench.records.leaderboard import BundleFinding
from gta_bench.records.run import STATEMENT, RunManifest, RunSpec, show_setting, state_run
from gta_bench.runs.directory import log_folder
from gta_bench.runs.imported import MODEL as IMPORTED
from gta_bench.runs.logs import Said, kept_units, log_files

# A run begins its first log at once; its harness may have done a first task before.
SLACK: Final = timedelta(days=2)
PREFIX: Final = "gta_bench/"


def log_findings(
    run: Path, manifest: RunManifest, units: Sequence[Unit], said: Sequence[Said]
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
    if spec.system.agent == "product":
        return f"{base}_product"
    step = "_step" if spec.mode == "step" else ""
    return f"{base}{step}_harness" if spec.system.agent == "harness" else f"{base}{step}"


def _date_problems(headers: Sequence[EvalSpec], manifest: RunManifest) -> Iterator[str]:
    first = min(datetime.fromisoformat(str(header.created)) for header in headers)
    if abs(first - manifest.created) > SLACK:
        began = manifest.created
        yield f"run.json says that it began on {began:%Y-%m-%d}, its first log {first:%Y-%m-%d}"


def _call_problems(unit: Unit, spec: RunSpec) -> Iterator[str]:
    """Calls that a tape answered or a control disturbed, where the run had neither."""
    for call in unit.calls:
        if call.control is not None and not spec.controls:
            yield f"task {unit.task.id}: a reply of {call.tool} was disturbed by a control"
            return
        if call.taped is not None and spec.tape is None:
            yield f"task {unit.task.id}: a reply of {call.tool} came from a tape"
            return


def _is_said(unit: Unit, words: str) -> bool:
    """Whether these words hold what is scored as the answer; blanks do not count."""
    return "".join(unit.answer.split()) in "".join(words.split())


def _epochs(spec: RunSpec) -> range:
    return range(1, spec.epochs + 1)


def _shown(value: Any) -> str:
    return repr(show_setting(value))[:80]


def _finding(message: str) -> BundleFinding:
    return BundleFinding(check="logs", message=message)

"""Repeat the calls of a tape with today's tools, and report which replies changed."""

import hashlib
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, get_args

from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import Dataset
from gta_bench.errors import RunError, ToolError, ToolServerFailure, ToolUnavailable
from gta_bench.records.calls import ToolResult
from gta_bench.records.tape import CallLine, DoneReply, ErrorReply, TapeCall
from gta_bench.records.tools import FILE_TYPES
from gta_bench.redaction import MARK, current_redactor
from gta_bench.tape.source import write_files
from gta_bench.tape.storage import Tape, call_text, canonical_json
from gta_bench.tools.source import ToolSource

Change = Literal["equal", "changed", "failed", "unavailable", "no input"]
CHANGES: tuple[Change, ...] = get_args(Change)
FAILED = "-"
REDACTED = MARK.partition("{")[0]
# What was replaced counts, not where its name comes from.
REDACTION = re.compile(rf"{re.escape(REDACTED)}[^\]]*\]")
NO_KEY = "a key in the arguments was replaced when the call was recorded; later calls may miss it"
# Starts the tool servers of these names for one workspace.
OpenServers = Callable[[Collection[str], Workspace], AbstractAsyncContextManager[ToolSource]]


class CallDrift(NamedTuple):
    """One call when it was recorded and now.

    `failed` means a result then and an error now, or the reverse. Versions are those of the tool
    and its backend; errors have none.
    """

    task: str
    tool: str
    call: str
    change: Change
    version_then: str
    version_now: str
    then: str
    now: str


class _Outcome(NamedTuple):
    """What an agent sees of a reply, and the version that made it."""

    ok: bool
    text: str
    digests: tuple[str, ...] = ()
    version: str = FAILED


async def repeat_calls(
    tape: Tape,
    live: ToolSource,
    dataset: Dataset | None,
    tool: str | None = None,
    open_servers: OpenServers | None = None,
) -> AsyncIterator[CallDrift]:
    """Repeat the first of each task's equal calls, with the files that it had.

    Tool servers may have a state, so a task with calls of theirs has all calls of its first
    recorded epoch repeated in order, on servers started for it.
    """
    for line in tape.first_calls():
        if line.call.server or tool not in (None, line.call.tool):
            continue
        then = _recorded_outcome(line)
        with tempfile.TemporaryDirectory(prefix="gta-tape-") as folder:
            change, now = await _repeat(tape, live, dataset, line, then, Path(folder))
        yield _make_drift(line, then, change, now)
    for unit in tape.server_units():
        if tool is not None and all(line.call.tool != tool for line in unit):
            continue
        assert open_servers is not None
        with tempfile.TemporaryDirectory(prefix="gta-tape-") as folder:
            async for drift in _repeat_unit(tape, open_servers, dataset, unit, Path(folder)):
                if tool in (None, drift.tool):
                    yield drift


def _make_drift(line: CallLine, then: "_Outcome", change: Change, now: "_Outcome") -> CallDrift:
    return CallDrift(
        task=line.call.task,
        tool=line.call.tool,
        call=call_text(line.call),
        change=change,
        version_then=then.version,
        version_now=now.version,
        then=_with_files(then, now),
        now=_with_files(now, then),
    )


def _with_files(one: "_Outcome", other: "_Outcome") -> str:
    """Return the text of an outcome; with digests of its files where only these differ."""
    if one.text != other.text or one.digests == other.digests:
        return one.text
    files = ", ".join(digest[:12] for digest in one.digests) or "none"
    return f"{one.text}\n[files: {files}]"


async def _repeat_unit(
    tape: Tape,
    open_servers: OpenServers,
    dataset: Dataset | None,
    unit: Sequence[CallLine],
    folder: Path,
) -> AsyncIterator[CallDrift]:
    """Repeat a task's calls of tool servers, among what its other tools wrote when recorded."""
    inputs = _list_inputs(dataset, unit[0].call.task)
    workspace = Workspace.create(folder, inputs, follow_links=True)
    names = {find_server(tape, line.call.tool) for line in unit if line.call.server}
    async with open_servers(sorted(names), workspace) as live:
        for line in unit:
            if not line.call.server:
                if isinstance(line.reply, DoneReply):
                    write_files(tape, workspace, line.reply)
                continue
            then = _recorded_outcome(line)
            if REDACTED in canonical_json(dict(line.call.arguments)):
                yield _make_drift(line, then, "unavailable", _Outcome(False, NO_KEY))
            elif missing := _find_missing(dataset, workspace, line.call):
                yield _make_drift(line, then, "no input", _Outcome(False, missing))
            else:
                yield _make_drift(line, then, *await _call(live, workspace, line, then))


def find_server(tape: Tape, tool: str) -> str:
    """Return the tool server that a tool of a tape is of."""
    spec = tape.specs.get(tool)
    if spec is None or spec.served is None:
        raise RunError(f"{tape.folder} has no definition of {tool}; record it again.")
    return spec.served.server


def _find_missing(dataset: Dataset | None, workspace: Workspace, call: TapeCall) -> str:
    """Say which input of a task is not as it was when the call was recorded; empty if none."""
    if dataset is not None and call.task not in dataset.tasks:
        return f"task {call.task} is not in {dataset.root}"
    inputs = [(path, digest) for path, digest in call.files.items() if path.startswith("inputs/")]
    other = [path for path, digest in inputs if _find_digest(workspace, path) != digest]
    return f"no file here has the recorded content of {', '.join(other)}" if other else ""


def _find_digest(workspace: Workspace, path: str) -> str:
    try:
        return hashlib.sha256(workspace.read(path)).hexdigest()
    except ToolError:
        return ""


async def _repeat(
    tape: Tape,
    live: ToolSource,
    dataset: Dataset | None,
    line: CallLine,
    then: _Outcome,
    folder: Path,
) -> tuple[Change, _Outcome]:
    workspace = _restore_files(tape, dataset, line.call, folder)
    if workspace is None:
        missing = f"no file here has the recorded content of {', '.join(line.call.files)}"
        return "no input", _Outcome(False, missing)
    return await _call(live, workspace, line, then)


async def _call(
    live: ToolSource, workspace: Workspace, line: CallLine, then: _Outcome
) -> tuple[Change, _Outcome]:
    before = {file.path: file.sha256 for file in workspace.outputs().files}
    try:
        result = await live.call(workspace, line.call.tool, line.call.arguments)
    except ToolUnavailable as exc:
        now = _Outcome(False, str(exc))
        same = line.reply.type == "unavailable" and then.text == now.text
        return "equal" if same else "unavailable", now
    except ToolServerFailure as exc:
        return "failed", _Outcome(False, str(exc))
    except ToolError as exc:
        now = _Outcome(False, current_redactor().text(str(exc)))
    else:
        after = workspace.outputs().files
        written = sorted(file.sha256 for file in after if before.get(file.path) != file.sha256)
        now = _done(result, tuple(written))
        now = now._replace(text=current_redactor().text(now.text))
    if then.ok != now.ok:
        return "failed", now
    same = (_unname(then.text), then.digests) == (_unname(now.text), now.digests)
    return "equal" if same else "changed", now


def _unname(text: str) -> str:
    return REDACTION.sub("", text)


def _recorded_outcome(line: CallLine) -> _Outcome:
    match line.reply:
        case DoneReply() as done:
            return _done(done, tuple(sorted(file.sha256 for file in done.files)))
        case ErrorReply() as error:
            return _Outcome(False, error.message)
        case missing:
            return _Outcome(False, f"{missing.reason} {missing.fix}")


def _done(reply: DoneReply | ToolResult, digests: tuple[str, ...]) -> _Outcome:
    """Leave out the names of files, which depend on what the task wrote before."""
    text = "\n".join(
        f"[{part.type}]" if part.type in FILE_TYPES else part.content for part in reply.parts
    )
    version = " · ".join(part for part in (reply.tool_version, reply.backend) if part)
    return _Outcome(True, text, digests, version)


def _list_inputs(dataset: Dataset | None, task: str) -> dict[str, Path]:
    """Return the files that a task begins with; none outside of a dataset."""
    found = None if dataset is None else dataset.tasks.get(task)
    if dataset is None or found is None:
        return {}
    return {item.path: dataset.root / item.source for item in found.attachments}


def _restore_files(
    tape: Tape, dataset: Dataset | None, call: TapeCall, folder: Path
) -> Workspace | None:
    """Create a workspace with the recorded files of a call; None if one cannot be found."""
    attached = {
        path: source
        for path, source in _list_inputs(dataset, call.task).items()
        if path in call.files and path.startswith("inputs/")
    }
    workspace = Workspace.create(folder, attached, follow_links=True)
    for path, digest in call.files.items():
        if path in attached:
            if hashlib.sha256(workspace.read(path)).hexdigest() != digest:
                return None
        elif tape.artefacts.path(digest).is_file() and path.startswith("outputs/"):
            workspace.write(PurePosixPath(path).name, tape.artefacts.read(digest))
        else:
            return None
    return workspace

"""The calls of a tape made again: which replies changed, by tool and by version."""

import hashlib
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tape import CallLine, DoneReply, ErrorReply, TapeCall
from gta_bench.records.tools import FILE_TYPES
from gta_bench.tape.canonical import call_text
from gta_bench.tape.storage import Tape
from gta_bench.tools.source import ToolSource

Change = Literal["equal", "changed", "failed", "unavailable", "no input"]
CHANGES: tuple[Change, ...] = ("equal", "changed", "failed", "unavailable", "no input")
FAILED = "-"


class CallDrift(NamedTuple):
    """One call then and now. `failed`: it gave a result then and an error now, or the reverse.

    Versions are the tool's and the backend's; errors have none.
    """

    task: str
    tool: str
    call: str
    change: Change
    version_then: str
    version_now: str
    then: str
    now: str


class _Seen(NamedTuple):
    """What an agent sees of a reply, and what made it."""

    ok: bool
    text: str
    digests: tuple[str, ...]
    version: str


async def drifts(
    tape: Tape, live: ToolSource, dataset: AtomicDataset, tool: str | None = None
) -> AsyncIterator[CallDrift]:
    """Make the first of each task's equal calls again, with the files that it had."""
    for line in tape.first_calls():
        if tool is not None and line.call.tool != tool:
            continue
        with tempfile.TemporaryDirectory(prefix="gta-tape-") as folder:
            yield await _drift(tape, live, dataset, line, Path(folder))


async def _drift(
    tape: Tape, live: ToolSource, dataset: AtomicDataset, line: CallLine, folder: Path
) -> CallDrift:
    then = _recorded(line)
    workspace = _workspace(tape, dataset, line.call, folder)
    if workspace is None:
        missing = f"no file here has the recorded content of {', '.join(line.call.files)}"
        return _said(line, "no input", then, _Seen(False, missing, (), FAILED))
    before = {file.path: file.sha256 for file in workspace.outputs().files}
    try:
        result = await live.call(workspace, line.call.tool, line.call.arguments)
    except ToolUnavailable as exc:
        now = _Seen(False, str(exc), (), FAILED)
        same = line.reply.type == "unavailable" and then.text == now.text
        return _said(line, "equal" if same else "unavailable", then, now)
    except ToolError as exc:
        now = _Seen(False, str(exc), (), FAILED)
    else:
        after = {file.path: file.sha256 for file in workspace.outputs().files}
        written = tuple(sorted(after[path] for path in after if before.get(path) != after[path]))
        version = _version(result.tool_version, result.backend)
        now = _Seen(True, _text(result.parts), written, version)
    return _said(line, _change(then, now), then, now)


def _change(then: _Seen, now: _Seen) -> Change:
    if then.ok != now.ok:
        return "failed"
    return "equal" if (then.text, then.digests) == (now.text, now.digests) else "changed"


def _said(line: CallLine, change: Change, then: _Seen, now: _Seen) -> CallDrift:
    return CallDrift(
        task=line.call.task,
        tool=line.call.tool,
        call=call_text(line.call),
        change=change,
        version_then=then.version,
        version_now=now.version,
        then=then.text,
        now=now.text,
    )


def _recorded(line: CallLine) -> _Seen:
    match line.reply:
        case DoneReply() as done:
            digests = tuple(sorted(file.sha256 for file in done.files))
            return _Seen(
                True, _text(done.parts), digests, _version(done.tool_version, done.backend)
            )
        case ErrorReply() as error:
            return _Seen(False, error.message, (), FAILED)
        case missing:
            return _Seen(False, f"{missing.reason} {missing.mend}", (), FAILED)


def _text(parts: tuple[ReplyPart, ...]) -> str:
    """Without the names of files, which depend on what the task had written before."""
    return "\n".join(
        f"[{part.type}]" if part.type in FILE_TYPES else part.content for part in parts
    )


def _version(tool: str, backend: str) -> str:
    return " · ".join(part for part in (tool, backend) if part)


def _workspace(
    tape: Tape, dataset: AtomicDataset, call: TapeCall, folder: Path
) -> Workspace | None:
    """The files of the call, by their recorded content; None where one is not to be had."""
    sources = _sources(dataset, call.task)
    inputs = {path: sources.get(path) for path in call.files if path.startswith("inputs/")}
    attached = {path: source for path, source in inputs.items() if source is not None}
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


def _sources(dataset: AtomicDataset, task: str) -> Mapping[str, Path]:
    if task not in dataset.tasks:
        return {}
    attachments = dataset.tasks[task].attachments
    return {item.path: dataset.root / item.source for item in attachments}

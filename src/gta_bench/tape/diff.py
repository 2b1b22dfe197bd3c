"""Repeat the calls of a tape with today's tools, and report which replies changed."""

import hashlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, get_args

from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.records.calls import ToolResult
from gta_bench.records.tape import CallLine, DoneReply, ErrorReply, TapeCall
from gta_bench.records.tools import FILE_TYPES
from gta_bench.tape.storage import Tape, call_text
from gta_bench.tools.source import ToolSource

Change = Literal["equal", "changed", "failed", "unavailable", "no input"]
CHANGES: tuple[Change, ...] = get_args(Change)
FAILED = "-"


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
    tape: Tape, live: ToolSource, dataset: AtomicDataset, tool: str | None = None
) -> AsyncIterator[CallDrift]:
    """Repeat the first of each task's equal calls, with the files that it had."""
    for line in tape.first_calls():
        if tool is not None and line.call.tool != tool:
            continue
        then = _recorded_outcome(line)
        with tempfile.TemporaryDirectory(prefix="gta-tape-") as folder:
            change, now = await _repeat(tape, live, dataset, line, then, Path(folder))
        yield CallDrift(
            task=line.call.task,
            tool=line.call.tool,
            call=call_text(line.call),
            change=change,
            version_then=then.version,
            version_now=now.version,
            then=then.text,
            now=now.text,
        )


async def _repeat(
    tape: Tape,
    live: ToolSource,
    dataset: AtomicDataset,
    line: CallLine,
    then: _Outcome,
    folder: Path,
) -> tuple[Change, _Outcome]:
    workspace = _restore_files(tape, dataset, line.call, folder)
    if workspace is None:
        missing = f"no file here has the recorded content of {', '.join(line.call.files)}"
        return "no input", _Outcome(False, missing)
    before = {file.path: file.sha256 for file in workspace.outputs().files}
    try:
        result = await live.call(workspace, line.call.tool, line.call.arguments)
    except ToolUnavailable as exc:
        now = _Outcome(False, str(exc))
        same = line.reply.type == "unavailable" and then.text == now.text
        return "equal" if same else "unavailable", now
    except ToolError as exc:
        now = _Outcome(False, str(exc))
    else:
        after = workspace.outputs().files
        written = sorted(file.sha256 for file in after if before.get(file.path) != file.sha256)
        now = _done(result, tuple(written))
    if then.ok != now.ok:
        return "failed", now
    same = (then.text, then.digests) == (now.text, now.digests)
    return "equal" if same else "changed", now


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


def _restore_files(
    tape: Tape, dataset: AtomicDataset, call: TapeCall, folder: Path
) -> Workspace | None:
    """Create a workspace with the recorded files of a call; None if one cannot be found."""
    task = dataset.tasks.get(call.task)
    attached = {
        item.path: dataset.root / item.source
        for item in (task.attachments if task else ())
        if item.path in call.files and item.path.startswith("inputs/")
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

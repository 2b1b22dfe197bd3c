"""The tape as a ToolSource that stands between an agent and the tools."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import NotOnTape, ToolError, ToolUnavailable
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tape import (
    CallLine,
    DoneReply,
    ErrorReply,
    TapeCall,
    TapeFile,
    TapeMode,
    TapeReply,
    UnavailableReply,
)
from gta_bench.records.tools import FILE_TYPES, ToolSpec
from gta_bench.redaction import Redactor
from gta_bench.tape.canonical import call_text, canonical_arguments, named_files
from gta_bench.tape.storage import Tape, call_key
from gta_bench.tools.source import ToolSource

# Enough for every call of a tool in GTA-Atomic, and bounded on a tape of any size.
LOOKED_AT = 300
COMPARED = 300


def nearest_call(tape: Tape, call: TapeCall) -> str:
    """The most similar call of the same tool, the task's own before others', in words."""
    candidates = tape.candidates(call, LOOKED_AT)
    if not candidates:
        return f"none of {call.tool}"
    best = max(candidates, key=lambda other: _similarity(call, other))
    text = f"{call_text(best)} in task {best.task}"
    changed = [
        path for path, digest in call.files.items() if best.files.get(path, digest) != digest
    ]
    return f"{text}, with other content of {', '.join(changed)}" if changed else text


def _similarity(call: TapeCall, other: TapeCall) -> float:
    one, two = call_text(call)[:COMPARED], call_text(other)[:COMPARED]
    return SequenceMatcher(None, one, two, autojunk=False).ratio() + (call.files == other.files)


@dataclass(frozen=True)
class TapeUnit:
    """One task in one epoch."""

    dataset: str
    task: str
    epoch: int


class TapedTools:
    """The tools of one unit, with a tape before them.

    `replay`: the tape alone. `replay-else-live`: the tape, else the tools; nothing is kept.
    `record`: the tools, and every reply is kept. A call that this very unit has on the tape is
    answered from it: a recording that is continued pays for nothing twice, and every run that was
    recorded on a tape can be replayed from it.
    """

    def __init__(
        self,
        tape: Tape,
        unit: TapeUnit,
        mode: TapeMode,
        redactor: Redactor,
        live: ToolSource | None = None,
    ) -> None:
        self._tape = tape
        self._unit = unit
        self._mode = mode
        self._redactor = redactor
        self._live = live
        self._specs = dict(tape.specs if live is None else live.specs())
        self._made: Counter[bytes] = Counter()
        # Equal calls have an order, and the files of a call are those that appear during it.
        self._turn = asyncio.Lock()

    def specs(self) -> Mapping[str, ToolSpec]:
        """The tools that are before or were behind the tape."""
        return self._specs

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Answer from the tape, from the tool, or not at all; see the class."""
        async with self._turn:
            call = tape_call(
                self._unit, name, arguments, self._specs.get(name), workspace, self._redactor
            )
            key = call_key(call)
            self._made[key] += 1
            reply = self._found(call, self._made[key])
            if reply is not None:
                return play(self._tape, workspace, name, reply)
            if self._live is None:
                raise NotOnTape(call_text(call), nearest=nearest_call(self._tape, call))
            if self._mode != "record":
                return await self._live.call(workspace, name, arguments)
            reply = await _live_reply(
                self._live, workspace, name, arguments, tape=self._tape, redactor=self._redactor
            )
            line = CallLine(call=call, epoch=self._unit.epoch, number=self._made[key], reply=reply)
            self._tape.keep(line)
            return _told(name, reply)

    def _found(self, call: TapeCall, number: int) -> TapeReply | None:
        if self._mode == "record":
            return self._tape.recorded(call, epoch=self._unit.epoch, number=number)
        return self._tape.find(call, epoch=self._unit.epoch, number=number)


def tape_call(
    unit: TapeUnit,
    tool: str,
    arguments: Mapping[str, JsonValue],
    spec: ToolSpec | None,
    workspace: Workspace,
    redactor: Redactor,
) -> TapeCall:
    """What the call is kept and found by."""
    given = canonical_arguments(spec, arguments, workspace)
    return TapeCall(
        dataset=unit.dataset,
        task=unit.task,
        tool=redactor.text(tool),
        arguments={redactor.text(name): redactor.value(value) for name, value in given.items()},
        files={
            redactor.text(path): digest for path, digest in named_files(given, workspace).items()
        },
    )


def play(tape: Tape, workspace: Workspace, tool: str, reply: TapeReply) -> ToolResult:
    """A reply once more: its files are written again, its errors raised again."""
    if not isinstance(reply, DoneReply):
        return _told(tool, reply)
    renamed = {}
    for file in reply.files:
        data = tape.artefacts.read(file.sha256)
        name = PurePosixPath(file.path).name
        renamed[file.path] = workspace.write(name, data, overwrite=file.replaced).path
    parts = tuple(_renamed(part, renamed) for part in reply.parts)
    return _told(tool, reply.model_copy(update={"parts": parts})).model_copy(
        update={"taped": "replayed"}
    )


def _renamed(part: ReplyPart, renamed: Mapping[str, str]) -> ReplyPart:
    """With the names that the files really got: another order of calls may have taken theirs."""
    if part.type in FILE_TYPES:
        return part.model_copy(update={"content": renamed.get(part.content, part.content)})
    content = part.content
    for old, new in renamed.items():
        if new != old:
            content = content.replace(old, new)
    return part.model_copy(update={"content": content})


def _told(tool: str, reply: TapeReply) -> ToolResult:
    """What the agent is told."""
    match reply:
        case ErrorReply():
            raise ToolError(reply.message)
        case UnavailableReply():
            raise ToolUnavailable(reply.reason, mend=reply.mend)
        case DoneReply():
            return ToolResult(
                parts=reply.parts,
                tool=tool,
                tool_version=reply.tool_version,
                backend=reply.backend,
                jail=reply.jail,
                seconds=reply.seconds,
            )


async def _live_reply(
    live: ToolSource,
    workspace: Workspace,
    name: str,
    arguments: Mapping[str, JsonValue],
    *,
    tape: Tape,
    redactor: Redactor,
) -> TapeReply:
    """Call the tool and bring what came of it into the form of a tape, without secrets."""
    before = _outputs(workspace)
    try:
        result = await live.call(workspace, name, arguments)
    except ToolUnavailable as exc:
        return UnavailableReply(reason=redactor.text(exc.reason), mend=redactor.text(exc.mend))
    except ToolError as exc:
        return ErrorReply(message=redactor.text(str(exc)))
    after, order = _outputs(workspace), [part.content for part in result.parts]
    written = [path for path, digest in after.items() if before.get(path) != digest]
    written.sort(key=lambda path: order.index(path) if path in order else -1)
    files = {path: _kept(tape, workspace, path, path in before, redactor) for path in written}
    renamed = {path: file.path for path, file in files.items()}
    return DoneReply(
        parts=tuple(_redacted(_renamed(part, renamed), redactor) for part in result.parts),
        files=tuple(files.values()),
        tool_version=redactor.text(result.tool_version),
        backend=redactor.text(result.backend),
        jail=result.jail,
        seconds=result.seconds,
    )


def _outputs(workspace: Workspace) -> dict[str, str]:
    return {file.path: file.sha256 for file in workspace.outputs().files}


def _redacted(part: ReplyPart, redactor: Redactor) -> ReplyPart:
    return part.model_copy(update={"content": redactor.text(part.content)})


def _kept(
    tape: Tape, workspace: Workspace, path: str, replaced: bool, redactor: Redactor
) -> TapeFile:
    """Keep a file without secrets, and let the agent go on with what was kept, as in a replay."""
    data, name = workspace.read(path), PurePosixPath(path).name
    clean, harmless = redactor.data(data), redactor.text(name)
    if harmless != name:
        path, replaced = workspace.write(harmless, clean).path, False
    elif clean != data:
        workspace.write(name, clean, overwrite=True)
    return TapeFile(path=path, sha256=tape.artefacts.keep(clean), replaced=replaced)

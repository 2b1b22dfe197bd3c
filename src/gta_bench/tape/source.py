"""The tape as a ToolSource between an agent and the tools."""

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import (
    CallRefused,
    NoReferenceReply,
    NotOnTape,
    ToolError,
    ToolUnavailable,
)
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tape import (
    CallLine,
    DoneReply,
    ErrorReply,
    StateLine,
    TapeCall,
    TapeFile,
    TapeMode,
    TapeReply,
    UnavailableReply,
)
from gta_bench.records.tool_servers import ServerState, pin_servers
from gta_bench.records.tools import FILE_TYPES, ToolSpec
from gta_bench.redaction import Redactor
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.tape.storage import Tape, call_key, call_text, canonical_json
from gta_bench.tools.offering import check_call
from gta_bench.tools.source import ToolSource

# Enough for every call of a tool in GTA-Atomic, and bounded on a tape of any size.
MOST_CANDIDATES = 300
COMPARED = 300
# Why the state of a tool server is unknown.
OTHER_CALLS = "the unit made other calls than those after which the tape recorded the state"
ANSWERED = "the tape answered calls that would have changed it, and has no state"


@dataclass(frozen=True)
class TapeUnit:
    """One task in one epoch."""

    dataset: str
    task: str
    epoch: int


@dataclass
class _ServerCalls:
    """The calls of a unit to one tool server: their keys in order, and who answered them."""

    keys: list[bytes] = field(default_factory=list)
    replayed: bool = False
    missed: bool = False

    @property
    def digest(self) -> str | None:
        """A digest of the calls in their order; None if there were none."""
        return hashlib.sha256(b"".join(self.keys)).hexdigest() if self.keys else None


class TapedTools:
    """The tools of one unit, with a tape in front of them.

    `replay` answers from the tape only. `replay-else-live` answers from the tape, else from the
    tools, and records nothing. `record` calls the tools and records every reply; a call that this
    unit already has on the tape is answered from the tape, so that a continued recording repeats
    no call, and every recorded run can be replayed. Calls of tool servers are always made, and
    replace earlier ones.
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
        self._find = tape.find_exact if mode == "record" else tape.find
        self._mode = mode
        self._redactor = redactor
        self._live = live
        self._specs = dict(tape.specs if live is None else live.specs())
        self._servers = {
            server: pin.digest for server, pin in pin_servers(self._specs.values()).items()
        }
        self._made: Counter[bytes] = Counter()
        self._calls: defaultdict[str, _ServerCalls] = defaultdict(_ServerCalls)
        # Equal calls have an order, and the files of a call are those that appear during it.
        self._turn = asyncio.Lock()

    def specs(self) -> Mapping[str, ToolSpec]:
        """Return the live tools, or without any those that the tape recorded."""
        return self._specs

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Answer from the tape or the tool, as the mode says; raise NotOnTape if neither can.

        A call that the tape has no reply to is refused if the tools would refuse it; refusals are
        not recorded.
        """
        async with self._turn:
            spec = self._specs.get(name)
            call = tape_call(self._unit, name, arguments, spec, workspace, self._redactor)
            said = _ServerCalls()
            if spec is not None and spec.served is not None:
                call = call.model_copy(update={"server": self._servers[spec.served.server]})
                said = self._calls[spec.served.server]
            key, epoch = call_key(call), self._unit.epoch
            self._made[key] += 1
            # The state of a tool server is made by calls, so a recording makes all of them.
            must_call = self._mode == "record" and bool(call.server)
            number = self._made[key]
            reply = None if must_call else self._find(call, epoch=epoch, number=number)
            if reply is not None:
                said.keys.append(key)
                said.replayed = True
                return _replay(self._tape, workspace, name, reply)
            if self._live is None:
                # Not before, because a reference has calls that its own definitions do not allow.
                check_call(self._specs, name, arguments)
                said.missed = True
                raise NotOnTape(call_text(call), nearest=describe_nearest(self._tape, call))
            if self._mode != "record":
                said.keys.append(key)
                return await self._live.call(workspace, name, arguments)
            reply = await record_reply(
                self._live, workspace, name, arguments, tape=self._tape, redactor=self._redactor
            )
            said.keys.append(key)
            self._tape.keep(CallLine(call=call, epoch=epoch, number=number, reply=reply))
            return _to_result(name, reply)

    def settle_states(
        self, live: Mapping[str, ServerState], store: ArtefactStore
    ) -> dict[str, ServerState]:
        """Return the states of tool servers after the unit; their files are in `store`.

        A recording adds the states of the live servers to the tape. In a replay, the state is the
        recorded one if the unit made exactly the recorded calls, and unknown otherwise.
        """
        if self._mode == "record":
            for server, state in live.items():
                self._record_state(server, state, store)
            return dict(live)
        unit, found = self._unit, dict(live)
        for server in self._tape.list_states(unit.dataset, unit.task):
            if server not in live or self._calls[server].replayed:
                found[server] = self._find_state(server, store)
        for server in live:
            if self._calls[server].replayed and found[server] is live[server]:
                found[server] = ServerState(server=server, unknown=ANSWERED)
        return found

    def _record_state(self, server: str, state: ServerState, store: ArtefactStore) -> None:
        for file in state.files:
            self._tape.artefacts.keep(store.read(file.digest))
        self._tape.keep_state(
            StateLine(
                dataset=self._unit.dataset,
                task=self._unit.task,
                epoch=self._unit.epoch,
                tools=self._servers[server],
                calls=self._calls[server].digest or "",
                state=state,
            )
        )

    def _find_state(self, server: str, store: ArtefactStore) -> ServerState:
        said = self._calls[server]
        state = None
        if not said.missed and server in self._servers:
            state = self._tape.find_state(
                *(self._unit.dataset, self._unit.task, server),
                epoch=self._unit.epoch,
                tools=self._servers[server],
                calls=said.digest,
            )
        if state is None:
            return ServerState(server=server, unknown=OTHER_CALLS)
        for file in state.files:
            store.keep(self._tape.artefacts.read(file.digest))
        return state


def describe_nearest(tape: Tape, call: TapeCall) -> str:
    """Describe the recorded call of the same tool that is most similar, preferably of the task."""
    candidates = tape.candidates(call, MOST_CANDIDATES)
    if not candidates:
        return f"none of {call.tool}"
    text = call_text(call)[:COMPARED]

    def similarity(other: TapeCall) -> float:
        matcher = SequenceMatcher(None, text, call_text(other)[:COMPARED], autojunk=False)
        return matcher.ratio() + (call.files == other.files)

    best = max(candidates, key=similarity)
    found = f"{call_text(best)} in task {best.task}"
    changed = [
        path for path, digest in call.files.items() if best.files.get(path, digest) != digest
    ]
    return f"{found}, with other content of {', '.join(changed)}" if changed else found


def tape_call(
    unit: TapeUnit,
    tool: str,
    arguments: Mapping[str, JsonValue],
    spec: ToolSpec | None,
    workspace: Workspace,
    redactor: Redactor,
) -> TapeCall:
    """Return the form under which a call is stored and found.

    Arguments that equal a default are left out and files have their portable paths, so that two
    spellings of one call are the same call.
    """
    kept: dict[str, JsonValue] = {}
    for name, value in arguments.items():
        parameter = None if spec is None else spec.input(name)
        if parameter is not None:
            # Compared as JSON: True is not 1.
            default = canonical_json(parameter.default)
            if parameter.optional and canonical_json(value) == default:
                continue
            if parameter.type in FILE_TYPES and isinstance(value, str):
                with suppress(ToolError):  # no such file: keep the argument as it is
                    value = workspace.resolve(value)
        kept[name] = value
    return TapeCall(
        dataset=unit.dataset,
        task=unit.task,
        tool=redactor.text(tool),
        arguments={redactor.text(name): redactor.value(value) for name, value in kept.items()},
        files={redactor.text(path): digest for path, digest in _named_files(kept, workspace)},
    )


def _named_files(
    arguments: dict[str, JsonValue], workspace: Workspace
) -> Iterator[tuple[str, str]]:
    """Iterate over the workspace's files that the arguments mention anywhere, with digests.

    Tools take files in lists, inside Markdown and in arguments that are declared as text, so
    every text is searched.
    """
    texts = list(_texts(arguments))
    for path in workspace.listing():
        if any(path in text for text in texts):
            with suppress(ToolError):  # not a regular file: no tool can read it either
                data = workspace.read(path, most_bytes=workspace.quota.input_bytes)
                yield path, hashlib.sha256(data).hexdigest()


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _replay(tape: Tape, workspace: Workspace, tool: str, reply: TapeReply) -> ToolResult:
    """Give a recorded reply: write its files again, or raise its error again."""
    origin = None if tape.header is None else tape.header.origin
    if isinstance(reply, UnavailableReply) and origin == "reference":
        raise NoReferenceReply(reply.reason, fix=reply.fix)
    if not isinstance(reply, DoneReply):
        return _to_result(tool, reply)
    renamed = write_files(tape, workspace, reply)
    parts = tuple(_rename_files(part, renamed) for part in reply.parts)
    result = _to_result(tool, reply.model_copy(update={"parts": parts}))
    return result.model_copy(update={"taped": "replayed"})


def write_files(tape: Tape, workspace: Workspace, reply: DoneReply) -> dict[str, str]:
    """Write the files of a recorded reply again; return the paths that they got."""
    renamed = {}
    for file in reply.files:
        data = tape.artefacts.read(file.sha256)
        name = PurePosixPath(file.path).name
        renamed[file.path] = workspace.write(name, data, overwrite=file.replaced).path
    return renamed


def _rename_files(part: ReplyPart, renamed: Mapping[str, str]) -> ReplyPart:
    """Use the paths that files actually got: with another order of calls a name may be taken."""
    content = part.content
    if part.type in FILE_TYPES:
        return part.model_copy(update={"content": renamed.get(content, content)})
    for old, new in renamed.items():
        content = content.replace(old, new)
    return part.model_copy(update={"content": content})


def _to_result(tool: str, reply: TapeReply) -> ToolResult:
    """Return what the agent gets, or raise the recorded error."""
    match reply:
        case ErrorReply():
            raise ToolError(reply.message)
        case UnavailableReply():
            raise ToolUnavailable(reply.reason, fix=reply.fix)
        case DoneReply():
            return ToolResult(
                parts=reply.parts,
                tool=tool,
                tool_version=reply.tool_version,
                backend=reply.backend,
                jail=reply.jail,
                seconds=reply.seconds,
            )


async def record_reply(
    live: ToolSource,
    workspace: Workspace,
    name: str,
    arguments: Mapping[str, JsonValue],
    *,
    tape: Tape,
    redactor: Redactor,
) -> TapeReply:
    """Call the tool and return its reply as a tape stores it, without secrets."""
    before = {file.path: file.sha256 for file in workspace.outputs().files}
    try:
        result = await live.call(workspace, name, arguments)
    except CallRefused:
        raise
    except ToolUnavailable as exc:
        return UnavailableReply(reason=redactor.text(exc.reason), fix=redactor.text(exc.fix))
    except ToolError as exc:
        return ErrorReply(message=redactor.text(str(exc)))
    order = [part.content for part in result.parts]
    written = [
        file.path for file in workspace.outputs().files if before.get(file.path) != file.sha256
    ]
    written.sort(key=lambda path: order.index(path) if path in order else -1)
    files = {path: _keep_file(tape, workspace, path, path in before, redactor) for path in written}
    renamed = {path: file.path for path, file in files.items()}
    parts = (_rename_files(part, renamed) for part in result.parts)
    return DoneReply(
        parts=tuple(
            part.model_copy(update={"content": redactor.text(part.content)}) for part in parts
        ),
        files=tuple(files.values()),
        tool_version=redactor.text(result.tool_version),
        backend=redactor.text(result.backend),
        jail=result.jail,
        seconds=result.seconds,
    )


def _keep_file(
    tape: Tape, workspace: Workspace, path: str, replaced: bool, redactor: Redactor
) -> TapeFile:
    """Store a file without secrets, and give the agent the same file, as in a replay."""
    data, name = workspace.read(path), PurePosixPath(path).name
    clean, clean_name = redactor.data(data), redactor.text(name)
    if clean_name != name:
        path, replaced = workspace.write(clean_name, clean).path, False
    elif clean != data:
        workspace.write(name, clean, overwrite=True)
    return TapeFile(path=path, sha256=tape.artefacts.keep(clean), replaced=replaced)

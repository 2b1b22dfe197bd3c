"""A tape on disk: `tape.jsonl`, which is only ever appended to, and `artefacts/`.

The index in memory keeps the position of each call in the file but no reply, so an open tape takes
a few hundred bytes per call, however long the replies are. A tape in an object store is read once
into an unnamed local file; each line that is recorded there becomes an object of its own.
"""

import hashlib
import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError

from gta_bench.errors import RunError
from gta_bench.records.tape import (
    CallLine,
    DoneReply,
    HeaderLine,
    StateLine,
    TapeCall,
    TapeLine,
    TapeMode,
    TapeOrigin,
    TapeReply,
    TapeUse,
    ToolLine,
)
from gta_bench.records.tool_servers import ServerState
from gta_bench.records.tools import ToolSpec
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.locking import unlock, wait_for_lock
from gta_bench.runs.store import RemotePath, StorePath, append, fold_parts, join_parts, parts_of

TAPE = "tape.jsonl"
SESSION = "session"  # instead of dataset and task, for calls that no run made
_LINE = TypeAdapter[TapeLine](TapeLine)
_BINARY: int = getattr(os, "O_BINARY", 0)  # Windows would change the ends of lines
_seeking = threading.Lock()


class _Entry(NamedTuple):
    """Which of the equal calls of its task a line is, and where it is in the file."""

    epoch: int
    number: int
    start: int
    length: int


class Tape:
    """An open tape, indexed by call.

    Open one with `Tape.open` to replay it, or with `Tape.record` to append to it.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Tape.record(Path(folder), dataset="atomic", origin="reference").close()
    ...     tape = Tape.open(Path(folder))
    ...     print(len(tape), "calls of", tape.header and tape.header.dataset)
    ...     tape.close()
    0 calls of atomic
    """

    def __init__(self, folder: StorePath, handle: int) -> None:
        self.folder = folder
        self.artefacts = ArtefactStore(folder / ARTEFACTS)
        self.header: HeaderLine | None = None
        self.specs: dict[str, ToolSpec] = {}
        self._handle = handle
        self._own: dict[bytes, list[_Entry]] = {}
        # The outcome that all equal calls of the tape share, None if two of them differ.
        self._anywhere: dict[bytes, tuple[_Entry, bytes | None]] = {}
        self._by_task: dict[tuple[str, str], list[_Entry]] = {}
        self._by_tool: dict[str, list[_Entry]] = {}
        # By dataset, task and server: the digest of the server's tools, that of its calls, a line.
        self._states: dict[tuple[str, str, str], list[tuple[str, str, _Entry]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._own.values()))

    @classmethod
    def open(cls, folder: StorePath) -> "Tape":
        """Open a tape to replay it."""
        _read_header(folder)
        with join_parts(folder / TAPE) as file:
            tape = cls(folder, os.open(file, os.O_RDONLY | _BINARY))
        tape._read()
        return tape

    @classmethod
    def record(cls, folder: StorePath, *, dataset: str, origin: TapeOrigin) -> "Tape":
        """Open a tape to append to it; create it if there is none.

        Raises RunError if the folder has a tape of another dataset or origin.
        """
        folder.mkdir(parents=True, exist_ok=True)
        if isinstance(folder, Path):
            fold_parts(folder / TAPE)
        with join_parts(folder / TAPE) as file:
            handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | _BINARY, 0o644)
        tape = cls(folder, handle)
        with _lock(handle):
            # No agent has seen the half-written line of a recording that was killed.
            os.ftruncate(handle, tape._read())
        wanted = HeaderLine(dataset=dataset, origin=origin)
        if tape.header is None:
            tape.header = wanted
            tape._append(wanted)
        elif tape.header != wanted:
            raise RunError(
                f"{folder} is a tape of {tape.header.dataset} with {tape.header.origin} replies; "
                "record into another folder."
            )
        return tape

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    # Writing

    def offer(self, specs: Iterable[ToolSpec]) -> None:
        """Record tool definitions, except those that the tape already has."""
        for spec in specs:
            if self.specs.get(spec.name) != spec:
                self.specs[spec.name] = spec
                self._append(ToolLine(spec=spec))

    def keep(self, line: CallLine) -> None:
        """Append a call with its reply."""
        start, length = self._append(line)
        self._index(line, start, length)

    def keep_state(self, line: StateLine) -> None:
        """Append the state of a tool server."""
        start, length = self._append(line)
        self._index_state(line, start, length)

    def _append(self, line: TapeLine) -> tuple[int, int]:
        data = _encode(canonical_json(line.model_dump(mode="json"))) + b"\n"
        file = self.folder / TAPE
        if isinstance(file, RemotePath):
            append(file, data)
        with _lock(self._handle):
            if os.write(self._handle, data) != len(data):
                raise RunError(f"{self.folder}: the disk is full; free space and record again.")
            return os.lseek(self._handle, 0, os.SEEK_CUR) - len(data), len(data)

    # Reading

    def find(self, call: TapeCall, *, epoch: int, number: int) -> TapeReply | None:
        """Return the reply to a call: the task's own, else the one the whole tape agrees on.

        If the task made the call several times, its replies are returned in order, those of the
        same epoch (or of the first recorded one), and the last reply again for any further call.
        """
        own, anywhere = _keys(call)
        entries = self._own.get(own)
        if entries is None and call.server:
            # A tool server may have a state, so no other task can answer for this one.
            entries = self._own.get(call_key(session_call(call)))
            anywhere = b""
        if entries is not None:
            epochs = {entry.epoch for entry in entries}
            chosen = epoch if epoch in epochs else min(epochs)
            ordered = sorted(entry for entry in entries if entry.epoch == chosen)
            return self._line(ordered[min(number, len(ordered)) - 1]).reply
        entry, outcome = self._anywhere.get(anywhere, (None, None))
        return None if entry is None or outcome is None else self._line(entry).reply

    def find_exact(self, call: TapeCall, *, epoch: int, number: int) -> TapeReply | None:
        """Return the reply to exactly this call of this task and epoch."""
        for entry in self._own.get(call_key(call), ()):
            if (entry.epoch, entry.number) == (epoch, number):
                return self._line(entry).reply
        return None

    def list_states(self, dataset: str, task: str) -> list[str]:
        """Return the tool servers whose states after this task are on the tape."""
        return [server for *unit, server in self._states if unit == [dataset, task]]

    def find_state(
        self, dataset: str, task: str, server: str, *, epoch: int, tools: str, calls: str | None
    ) -> ServerState | None:
        """Return the state of a server after exactly these calls; the last one of the epoch first.

        Without calls it is the state in which the server began.
        """
        found = [
            (entry.epoch == epoch, entry.start, entry)
            for own_tools, own_calls, entry in self._states.get((dataset, task, server), ())
            if own_tools == tools and calls in (None, own_calls)
        ]
        if not found:
            return None
        state = StateLine.model_validate_json(self._data(max(found)[-1])).state
        return state.untouched() if calls is None else state

    def count(self, call: TapeCall) -> int:
        """Return how many equal calls of the same task are on the tape."""
        return len(self._own.get(call_key(call), ()))

    def candidates(self, call: TapeCall, most: int) -> list[TapeCall]:
        """Return recorded calls of the same tool: those of the task, else those of any task."""
        entries = self._by_task.get((call.task, call.tool)) or self._by_tool.get(call.tool, [])
        return [self._line(entry).call for entry in entries[:most]]

    def first_calls(self) -> Iterable[CallLine]:
        """Iterate over the first of each task's equal calls, in the order of the tape."""
        firsts = (min(entries) for entries in self._own.values())
        return (self._line(entry) for entry in sorted(firsts, key=lambda entry: entry.start))

    def last_epoch(self) -> int:
        """Return the last epoch, or recorded session, that has a call; 0 without any call."""
        return max((entry.epoch for same in self._own.values() for entry in same), default=0)

    def server_units(self) -> Iterator[list[CallLine]]:
        """Iterate over the tasks with calls of tool servers: all calls of the first epoch.

        Every session that was recorded outside of a run is a unit of its own.
        """
        entries: dict[tuple[str, str], list[_Entry]] = {}
        for same in self._own.values():
            call = self._line(same[0]).call
            entries.setdefault((call.dataset, call.task), []).extend(same)
        for (dataset, _), found in entries.items():
            epochs = sorted({entry.epoch for entry in found})
            ordered = sorted(found, key=lambda entry: entry.start)
            for epoch in epochs if dataset == SESSION else epochs[:1]:
                lines = [self._line(entry) for entry in ordered if entry.epoch == epoch]
                if any(line.call.server for line in lines):
                    yield lines

    def _line(self, entry: _Entry) -> CallLine:
        return CallLine.model_validate_json(self._data(entry))

    def _data(self, entry: _Entry) -> bytes:
        return _read_at(self._handle, entry.length, entry.start)

    def _read(self) -> int:
        """Index every line; return where the last complete one ends."""
        start = 0
        with os.fdopen(os.dup(self._handle), "rb") as stream:
            stream.seek(0)
            for number, data in enumerate(stream, 1):
                if not data.endswith(b"\n"):
                    break
                try:
                    line = _LINE.validate_json(data)
                except ValidationError as exc:
                    raise RunError(
                        f"{self.folder / TAPE}, line {number} cannot be read; remove the line."
                    ) from exc
                match line:
                    case HeaderLine():
                        self.header = self.header or line
                    case ToolLine():
                        self.specs[line.spec.name] = line.spec
                    case CallLine():
                        self._index(line, start, len(data))
                    case StateLine():
                        self._index_state(line, start, len(data))
                start += len(data)
        return start

    def _index_state(self, line: StateLine, start: int, length: int) -> None:
        key, entry = (
            (line.dataset, line.task, line.state.server),
            _Entry(line.epoch, 0, start, length),
        )
        self._states.setdefault(key, []).append((line.tools, line.calls, entry))

    def _index(self, line: CallLine, start: int, length: int) -> None:
        call, entry = line.call, _Entry(line.epoch, line.number, start, length)
        own, anywhere = _keys(call)
        entries = self._own.setdefault(own, [])
        same = [place for place, old in enumerate(entries) if entry[:2] == old[:2]]
        if same and call.server:
            entries[same[0]] = entry  # a unit that was begun again made all of its calls again
            return
        if same:
            return  # two concurrent recordings made the same call: the first one counts
        entries.append(entry)
        self._by_task.setdefault((call.task, call.tool), []).append(entry)
        self._by_tool.setdefault(call.tool, []).append(entry)
        outcome = _outcome_digest(line.reply)
        first, agreed = self._anywhere.setdefault(anywhere, (entry, outcome))
        if agreed != outcome:
            self._anywhere[anywhere] = (first, None)


def tape_digest(folder: StorePath) -> str:
    """Return a digest of a tape's content that does not depend on the order of recording."""
    total = hashlib.sha256()
    with join_parts(folder / TAPE) as file, file.open("rb") as stream:
        for digest in sorted(
            {hashlib.sha256(line).digest() for line in stream if line[-1:] == b"\n"}
        ):
            total.update(digest)
    return total.hexdigest()


def tape_use(folder: StorePath, mode: TapeMode) -> TapeUse:
    """Return the manifest entry of a tape before the run; a recording has no digest yet."""
    if mode == "record":
        return TapeUse(mode=mode, origin="live")
    header = _read_header(folder)
    return TapeUse(mode=mode, origin=header.origin, digest=tape_digest(folder))


def describe_recording(folder: StorePath) -> TapeUse:
    """Return the manifest entry of a tape after the run that recorded it."""
    return TapeUse(mode="record", origin="live", digest=tape_digest(folder))


def canonical_json(value: JsonValue) -> str:
    """Return the one JSON text under which a tape stores and compares a value."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def call_text(call: TapeCall) -> str:
    """Return a call as one line for people."""
    arguments = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items()
    )
    return f"{call.tool}({arguments})"


def call_key(call: TapeCall) -> bytes:
    """Return a short key that equal calls of one task share."""
    return _keys(call)[0]


def session_call(call: TapeCall) -> TapeCall:
    """Return the same call of a tool server as recorded outside of any task."""
    return call.model_copy(update={"dataset": SESSION, "task": SESSION, "files": {}})


def _keys(call: TapeCall) -> tuple[bytes, bytes]:
    """Return the key of a call within its task, and its key on the whole tape."""
    parts: list[JsonValue] = [call.dataset, call.tool, dict(call.arguments), dict(call.files)]
    text = canonical_json([*parts, call.server])
    anywhere = hashlib.blake2b(_encode(text), digest_size=16)
    own = anywhere.copy()
    own.update(f"\0{call.task}".encode())
    return own.digest(), anywhere.digest()


def _outcome_digest(reply: TapeReply) -> bytes:
    """Return a digest of what an agent sees of a reply, without versions and times."""
    if isinstance(reply, DoneReply):
        parts = [f"{part.type} {part.content}" for part in reply.parts]
        seen = "\0".join([*parts, *(file.sha256 for file in reply.files)])
    else:
        seen = reply.model_dump_json()
    return hashlib.blake2b(_encode(seen), digest_size=8).digest()


def has_tape(folder: StorePath) -> bool:
    """Whether there is a tape in the folder."""
    return (folder / TAPE).is_file() or parts_of(folder / TAPE).is_dir()


def _read_header(folder: StorePath) -> HeaderLine:
    file = folder / TAPE
    if not has_tape(folder):
        raise RunError(
            f"{folder} is not a tape: it has no {TAPE}. Create a tape with "
            "`gta tape from-reference` or `--tape-mode record`."
        )
    with join_parts(file) as local, local.open("rb") as stream:
        try:
            return HeaderLine.model_validate_json(stream.readline())
        except ValidationError as exc:
            raise RunError(f"{file} does not start with a tape header; record it again.") from exc


def _encode(text: str) -> bytes:
    """Encode as UTF-8; lone surrogates, which no file can contain, become question marks."""
    return text.encode(errors="replace")


def _read_at(handle: int, length: int, start: int) -> bytes:
    if sys.platform != "win32":
        return os.pread(handle, length, start)
    with _seeking:
        os.lseek(handle, start, os.SEEK_SET)
        return os.read(handle, length)


@contextmanager
def _lock(handle: int) -> Iterator[None]:
    """Keep other recordings of the same tape waiting."""
    wait_for_lock(handle)
    try:
        yield
    finally:
        unlock(handle)

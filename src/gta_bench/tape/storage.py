"""A tape on disk: `tape.jsonl`, which is only ever appended to, and `artefacts/`.

The index in memory has a place in the file for each call and no reply, so a tape costs its
reader a few hundred bytes a call however long the replies are. A tape in a store is read once, into
a file of this machine that has no name; each line that is recorded is an object of its own there.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from gta_bench.errors import RunError
from gta_bench.records.tape import (
    CallLine,
    DoneReply,
    HeaderLine,
    TapeCall,
    TapeLine,
    TapeMode,
    TapeOrigin,
    TapeReply,
    TapeUse,
    ToolLine,
)
from gta_bench.records.tools import ToolSpec
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.store import (
    RemotePath,
    StorePath,
    append,
    fold_parts,
    parts_of,
    whole_file,
)
from gta_bench.tape.canonical import canonical_json

TAPE = "tape.jsonl"
_LINE = TypeAdapter[TapeLine](TapeLine)


class _Place(NamedTuple):
    """Where a call's line lies, and which of the equal calls of its task it is."""

    epoch: int
    number: int
    start: int
    length: int


class Keys(NamedTuple):
    """What a call is found by: within its task, and on the whole tape."""

    own: bytes
    anywhere: bytes


class Agreed(NamedTuple):
    """A reply that all equal calls of the tape have; None where two of them differ."""

    place: _Place
    outcome: bytes | None


class Tape:
    """The calls of a tape by what they are found by."""

    def __init__(self, folder: StorePath, handle: int) -> None:
        self.folder = folder
        self.artefacts = ArtefactStore(folder / ARTEFACTS)
        self.header: HeaderLine | None = None
        self.specs: dict[str, ToolSpec] = {}
        self._handle = handle
        self._own: dict[bytes, list[_Place]] = {}
        self._anywhere: dict[bytes, Agreed] = {}
        self._by_task: dict[tuple[str, str], list[_Place]] = {}
        self._by_tool: dict[str, list[_Place]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._own.values()))

    @classmethod
    def open(cls, folder: StorePath) -> "Tape":
        """A tape to replay."""
        _header(folder)
        with whole_file(folder / TAPE) as file:
            tape = cls(folder, os.open(file, os.O_RDONLY))
        tape._read()
        return tape

    @classmethod
    def record(cls, folder: StorePath, *, dataset: str, origin: TapeOrigin) -> "Tape":
        """A tape to append to: a new one, or one of the same kind that is there."""
        folder.mkdir(parents=True, exist_ok=True)
        if isinstance(folder, Path):
            fold_parts(folder / TAPE)
        with whole_file(folder / TAPE) as file:
            handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        tape = cls(folder, handle)
        with _alone(handle):
            # The line that a killed recording left half written was never told to an agent.
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
        """Keep the tools' definitions, where they are not the ones that are kept already."""
        for spec in specs:
            if self.specs.get(spec.name) != spec:
                self.specs[spec.name] = spec
                self._append(ToolLine(spec=spec))

    def keep(self, line: CallLine) -> None:
        """Keep a reply for good."""
        start, length = self._append(line)
        self._index(line, start, length)

    def _append(self, line: HeaderLine | ToolLine | CallLine) -> tuple[int, int]:
        data = _bytes(canonical_json(line.model_dump(mode="json"))) + b"\n"
        file = self.folder / TAPE
        if isinstance(file, RemotePath):
            append(file, data)
        with _alone(self._handle):
            if os.write(self._handle, data) != len(data):
                raise RunError(f"{self.folder}: the disk is full; free space and record again.")
            return os.lseek(self._handle, 0, os.SEEK_CUR) - len(data), len(data)

    # Reading

    def find(self, call: TapeCall, *, epoch: int, number: int) -> TapeReply | None:
        """The reply to a call: the task's own, else the one that the whole tape agrees on.

        Of several in the task: those of the same epoch (or of the first one that was recorded),
        in their order, and the last one again where the call is made more often.
        """
        keys = _keys(call)
        places = self._own.get(keys.own)
        if places is not None:
            epochs = {place.epoch for place in places}
            chosen = epoch if epoch in epochs else min(epochs)
            ordered = sorted(place for place in places if place.epoch == chosen)
            return self._line(ordered[min(number, len(ordered)) - 1]).reply
        agreed = self._anywhere.get(keys.anywhere)
        if agreed is None or agreed.outcome is None:
            return None
        return self._line(agreed.place).reply

    def recorded(self, call: TapeCall, *, epoch: int, number: int) -> TapeReply | None:
        """The reply to exactly this call of this unit."""
        for place in self._own.get(call_key(call), ()):
            if (place.epoch, place.number) == (epoch, number):
                return self._line(place).reply
        return None

    def candidates(self, call: TapeCall, most: int) -> list[TapeCall]:
        """Recorded calls that may have been meant: of the task, else some of the tool."""
        places = self._by_task.get((call.task, call.tool)) or self._by_tool.get(call.tool, [])
        return [self._line(place).call for place in places[:most]]

    def first_calls(self) -> Iterable[CallLine]:
        """The first reply to each call of each task, in the order of the tape."""
        firsts = (min(places) for places in self._own.values())
        return (self._line(place) for place in sorted(firsts, key=lambda place: place.start))

    def _line(self, place: _Place) -> CallLine:
        data = os.pread(self._handle, place.length, place.start)
        return CallLine.model_validate_json(data)

    def _read(self) -> int:
        """Index every line; returns where the last whole one ends."""
        start = 0
        with os.fdopen(os.dup(self._handle), "rb") as stream:
            stream.seek(0)
            for number, data in enumerate(stream, 1):
                if not data.endswith(b"\n"):
                    break
                self._take(data, number, start)
                start += len(data)
        return start

    def _take(self, data: bytes, number: int, start: int) -> None:
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

    def _index(self, line: CallLine, start: int, length: int) -> None:
        call, place = line.call, _Place(line.epoch, line.number, start, length)
        keys = _keys(call)
        places = self._own.setdefault(keys.own, [])
        if any(place[:2] == old[:2] for old in places):
            return  # two recordings at once made the same call: the first one holds
        places.append(place)
        self._by_task.setdefault((call.task, call.tool), []).append(place)
        self._by_tool.setdefault(call.tool, []).append(place)
        outcome = outcome_digest(line.reply)
        agreed = self._anywhere.setdefault(keys.anywhere, Agreed(place, outcome))
        if agreed.outcome != outcome:
            self._anywhere[keys.anywhere] = Agreed(agreed.place, None)


def tape_digest(folder: StorePath) -> str:
    """One digest of what a tape holds, whatever the order in which it was recorded."""
    whole = hashlib.sha256()
    with whole_file(folder / TAPE) as file, file.open("rb") as stream:
        for digest in sorted(
            {hashlib.sha256(line).digest() for line in stream if line[-1:] == b"\n"}
        ):
            whole.update(digest)
    return whole.hexdigest()


def tape_use(folder: StorePath, mode: TapeMode) -> TapeUse:
    """What a run's manifest says of the tape before the run; a recording has no digest yet."""
    if mode == "record":
        return TapeUse(mode=mode, origin="live")
    header = _header(folder)
    return TapeUse(mode=mode, origin=header.origin, digest=tape_digest(folder))


def recorded_use(folder: StorePath) -> TapeUse:
    """What the manifest says of a tape after the run that recorded it."""
    return TapeUse(mode="record", origin="live", digest=tape_digest(folder))


def _header(folder: StorePath) -> HeaderLine:
    file = folder / TAPE
    if not file.is_file() and not parts_of(file).is_dir():
        raise RunError(
            f"{folder} is not a tape: there is no {TAPE} in it. `gta tape from-reference` or "
            "`--tape-mode record` makes one."
        )
    with whole_file(file) as whole, whole.open("rb") as stream:
        try:
            return HeaderLine.model_validate_json(stream.readline())
        except ValidationError as exc:
            raise RunError(f"{file} does not begin as a tape; record it again.") from exc


def outcome_digest(reply: TapeReply) -> bytes:
    """What an agent sees of a reply, as a digest: versions and times do not count."""
    if isinstance(reply, DoneReply):
        parts = [f"{part.type} {part.content}" for part in reply.parts]
        seen = "\0".join([*parts, *(file.sha256 for file in reply.files)])
    else:
        seen = reply.model_dump_json()
    return hashlib.blake2b(_bytes(seen), digest_size=8).digest()


def call_key(call: TapeCall) -> bytes:
    """What equal calls of a task have in common, short."""
    return _keys(call).own


def _bytes(text: str) -> bytes:
    """UTF-8; half characters, which no file can hold, become question marks."""
    return text.encode(errors="replace")


@contextmanager
def _alone(handle: int) -> Iterator[None]:
    """Other recordings of the same tape wait."""
    from fcntl import LOCK_EX, LOCK_UN, flock  # not on every system that can read a report

    flock(handle, LOCK_EX)
    try:
        yield
    finally:
        flock(handle, LOCK_UN)


def _keys(call: TapeCall) -> Keys:
    text = canonical_json([call.dataset, call.tool, dict(call.arguments), dict(call.files)])
    anywhere = hashlib.blake2b(_bytes(text), digest_size=16)
    own = anywhere.copy()
    own.update(f"\0{call.task}".encode())
    return Keys(own.digest(), anywhere.digest())

"""The layout of Inspect's logs, and everything else that is not part of its public API.

A log is a zip archive with a JSON file for each sample. Inspect's own reader creates a record of
every message and event, which takes several times as long as all that we do with a sample, and its
writer keeps all samples in memory (docs/decisions/0017-reader.md has the figures). The layout is
not a public contract: tests/runs/test_log_layout.py compares everything below with the installed
Inspect.
"""

import json
import os
import re
import shutil
import struct
import tempfile
from codecs import getreader
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import IO, Annotated, Any, NamedTuple, Required
from zipfile import BadZipFile, ZipFile, ZipInfo

from inspect_ai._util import json as inspect_json
from inspect_ai._util.error import PrerequisiteError as PrerequisiteError  # eval_set raises it
from inspect_ai._util.zipfile import zipfile_compress_kwargs
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.log._recorders import eval as inspect_recorder
from inspect_ai.model import ModelUsage
from inspect_ai.scorer import Score
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from gta_bench.errors import NOT_BEGUN, EnvironmentProblem
from gta_bench.records.attempts import UnitKey
from gta_bench.redaction import current_redactor
from gta_bench.runs.directory import explain_unreadable
from gta_bench.runs.store import StorePath, open_binary, store_path, write_atomically

HEADER, REDUCTIONS, SUMMARIES = "header.json", "reductions.json", "summaries.json"
START = "_journal/start.json"
# The folder of summaries until an evaluation ends.
JOURNAL = "_journal/summaries/"
# Credentials in the repository address that Inspect writes into a log.
_ORIGIN_USER = re.compile(rb'("origin": ?"[A-Za-z+.-]+://)[^/@"\\]+@')
# What the archive's reader raises for corrupt bytes, besides BadZipFile.
_WRONG_BYTES = (IndexError, KeyError, OverflowError, RuntimeError, ValueError, struct.error)
# Where a file's own header has the lengths of its name and of what is between name and data.
_NAME_LENGTHS, _LENGTHS_AT = struct.Struct("<HH"), 26
# Logs that a reader keeps open, and files in their directories, which are in memory.
MOST_OPEN, MOST_FILES = 64, 200_000
# Characters of a list of summaries that are read at once.
CHUNK = 2**18
# What is between the objects of a list, or before the first one.
_BETWEEN = re.compile(r"[\[,\s]*")


class _Output(BaseModel):
    model: str = ""


class _Error(BaseModel):
    message: str = ""


class ModelCall(BaseModel):
    """One model call, as its event describes it."""

    role: str | None = None
    error: str | None = None
    retries: int | None = None
    output: _Output


class _EventOutput(TypedDict):
    model: str


class _Event(TypedDict, total=False):
    """The part of an event that is read.

    Everything else, which is most of a sample, never becomes a Python object. Only model calls are
    known to have these types: other events use the same names in other ways.
    """

    event: Required[str]
    role: Any
    error: Any
    retries: Any
    output: Annotated[_EventOutput | Any, Field(union_mode="left_to_right")]


class Stored(BaseModel):
    """What every reader of a sample or summary needs; `uuid` is also the id of its attempt."""

    id: int | str
    epoch: int
    uuid: str | None = None
    model_usage: dict[str, ModelUsage] = {}

    @property
    def key(self) -> UnitKey:
        """The task and the epoch."""
        return (str(self.id), self.epoch)


class StoredSummary(Stored):
    """The fields of a sample's summary that are read."""

    error: str | None = None
    retries: int | None = None
    total_time: float | None = None


class StoredScores(Stored):
    """The fields of a sample that are read when it is copied to another log."""

    scores: dict[str, Score] | None = None


class StoredSample(Stored):
    """The fields of a sample that are read for its unit."""

    metadata: dict[str, Any] = {}
    store: dict[str, Any] = {}
    error: _Error | None = None
    error_retries: list[_Error] | None = None
    total_time: float | None = None
    events: list[_Event] = []

    @property
    def failure(self) -> str | None:
        """The error that ended the sample, in one line; None if there was none."""
        if self.error is None:
            return None
        return self.error.message.splitlines()[0] if self.error.message else "error"

    @property
    def failed_before(self) -> list[str]:
        """The errors that ended earlier attempts, as far as Inspect kept them."""
        before = (one.message for one in self.error_retries or ())
        return [message for message in before if not message.endswith(NOT_BEGUN)]

    def model_calls(self) -> list[ModelCall]:
        """Return the calls of the system's own model; those of a judge have a role."""
        calls = (ModelCall.model_validate(one) for one in self.events if one["event"] == "model")
        return [call for call in calls if call.role is None]


_ReadSample = Callable[[UnitKey], StoredSample]


class _OpenLog(NamedTuple):
    """An open log: what closes it, reads one of its samples, and how many files it has."""

    stack: ExitStack
    read: _ReadSample
    files: int


class SampleReader(AbstractContextManager["SampleReader"]):
    """Reads samples of many logs in any order; the logs that were read last stay open."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, _OpenLog] = OrderedDict()

    def __exit__(self, *_: object) -> None:
        while self._open:
            self._close_oldest()

    def read(self, log: str, key: UnitKey) -> StoredSample:
        """Read a sample of a log."""
        if log not in self._open:
            while self._open and (
                len(self._open) >= MOST_OPEN
                or sum(one.files for one in self._open.values()) >= MOST_FILES
            ):
                self._close_oldest()
            stack = ExitStack()
            self._open[log] = _OpenLog(stack, *stack.enter_context(_open_samples(log)))
        self._open.move_to_end(log)
        return self._open[log].read(key)

    def _close_oldest(self) -> None:
        _, oldest = self._open.popitem(last=False)
        oldest.stack.close()


@contextmanager
def _open_samples(log: str) -> Iterator[tuple[_ReadSample, int]]:
    """Open a log; yield a function that reads one of its samples, and how many files it has."""
    if log.endswith(".json"):
        with open_binary(store_path(log)) as file:
            found = {(str(raw["id"]), raw["epoch"]): raw for raw in json.load(file)["samples"]}
        yield lambda key: StoredSample.model_validate(found[key]), len(found)
        return

    def read(key: UnitKey) -> StoredSample:
        return StoredSample.model_validate_json(_read_member(zipped, _sample_file(*key)))

    with _open_archive(log) as zipped:
        yield read, len(zipped.filelist)


def read_stored_samples(log: str, keys: Iterable[UnitKey]) -> Iterator[StoredSample]:
    """Yield these samples of the log, one in memory at a time."""
    with SampleReader() as reader:
        for key in keys:
            yield reader.read(log, key)


def read_stored_summaries(log: str) -> Iterator[StoredSummary]:
    """Yield the summaries of a log, even if its evaluation did not end."""
    if log.endswith(".json"):
        for one in read_eval_log_sample_summaries(log):
            yield StoredSummary.model_validate(one.model_dump())
        return
    with _open_archive(log) as zipped:
        for raw in _raw_summaries(zipped):
            yield StoredSummary.model_validate(raw)


def to_json_safe(value: Any, *args: Any, **kwargs: Any) -> bytes:
    """Serialize a part of a log as Inspect does, without secrets."""
    data = inspect_json.to_json_safe(value, *args, **kwargs)
    return _ORIGIN_USER.sub(rb"\1", current_redactor().json(data))


def redact_logs() -> None:
    """Make Inspect redact secrets in all logs that it writes in this process from now on.

    It has no hook for this: hooks are called after a sample is written. Its recorder serializes
    everything with one function, which is replaced here.
    """
    if not hasattr(inspect_recorder, "to_json_safe"):
        raise EnvironmentProblem(
            "This version of Inspect writes logs in a different way, so keys could get into them. "
            "Install the version in constraints.txt."
        )
    vars(inspect_recorder)["to_json_safe"] = to_json_safe


@contextmanager
def open_log_writer(target: StorePath) -> Iterator["LogWriter"]:
    """Write a log atomically."""
    with (
        write_atomically(target) as part,
        ZipFile(part, "w", **zipfile_compress_kwargs) as zipped,
        tempfile.TemporaryFile() as summaries,
    ):
        yield LogWriter(zipped, summaries)


class LogWriter:
    """Writes a log from samples of other logs: `start`, `copy`, `end_samples`, `finish`.

    Summaries, which the archive has after all samples, wait in a file.
    """

    def __init__(self, zipped: ZipFile, summaries: IO[bytes]) -> None:
        self._zipped = zipped
        self._summaries = summaries

    def start(self, header: EvalLog) -> None:
        """Write what Inspect writes when an evaluation begins."""
        start = {"version": header.version, "eval": header.eval, "plan": header.plan}
        self._zipped.writestr(START, to_json_safe(start))

    def copy(self, log: str, wanted: Container[UnitKey]) -> Iterator[StoredScores]:
        """Copy samples of a log unchanged; reading them also verifies their checksums."""
        with explain_unreadable(log), _open_archive(log) as source:
            for summary in _raw_summaries(source):
                key = (str(summary["id"]), summary["epoch"])
                if key in wanted:
                    data = _read_member(source, _sample_file(*key))
                    _copy_member(source, _sample_file(*key), self._zipped)
                    self._summaries.write(b"," if self._summaries.tell() else b"[")
                    self._summaries.write(json.dumps(summary).encode())
                    yield StoredScores.model_validate_json(data)

    def end_samples(self) -> None:
        """Write the summaries."""
        self._summaries.write(b"]" if self._summaries.tell() else b"[]")
        self._summaries.seek(0)
        with self._zipped.open(SUMMARIES, "w", force_zip64=True) as target:
            shutil.copyfileobj(self._summaries, target, CHUNK)

    def finish(self, header: EvalLog) -> None:
        """Write the results, without the samples of the header."""
        if header.reductions is not None:  # a task without a scorer has none
            self._zipped.writestr(REDUCTIONS, to_json_safe(header.reductions))
        bare = header.model_copy(update={"samples": None, "reductions": None})
        self._zipped.writestr(HEADER, to_json_safe(bare))


@contextmanager
def _open_archive(log: str) -> Iterator[ZipFile]:
    """Open the archive of a log; all errors of corrupt bytes become BadZipFile."""
    with open_binary(store_path(log)) as file:
        try:
            zipped = ZipFile(file)
        except _WRONG_BYTES as exc:
            raise BadZipFile(str(exc)) from exc
        with zipped:
            yield zipped


def _read_member(zipped: ZipFile, name: str) -> bytes:
    """Read a file of an archive; a missing one is reported like a corrupt one."""
    try:
        return zipped.read(name)
    except _WRONG_BYTES as exc:
        raise BadZipFile(str(exc)) from exc


def _copy_member(source: ZipFile, name: str, target: Any) -> None:
    """Copy a file that was read from one archive to another as it is.

    Python's module can only compress it again, and for each file Inspect's compressor starts 12
    threads, which takes several times as long as everything else that a copy does.
    """
    info, stream = source.getinfo(name), source.fp
    assert stream is not None
    stream.seek(info.header_offset + _LENGTHS_AT)
    stream.seek(sum(_NAME_LENGTHS.unpack(stream.read(4))), os.SEEK_CUR)
    copy = ZipInfo(name, info.date_time)
    copy.compress_type, copy.external_attr = info.compress_type, info.external_attr
    copy.CRC, copy.file_size, copy.compress_size = info.CRC, info.file_size, info.compress_size
    copy.header_offset = target.fp.seek(target.start_dir)
    target.fp.write(copy.FileHeader())
    target.fp.write(stream.read(info.compress_size))
    target.start_dir = target.fp.tell()
    target.filelist.append(copy)
    target.NameToInfo[name] = copy


def _sample_file(task: int | str, epoch: int) -> str:
    """Return the name of a sample inside a log."""
    return f"samples/{task}_epoch_{epoch}.json"


def _raw_summaries(zipped: ZipFile) -> Iterator[dict[str, Any]]:
    """Yield the summaries in a log as they are, the last one of each sample.

    A journal has a sample twice if one of Inspect's attempts took it over from another. It is as
    short as what one process evaluates; the list of a merged log can be long.
    """
    if SUMMARIES in zipped.NameToInfo:
        yield from _read_list(zipped, SUMMARIES)
        return
    found = {}
    for name in zipped.namelist():
        if name.startswith(JOURNAL):
            for row in json.loads(_read_member(zipped, name)):
                found[str(row["id"]), row["epoch"]] = row
    yield from found.values()


def _read_list(zipped: ZipFile, name: str) -> Iterator[dict[str, Any]]:
    """Yield the objects in a JSON list, a part of the text in memory at a time."""
    decode, size = json.JSONDecoder().raw_decode, CHUNK
    try:
        with zipped.open(name) as raw:
            text = getreader("utf-8")(raw)
            left, at = text.read(CHUNK), 0
            while True:
                at += len(_BETWEEN.match(left, at)[0])  # type: ignore[index]  # it always matches
                if left[at : at + 1] == "]":
                    return
                try:
                    row, at = decode(left, at)
                    yield row
                except json.JSONDecodeError:
                    more = text.read(size)
                    if not more:
                        raise
                    # A broken list is found in a time that is linear in its length.
                    left, at, size = left[at:] + more, 0, 2 * size
    except _WRONG_BYTES as exc:
        raise BadZipFile(str(exc)) from exc

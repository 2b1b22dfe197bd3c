"""The layout of Inspect's logs, and everything else that is not part of its public API.

A log is a zip archive with a JSON file for each sample. Inspect's own reader creates a record of
every message and event, which takes several times as long as all that we do with a sample, and its
writer keeps all samples in memory (docs/decisions/0017-reader.md has the figures). The layout is
not a public contract: tests/runs/test_log_layout.py compares everything below with the installed
Inspect.
"""

import json
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Required
from zipfile import BadZipFile, ZipFile

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


def read_stored_samples(log: str, keys: Sequence[UnitKey]) -> Iterator[StoredSample]:
    """Yield these samples of the log, one in memory at a time."""
    if log.endswith(".json"):
        wanted = set(keys)
        with open_binary(store_path(log)) as file:
            whole = json.load(file)
        for raw in whole["samples"]:
            if (str(raw["id"]), raw["epoch"]) in wanted:
                yield StoredSample.model_validate(raw)
        return
    with _open_archive(log) as zipped:
        for task, epoch in keys:
            yield StoredSample.model_validate_json(_read_member(zipped, _sample_file(task, epoch)))


def read_stored_summaries(log: str) -> list[StoredSummary]:
    """Read the summaries of a log, even if its evaluation did not end."""
    if log.endswith(".json"):
        whole = read_eval_log_sample_summaries(log)
        return [StoredSummary.model_validate(one.model_dump()) for one in whole]
    with _open_archive(log) as zipped:
        return [StoredSummary.model_validate(raw) for raw in _raw_summaries(zipped)]


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
    with write_atomically(target) as part, ZipFile(part, "w", **zipfile_compress_kwargs) as zipped:
        yield LogWriter(zipped)


class LogWriter:
    """Writes a log from samples of other logs: `start`, `copy`, `end_samples`, `finish`."""

    def __init__(self, zipped: ZipFile) -> None:
        self._zipped = zipped
        self._summaries: list[bytes] = []

    def start(self, header: EvalLog) -> None:
        """Write what Inspect writes when an evaluation begins."""
        start = {"version": header.version, "eval": header.eval, "plan": header.plan}
        self._zipped.writestr(START, to_json_safe(start))

    def copy(self, log: str, keys: Sequence[UnitKey]) -> Iterator[StoredScores]:
        """Copy samples of a log unchanged; reading them also verifies their checksums."""
        wanted = set(keys)
        with explain_unreadable(log), _open_archive(log) as source:
            for summary in _raw_summaries(source):
                key = (str(summary["id"]), summary["epoch"])
                if key in wanted:
                    data = _read_member(source, _sample_file(*key))
                    self._zipped.writestr(_sample_file(*key), data)
                    self._summaries.append(json.dumps(summary).encode())
                    yield StoredScores.model_validate_json(data)

    def end_samples(self) -> None:
        """Write the summaries and free their memory."""
        self._zipped.writestr(SUMMARIES, b"[" + b",".join(self._summaries) + b"]")
        self._summaries.clear()

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


def _sample_file(task: int | str, epoch: int) -> str:
    """Return the name of a sample inside a log."""
    return f"samples/{task}_epoch_{epoch}.json"


def _raw_summaries(zipped: ZipFile) -> list[dict[str, Any]]:
    """Read the summaries in a log as they are, the last one of each sample.

    A journal has a sample twice if one of Inspect's attempts took it over from another.
    """
    names = zipped.namelist()
    files = [SUMMARIES] if SUMMARIES in names else [n for n in names if n.startswith(JOURNAL)]
    found = {}
    for name in files:
        for row in json.loads(_read_member(zipped, name)):
            found[str(row["id"]), row["epoch"]] = row
    return list(found.values())

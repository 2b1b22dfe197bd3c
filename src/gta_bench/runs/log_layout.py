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
from gta_bench.runs.store import StorePath, made_whole, opened, store_path
from gta_bench.runs.unreadable import explain_unreadable

HEADER, REDUCTIONS, SUMMARIES = "header.json", "reductions.json", "summaries.json"
START = "_journal/start.json"
# Where the summaries are until an evaluation ends.
JOURNAL = "_journal/summaries/"
# Who may read the repository that Inspect notes in a log.
_ORIGIN_USER = re.compile(rb'("origin": ?"[A-Za-z+.-]+://)[^/@"\\]+@')
# What the archive's reader raises where bytes are wrong, beside BadZipFile.
_WRONG_BYTES = (IndexError, KeyError, OverflowError, RuntimeError, ValueError, struct.error)


class _Output(BaseModel):
    model: str = ""


class _Error(BaseModel):
    message: str = ""


class ModelCall(BaseModel):
    """One call of a model, as its event tells of it."""

    role: str | None = None
    error: str | None = None
    retries: int | None = None
    output: _Output


class _EventOutput(TypedDict):
    model: str


class _Event(TypedDict, total=False):
    """The part of an event that is read.

    Everything else, which is most of a sample, never becomes an object of Python. Only a model's
    call is known to be as typed here: other events use the same names in their own ways.
    """

    event: Required[str]
    role: Any
    error: Any
    retries: Any
    output: Annotated[_EventOutput | Any, Field(union_mode="left_to_right")]


class Stored(BaseModel):
    """What every reader of a sample or of its summary wants; `uuid` is its attempt's id too."""

    id: int | str
    epoch: int
    uuid: str | None = None
    model_usage: dict[str, ModelUsage] = {}

    @property
    def key(self) -> UnitKey:
        """The task and the epoch."""
        return (str(self.id), self.epoch)


class StoredSummary(Stored):
    """What is read of a sample's summary."""

    error: str | None = None
    retries: int | None = None


class StoredScores(Stored):
    """What is read of a sample that is copied to another log."""

    scores: dict[str, Score] | None = None


class StoredSample(Stored):
    """What is read of a sample for its unit."""

    metadata: dict[str, Any] = {}
    store: dict[str, Any] = {}
    error: _Error | None = None
    error_retries: list[_Error] | None = None
    total_time: float | None = None
    events: list[_Event] = []

    @property
    def failure(self) -> str | None:
        """What ended the sample, in one line; None where nothing did."""
        if self.error is None:
            return None
        return self.error.message.splitlines()[0] if self.error.message else "error"

    @property
    def failed_before(self) -> list[str]:
        """What ended the attempts before this one, as far as the engine kept it."""
        before = (one.message for one in self.error_retries or ())
        return [message for message in before if not message.endswith(NOT_BEGUN)]

    def model_calls(self) -> list[ModelCall]:
        """The calls of the system's own model; those of a judge have a role."""
        calls = (ModelCall.model_validate(one) for one in self.events if one["event"] == "model")
        return [call for call in calls if call.role is None]


def stored_samples(log: str, keys: Sequence[UnitKey]) -> Iterator[StoredSample]:
    """These samples of the log, one in memory at a time."""
    if log.endswith(".json"):
        wanted = set(keys)
        with opened(store_path(log)) as file:
            whole = json.load(file)
        for raw in whole["samples"]:
            if (str(raw["id"]), raw["epoch"]) in wanted:
                yield StoredSample.model_validate(raw)
        return
    with _open_archive(log) as zipped:
        for task, epoch in keys:
            yield StoredSample.model_validate_json(_read_member(zipped, _sample_file(task, epoch)))


def stored_summaries(log: str) -> list[StoredSummary]:
    """The summaries of a log, also of one whose evaluation did not end."""
    if log.endswith(".json"):
        whole = read_eval_log_sample_summaries(log)
        return [StoredSummary.model_validate(one.model_dump()) for one in whole]
    with _open_archive(log) as zipped:
        return [StoredSummary.model_validate(raw) for raw in _raw_summaries(zipped)]


def to_json_safe(value: Any, *args: Any, **kwargs: Any) -> bytes:
    """A part of a log as Inspect writes it, without secrets."""
    data = inspect_json.to_json_safe(value, *args, **kwargs)
    return _ORIGIN_USER.sub(rb"\1", current_redactor().json(data))


def redact_logs() -> None:
    """From now on Inspect writes no log in this process with a secret in it.

    It has no place for that: its hooks are called after a sample is written. Its recorder turns
    everything into JSON by one function.
    """
    if not hasattr(inspect_recorder, "to_json_safe"):
        raise EnvironmentProblem(
            "This release of Inspect writes logs in another way, and keys could get into them: "
            "install the one of constraints.txt."
        )
    vars(inspect_recorder)["to_json_safe"] = to_json_safe


@contextmanager
def writing_log(target: StorePath) -> Iterator["LogWriter"]:
    """Write a log whole or not at all."""
    with made_whole(target) as part, ZipFile(part, "w", **zipfile_compress_kwargs) as zipped:
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
        """Copy samples of a log as they are; reading them also checks their sums."""
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
        """Write the summaries, which are then no longer in memory."""
        self._zipped.writestr(SUMMARIES, b"[" + b",".join(self._summaries) + b"]")
        self._summaries.clear()

    def finish(self, header: EvalLog) -> None:
        """Write the results; samples of the header are left out."""
        if header.reductions is not None:  # a task without a scorer has none
            self._zipped.writestr(REDUCTIONS, to_json_safe(header.reductions))
        bare = header.model_copy(update={"samples": None, "reductions": None})
        self._zipped.writestr(HEADER, to_json_safe(bare))


@contextmanager
def _open_archive(log: str) -> Iterator[ZipFile]:
    """The archive of a log; whatever its bytes make the reader raise is BadZipFile."""
    with opened(store_path(log)) as file:
        try:
            zipped = ZipFile(file)
        except _WRONG_BYTES as exc:
            raise BadZipFile(str(exc)) from exc
        with zipped:
            yield zipped


def _read_member(zipped: ZipFile, name: str) -> bytes:
    """A file of an archive; one that is missing is as bad as one with wrong bytes."""
    try:
        return zipped.read(name)
    except _WRONG_BYTES as exc:
        raise BadZipFile(str(exc)) from exc


def _sample_file(task: int | str, epoch: int) -> str:
    """The name of a sample inside a log."""
    return f"samples/{task}_epoch_{epoch}.json"


def _raw_summaries(zipped: ZipFile) -> list[dict[str, Any]]:
    """The summaries inside a log as they are written there, the last one of each sample.

    A journal has a sample once more where an attempt of the engine took it over from another.
    """
    names = zipped.namelist()
    files = [SUMMARIES] if SUMMARIES in names else [n for n in names if n.startswith(JOURNAL)]
    found = {}
    for name in files:
        for row in json.loads(_read_member(zipped, name)):
            found[str(row["id"]), row["epoch"]] = row
    return list(found.values())

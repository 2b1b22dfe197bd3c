"""Samples as logs store them, as far as units need them.

The engine's own reader makes a record of every message and event, which takes several times as
long as all that we do with a sample. Only plain JSON logs are left to it where that is simpler.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any
from zipfile import ZipFile

from inspect_ai.log import read_eval_log_sample_summaries
from inspect_ai.model import ModelUsage
from pydantic import BaseModel

from gta_bench.runs.store import opened, store_path

Key = tuple[str, int]
SUMMARIES = "summaries.json"
# Where the summaries are until an evaluation ends.
JOURNAL = "_journal/summaries/"


class _Output(BaseModel):
    model: str = ""


class _Error(BaseModel):
    message: str = ""


class ModelCall(BaseModel):
    """One call of a model, as its event tells of it."""

    role: str | None = None
    error: str | None = None
    retries: int | None = None
    output: _Output = _Output()


class Stored(BaseModel):
    """What every reader of a sample or of its summary wants."""

    id: int | str
    epoch: int
    model_usage: dict[str, ModelUsage] = {}

    @property
    def key(self) -> Key:
        """The task and the epoch."""
        return (str(self.id), self.epoch)


class StoredSummary(Stored):
    """What is read of a sample's summary."""

    error: str | None = None


class StoredSample(Stored):
    """What is read of a sample."""

    metadata: dict[str, Any] = {}
    store: dict[str, Any] = {}
    error: _Error | None = None
    total_time: float | None = None
    events: list[dict[str, Any]] = []

    @property
    def failure(self) -> str | None:
        """What ended the sample, in one line; None where nothing did."""
        if self.error is None:
            return None
        return self.error.message.splitlines()[0] if self.error.message else "error"

    def model_calls(self) -> list[ModelCall]:
        """The calls of the system's own model; those of a judge have a role."""
        calls = (ModelCall.model_validate(one) for one in self.events if one["event"] == "model")
        return [call for call in calls if call.role is None]


def sample_file(task: int | str, epoch: int) -> str:
    """The name of a sample inside a log."""
    return f"samples/{task}_epoch_{epoch}.json"


def stored_samples(log: str, keys: Sequence[Key]) -> Iterator[StoredSample]:
    """These samples of the log, one in memory at a time."""
    with opened(store_path(log)) as file:
        if log.endswith(".json"):
            wanted = set(keys)
            for raw in json.load(file)["samples"]:
                if (str(raw["id"]), raw["epoch"]) in wanted:
                    yield StoredSample.model_validate(raw)
            return
        with ZipFile(file) as zipped:
            for task, epoch in keys:
                yield StoredSample.model_validate_json(zipped.read(sample_file(task, epoch)))


def stored_summaries(log: str) -> list[StoredSummary]:
    """The summaries of a log, also of one whose evaluation did not end."""
    if log.endswith(".json"):
        whole = read_eval_log_sample_summaries(log)
        return [StoredSummary.model_validate(one.model_dump()) for one in whole]
    with opened(store_path(log)) as file, ZipFile(file) as zipped:
        return [StoredSummary.model_validate(raw) for raw in raw_summaries(zipped)]


def raw_summaries(zipped: ZipFile) -> list[dict[str, Any]]:
    """The summaries inside a log as they are written there, the last one of each sample.

    A journal has a sample once more where an attempt of the engine took it over from another.
    """
    names = zipped.namelist()
    files = [SUMMARIES] if SUMMARIES in names else [n for n in names if n.startswith(JOURNAL)]
    found = {}
    for name in files:
        for row in json.loads(zipped.read(name)):
            found[str(row["id"]), row["epoch"]] = row
    return list(found.values())

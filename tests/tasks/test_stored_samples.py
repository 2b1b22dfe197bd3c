"""What is read of a sample without the engine's records is what those records say."""

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries
from inspect_ai.model import ChatMessage, ModelOutput

from gta_bench.errors import RunError
from gta_bench.runs.logs import copy_logs, kept_units, log_files, read_units
from gta_bench.runs.stored_samples import stored_samples, stored_summaries
from tests.builders import atomic_task, parameter, tool, write_atomic
from tests.tasks.test_atomic import evaluate
from tests.tasks.test_atomic_step import native_call, said

CALCULATOR = tool("Calculator", parameter("expression"))


def calculates_or_fails(input: list[ChatMessage], *_: Any) -> ModelOutput:
    """A call, then an answer with what it cost; a question about a fire ends the sample."""
    if any("fire" in message.text for message in input):
        raise RuntimeError("no model today\nand more of it")
    if any(message.role == "tool" for message in input):
        return said("It is 42.")
    return native_call("Calculator", {"expression": "6*7"})


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("stored")
    asked = ("What is 6 times 7?", "Is there a fire?")
    tasks = {
        str(number): atomic_task(tools=[CALCULATOR], dialogs=[{"role": "user", "content": words}])
        for number, words in enumerate(asked)
    }
    data = write_atomic(root / "data", tasks, toolmeta=[CALCULATOR])
    evaluate(data, root, calculates_or_fails)
    return root / "logs"


def test_samples_have_what_the_engine_reads(logs: Path) -> None:
    (log,) = log_files(logs)
    found = {one.key: one for one in stored_samples(log, [("0", 1), ("1", 1)])}
    for sample in read_eval_log(log).samples or []:
        one = found.pop((str(sample.id), sample.epoch))
        assert (one.metadata, one.store) == (sample.metadata, sample.store)
        assert (one.model_usage, one.total_time) == (sample.model_usage, sample.total_time)
        assert one.failure == (sample.error and sample.error.message.splitlines()[0])
        calls = [event for event in sample.events if isinstance(event, ModelEvent)]
        assert [(call.output.model, call.retries, call.error) for call in one.model_calls()] == [
            (event.output.model, event.retries, event.error) for event in calls
        ]
        assert calls
    assert not found


def test_summaries_say_what_the_engine_says(logs: Path) -> None:
    (log,) = log_files(logs)
    said_by_engine = read_eval_log_sample_summaries(log)
    assert [(one.id, one.epoch, one.error, one.model_usage) for one in stored_summaries(log)] == [
        (one.id, one.epoch, one.error, one.model_usage) for one in said_by_engine
    ]
    finished = {key: kept.finished for key, kept in kept_units(logs).items()}
    assert finished == {("0", 1): True, ("1", 1): False}


def test_plain_json_gives_the_same_units(logs: Path, tmp_path: Path) -> None:
    copy_logs(logs, tmp_path)
    units = read_units(logs, ["0", "1"], 1)
    assert [unit.failure is None for unit in units.units] == [True, False]
    assert read_units(tmp_path, ["0", "1"], 1) == units


def test_a_sample_that_is_no_sample_is_told_with_its_log(logs: Path, tmp_path: Path) -> None:
    copy_logs(logs, tmp_path)
    (log,) = tmp_path.iterdir()
    log.write_text(log.read_text().replace('"model_usage"', '"model_usage": 7, "other"'))
    with pytest.raises(RunError, match="is damaged"):
        read_units(tmp_path, ["0", "1"], 1)


def test_the_journal_of_a_log_that_did_not_end_counts_a_sample_once(tmp_path: Path) -> None:
    """The engine writes a sample again where a second attempt finished it."""
    row = {"id": "0", "epoch": 1, "input": "", "target": ""}
    with ZipFile(tmp_path / "x.eval", "w") as zipped:
        zipped.writestr("_journal/summaries/1.json", json.dumps([{**row, "error": "no"}]))
        zipped.writestr("_journal/summaries/2.json", json.dumps([row, {**row, "id": "1"}]))
    found = stored_summaries(str(tmp_path / "x.eval"))
    assert [(one.id, one.error) for one in found] == [("0", None), ("1", None)]

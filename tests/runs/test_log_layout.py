"""The contract with the installed Inspect: what we read and write by hand is what it does.

A failure here after an update of Inspect means that `runs/log_layout.py` must follow its layout.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai import task_with
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSample, read_eval_log, read_eval_log_sample_summaries
from inspect_ai.model import ChatMessage, ModelOutput, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.errors import RunError
from gta_bench.records.units import AtomicUnit
from gta_bench.runs.log_layout import read_stored_samples, read_stored_summaries
from gta_bench.runs.logs import copy_logs, find_kept_units, list_logs, read_units
from gta_bench.runs.merge import write_partial_log
from gta_bench.runs.samples import UnitStore, read_unit_data
from gta_bench.settings import Settings
from gta_bench.tasks.atomic import atomic
from gta_bench.tasks.context import RunContext, run_context
from tests.builders import atomic_task, parameter, tool, write_atomic
from tests.tasks.test_atomic_step import native_call, said

CALCULATOR = tool("Calculator", parameter("expression"))
# All that Inspect puts into a log. A member that is not listed would be lost when logs are merged.
MEMBERS = re.compile(
    r"header\.json|reductions\.json|summaries\.json|_journal/start\.json"
    r"|_journal/summaries/\d+\.json|samples/[01]_epoch_[12]\.json"
)


class Calculates:
    """Calls the tool and answers; a question about a fire ends the sample.

    When it is first asked about a fire, it copies the log as far as Inspect has written it.
    """

    def __init__(self, logs: Path, copy: Path) -> None:
        self.logs = logs
        self.copy = copy

    def __call__(self, input: list[ChatMessage], *_: Any) -> ModelOutput:
        if any("fire" in message.text for message in input):
            if not self.copy.exists():
                shutil.copytree(self.logs, self.copy)
            raise RuntimeError("no model today\nand more of it")
        if any(message.role == "tool" for message in input):
            return said("It is 42.")
        return native_call("Calculator", {"expression": "6*7"})


@solver
def asks_judge() -> Solver:
    """A call of a model that is not the system's own."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        await get_model(role="judge").generate("Well?")
        return state

    return solve


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`logs` of a finished evaluation, and `unfinished`, the same while it was under way."""
    root = tmp_path_factory.mktemp("layout")
    asked = ("What is 6 times 7?", "Is there a fire?")
    tasks = {
        str(number): atomic_task(tools=[CALCULATOR], dialogs=[{"role": "user", "content": words}])
        for number, words in enumerate(asked)
    }
    data = write_atomic(root / "data", tasks, toolmeta=[CALCULATOR])
    reply = Calculates(root / "logs", root / "unfinished")
    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    judge = get_model("mockllm/judge", custom_outputs=lambda *_: said("Yes."), memoize=False)
    task = task_with(atomic(data=str(data), similarity="exact-or-half"), setup=asks_judge())
    with run_context(RunContext(root / "files", Settings())):
        inspect_eval(
            task,
            model=model,
            model_roles={"judge": judge},
            epochs=2,
            log_dir=str(root / "logs"),
            display="none",
            log_realtime=False,
            log_buffer=1,
            max_samples=1,
            ctl_server=False,
        )
    return root


@pytest.fixture(params=["logs", "unfinished"])
def logs(request: pytest.FixtureRequest, root: Path) -> Path:
    folder: Path = root / request.param
    return folder


def inspect_samples(log: str) -> dict[tuple[str, int], EvalSample]:
    """The samples as Inspect reads them."""
    return {(str(one.id), one.epoch): one for one in read_eval_log(log).samples or []}


def test_samples_have_what_inspect_reads(logs: Path) -> None:
    (log,) = list_logs(logs)
    theirs = inspect_samples(log)
    ours = {one.key: one for one in read_stored_samples(log, list(theirs))}
    assert {*ours} == {*theirs}
    assert len(theirs) == (4 if logs.name == "logs" else 1)
    for key, sample in theirs.items():
        one = ours[key]
        assert (one.metadata, one.store) == (sample.metadata, sample.store)
        assert (one.model_usage, one.total_time) == (sample.model_usage, sample.total_time)
        assert one.failure == (sample.error and sample.error.message.splitlines()[0])
        assert one.failed_before == [retry.message for retry in sample.error_retries or []]
        calls = [event for event in sample.events if isinstance(event, ModelEvent)]
        assert [event.role for event in calls if event.role is not None] == ["judge"]
        assert [(call.output.model, call.retries, call.error) for call in one.model_calls()] == [
            (event.output.model, event.retries, event.error)
            for event in calls
            if event.role is None
        ]
        assert one.model_calls()


def test_a_units_store_is_what_inspect_makes_of_it(root: Path) -> None:
    (log,) = list_logs(root / "logs")
    for sample in inspect_samples(log).values():
        ours, theirs = read_unit_data(sample.store.items()), sample.store_as(UnitStore)
        assert ours.digests is not None
        assert dict(ours) == {name: getattr(theirs, name) for name in type(ours).model_fields}


def test_summaries_say_what_inspect_says(logs: Path) -> None:
    (log,) = list_logs(logs)
    theirs = read_eval_log_sample_summaries(log)
    read = ("id", "epoch", "error", "retries", "model_usage")
    assert [[getattr(one, name) for name in read] for one in read_stored_summaries(log)] == [
        [getattr(one, name) for name in read] for one in theirs
    ]
    finished = {key: kept.finished for key, kept in find_kept_units(logs).items()}
    assert finished == {(str(one.id), one.epoch): one.error is None for one in theirs}
    assert True in finished.values()


def test_the_unfinished_log_is_one(root: Path) -> None:
    (log,) = list_logs(root / "unfinished")
    assert read_eval_log(log, header_only=True).status == "started"
    with ZipFile(log) as zipped:
        assert "summaries.json" not in zipped.namelist()


def test_a_log_has_no_member_that_we_do_not_know(logs: Path) -> None:
    (log,) = list_logs(logs)
    with ZipFile(log) as zipped:
        assert [name for name in zipped.namelist() if not MEMBERS.fullmatch(name)] == []


def test_inspect_reads_a_log_that_we_copied_as_its_source(logs: Path, tmp_path: Path) -> None:
    (log,) = list_logs(logs)
    before = inspect_samples(log)
    write_partial_log(dict.fromkeys(before, log), tmp_path / "copy" / "copied.eval")
    after = read_eval_log(str(tmp_path / "copy" / "copied.eval"))
    assert {(str(one.id), one.epoch): one for one in after.samples or []} == before
    assert after.results is not None
    assert after.results.scores[0].metrics.keys() >= {"strict_ans_acc", "compat_ans_acc"}
    theirs = {(one.id, one.epoch): one for one in read_eval_log_sample_summaries(log)}
    copied = read_eval_log_sample_summaries(str(tmp_path / "copy" / "copied.eval"))
    assert {(one.id, one.epoch): one for one in copied} == theirs


def test_plain_json_gives_the_same_units(root: Path, tmp_path: Path) -> None:
    copy_logs(root / "logs", tmp_path)
    units = read_units(root / "logs", ["0", "1"], 2, AtomicUnit)
    assert [unit.failure is None for unit in units.units] == [True, True, False, False]
    assert read_units(tmp_path, ["0", "1"], 2, AtomicUnit) == units


def test_a_sample_that_is_no_sample_is_told_with_its_log(root: Path, tmp_path: Path) -> None:
    copy_logs(root / "logs", tmp_path)
    (log,) = tmp_path.iterdir()
    log.write_text(log.read_text().replace('"model_usage"', '"model_usage": 7, "other"'))
    with pytest.raises(RunError, match="has an unknown form"):
        read_units(tmp_path, ["0", "1"], 2, AtomicUnit)


def test_the_journal_of_a_log_that_did_not_end_counts_a_sample_once(tmp_path: Path) -> None:
    """The engine writes a sample again where a second attempt finished it."""
    row = {"id": "0", "epoch": 1, "input": "", "target": ""}
    with ZipFile(tmp_path / "x.eval", "w") as zipped:
        zipped.writestr("_journal/summaries/1.json", json.dumps([{**row, "error": "no"}]))
        zipped.writestr("_journal/summaries/2.json", json.dumps([row, {**row, "id": "1"}]))
    found = read_stored_summaries(str(tmp_path / "x.eval"))
    assert [(one.id, one.error) for one in found] == [("0", None), ("1", None)]

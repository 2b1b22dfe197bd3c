"""A bad attempt cannot be drawn again, and every attempt is counted."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model

from gta_bench.errors import WorkFailed
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.contract import REQUEST
from gta_bench.metrics.run_scores import total_usage
from gta_bench.records.attempts import AttemptLine, Attempts
from gta_bench.records.steps import MalformedStep
from gta_bench.records.units import Usage, WorkflowUnit
from gta_bench.runs.logs import ATTEMPTS, append_attempts, read_attempts
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.settings import Settings
from tests.builders import parameter, tool, workflow_task, write_workflow
from tests.harnesses.redrawing import DOWN, EMPTY, LATER, REFUSED, WAYS
from tests.harnesses.scripted import NAME, run_workflow

HARNESS = Harness(kind="bridged", target="tests.harnesses.redrawing:redraw", network="open")
# Ways whose cause no system can be proven to have made: they are run again, so many times.
AGAIN = {"later", "closed", "exhausted", "outputs-replaced", "interrupted"}
TABLE = tool("CsvFileGenerator", parameter("filename"), parameter("data_str"))


class Refusal(Exception):
    """What the client of a provider raises, which has the status."""

    def __init__(self, status: int) -> None:
        self.status_code = status
        super().__init__(f"Error code: {status}")


def model() -> Model:
    """A provider that fails at some words; once an account is closed, at a short request too."""
    closed = 0

    def reply(messages: list[ChatMessage], tools: Any, choice: Any, config: Any) -> ModelOutput:
        nonlocal closed
        said = messages[-1].text
        failing = {REFUSED: 400, LATER: 503, DOWN: 403, EMPTY: 429}
        if said in (DOWN, EMPTY):
            closed = failing[said]
        if closed and said == REQUEST:
            raise Refusal(closed)
        if said in failing:
            raise Refusal(failing[said])
        output = ModelOutput.from_content(NAME, "Bad work.")
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    return get_model(NAME, custom_outputs=reply, memoize=False)


def data(folder: Path, names: list[str]) -> Path:
    return write_workflow(folder, {name: workflow_task(tools=[TABLE]) for name in names}, [TABLE])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attempts")


@pytest.fixture(scope="module")
def units(folder: Path) -> dict[str, WorkflowUnit]:
    """One command over all ways, one task after another."""
    names = ["honest", *(name for name in WAYS if name not in AGAIN)]
    found = run_workflow(HARNESS, model(), data(folder / "data", names), ":", folder / "run")
    return {unit.task.id: unit for unit in found}


@pytest.mark.parametrize("way", sorted({*WAYS} - AGAIN))
def test_a_bad_attempt_is_the_systems_own_and_not_drawn_again(
    units: dict[str, WorkflowUnit], way: str
) -> None:
    """With a request that was refused, the unit had no score and the next command drew again."""
    unit = units[way]
    assert unit.failure is None
    assert unit.attempts == 1
    assert unit.usage.model_calls >= 1
    if way == "refused":
        assert isinstance(unit.trace[-1], MalformedStep)


def test_an_honest_system_has_one_attempt(units: dict[str, WorkflowUnit], folder: Path) -> None:
    assert (units["honest"].answer, units["honest"].attempts) == ("An honest answer.", 1)
    scores = score_workflow_run(folder / "run", Settings())
    assert (scores.attempts, scores.retried, scores.n) == (len(units), 0, len(units))


def test_what_a_system_may_have_caused_is_run_again_so_often_and_then_fails(
    folder: Path,
) -> None:
    """One command tries a failed unit twice; the cap of three is reached in the second."""
    out, source, asked = folder / "again", data(folder / "again-data", ["later"]), model()
    (first,) = run_workflow(HARNESS, asked, source, ":", out)
    assert first.failure is not None
    assert first.attempts == 2
    (later,) = run_workflow(HARNESS, asked, source, ":", out)
    assert later.failure is None
    assert later.attempts == 3
    assert later.usage.model_calls == 3 * first.usage.model_calls / 2
    scores = score_workflow_run(out, Settings())
    assert (scores.attempts, scores.retried, scores.n) == (3, 1, 1)
    assert scores.usage == total_usage([later.usage])


@pytest.mark.parametrize(
    ("way", "files", "reason"),
    [
        ("later", ["outputs/half.txt"], "The agent failed: "),
        ("exhausted", ["outputs/half.txt"], "The agent failed: "),
        ("outputs-replaced", [], "`outputs` of the workspace is not a folder."),
    ],
)
def test_what_the_last_attempt_left_is_judged(
    folder: Path, way: str, files: list[str], reason: str
) -> None:
    """Good work was scored as nothing where a provider failed at the last request three times.

    A quota that a system used up, and a folder that it spoiled, were taken for faults of ours, and
    drawn again without end.
    """
    out, source, asked = folder / way, data(folder / f"{way}-data", [way]), model()
    (first,) = run_workflow(HARNESS, asked, source, ":", out)
    assert (first.failure is None, first.attempts) == (False, 2)
    assert (first.trace, first.calls, first.deliverables) == ((), (), ())
    (last,) = run_workflow(HARNESS, asked, source, ":", out)
    assert (last.failure, last.attempts, last.delivered) == (None, 3, True)
    assert [file.path for file in last.deliverables] == files
    (problem,) = [step for step in last.trace if isinstance(step, MalformedStep)]
    assert problem.reason.startswith(reason)


def test_an_interrupted_attempt_is_shown_and_is_no_failure(folder: Path) -> None:
    """One that had asked the run's model for nothing was no attempt."""
    out, source = folder / "interrupted", data(folder / "interrupted-data", ["interrupted"])
    with pytest.raises(WorkFailed, match="Interrupted"):
        run_workflow(HARNESS, model(), source, ":", out)
    tried = read_attempts(out)
    assert tried is not None
    assert (tried["interrupted", 1].number, tried["interrupted", 1].counted) == (1, 0)
    (unit,) = run_workflow(HARNESS, model(), source, ":", out)
    assert (unit.failure, unit.answer, unit.attempts) == (None, "An honest answer.", 2)
    scores = score_workflow_run(out, Settings())
    assert (scores.attempts, scores.retried) == (2, 1)


def test_nobody_is_blamed_for_an_account_that_is_closed(folder: Path) -> None:
    """The cap does not count what a short request of ours shows to be ours from the beginning."""
    out, source, asked = folder / "closed", data(folder / "closed-data", ["closed"]), model()
    for attempts in (2, 4):
        (unit,) = run_workflow(HARNESS, asked, source, ":", out)
        assert unit.failure is not None
        assert unit.attempts == attempts
    tried = read_attempts(out)
    assert tried is not None
    assert tried["closed", 1].counted == 0
    assert score_workflow_run(out, Settings()).n == 0


def test_a_system_that_kills_its_process_has_only_so_many_attempts(folder: Path) -> None:
    out, source = folder / "killed", data(folder / "killed-data", ["honest"])
    when = datetime(2026, 11, 16, tzinfo=UTC)
    begun = [AttemptLine(task="honest", epoch=1, attempt=str(n), when=when) for n in range(3)]
    run_workflow(HARNESS, model(), source, ":", folder / "whole")
    (folder / "killed").mkdir()
    (out / "run.json").write_bytes((folder / "whole/run.json").read_bytes())
    append_attempts(out, begun)
    (unit,) = run_workflow(HARNESS, model(), source, ":", out)
    (step,) = unit.trace
    assert isinstance(step, MalformedStep)
    assert step.reason == "No result in 3 attempts; the last one: its process was killed"
    assert unit.usage.model_calls == 0, "it did not work a fourth time"


def cut(line: bytes) -> bytes:
    return line[:40]


DAMAGE: dict[str, Callable[[Path], object]] = {
    "removed": lambda file: file.write_bytes(b""),
    "no file": lambda file: file.unlink(),
    "cut": lambda file: file.write_bytes(b"\n".join(map(cut, file.read_bytes().splitlines()))),
    "one of two": lambda file: file.write_bytes(b"".join(file.read_bytes().splitlines(True)[2:])),
}


@pytest.fixture(scope="module")
def twice(folder: Path) -> Path:
    """A run that has tried its only unit twice."""
    run_workflow(HARNESS, model(), data(folder / "twice-data", ["later"]), ":", folder / "twice")
    return folder / "twice"


@pytest.mark.parametrize("damage", DAMAGE)
def test_attempts_that_logs_show_are_counted_without_their_lines(
    folder: Path, twice: Path, damage: str
) -> None:
    """Removing or damaging lines gave three more attempts."""
    out = shutil.copytree(twice, folder / damage)
    DAMAGE[damage](out / ATTEMPTS)
    (unit,) = run_workflow(HARNESS, model(), folder / "twice-data", ":", out)
    assert (unit.failure, unit.attempts) == (None, 3)
    (out / ATTEMPTS).write_bytes(b"".join((out / ATTEMPTS).read_bytes().splitlines(True)[-2:]))
    scores = score_workflow_run(out, Settings())
    assert (scores.attempts, scores.retried) == (3, 1), "also once it has a result"


def test_more_epochs_leave_the_attempts_of_earlier_ones(folder: Path, twice: Path) -> None:
    out = shutil.copytree(twice, folder / "epochs")
    run_workflow(HARNESS, model(), folder / "twice-data", ":", out, epochs=2)
    tried = read_attempts(out)
    assert tried is not None
    assert [(tried["later", epoch].number, tried["later", epoch].finished) for epoch in (1, 2)] == [
        (3, 1),
        (2, 0),
    ]


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    when = datetime(2026, 11, 16, tzinfo=UTC)
    line = AttemptLine(task="0", epoch=1, attempt="a", when=when)
    append_attempts(tmp_path, [line])
    file = tmp_path / ATTEMPTS
    file.write_bytes(file.read_bytes() + b'{"task": "0", "epo')
    used = Usage(model_calls=2)
    append_attempts(tmp_path, [line.model_copy(update={"end": "failed", "usage": used})])
    assert read_attempts(tmp_path) == {
        ("0", 1): Attempts(1, 1, 0, "its process was killed", (used,))
    }
    assert read_attempts(tmp_path, "1") == {}
    assert read_attempts(tmp_path / "none") is None

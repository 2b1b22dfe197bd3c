import asyncio
import atexit
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage, ModelOutput, get_model

from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import task_digests
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.units import AtomicUnit
from gta_bench.runs.logs import read_units
from gta_bench.settings import Settings
from gta_bench.tasks.atomic import atomic
from gta_bench.tasks.context import RunContext, at_end, run_context, workspace_folder
from gta_bench.tasks.run_tools import RunTools
from gta_bench.tools.offering import OfferedTools
from gta_bench.tools.toolbox import Toolbox
from tests.builders import atomic_task, call, parameter, reply, tool, write_atomic
from tests.tasks.test_atomic_step import native_call, said

CALCULATOR = tool("Calculator", parameter("expression"))
DIALOGS = [
    {"role": "user", "content": "What is 6 times 7?"},
    call("Calculator", {"expression": "6*7"}),
    reply("Calculator", "42"),
    {"role": "assistant", "content": "It is 42."},
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    answer = {"whitelist": [["42"]], "blacklist": None}
    task = atomic_task(tools=[CALCULATOR], dialogs=DIALOGS, gt_answer=answer)
    return write_atomic(tmp_path / "data", {"0": task}, toolmeta=[CALCULATOR])


def evaluate(root: Path, out: Path, reply: Any, **options: Any) -> EvalLog:
    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    task = atomic(data=str(root), similarity="exact-or-half", **options)
    with run_context(RunContext(out / "files", Settings())):
        return inspect_eval(
            task, model=model, log_dir=str(out / "logs"), display="none", log_realtime=False
        )[0]


def reckoner(input: list[ChatMessage], *_: Any) -> ModelOutput:
    """A model that calculates first and then repeats the result."""
    results = [message.text for message in input if message.role == "tool"]
    if results:
        return said(f"It is {results[-1]}.")
    return native_call("Calculator", {"expression": "6*7"})


def test_an_agent_works_with_the_real_calculator(root: Path, tmp_path: Path) -> None:
    log = evaluate(root, tmp_path / "run", reckoner)
    assert log.results is not None
    metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    assert metrics["strict_ans_acc"] == 100
    assert metrics["strict_l_f1"] == 100
    unit = read_units(tmp_path / "run" / "logs", ["0"], 1, AtomicUnit).units[0]
    assert [step.step for step in unit.trace or ()] == ["call", "reply", "answer"]
    assert unit.trace is not None
    assert unit.trace[-1] == AnswerStep(content="It is 42.")
    assert unit.calls[0].backend.startswith("pydantic-monty")


def test_the_log_shows_the_trace_the_reference_and_what_is_accepted(
    root: Path, tmp_path: Path
) -> None:
    log = evaluate(root, tmp_path / "run", reckoner)
    assert log.samples is not None
    assert log.samples[0].scores is not None
    shown = log.samples[0].scores["atomic_answers"].explanation or ""
    assert '1. Calculator(expression="6*7")' in shown
    assert "1. reply text: 42" in shown
    assert "**Accepted**: 42" in shown


def test_each_task_has_a_workspace_with_its_files_below_the_run(root: Path, tmp_path: Path) -> None:
    evaluate(root, tmp_path / "run", reckoner)
    assert (tmp_path / "run" / "files" / "0" / "inputs" / "menu.jpg").is_file()
    evaluate(root, tmp_path / "run", reckoner)


def test_a_call_that_fails_is_in_the_trace_and_the_agent_goes_on(
    root: Path, tmp_path: Path
) -> None:
    def divides(input: list[ChatMessage], *_: Any) -> ModelOutput:
        if any(message.role == "tool" for message in input):
            return said("It is 42.")
        return native_call("Calculator", {"expression": "6/0"})

    evaluate(root, tmp_path / "run", divides)
    unit = read_units(tmp_path / "run" / "logs", ["0"], 1, AtomicUnit).units[0]
    first = (unit.trace or ())[0]
    assert isinstance(first, CallStep)
    assert first.error is not None
    assert first.error.type == "TOOL_ERROR"
    assert unit.calls[0].status == "error"


def test_the_turns_are_bounded(root: Path, tmp_path: Path) -> None:
    evaluate(
        root,
        tmp_path / "run",
        lambda *_: native_call("Calculator", {"expression": "1+1"}),
        max_turns=2,
    )
    unit = read_units(tmp_path / "run" / "logs", ["0"], 1, AtomicUnit).units[0]
    assert [step.step for step in unit.trace or ()] == ["call", "reply", "call", "reply"]


def test_gold_replays_the_reference_through_the_tools(root: Path, tmp_path: Path) -> None:
    evaluate(root, tmp_path / "run", None, agent="gold")
    unit = read_units(tmp_path / "run" / "logs", ["0"], 1, AtomicUnit).units[0]
    assert [step.step for step in unit.trace or ()] == ["call", "reply", "answer"]
    assert unit.digests == task_digests(load_atomic(root), "0")


def test_each_epoch_has_its_own_workspace(tmp_path: Path) -> None:
    with run_context(RunContext(tmp_path, Settings())):
        assert workspace_folder("3", 1) == tmp_path / "3"
        assert workspace_folder("3", 2) == tmp_path / "3.2"
    assert workspace_folder("3", 1).name == "3"


def test_tools_are_closed_when_the_run_ends(tmp_path: Path) -> None:
    """They stayed open until the garbage collector came by."""
    space = Workspace.create(tmp_path / "space", {})

    async def opened() -> Executor:
        async with RunTools().for_unit("0", 1, {}, space) as tools:
            assert isinstance(tools.source, OfferedTools)
            toolbox = tools.source._source
            assert isinstance(toolbox, Toolbox)
            threads = toolbox.tool("Calculator").equipment.threads
            assert threads is not None
            return threads

    with run_context(RunContext(tmp_path, Settings())):
        threads = asyncio.run(opened())
        assert threads.submit(int).result() == 0
    with pytest.raises(RuntimeError, match="after shutdown"):
        threads.submit(int)


def test_without_a_run_tools_are_closed_when_the_process_ends() -> None:
    def work() -> None: ...

    before = atexit._ncallbacks()
    at_end(work)
    assert atexit._ncallbacks() == before + 1
    atexit.unregister(work)

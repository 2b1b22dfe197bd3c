"""Python agents through Inspect's agent bridge, and upstream's contract."""

from pathlib import Path

import pytest

from gta_bench.harnesses.choice import CellLimits, Harness
from gta_bench.records.dialogue import CallTurn
from gta_bench.records.run import Limits
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from gta_bench.records.units import AtomicUnit
from tests.builders import parameter, tool, workflow_task, write_atomic, write_workflow
from tests.harnesses.scripted import (
    ANSWER,
    broken_model,
    run_atomic,
    run_workflow,
    scripted_model,
    set_price,
)

CALCULATING = "1"  # a task of GTA-Atomic that offers the calculator


def work(
    function: str, data: Path, out: Path, *, seconds: float = 120, max_cost: float | None = None
) -> AtomicUnit:
    harness = Harness(
        kind="bridged",
        target=f"tests.harnesses.agents:{function}",
        network="open",
        limits=CellLimits(seconds=seconds, cost_usd=max_cost),
    )
    return run_atomic(harness, scripted_model(), data, CALCULATING, out)[0]


def test_a_bare_loop_over_the_chat_api_asks_the_runs_model(
    atomic_dir: Path, tmp_path: Path
) -> None:
    unit = work("bare", atomic_dir, tmp_path / "run")
    assert unit.failure is None
    assert [step.step for step in unit.trace or ()] == ["call", "reply", "answer"]
    assert [(call.tool, call.status) for call in unit.calls] == [("Calculator", "done")]
    assert unit.usage.model_calls == 2
    assert unit.usage.input_tokens == 20


def test_an_agent_of_upstreams_contract_works_without_async(
    atomic_dir: Path, tmp_path: Path
) -> None:
    unit = work("Upstream", atomic_dir, tmp_path / "run")
    assert unit.failure is None
    assert [step.step for step in unit.trace or ()] == ["call", "reply", "answer"]
    assert (unit.trace or ())[-1].model_dump()["content"] == f"{ANSWER} 42"
    assert unit.usage.model_calls == 1


def test_calls_that_only_an_agents_own_steps_tell_of_are_kept(
    atomic_dir: Path, tmp_path: Path
) -> None:
    unit = work("upstream_alone", atomic_dir, tmp_path / "run")
    assert [step.step for step in unit.trace or ()] == ["call", "reply", "answer"]
    assert unit.calls == ()


def steps(function: str, tmp_path: Path, *, seconds: float = 120) -> AtomicUnit:
    harness = Harness(
        kind="bridged",
        target=f"tests.harnesses.agents:{function}",
        network="open",
        limits=CellLimits(seconds=seconds),
    )
    data = write_atomic(tmp_path / "data")
    return run_atomic(harness, scripted_model(), data, "0", tmp_path / "run", mode="step")[0]


def test_an_agent_of_upstreams_contract_is_measured_step_by_step(tmp_path: Path) -> None:
    """`next_step` was never called, and `--agent-bridge --mode step` was refused."""
    unit = steps("Stepping", tmp_path)
    assert unit.failure is None
    assert unit.trace == (
        CallStep(name="OCR", arguments={"image": "inputs/menu.jpg"}),
        AnswerStep(content=f"It costs 7. {ANSWER}"),
    )
    assert unit.usage.model_calls == 1


def test_a_step_that_is_none_is_the_agents_own_failure(tmp_path: Path) -> None:
    unit = steps("Stumbling", tmp_path)
    assert unit.failure is None
    reasons = [step.reason for step in unit.trace or () if isinstance(step, MalformedStep)]
    assert reasons == [
        "The agent failed: ValueError: I lost the thread.",
        "The agent failed: ValueError: A step is an object, not str.",
    ]


def test_an_agent_that_takes_too_long_for_its_steps_is_stopped(tmp_path: Path) -> None:
    unit = steps("Dawdling", tmp_path, seconds=0.5)
    reasons = {step.reason for step in unit.trace or () if isinstance(step, MalformedStep)}
    assert reasons == {"The agent was stopped: it had not ended after 0.5 seconds."}
    assert len(unit.trace or ()) == 2


def test_step_mode_needs_next_step(tmp_path: Path) -> None:
    unit = steps("Upstream", tmp_path)
    assert unit.failure is None, "it would be run again, and could be so until it likes its work"
    reasons = [step.reason for step in unit.trace or () if isinstance(step, MalformedStep)]
    assert len(reasons) == 2
    assert "an object with `next_step(history, resources, stop)`" in reasons[0]


@pytest.mark.parametrize("agent", ["Stepping", "Silent"])
def test_end_to_end_needs_chat(agent: str, atomic_dir: Path, tmp_path: Path) -> None:
    """Such an agent was scored on the text of its object."""
    unit = work(agent, atomic_dir, tmp_path / "run")
    (step,) = unit.trace or ()
    assert isinstance(step, MalformedStep)
    assert "an object with `chat(query, memory, resources)`" in step.reason


def test_an_agent_that_returns_nothing_has_no_answer(atomic_dir: Path, tmp_path: Path) -> None:
    """It was scored on the text "None"."""
    unit = work("speechless", atomic_dir, tmp_path / "run")
    assert (unit.failure, unit.trace, unit.answer) == (None, (), "")


@pytest.mark.parametrize("mode", ["end-to-end", "step"])
def test_an_agent_that_ends_the_process_fails(mode: str, atomic_dir: Path, tmp_path: Path) -> None:
    if mode == "step":
        unit = steps("Leaving", tmp_path)
    else:
        unit = work("Leaving", atomic_dir, tmp_path / "run")
    assert unit.failure is None
    reasons = {step.reason for step in unit.trace or () if isinstance(step, MalformedStep)}
    assert reasons == {"The agent failed: SystemExit: 3"}


def test_agents_without_async_work_side_by_side(tmp_path: Path) -> None:
    """One that waited for its tool blocked the event loop, and with it the tool and all others."""
    calculator = tool("Calculator", parameter("expression"))
    tasks = {name: workflow_task(tools=[calculator]) for name in ("a", "b")}
    data = write_workflow(tmp_path / "data", tasks, [calculator])
    harness = Harness(
        kind="bridged",
        target="tests.harnesses.agents:blocking",
        network="open",
        limits=CellLimits(seconds=120),
    )
    units = run_workflow(harness, scripted_model(), data, ":", tmp_path / "run")
    assert [(unit.answer, len(unit.calls)) for unit in units] == [("42", 1)] * 2


@pytest.mark.parametrize("agent", ["slow", "endless"])
def test_an_agent_that_takes_too_long_is_stopped(
    agent: str, atomic_dir: Path, tmp_path: Path
) -> None:
    unit = work(agent, atomic_dir, tmp_path / "run", seconds=1)
    assert unit.failure is None
    step = (unit.trace or ())[-1]
    assert isinstance(step, MalformedStep)
    assert step.reason == "The agent was stopped: it had not ended after 1 seconds."


def test_an_agent_that_costs_too_much_is_stopped(atomic_dir: Path, tmp_path: Path) -> None:
    set_price()
    unit = work("bare", atomic_dir, tmp_path / "run", max_cost=0.5)
    assert unit.failure is None
    step = (unit.trace or ())[-1]
    assert isinstance(step, MalformedStep)
    assert step.reason == "The agent was stopped: it cost more than $0.5."


def bridged(function: str) -> Harness:
    return Harness(kind="bridged", target=f"tests.harnesses.agents:{function}", network="open")


def test_an_exception_of_an_agent_is_its_own_failure_and_what_it_left_is_kept(
    workflow_dir: Path, tmp_path: Path
) -> None:
    model, out = scripted_model(), tmp_path / "run"
    (unit,) = run_workflow(bridged("failing"), model, workflow_dir, "0:1", out)
    assert unit.failure is None
    (step,) = unit.trace
    assert isinstance(step, MalformedStep)
    assert step.reason == "The agent failed: ValueError: I lost the thread."
    assert 'raise ValueError("I lost the thread.")' in step.content
    assert [file.path for file in unit.deliverables] == ["outputs/begun.txt"]


def test_an_agent_whose_model_failed_has_no_score(atomic_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    (unit,) = run_atomic(bridged("bare"), broken_model(), atomic_dir, CALCULATING, out)
    assert unit.failure is not None
    assert "The harness's model failed: " in unit.failure
    assert unit.trace is None


def test_time_and_cost_are_all_that_bounds_an_agent_in_this_process() -> None:
    limits = CellLimits(seconds=9, cost_usd=2)
    harness = Harness(kind="bridged", target="m:f", network="open", limits=limits)
    assert harness.bounds == Limits(seconds=9, cost_usd=2)


def test_an_agent_does_not_find_the_reference_in_its_sample(
    atomic_dir: Path, tmp_path: Path
) -> None:
    """It answered with the target that Inspect's sample had."""
    unit = work("curious", atomic_dir, tmp_path / "run")
    assert unit.task.steps, "the log has the reference"
    answer = unit.answer or ""
    assert answer.startswith("['', {}, '', None")
    calls = [step.call.name for step in unit.task.steps if isinstance(step, CallTurn)]
    assert calls
    assert not any(name in answer for name in calls)

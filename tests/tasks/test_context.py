"""The context of a run reaches everything that Inspect calls, and nothing outside of the run."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task, task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ModelOutput, get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, tool
from inspect_ai.util import collect

from gta_bench.records.cost import Cost
from gta_bench.settings import Settings
from gta_bench.tasks.context import RunContext, SampleOutcome, current_context, run_context
from tests.tasks.test_atomic_step import native_call, said

# What saw the context, in the order in which it did.
seen: list[tuple[str, RunContext | None]] = []


def note(place: str) -> None:
    seen.append((place, current_context()))


class Noting:
    """A watcher that notes its callers."""

    def began(self) -> None:
        note("sample start")

    def ended(self, key: tuple[str, int], cost: Cost, how: SampleOutcome) -> None:
        note("sample end")


@tool
def noting() -> Tool:
    async def execute() -> str:
        """Note the context."""
        note("tool")
        return "noted"

    return execute


@solver
def noting_solver() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        note("solver")
        await asyncio.to_thread(note, "thread")
        await collect(_note_later(), _note_later())
        state.tools = [noting()]
        return await generate(state)

    async def _note_later() -> None:
        note("subtask")

    return solve


@metric
def noting_metric() -> Metric:
    def compute(scores: list[SampleScore]) -> Value:
        note("metric")
        return 1.0

    return compute


@scorer(metrics=[noting_metric()])
def noting_scorer() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        note("scorer")
        return Score(value=1.0)

    return score


@task
def noted_task() -> Task:
    samples = MemoryDataset([Sample(id="0", input="Hello"), Sample(id="1", input="Hello")])
    return Task(dataset=samples, solver=noting_solver(), scorer=noting_scorer())


def calls_once(input: list[ChatMessage], *_: Any) -> ModelOutput:
    if input[-1].role == "tool":
        return said("Done")
    return native_call("noting", {})


def evaluate(logs: Path) -> None:
    model = get_model("mockllm/model", custom_outputs=calls_once, memoize=False)
    (log,) = inspect_eval(noted_task(), model=model, log_dir=str(logs), display="none")
    assert log.status == "success", log.error


@pytest.fixture(autouse=True)
def listening() -> None:
    import gta_bench.running.progress  # noqa: F401 registers the hooks

    seen.clear()


def in_run(folder: Path) -> RunContext:
    context = RunContext(folder, Settings(), watcher=Noting())
    with run_context(context):
        evaluate(folder)
    return context


PLACES = {
    *("sample start", "solver", "thread", "subtask", "tool", "scorer", "metric", "sample end"),
}


def test_everything_that_inspect_calls_sees_the_context(tmp_path: Path) -> None:
    context = in_run(tmp_path)
    assert {place for place, _ in seen} == PLACES
    assert all(found is context for _, found in seen)
    assert current_context() is None


def test_a_run_started_inside_of_an_event_loop_sees_its_own_context(tmp_path: Path) -> None:
    """A notebook has a running loop, so `gta_bench.run` works in a thread of its own."""

    async def cell() -> RunContext:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(in_run, tmp_path).result()

    context = asyncio.run(cell())
    assert {place for place, _ in seen} == PLACES
    assert all(found is context for _, found in seen)


def test_the_inner_context_holds_until_its_block_ends(tmp_path: Path) -> None:
    outer, inner = RunContext(tmp_path / "a", Settings()), RunContext(tmp_path / "b", Settings())
    with run_context(outer):
        with run_context(inner):
            assert current_context() is inner
        assert current_context() is outer
    assert current_context() is None


def test_without_a_run_hooks_stay_silent(tmp_path: Path) -> None:
    evaluate(tmp_path)
    assert {found for _, found in seen} == {None}
    assert {place for place, _ in seen} == PLACES - {"sample start", "sample end"}

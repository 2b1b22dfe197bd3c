"""What our layer costs over a bare Inspect solver that makes the same model calls."""

import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolInfo
from inspect_ai.util import collect

from gta_bench.agents.contract import make_step_histories
from gta_bench.agents.toolcalling import make_tool_info, make_toolcalling_messages
from gta_bench.datasets.atomic import load_atomic
from gta_bench.tasks.atomic import atomic_step

pytestmark = pytest.mark.measure
Prompt = tuple[list[ChatMessage], list[ToolInfo]]


def instant() -> Model:
    def reply(*_: Any) -> ModelOutput:
        output = ModelOutput.from_content("mockllm", "It is 7.")
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return output

    return get_model("mockllm/model", custom_outputs=reply, memoize=False)


@solver
def bare(prompts: dict[str, list[Prompt]]) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model, wanted = get_model(), prompts[str(state.sample_id)]
        await collect(*(model.generate(messages, tools=tools) for messages, tools in wanted))
        return state

    return solve


def cpu_seconds(task: Task, logs: Path) -> float:
    start = time.process_time()
    log = inspect_eval(
        task, model=instant(), log_dir=str(logs), display="none", log_realtime=False
    )[0]
    assert log.status == "success"
    return time.process_time() - start


ROUNDS = 5


def test_a_step_run_costs_at_most_a_quarter_more_than_bare_model_calls(
    atomic_dir: Path, tmp_path: Path
) -> None:
    tasks = load_atomic(atomic_dir).tasks
    prompts = {
        name: [
            (
                make_toolcalling_messages(history, []),
                [make_tool_info(tool) for tool in entry.offered.values()],
            )
            for history in make_step_histories(entry)
        ]
        for name, entry in tasks.items()
    }
    assert sum(map(len, prompts.values())) == 770
    samples = [Sample(id=name, input=entry.request) for name, entry in tasks.items()]

    def ours() -> Task:
        return atomic_step(data=str(atomic_dir), similarity="wordllama")

    def theirs() -> Task:
        return Task(dataset=MemoryDataset(samples), solver=bare(prompts))

    cpu_seconds(ours(), tmp_path)  # imports and caches of the first evaluation
    # Both of a round meet the same machine, so a disturbance spoils one ratio at most.
    rounds = [
        (cpu_seconds(ours(), tmp_path), cpu_seconds(theirs(), tmp_path)) for _ in range(ROUNDS)
    ]
    ratio = median(own / other for own, other in rounds)
    print(f"step run / bare solver, CPU: median {ratio:.2f} of {ROUNDS} rounds {rounds}")
    assert ratio <= 1.25

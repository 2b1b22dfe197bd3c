"""What a run would take: its prompts are built and counted, and nothing is sent."""

import asyncio
from typing import Any

from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model

from gta_bench.agents.catalog import load_agent
from gta_bench.agents.contract import Decide, Setup
from gta_bench.agents.history import dataset_files, step_histories
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import AtomicDataset
from gta_bench.metrics.reference import reference_steps
from gta_bench.tasks.atomic_run import AtomicRun
from gta_bench.tasks.atomic_step import offered_tools
from gta_bench.tasks.evaluation import select_tasks
from gta_bench.tasks.show import step_text

# English and JSON take about four characters a token; the count is a guess and says so.
CHARACTERS_PER_TOKEN = 4


def estimate(run: AtomicRun) -> str:
    """Calls, tokens and cost in one line; replies are taken to be as long as the reference's."""
    dataset = load_atomic(run.data)
    chosen = select_tasks(dataset.tasks, run.tasks)
    prompts = asyncio.run(_prompt_lengths(run, dataset, chosen))
    replies = [
        len(step_text(step)) for task in chosen for step in reference_steps(dataset.tasks[task])
    ]
    sent = sum(prompts) * run.epochs // CHARACTERS_PER_TOKEN
    received = sum(replies) * run.epochs // CHARACTERS_PER_TOKEN
    calls = len(prompts) * run.epochs
    return (
        f"{run.model.name} · {run.agent}: {calls} calls, about {sent:,} input and {received:,} "
        f"output tokens ({CHARACTERS_PER_TOKEN} characters a token), {_cost(run, sent, received)}."
    )


def _cost(run: AtomicRun, sent: int, received: int) -> str:
    settings = run.model.settings
    if settings.input_price is None or settings.output_price is None:
        return "cost unknown (set input_price and output_price of the model in gta.toml)"
    dollars = (sent * settings.input_price + received * settings.output_price) / 1e6
    return f"about ${dollars:.2f}"


async def _prompt_lengths(
    run: AtomicRun, dataset: AtomicDataset, chosen: tuple[str, ...]
) -> list[int]:
    lengths: list[int] = []

    def count(messages: list[ChatMessage], tools: list[Any], *_: object) -> ModelOutput:
        texts = [message.text for message in messages]
        calls = [str(getattr(message, "tool_calls", None) or "") for message in messages]
        offered = [tool.model_dump_json() for tool in tools]
        lengths.append(sum(len(text) for text in (*texts, *calls, *offered)))
        output = ModelOutput.from_content("mockllm", "counted")
        output.usage = ModelUsage()
        return output

    model = get_model("mockllm/model", custom_outputs=count, memoize=False)
    decide = load_agent(run.agent)(
        Setup(
            model=model,
            known_files=dataset_files(dataset.tasks.values()),
            references={task: dataset.tasks[task].steps for task in chosen},
        )
    )
    for task in chosen:
        await _decide_all(decide, dataset, task, run.agent)
    return lengths


async def _decide_all(decide: Decide, dataset: AtomicDataset, task: str, agent: str) -> None:
    entry = dataset.tasks[task]
    for history in step_histories(entry):
        await decide(history, offered_tools(dataset, entry, agent))

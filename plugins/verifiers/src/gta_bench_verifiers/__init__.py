"""GTA-Atomic as a taskset of verifiers: its tasks, and the dense reward over a finished trace.

The tools come from `gta tools serve` as an MCP server of the harness.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import verifiers.v1 as vf

from gta_bench.agents.contract import files_text
from gta_bench.datasets.atomic import load_atomic
from gta_bench.metrics.strict.steps import compute_step_reward
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.steps import AnswerStep, CallStep, PredictedStep, StepError
from gta_bench.similarity.catalog import load_similarity


class GTAConfig(vf.TasksetConfig):
    """`data` is the dataset's folder, `similarity` what free text is compared by."""

    data: str = "data/gta_atomic"
    similarity: str = "wordllama"


class GTAData(vf.TaskData):
    """One task; `record` is the whole of it, which no model is shown."""

    record: AtomicTask
    similarity: str


class GTATask(vf.Task[GTAData]):
    """An Atomic task."""

    @vf.reward
    async def steps(self, trace: vf.Trace) -> float:
        """0 to 1: every action against the reference's step at its place."""
        similar = load_similarity(self.data.similarity).measure
        actions = [step for message in trace.assistant_messages for step in actions_of(message)]
        return sum(
            compute_step_reward(self.data.record, place, step, similarity=similar)
            for place, step in enumerate(actions)
        )


class GTATaskset(vf.Taskset[GTATask, GTAConfig]):
    """All tasks of the dataset."""

    def load(self) -> Iterator[GTATask]:
        """In the dataset's order."""
        for task in load_atomic(Path(self.config.data)).tasks.values():
            files = files_text(task.attachments)
            prompt = task.request if files is None else f"{files}\n\n{task.request}"
            data = GTAData(
                id=task.id, prompt=prompt, record=task, similarity=self.config.similarity
            )
            yield GTATask(data)


def actions_of(message: vf.AssistantMessage) -> Iterator[PredictedStep]:
    """The calls of a message, each an action of its own, else its text as the answer."""
    for call in message.tool_calls or ():
        try:
            yield CallStep(name=call.name, arguments=json.loads(call.arguments))
        except ValueError:
            error = StepError(type="ARGS_ERROR", message="The arguments are not JSON.")
            yield CallStep(name=call.name, arguments=call.arguments, error=error)
    if not message.tool_calls:
        yield AnswerStep(content=message.content or "")

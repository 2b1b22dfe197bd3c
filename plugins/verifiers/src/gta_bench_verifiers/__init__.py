"""GTA-Atomic as a taskset of verifiers: its tasks, their tools and files, and the rewards."""

import json
from collections.abc import Iterator
from pathlib import Path

import verifiers.v1 as vf

from gta_bench.agents.calling import read_call
from gta_bench.agents.contract import DecidedStep, files_text
from gta_bench.datasets.atomic import load_atomic
from gta_bench.records.steps import AnswerStep, CallStep, StepError
from gta_bench.rl.rewards import Kind, score_actions
from gta_bench.similarity.catalog import load_similarity
from gta_bench_verifiers.tools import GTAData, GTAState, GTATools, GTAToolsConfig, ToolCall

__all__ = ["GTATask", "GTATaskset"]

# How harnesses prefix the tools of an MCP server that is called gta.
PREFIXES = ("mcp__gta__", "gta__", "gta_")
CALLS = "gta_calls"


class GTATaskConfig(vf.TaskConfig):
    """The tools, from a `tape` or a `server`; the kind of `reward`; and the `similarity` of texts.

    With neither tape nor server, the harness brings the tools of an MCP server called gta.
    """

    tape: str | None = None
    server: str | None = None
    reward: Kind = "outcome"
    similarity: str = "wordllama"


class GTAConfig(vf.TasksetConfig):
    """`data` is the dataset's folder."""

    data: str = "data/gta_atomic"
    task: GTATaskConfig = GTATaskConfig()


class GTATask(vf.Task[GTAData, GTAState, GTATaskConfig]):
    """An Atomic task."""

    @classmethod
    def toolsets(cls, config: GTATaskConfig) -> list[vf.Toolset]:
        """Return the tools of the task, unless the harness brings them."""
        if config.tape is None and config.server is None:
            return []
        # Tool servers run in another folder.
        tape = None if config.tape is None else str(Path(config.tape).resolve())
        return [GTATools(GTAToolsConfig(tape=tape, server=config.server))]

    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Copy the task's files to where the harness runs, for harnesses that read files."""
        for item in self.data.record.attachments:
            await runtime.write(item.path, (Path(self.data.root) / item.source).read_bytes())

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Keep the outcomes of the calls in the trace, because the state is not stored."""
        if self.toolsets(self.config):
            trace.info[CALLS] = [call.model_dump() for call in trace.state.calls]

    @vf.reward
    async def reward(self, trace: vf.Trace) -> float:
        """Return the sum of the rewards of all actions, 0 to 1."""
        return self._score(self.config.reward, trace)

    @vf.metric
    async def scores(self, trace: vf.Trace) -> dict[str, float]:
        """Return the trace under every kind of reward."""
        kinds: tuple[Kind, ...] = ("step", "outcome", "tool-use")
        return {f"gta_{kind}": self._score(kind, trace) for kind in kinds}

    def _score(self, kind: Kind, trace: vf.Trace) -> float:
        similar = load_similarity(self.config.similarity).measure
        return score_actions(kind, self.data.record, self.read_actions(trace), similar)

    def read_actions(self, trace: vf.Trace) -> list[DecidedStep]:
        """Return the calls and answers of a trace; calls that gave no result have an error."""
        made = trace.info.get(CALLS)
        left = None if made is None else [ToolCall.model_validate(call) for call in made]
        actions: list[DecidedStep] = []
        for message in trace.assistant_messages:
            for call in message.tool_calls or ():
                actions.append(self._read_call(call, left))
            if not message.tool_calls:
                actions.append(AnswerStep(content=message.content or ""))
        return actions

    def _read_call(self, call: vf.ToolCall, left: list[ToolCall] | None) -> CallStep:
        name = remove_prefix(call.name)
        try:
            step = read_call(name, json.loads(call.arguments), self.data.record.tools)
        except ValueError:
            return _refuse(CallStep(name=name, arguments=call.arguments), "no JSON")
        if left is None:
            return step
        outcome = next((one for one in left if one.name == name), None)
        if outcome is None:
            return _refuse(step, "The call did not reach the tools.")
        left.remove(outcome)
        return step if outcome.error is None else _refuse(step, outcome.error)


class GTATaskset(vf.Taskset[GTATask, GTAConfig]):
    """All tasks of the dataset."""

    def load(self) -> Iterator[GTATask]:
        """Yield the tasks in the dataset's order."""
        dataset = load_atomic(Path(self.config.data))
        for task in dataset.tasks.values():
            files = files_text(task.attachments)
            prompt = task.request if files is None else f"{files}\n\n{task.request}"
            data = GTAData(id=task.id, prompt=prompt, record=task, root=str(dataset.root.resolve()))
            yield GTATask(data, self.config.task)


def remove_prefix(name: str) -> str:
    """Return a tool's own name."""
    return next((name.removeprefix(one) for one in PREFIXES if name.startswith(one)), name)


def _refuse(step: CallStep, message: str) -> CallStep:
    return step.model_copy(update={"error": StepError(type="TOOL_ERROR", message=message)})

"""The same decisions, one call a reply or all in one reply, are the same measurement."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput
from inspect_ai.tool import ToolCall
from pydantic import JsonValue

from gta_bench.agents.contract import Decision, History
from gta_bench.agents.loop import work_on
from gta_bench.agents.toolcalling import read_output
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import ToolError
from gta_bench.metrics.run_scores import score_run
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.calls import ToolResult
from gta_bench.records.dialogue import AnswerTurn
from gta_bench.records.run import LoopLimits
from gta_bench.records.scores import RunScores
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tools import ToolSpec
from gta_bench.records.units import AtomicUnit


class Moody:
    """Tools that fail for some arguments, always the same ones."""

    def specs(self) -> Mapping[str, ToolSpec]:
        return {}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        if random.Random(f"{name}{arguments}").random() < 0.2:
            raise ToolError("not today")
        parts = (ReplyPart(type="text", content=f"{name} was here"),)
        return ToolResult(parts=parts, tool=name, tool_version="1", backend="none", seconds=0)


def decisions(task: AtomicTask) -> tuple[list[ToolCall], str]:
    """The reference's calls, some with a slip, some twice, and an answer, right or wrong."""
    dice = random.Random(task.id)
    calls: list[ToolCall] = []
    for turn in task.calls:
        name = turn.call.name if dice.random() < 0.9 else "NoSuchTool"
        for _ in range(1 + (dice.random() < 0.1)):
            id = f"call-{len(calls)}"
            calls.append(ToolCall(id=id, function=name, arguments=dict(turn.call.arguments)))
    answers = [turn.content for turn in task.steps if isinstance(turn, AnswerTurn)]
    return calls, answers[-1] if answers and dice.random() < 0.8 else "I do not know."


def output(calls: Sequence[ToolCall], text: str = "") -> ModelOutput:
    message = ChatMessageAssistant(content=text, tool_calls=list(calls) or None)
    return ModelOutput(
        model="m", choices=[ChatCompletionChoice(message=message, stop_reason="stop")]
    )


def played(task: AtomicTask, at_once: int, folder: Path) -> AtomicUnit:
    calls, answer = decisions(task)
    replies = [output(calls[place : place + at_once]) for place in range(0, len(calls), at_once)]
    script = iter([*replies, output((), answer)])

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        return read_output(next(script), tools)

    dialogue = asyncio.run(
        work_on(
            task,
            decide,
            Moody(),
            Workspace.create(folder, {}),
            tools=task.tools,
            limits=LoopLimits(max_turns=100),
        )
    )
    return AtomicUnit(task=task, trace=dialogue.trace, calls=tuple(dialogue.calls))


def measured(atomic: AtomicDataset, at_once: int, folder: Path) -> RunScores:
    units = [
        played(task, at_once, folder / str(at_once) / task.id)
        for task in list(atomic.tasks.values())[::4]
    ]
    return score_run(
        units, "end-to-end", similarity=exact_or_half, similarity_name="x", comparable=False
    )


def timeless(scores: RunScores) -> RunScores:
    tools = tuple(use.model_copy(update={"seconds": 0}) for use in scores.tools)
    return scores.model_copy(update={"tools": tools})


@pytest.mark.parametrize("at_once", [2, 50])
def test_parallel_calls_score_as_one_call_a_reply_does(
    atomic: AtomicDataset, at_once: int, tmp_path: Path
) -> None:
    """All calls of a reply but the first were dropped, which cost recall."""
    serial, parallel = (timeless(measured(atomic, most, tmp_path)) for most in (1, at_once))
    assert parallel == serial
    assert serial.strict.tool_call > 100
    assert serial.strict.tool_call_error > 10

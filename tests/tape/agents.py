"""Scripted agents for runs with tapes and controls; they ask no model."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from gta_bench.agents.contract import Decide, DecidedStep, Decision, History, Setup
from gta_bench.datasets.atomic import load_atomic
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, Step
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.tools import ToolSpec

# The variable with the folder of the dataset.
DATA = "TEST_DATA"
EXPRESSION = re.compile(r"\d+\*\d+")


def busy(setup: Setup) -> Decide:
    """Works with real tools on every task: results, files made from files, errors, repeats."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        number, image = int(history.task), history.attachments[0].path
        made = [
            turn.content
            for turn in history.turns
            if isinstance(turn, ReplyTurn) and turn.type == "image"
        ]
        script: list[DecidedStep] = [
            _call("Calculator", expression=f"{number}*7"),
            _call("DrawBox", image=image, bbox="(1, 1, 20, 20)"),
            _call("Calculator", expression="1/0"),
            _call("DrawBox", image=made[-1] if made else image, bbox="(5, 5, 9, 9)"),
            _call("GoogleSearch", query=f"task {number}"),
            _call("Calculator", expression=f"{number}*7"),
            AnswerStep(content=_reference(history) if number % 2 else f"{number * 7}"),
        ]
        return Decision(step=script[history.position])

    return decide


def ignorer(setup: Setup) -> Decide:
    """Knows every answer and asks no tool."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        return Decision(step=AnswerStep(content=_reference(history)))

    return decide


def truster(setup: Setup) -> Decide:
    """Asks once and repeats the reply."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        replies = _replies(history)
        if not replies and tools:
            return Decision(step=_question(history))
        return Decision(step=AnswerStep(content=replies[-1] if replies else "I do not know."))

    return decide


def checker(setup: Setup) -> Decide:
    """Asks until two replies agree."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        replies = _replies(history)
        agreed = next(
            (text for text in replies if replies.count(text) > 1 and text.isdecimal()), None
        )
        if agreed is not None or not tools:
            return Decision(step=AnswerStep(content=agreed or "I do not know."))
        return Decision(step=_question(history))

    return decide


def gullible(setup: Setup) -> Decide:
    """Calls the first tool on its list that is not its task's, if there is one."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        foreign = [tool.name for tool in tools if tool.name != "Calculator"]
        if len(history.turns) == 1 and foreign:
            return Decision(step=_call(foreign[0]))
        return Decision(step=AnswerStep(content="I do not know."))

    return decide


def _question(history: History) -> CallStep:
    request = next(turn.content for turn in history.turns if turn.turn == "user")
    found = EXPRESSION.search(request)
    assert found is not None
    return _call("Calculator", expression=found.group())


def _replies(history: History) -> list[str]:
    return [turn.content for turn in history.turns if isinstance(turn, ReplyTurn)]


def _reference(history: History) -> str:
    answers = [turn.content for turn in _steps(history) if isinstance(turn, AnswerTurn)]
    return answers[-1] if answers else "nothing"


def _steps(history: History) -> Sequence[Step]:
    """The reference of a task, from the dataset that the test names: agents are not given it."""
    return load_atomic(Path(os.environ[DATA])).tasks[history.task].steps


def _call(tool: str, **arguments: str) -> CallStep:
    return CallStep(name=tool, arguments=dict(arguments))


def reference_call(setup: Setup) -> Decide:
    """Makes the reference's first call with a slip in its first argument, then answers."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        if _replies(history):
            return Decision(step=AnswerStep(content="I do not know."))
        first = next(turn for turn in _steps(history) if isinstance(turn, CallTurn))
        name, value = next(iter(first.call.arguments.items()))
        changed = {**first.call.arguments, name: f"{value} " + "1"}
        return Decision(step=CallStep(name=first.call.name, arguments=changed))

    return decide


def leaker(setup: Setup) -> Decide:
    """Leaks every key of its task in arguments of real tools."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        request = next(turn.content for turn in history.turns if turn.turn == "user")
        image = history.attachments[0].path
        script: list[DecidedStep] = [
            _call("Calculator", expression=request),
            _call("Calculator", expression=f"'{request}'"),
            _call(request, text="x"),
            _call("DrawBox", image=request, bbox=request),
            _call("DrawBox", image=image, bbox="(1, 1, 3, 3)", annotation=request),
            _call("ImageDescription", image=image),
            _call("ImageDescription", image=image),
            AnswerStep(content="Done."),
        ]
        return Decision(step=script[history.position])

    return decide

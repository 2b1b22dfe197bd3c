"""Checks of a dataset that need tools: replies that the tool itself does not give."""

from collections.abc import Iterator

from gta_bench.datasets.checks import Spot
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import ToolError
from gta_bench.records.dialogue import CallTurn, ReplyTurn
from gta_bench.tools.logic.expressions import Evaluator


def calculator_replies(dataset: AtomicDataset) -> Iterator[Spot]:
    """Calculator replies that were not computed: the tool gives another text for the call.

    For `gta data verify`, where pydantic-monty is installed; a note, not an error.
    """
    evaluator = Evaluator(processes=1)
    for task in dataset.tasks.values():
        for index, (turn, reply) in enumerate(zip(task.dialogue, task.dialogue[1:], strict=False)):
            if not (isinstance(turn, CallTurn) and turn.call.name == "Calculator"):
                continue
            computed = _computed(evaluator, turn)
            if isinstance(reply, ReplyTurn) and computed != reply.content:
                message = f"Calculator gives {computed!r}, the recorded reply is {reply.content!r}."
                yield Spot(message, task.id, f"dialogs.{index + 1}")


def _computed(evaluator: Evaluator, turn: CallTurn) -> str:
    try:
        return evaluator.evaluate(str(turn.call.arguments.get("expression", "")))
    except ToolError as exc:
        return f"error: {exc}"

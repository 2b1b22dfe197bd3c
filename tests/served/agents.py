"""An agent without a model: it makes the calls that the request lists, and repeats the replies."""

import json
from collections.abc import Sequence

from gta_bench.agents.contract import Decide, Decision, History, Setup
from gta_bench.records.dialogue import ReplyTurn, UserTurn
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.tools import ToolSpec


def caller(setup: Setup) -> Decide:
    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        request = history.turns[0]
        assert isinstance(request, UserTurn)
        calls = json.loads(request.content)
        if history.position < len(calls):
            name, arguments = calls[history.position]
            return Decision(step=CallStep(name=name, arguments=arguments))
        said = [turn.content for turn in history.turns if isinstance(turn, ReplyTurn)]
        return Decision(step=AnswerStep(content=" ".join(said)))

    return decide

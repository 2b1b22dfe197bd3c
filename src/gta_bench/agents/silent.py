"""The agent that says nothing: the least that any metric can give."""

from collections.abc import Sequence

from gta_bench.agents.contract import Decide, Decision, Setup
from gta_bench.agents.history import History
from gta_bench.records.steps import MalformedStep
from gta_bench.records.tools import ToolSpec


def silent(setup: Setup) -> Decide:
    """Answers every decision with an empty reply, which is malformed."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        return Decision(step=MalformedStep(content="", reason="the reply is empty"))

    return decide

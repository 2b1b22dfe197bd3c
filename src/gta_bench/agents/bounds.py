"""The agents that bound every metric: gold replays the reference, silent says nothing."""

from collections.abc import Sequence

from gta_bench.agents.contract import Decide, DecidedStep, Decision, Setup
from gta_bench.agents.history import History
from gta_bench.errors import UsageError
from gta_bench.records.dialogue import CallTurn, Step
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from gta_bench.records.tools import ToolSpec


def silent(setup: Setup) -> Decide:
    """Answers every decision with an empty reply, which is malformed."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        return Decision(step=MalformedStep(content="", reason="the reply is empty"))

    return decide


def gold(setup: Setup) -> Decide:
    """Answers every decision with the reference's step at that place."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        steps = setup.references.get(history.task)
        if steps is None:
            raise UsageError(
                f"Agent 'gold' has no reference for task {history.task!r}; "
                "it runs on datasets with reference dialogues only."
            )
        if history.position >= len(steps):
            end = MalformedStep(content="", reason="the reference has no further step")
            return Decision(step=end)
        return Decision(step=reference_step(steps[history.position]))

    return decide


def reference_step(turn: Step) -> DecidedStep:
    """A reference turn in the form in which predictions are scored."""
    if isinstance(turn, CallTurn):
        return CallStep(name=turn.call.name, arguments=dict(turn.call.arguments))
    return AnswerStep(content=turn.content)

"""The agents by name, and the two without a model that bound every metric.

Importing this table imports no other agent.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import cast

from gta_bench.agents.contract import AgentFactory, Decide, DecidedStep, Decision, History, Setup
from gta_bench.errors import UsageError
from gta_bench.records.dialogue import CallTurn, Step
from gta_bench.records.run import OWN_AGENT
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from gta_bench.records.tools import ToolSpec

CATALOG = {
    "toolcalling": "gta_bench.agents.toolcalling:toolcalling",
    "react": "gta_bench.agents.react:react",
    "react-upstream": "gta_bench.agents.react:react_upstream",
    "gold": "gta_bench.agents.catalog:gold",
    "silent": "gta_bench.agents.catalog:silent",
}
DEFAULT_AGENT = "toolcalling"
WITHOUT_MODEL = frozenset({"gold", "silent"})
NEED_REFERENCES = frozenset({"gold"})


def load_agent(name: str) -> AgentFactory:
    """Return the factory of a known agent, or of your own agent given as `pkg.mod:function`."""
    if name.startswith(OWN_AGENT):
        raise UsageError(
            f"Agent {name!r} is a Python function: run it where it is defined, with "
            "gta_bench.run(agent=…)."
        )
    target, known = CATALOG.get(name, name), ", ".join(CATALOG)
    module_name, colon, attribute = target.partition(":")
    if not (module_name and colon and attribute) or module_name.startswith("."):
        raise UsageError(f"Unknown agent {name!r}. Known agents: {known}, or `pkg.mod:function`.")
    try:
        factory = getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError) as exc:
        raise UsageError(f"Cannot load agent {name!r}: {exc}. Known agents: {known}.") from exc
    if not callable(factory):
        raise UsageError(f"Agent {name!r} is not a function that takes a Setup.")
    return cast(AgentFactory, factory)


def silent(setup: Setup) -> Decide:
    """Make the agent that gives only empty replies, which count as malformed."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        return Decision(step=MalformedStep(content="", reason="the reply is empty"))

    return decide


def gold(setup: Setup) -> Decide:
    """Make the agent that replays the reference step by step."""

    async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
        steps = setup.references.get(history.task)
        if steps is None:
            raise UsageError(
                f"Agent 'gold' has no reference for task {history.task!r}. "
                "Use it only on datasets with reference dialogues."
            )
        if history.position >= len(steps):
            end = MalformedStep(content="", reason="the reference has no further step")
            return Decision(step=end)
        return Decision(step=make_reference_step(steps[history.position]))

    return decide


def make_reference_step(turn: Step) -> DecidedStep:
    """Return a reference turn as a step, the form in which predictions are scored."""
    if isinstance(turn, CallTurn):
        return CallStep(name=turn.call.name, arguments=dict(turn.call.arguments))
    return AnswerStep(content=turn.content)

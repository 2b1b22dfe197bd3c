"""An agent that is a user's own function, passed to the Python API.

It takes a history and the tools on offer, like `Decide`, and may be async. A function that is not
runs in a thread.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from gta_bench.agents.calling import clean_text
from gta_bench.agents.contract import (
    AgentFactory,
    Decide,
    DecidedStep,
    Decision,
    History,
    Setup,
)
from gta_bench.errors import describe_fault
from gta_bench.own_code import call_function, digest_code, name_function
from gta_bench.records.run import OWN_AGENT
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from gta_bench.records.tools import ToolSpec

# A text is an answer to the user. Several calls in one reply need a Decision.
Replied = Decision | DecidedStep | str
AgentFunction = Callable[[History, Sequence[ToolSpec]], Replied | Awaitable[Replied]]


class OwnAgent(NamedTuple):
    """A user's agent: its name in the manifest, the digests of its code, and what creates it."""

    name: str
    code: dict[str, str]
    factory: AgentFactory


def make_own_agent(function: AgentFunction) -> OwnAgent:
    """Return the agent of a function; raises if the function has no digest."""
    name = name_function(function)

    def create(setup: Setup) -> Decide:
        async def decide(history: History, tools: Sequence[ToolSpec]) -> Decision:
            try:
                replied = await call_function(function, history, tools)
            except Exception as exc:
                if (said := str(exc)) == clean_text(said):
                    raise
                raise RuntimeError(clean_text(describe_fault(exc))) from None  # logs are UTF-8
            return _read_reply(replied, name)

        return decide

    return OwnAgent(f"{OWN_AGENT}{name}", digest_code(function, "agent"), create)


def _read_reply(replied: Replied, name: str) -> Decision:
    if isinstance(replied, Decision):
        return replied
    if isinstance(replied, CallStep | AnswerStep | MalformedStep):
        return Decision(step=replied)
    if isinstance(replied, str):
        empty = MalformedStep(content=replied, reason="the reply is empty")
        return Decision(step=AnswerStep(content=replied) if replied.strip() else empty)
    raise TypeError(
        f"The agent {name!r} returned a {type(replied).__name__}: return a CallStep, an "
        "AnswerStep, a MalformedStep, a Decision or a text."
    )

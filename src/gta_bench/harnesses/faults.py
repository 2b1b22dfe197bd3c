"""Whose fault it is that a harness did not end well: its own, or that of what it was given.

A harness composes the requests to its model, and could compose one that is refused whenever it
does not like its work. So a refused request is its own failure, and is scored, unless a short
request of ours is refused as well. Any other fault of the provider leaves the attempt without a
result; `tasks/attempts.py` says which of them count, and bounds them.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import anyio
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessageUser, GenerateConfig, Model, get_model

from gta_bench.agents.provider import LastFault, is_template_error, watch_faults
from gta_bench.errors import EnvironmentProblem, RunError, fault_status
from gta_bench.harnesses.contract import HarnessOutcome

logger = logging.getLogger(__name__)

# A server that says these may take the same request a little later.
LATER = (408, 429)
SECONDS = 60.0
REQUEST = "Reply with the word: ready"
FAILED = "The harness's model failed"


@dataclass(frozen=True)
class Blame:
    """Says whose fault the end of a harness is."""

    fault: LastFault

    async def judge(self, outcome: HarnessOutcome) -> HarnessOutcome:
        """The outcome with the harness's own problem, or with a fault that is not its own."""
        calls = model_calls()
        if not calls or calls[-1].error is None:
            return outcome
        words = (calls[-1].error.splitlines() or ["no reason was given"])[0]
        refused = is_refusal(self.fault.raised)
        raised = await ask_once(get_model())
        if raised is not None:
            return replace(outcome, fault=EnvironmentProblem(f"{FAILED}: {words}"))
        if not refused:
            return replace(outcome, fault=RunError(f"{FAILED}: {words}"))
        own = f"Its model's provider refused a request of the harness: {words}"
        return replace(outcome, problem=outcome.problem or own)


@asynccontextmanager
async def blaming() -> AsyncIterator[Blame]:
    """What the harness asks its model inside the block is watched."""
    with watch_faults(get_model().api) as fault:
        yield Blame(fault)


def is_refusal(raised: Exception | None) -> bool:
    """Whether the same request would be refused again, so that it is the request's fault."""
    if raised is None:
        return False
    status = fault_status(raised)
    refused = status is not None and 400 <= status < 500 and status not in LATER
    return refused or is_template_error(str(raised))


async def ask_once(model: Model) -> Exception | None:
    """What a short request of ours raises; every provider has exceptions of its own."""
    try:
        with anyio.fail_after(SECONDS):
            await model.generate(
                [ChatMessageUser(content=REQUEST)], config=GenerateConfig(max_retries=0)
            )
    except Exception as exc:
        logger.debug("a short request failed", exc_info=True)
        return exc
    return None


def model_calls() -> Sequence[ModelEvent]:
    """What the task's model was asked so far."""
    return [event for event in transcript().events if isinstance(event, ModelEvent)]

"""What every harness gets, what is kept of its work, and whose fault a failure is.

A harness composes the requests to its model, and could provoke a rejection whenever it does not
like its work. So a rejected request is the harness's own failure, and is scored, unless a short
request of ours is rejected as well. Any other fault of the provider leaves the attempt without a
result; `tasks/attempts.py` decides which of them count, and limits them.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model

from gta_bench.agents.calling import RecordedTools
from gta_bench.agents.contract import files_text
from gta_bench.agents.provider import LastFault, is_template_error
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import EnvironmentProblem, RunError, find_status
from gta_bench.harnesses.prompts import render
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.steps import Trace
from gta_bench.records.workflow import WorkflowTask

logger = logging.getLogger(__name__)

# A server with these statuses may accept the same request a little later.
LATER = (408, 429)
SECONDS = 60.0
REQUEST = "Reply with the word: ready"
FAILED = "The harness's model failed"


@dataclass(frozen=True, slots=True)
class Assignment:
    """One task for a harness, with the files and tools for it.

    `asks_model` says whether the run has a model that the harness should use.
    """

    task: AtomicTask | WorkflowTask
    workspace: Workspace
    tools: RecordedTools
    asks_model: bool

    @property
    def prompt(self) -> str:
        """The files, the request, and where to put results."""
        files = files_text(self.task.attachments)
        request = self.task.request if files is None else f"{files}\n\n{self.task.request}"
        return render("task.md", request=request)


@dataclass(frozen=True, slots=True)
class HarnessOutcome:
    """The answer of a harness, and what went wrong, if anything.

    `problem` is the system's own failure; `printed` is for people who read the log. `steps` are
    those that a harness reports itself; they count only if it called none of our tools. `fault`
    leaves the attempt without a result, even if the harness finished.
    """

    answer: str
    problem: str | None = None
    printed: str = ""
    steps: Trace = ()
    fault: Exception | None = None


async def assign_blame(outcome: HarnessOutcome, fault: LastFault) -> HarnessOutcome:
    """Return the outcome with the harness's own problem, or with somebody else's fault.

    `fault` is what `watch_faults` noted while the harness worked.
    """
    calls = list_model_calls()
    if not calls or calls[-1].error is None:
        return outcome
    reason = (calls[-1].error.splitlines() or ["no reason was given"])[0]
    status = None if fault.raised is None else find_status(fault.raised)
    # Whether the provider would reject the same request again, so the request is at fault.
    rejected = status is not None and 400 <= status < 500 and status not in LATER
    rejected = rejected or (fault.raised is not None and is_template_error(str(fault.raised)))
    if not await _model_answers():
        return replace(outcome, fault=EnvironmentProblem(f"{FAILED}: {reason}"))
    if not rejected:
        return replace(outcome, fault=RunError(f"{FAILED}: {reason}"))
    own = f"Its model's provider refused a request of the harness: {reason}"
    return replace(outcome, problem=outcome.problem or own)


async def _model_answers() -> bool:
    """Whether the model answers a short request; every provider has its own exceptions."""
    try:
        with anyio.fail_after(SECONDS):
            await get_model().generate(
                [ChatMessageUser(content=REQUEST)], config=GenerateConfig(max_retries=0)
            )
    except Exception:
        logger.debug("a short request failed", exc_info=True)
        return False
    return True


def list_model_calls() -> Sequence[ModelEvent]:
    """Return the calls of the task's model so far."""
    return [event for event in transcript().events if isinstance(event, ModelEvent)]

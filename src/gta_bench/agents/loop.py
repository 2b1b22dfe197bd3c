"""An agent at work: it decides, tools answer, until it answers the user or its turns are up."""

from collections.abc import Sequence

from inspect_ai.model import ChatMessageUser

from gta_bench.agents.calling import make_call
from gta_bench.agents.contract import Decide, Decision
from gta_bench.agents.dialogue import Dialogue
from gta_bench.agents.history import History
from gta_bench.agents.stops import FINAL
from gta_bench.confine.workspace import Workspace
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import LoopLimits
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep, StepError
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.tools.source import ToolSource

TOO_MANY = "TOO_MANY_CALLS"


async def work_on(
    task: AtomicTask | WorkflowTask,
    decide: Decide,
    source: ToolSource,
    workspace: Workspace,
    *,
    tools: Sequence[ToolSpec],
    limits: LoopLimits,
    before: Dialogue | None = None,
) -> Dialogue:
    """Loop until the agent answers or its turns are up; what it does wrong is in the trace.

    `before` is a dialogue that goes on; its last message is what the agent is asked now.
    """
    dialogue = before or Dialogue([ChatMessageUser(content=task.request)])
    for turn in range(1, limits.max_turns + 1):
        decision = await decide(_history(task, dialogue, last=turn == limits.max_turns), tools)
        if decision.stop is not None:
            dialogue.stops.append(decision.stop)
        if decision.stop == "context":
            break  # nothing was said
        calls = dialogue.add_reply(decision)
        if isinstance(decision.step, AnswerStep) or decision.stop in FINAL:
            break
        if isinstance(decision.step, MalformedStep):
            dialogue.tell(decision.step.reason)
        for call, step in zip(calls, _within(decision, limits.max_calls), strict=True):
            # One after the other, in declared order: a call may need what the one before it made.
            refused = step.error is not None
            outcome = step if refused else await make_call(step, source, workspace)
            dialogue.add_result(call, outcome)
    return dialogue


def _history(task: AtomicTask | WorkflowTask, dialogue: Dialogue, *, last: bool) -> History:
    return History(
        task=task.id,
        attachments=task.attachments,
        turns=dialogue.turns,
        messages=tuple(dialogue.messages),
        mode="end-to-end",
        last=last,
    )


def _within(decision: Decision, most: int) -> list[CallStep]:
    """The calls of a reply; those beyond the limit are not made, and are told why."""
    told = f"Only the first {most} calls of a reply are made; make this one again."
    beyond = {"error": StepError(type=TOO_MANY, message=told)}
    calls = decision.calls
    return [*calls[:most], *(step.model_copy(update=beyond) for step in calls[most:])]

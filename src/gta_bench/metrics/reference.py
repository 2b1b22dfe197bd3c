"""The reference of a task as the trace of a perfect system."""

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import CallTurn, ReplyTurn, UserTurn
from gta_bench.records.steps import AnswerStep, CallStep, ReplyPart, ReplyStep, Trace


def reference_steps(task: AtomicTask) -> tuple[CallStep | AnswerStep, ...]:
    """Return a step for each turn of the assistant, the reference of step mode."""
    return tuple(
        CallStep(name=turn.call.name, arguments=dict(turn.call.arguments))
        if isinstance(turn, CallTurn)
        else AnswerStep(content=turn.content)
        for turn in task.steps
    )


def reference_trace(task: AtomicTask) -> Trace:
    """Return the assistant's turns with tool replies, the reference of end-to-end mode."""
    steps = iter(reference_steps(task))
    return tuple(
        ReplyStep(parts=(ReplyPart(type=turn.type, content=turn.content),))
        if isinstance(turn, ReplyTurn)
        else next(steps)
        for turn in task.dialogue
        if not isinstance(turn, UserTurn)
    )

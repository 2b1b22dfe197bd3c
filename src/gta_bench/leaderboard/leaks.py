"""Answers that a system was shown, and the canary in what it said."""

from collections.abc import Iterator
from typing import Final

from gta_bench.records.atomic import AtomicTask, WhitelistAnswer
from gta_bench.records.dialogue import AnswerTurn, ReplyTurn
from gta_bench.records.leaderboard import CANARY, BundleFinding
from gta_bench.records.steps import AnswerStep, ReplyStep
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.runs.logs import Said

# Shorter answers ("7", "red wine") stand in any prompt by chance.
SHORTEST: Final = 20
_GUID: Final = CANARY.rpartition(" ")[2]


def unit_findings(unit: AtomicUnit | WorkflowUnit, said: Said | None) -> Iterator[BundleFinding]:
    """What is wrong with a unit's trace: at most one leak, and the canary.

    A leak is a reference answer, or a leaf's requirement, in a system or user message, although
    neither the task's request nor a tool's reply has it.
    """
    own = [step.content for step in unit.trace or () if isinstance(step, AnswerStep)]
    spoken = "\n".join([*own, "" if said is None else said.said])
    if _GUID in spoken:
        yield BundleFinding(
            check="canary",
            message=f"task {unit.task.id}: the system says the canary: it was trained on GTA",
        )
    if said is None:
        return
    told, known = _plain(said.told), _plain("\n".join([said.by_tools, *_allowed(unit)]))
    for secret in _secrets(unit):
        text = _plain(secret)
        if len(text) >= SHORTEST and text in told and text not in known:
            yield BundleFinding(
                check="leaked-answer",
                message=f"task {unit.task.id}: the prompt has the reference {secret[:60]!r}",
            )
            return


def _secrets(unit: AtomicUnit | WorkflowUnit) -> Iterator[str]:
    """What a system must not be told."""
    if isinstance(unit, WorkflowUnit):
        yield from (leaf.requirements or "" for leaf in unit.task.leaves())
        return
    task: AtomicTask = unit.task
    if isinstance(task.answer, WhitelistAnswer):
        yield from (alias for group in task.answer.whitelist for alias in group)
    elif task.answer is not None:
        yield from task.answer.references
    if isinstance(task.dialogue[-1], AnswerTurn):
        yield task.dialogue[-1].content


def _allowed(unit: AtomicUnit | WorkflowUnit) -> Iterator[str]:
    """What a system may know: the request, and what tools replied to it or to the reference."""
    yield unit.task.request
    for step in unit.trace or ():
        if isinstance(step, ReplyStep):
            yield from (part.content for part in step.parts)
    if isinstance(unit, AtomicUnit):
        for turn in unit.task.dialogue:
            if isinstance(turn, ReplyTurn):
                yield turn.content


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())

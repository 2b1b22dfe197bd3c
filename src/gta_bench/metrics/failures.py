"""Assign a first cause to every failure, by rules that use only the trace.

The rules are tried in the order in which things go wrong, so that a failure gets its first cause
and not a consequence of it. docs/concepts/failures.md lists them for readers.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, get_args

from gta_bench.metrics.categories import WORKFLOW_CATEGORY
from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.similarity import SimilarityFunction, clip_similarity
from gta_bench.metrics.strict.arguments import same_arguments
from gta_bench.metrics.strict.outcome import CRASH_TEXTS, classify_step, score_answer
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.metrics.table import ANS_ACC_I
from gta_bench.records.atomic import Answer
from gta_bench.records.calls import CallRecord, CallStatus
from gta_bench.records.failures import (
    Failure,
    FailureCause,
    FailureCount,
    GroupedFailures,
)
from gta_bench.records.run import Mode
from gta_bench.records.scores import StrictEndToEndCounts
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    StepError,
    Trace,
)
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.workflow import Checkpoint
from gta_bench.records.workflow_scores import LeafScore

# Answers with lower scores are failures: whitelists give 0 or 1, similarities any value between.
ENOUGH: Final = 0.5
WHOLE_TASK: Final = "task"
FILE_WORDS: Final = re.compile(
    r"\b(files?|documents?|reports?|slides?|decks?|presentations?|posters?|spreadsheets?|tables?|"
    r"videos?|clips?|audio|images?|pictures?|web ?pages?|"
    r"pdf|docx?|word|pptx?|powerpoint|xlsx?|excel|csv|html|md|markdown|json|mp[34]|wav|png|jpe?g)\b",
    re.IGNORECASE,
)
BY_ERROR: Final[Mapping[str, FailureCause]] = {
    "ARGS_ERROR": "arguments",
    "UNAVAILABLE": "tool unavailable",
}
BY_STATUS: Final[Mapping[CallStatus, FailureCause]] = {
    "error": "tool error",
    "unavailable": "tool unavailable",
}
SHOWN: Final = 120
WINDOW_FULL: Final = "the dialogue outgrew the model's context window"

Named = tuple[FailureCause, str]


def unit_failures(
    unit: AtomicUnit, mode: Mode, strict: object, *, similarity: SimilarityFunction
) -> tuple[Failure, ...]:
    """Return the failures of an Atomic unit: each wrong step, or end to end the whole task."""
    if unit.failure is not None:
        return (_failure(unit, WHOLE_TASK, ("infrastructure", unit.failure)),)
    if mode == "step":
        return tuple(_step_failures(unit, similarity=clip_similarity(similarity)))
    assert isinstance(strict, StrictEndToEndCounts)
    worth, whole = ANS_ACC_I.part(strict)
    if not whole or worth >= ENOUGH:
        return ()
    return (_failure(unit, WHOLE_TASK, _task_cause(unit)),)


def leaf_failures(
    unit: WorkflowUnit, leaves: Sequence[LeafScore], *, threshold: float
) -> tuple[Failure, ...]:
    """Return the failed leaves of a Workflow unit according to one judge."""
    nodes = {leaf.id: leaf for leaf in unit.task.leaves()}
    return tuple(
        _failure(unit, leaf.leaf, _leaf_cause(unit, nodes[leaf.leaf], leaf))
        for leaf in leaves
        if leaf.value is None or not succeeds(leaf.value, threshold)
    )


def count_failures(failures: Iterable[Failure]) -> tuple[FailureCount, ...]:
    """Count failures by cause, most frequent first; causes that do not occur are left out."""
    if isinstance(failures, GroupedFailures):
        return _most_frequent(group.counted for group in failures.group_causes().values())
    found: Counter[FailureCause] = Counter()
    tasks: dict[FailureCause, set[str]] = {}
    for failure in failures:
        found[failure.cause] += 1
        tasks.setdefault(failure.cause, set()).add(failure.task)
    return _most_frequent(
        FailureCount(cause=cause, failures=number, tasks=len(tasks[cause]))
        for cause, number in found.items()
    )


def _most_frequent(counts: Iterable[FailureCount]) -> tuple[FailureCount, ...]:
    order = {cause: index for index, cause in enumerate(get_args(FailureCause))}
    return tuple(sorted(counts, key=lambda count: (-count.failures, order[count.cause])))


def _failure(unit: AtomicUnit | WorkflowUnit, where: str, named: Named) -> Failure:
    cause, detail = named
    return Failure(task=unit.task.id, epoch=unit.epoch, place=where, cause=cause, detail=detail)


def _step_failures(unit: AtomicUnit, *, similarity: SimilarityFunction) -> Iterator[Failure]:
    gold = reference_steps(unit.task)
    answers = [number for number, step in enumerate(gold, start=1) if isinstance(step, AnswerStep)]
    steps = (unit.trace or ())[: len(gold)]
    for number, (left, right) in enumerate(zip_longest(steps, gold), start=1):
        answer = unit.task.answer if number in answers[-1:] else None
        named = _step_cause(left, right, answer, similarity)
        if named is not None:
            yield _failure(unit, f"step {number}", named)


def _step_cause(
    left: PredictedStep | None,
    right: CallStep | AnswerStep,
    answer: Answer | None,
    similarity: SimilarityFunction,
) -> Named | None:
    if left is None:
        return "format", "there is no prediction"
    if classify_step(left) not in ("call", "failed_call", "answer"):
        return _unusable_cause(left)
    if isinstance(left, CallStep) and isinstance(right, CallStep):
        return _call_cause(left, right)
    if isinstance(left, CallStep):
        return "wrong tool", f"called {left.name} instead of answering"
    if isinstance(right, CallStep):
        return "wrong tool", f"answered instead of calling {right.name}"
    if answer is not None and score_answer(left, answer, similarity=similarity) < ENOUGH:
        return "wrong content", _describe(left)
    return None


def _call_cause(left: CallStep, right: CallStep) -> Named | None:
    if left.name != right.name:
        return "wrong tool", f"called {left.name} instead of {right.name}"
    if left.error is not None:
        return _by_error(left.name, left.error)
    if same_arguments(left.arguments, right.arguments):
        return None
    return "arguments", f"{left.name}: other arguments than the reference's"


def _task_cause(unit: AtomicUnit) -> Named:
    """Check how the trace ended, then the tools that the reference needs, then the content."""
    trace = unit.trace or ()
    ending = _ending(trace)
    if "context" in unit.stops:
        return "context", WINDOW_FULL
    if ending is None:
        return "format", "there is no prediction"
    if classify_step(ending) not in ("call", "failed_call", "answer"):
        return _unusable_cause(ending)
    tried = {step.name for step in trace if isinstance(step, CallStep)}
    failed = _find_failed_tools(trace, unit.calls, unit.task.offered)
    for name in dict.fromkeys(call.call.name for call in unit.task.calls):
        if name in failed:
            return failed[name]
        if name not in tried and isinstance(ending, AnswerStep):
            return "wrong tool", f"never called {name}"
    if not isinstance(ending, AnswerStep):
        return "turn limit", f"ended with a call of {_describe(ending)}, without an answer"
    if unit.task.answer is None:
        return "arguments", "the image was asked for with other arguments than the reference's"
    return "wrong content", _describe(ending)


def _leaf_cause(unit: WorkflowUnit, node: Checkpoint, leaf: LeafScore) -> Named:
    if unit.failure is not None:
        return "infrastructure", unit.failure
    if leaf.value is None:
        # The judge was not asked if its evidence failed.
        unasked = "evidence_failed" in leaf.causes
        return "infrastructure" if unasked else "judge unscored", ", ".join(leaf.causes)
    if not unit.delivered:
        return "missing deliverable", "the task was not delivered"
    if "context" in unit.stops:
        return "context", WINDOW_FULL
    ending = _ending(unit.trace)
    nothing = not unit.deliverables
    if nothing and ending is not None and classify_step(ending) in ("malformed", "crash"):
        return _unusable_cause(ending)
    known = WORKFLOW_CATEGORY.keys() | set(unit.task.tools)
    for named in _find_failed_tools(unit.trace, unit.calls, known).values():
        return named
    if isinstance(ending, CallStep):
        return "turn limit", f"ended with a call of {_describe(ending)}, without an answer"
    if nothing and FILE_WORDS.search(f"{unit.task.request}\n{node.requirements or ''}"):
        return "missing deliverable", "no file was delivered"
    return "wrong content", f"scored {leaf.value:g}"


def _find_failed_tools(
    trace: Trace, calls: Sequence[CallRecord], known: Collection[str]
) -> dict[str, Named]:
    """Return the tools that never gave a result, with the cause of their first failed call."""
    failed: dict[str, Named] = {}
    done: set[str] = set()
    for step in trace:
        if isinstance(step, CallStep) and step.error is None:
            done.add(step.name)
        elif (
            isinstance(step, CallStep)
            and step.error is not None
            and classify_step(step) != "malformed"
        ):
            cause, detail = _by_error(step.name, step.error)
            failed.setdefault(step.name, (cause if step.name in known else "wrong tool", detail))
    for call in calls:
        if call.status == "done":
            done.add(call.tool)
        else:
            failed.setdefault(call.tool, (BY_STATUS[call.status], f"{call.tool}: {call.message}"))
    return {name: named for name, named in failed.items() if name not in done}


def _by_error(tool: str, error: StepError) -> Named:
    cause = BY_ERROR.get(error.type, "tool error")
    return cause, f"{tool}: {error.message}".rstrip(": ")


def _ending(trace: Trace) -> PredictedStep | None:
    """Return the last call or answer of the system, without thoughts and tool replies."""
    return next((step for step in reversed(trace) if classify_step(step) != "other"), None)


def _unusable_cause(step: PredictedStep) -> Named:
    """Name the cause; the crashes that upstream writes as answers are not the system's fault."""
    crashed = isinstance(step, AnswerStep) and step.content.startswith(CRASH_TEXTS)
    return "infrastructure" if crashed else "format", _describe(step)


def _describe(step: PredictedStep) -> str:
    match step:
        case CallStep():
            text = step.name
        case AnswerStep():
            text = step.content
        case MalformedStep():
            text = step.reason
        case _:
            text = "neither a call nor an answer"
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"

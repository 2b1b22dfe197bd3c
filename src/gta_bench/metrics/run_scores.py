"""Scores of an Atomic run with both scorings; unscored units are listed, never counted as 0."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from gta_bench.metrics.compat import end_to_end as compat_end_to_end
from gta_bench.metrics.compat import steps as compat_steps
from gta_bench.metrics.counts import CountSum, total
from gta_bench.metrics.failures import unit_failures
from gta_bench.metrics.reference import reference_steps, reference_trace
from gta_bench.metrics.similarity import SimilarityFunction
from gta_bench.metrics.strict import end_to_end as strict_end_to_end
from gta_bench.metrics.strict import steps as strict_steps
from gta_bench.records.calls import CallRecord
from gta_bench.records.cost import Cost, read_cost
from gta_bench.records.failures import Failure
from gta_bench.records.progress import sum_stops
from gta_bench.records.run import Mode
from gta_bench.records.scores import (
    Disturbance,
    EndToEndCounts,
    EndToEndScores,
    RunScores,
    StepCounts,
    StepScores,
    StrictEndToEndCounts,
    StrictEndToEndScores,
    StrictStepCounts,
    StrictStepScores,
    ToolUse,
    UnitScore,
    UnscoredUnit,
)
from gta_bench.records.steps import NO_ACTION_ERROR, CallStep, ReplyStep
from gta_bench.records.units import AtomicUnit, StopKind, Usage, WorkflowUnit

# Increase it with every change of scores; it is written to every score file.
SCORING_VERSION = 4
NOT_RUN = "not run yet"


# Gets every unit with its score, which is None for an unscored one, and its failures.
UnitSink = Callable[[AtomicUnit, UnitScore | None, Sequence[Failure]], None]


def score_run(
    units: Iterable[AtomicUnit],
    mode: Mode,
    *,
    similarity: SimilarityFunction,
    similarity_name: str,
    comparable: bool,
    not_run: Sequence[tuple[str, int]] = (),
    sink: UnitSink | None = None,
) -> RunScores:
    """Score every unit that has a trace or lacks one by the system's own fault.

    Units that failed for other reasons, or were not run yet, are unscored. `not_run` is read after
    the units. With a `sink`, units and failures go there one by one and are not listed.
    """
    shared = SharedFields()
    step = mode == "step"
    strict: CountSum[Any] = CountSum(StrictStepCounts if step else StrictEndToEndCounts)
    compat: CountSum[Any] = CountSum(StepCounts if step else EndToEndCounts)
    scored: list[UnitScore] = []
    failures: list[Failure] = []
    not_on_tape: list[str] = []

    def keep(unit: AtomicUnit, score: UnitScore | None, failed: Sequence[Failure]) -> None:
        scored.extend(() if score is None else (score,))
        failures.extend(failed)

    for unit in units:
        shared.add(unit)
        score = None if unit.failure else score_unit(unit, mode, similarity=similarity)
        if score is not None:
            strict.add(score.strict)
            if score.compat is not None:
                compat.add(score.compat)
        not_on_tape += [
            f"task {unit.task.id}: {call.message}" for call in unit.calls if call.taped == "missing"
        ]
        counts = None if score is None else score.strict
        failed = list(unit_failures(unit, mode, counts, similarity=similarity))
        (sink or keep)(unit, score, failed)
    return RunScores(
        **shared.values(not_run),
        mode=mode,
        similarity=similarity_name,
        comparable=comparable,
        n=strict.units,
        strict=(strict_steps.pool_sum if step else strict_end_to_end.pool_sum)(strict),
        compat=(compat_steps.pool_sum if step else compat_end_to_end.pool_sum)(compat),
        not_on_tape=tuple(not_on_tape),
        units=tuple(scored),
        failures=tuple(failures),
    )


class SharedFields:
    """The fields that the scores of Atomic and Workflow runs have in common, unit by unit."""

    def __init__(self) -> None:
        self._units = 0
        self._usage = _UsageSum()
        self._attempts = 0
        self._counted = 0
        self._retried = 0
        self._models: set[str] = set()
        self._tools: dict[str, _ToolSum] = {}
        self._stops: Counter[StopKind] = Counter()
        self._failed: list[UnscoredUnit] = []

    def add(self, unit: AtomicUnit | WorkflowUnit) -> None:
        """Add a unit."""
        self._units += 1
        self._usage.add(unit.usage)
        if unit.attempts is not None:
            self._attempts += unit.attempts
            self._counted += 1
            self._retried += unit.attempts > 1
        self._models.update(unit.models)
        _add_calls(self._tools, unit.calls)
        self._stops.update(unit.stops)
        if unit.failure:
            failed = UnscoredUnit(task=unit.task.id, epoch=unit.epoch, cause=unit.failure)
            self._failed.append(failed)

    def values(self, not_run: Sequence[tuple[str, int]]) -> dict[str, Any]:
        """Return the fields."""
        return {
            "scoring_version": SCORING_VERSION,
            "n_units": self._units + len(not_run),
            "usage": self._usage.total(),
            # The sum is unknown if the attempts of one unit were not recorded.
            "attempts": self._attempts if self._counted and self._counted == self._units else None,
            "retried": self._retried,
            "models": tuple(sorted(self._models)),
            "tools": _list_tools(self._tools),
            "stops": sum_stops([self._stops]),
            "unscored": (
                *self._failed,
                *(UnscoredUnit(task=task, epoch=epoch, cause=NOT_RUN) for task, epoch in not_run),
            ),
        }


def score_unit(unit: AtomicUnit, mode: Mode, *, similarity: SimilarityFunction) -> UnitScore:
    """Count one unit under both scorings."""
    strict = strict_steps if mode == "step" else strict_end_to_end
    return UnitScore(
        task=unit.task.id,
        epoch=unit.epoch,
        strict=strict.count_task(unit.task, unit.trace, similarity=similarity),
        compat=_count_compat(unit, mode, similarity=similarity),
        disturbance=count_disturbance(unit),
    )


def count_disturbance(unit: AtomicUnit) -> Disturbance:
    """Count what tape and controls did to the calls of a unit."""
    trace = unit.trace or ()
    # The calls that reached a tool have a reply, possibly an empty one.
    executed = [
        (step.name, step.arguments)
        for step, after in pairwise(trace)
        if isinstance(step, CallStep) and isinstance(after, ReplyStep)
    ]
    calls = list(zip(unit.calls, executed, strict=False))
    return Disturbance(
        replayed=sum(call.taped == "replayed" for call in unit.calls),
        missing=sum(call.taped == "missing" for call in unit.calls),
        corrupted=sum(call.control == "corrupted" for call in unit.calls),
        faults=sum(call.control == "fault" for call in unit.calls),
        # Faults after which an equal call succeeded.
        recovered=sum(
            any(later.status == "done" and again == made for later, again in calls[index + 1 :])
            for index, (call, made) in enumerate(calls)
            if call.control == "fault"
        ),
        # Also those whose arguments were refused; a tool that does not exist distracts nobody.
        distracted=sum(call.tool not in unit.task.offered for call in unit.calls)
        + sum(
            isinstance(step, CallStep)
            and step.name not in unit.task.offered
            and step.error is not None
            and step.error.type != NO_ACTION_ERROR
            and not isinstance(after, ReplyStep)
            for step, after in pairwise((*trace, None))
        ),
    )


def pool_strict(
    mode: Mode, counts: Iterable[StrictStepCounts | StrictEndToEndCounts]
) -> StrictStepScores | StrictEndToEndScores:
    """Return the strict percentages over all units."""
    if mode == "step":
        return strict_steps.pool(one for one in counts if isinstance(one, StrictStepCounts))
    return strict_end_to_end.pool(one for one in counts if isinstance(one, StrictEndToEndCounts))


def pool_compat(
    mode: Mode, counts: Iterable[StepCounts | EndToEndCounts]
) -> StepScores | EndToEndScores:
    """Return the percentages over all units as upstream computes them."""
    if mode == "step":
        return compat_steps.pool(one for one in counts if isinstance(one, StepCounts))
    return compat_end_to_end.pool(one for one in counts if isinstance(one, EndToEndCounts))


class _ToolSum:
    """The outcomes of the calls of one tool."""

    def __init__(self) -> None:
        self.states: Counter[str] = Counter()
        self.seconds = array("d")
        self.backends: set[str] = set()


def count_tool_uses(calls: Iterable[CallRecord]) -> tuple[ToolUse, ...]:
    """Count the calls of each tool, most frequent first."""
    tools: dict[str, _ToolSum] = {}
    _add_calls(tools, calls)
    return _list_tools(tools)


def _add_calls(tools: dict[str, _ToolSum], calls: Iterable[CallRecord]) -> None:
    for call in calls:
        own = tools.setdefault(call.tool, _ToolSum())
        own.states[call.status] += 1
        own.seconds.append(call.seconds)
        if call.backend:
            own.backends.add(call.backend)


def _list_tools(tools: Mapping[str, _ToolSum]) -> tuple[ToolUse, ...]:
    return tuple(
        ToolUse(
            tool=tool,
            done=own.states["done"],
            error=own.states["error"],
            unavailable=own.states["unavailable"],
            seconds=total(own.seconds),
            backends=tuple(sorted(own.backends)),
        )
        for tool, own in sorted(tools.items(), key=lambda item: -item[1].states.total())
    )


class _UsageSum:
    """The usage of units, added one by one."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(("model_calls", "input_tokens", "output_tokens", "retries"), 0)
        self._seconds = array("d")
        self._dollars = array("d")
        self._unknown = False

    def add(self, usage: Usage) -> None:
        for name in self._counts:
            self._counts[name] += getattr(usage, name)
        self._seconds.append(usage.seconds)
        cost = read_cost(usage)
        if cost.known is not None:
            self._dollars.append(cost.known)
        self._unknown |= cost.unknown

    def total(self) -> Usage:
        known = total(self._dollars) if self._dollars else None
        return Usage(
            **self._counts,
            seconds=total(self._seconds),
            cost_usd=Cost(known, self._unknown).total,
        )


def total_usage(used: Iterable[Usage]) -> Usage:
    """Return the sum; the cost is unknown if that of one unit is."""
    sums = _UsageSum()
    for usage in used:
        sums.add(usage)
    return sums.total()


def _count_compat(
    unit: AtomicUnit, mode: Mode, *, similarity: SimilarityFunction
) -> StepCounts | EndToEndCounts | None:
    """Count as upstream does, which pairs by position and so never sees a missing prediction."""
    if unit.trace is None:
        return None
    trace = unit.trace if unit.upstream is None else unit.upstream.trace
    if mode == "step":
        gold = reference_steps(unit.task) if unit.upstream is None else unit.upstream.gold
        return compat_steps.count_task(trace, gold, unit.task.answer, similarity=similarity)
    gold = reference_trace(unit.task) if unit.upstream is None else unit.upstream.gold
    return compat_end_to_end.count_task(trace, gold, unit.task.answer, similarity=similarity)

"""The scores of a whole run, both scorings; unscored is not zero and not dropped in silence."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from gta_bench.metrics.compat import end_to_end as compat_end_to_end
from gta_bench.metrics.compat import steps as compat_steps
from gta_bench.metrics.counts import total
from gta_bench.metrics.failures import unit_failures
from gta_bench.metrics.reference import reference_steps, reference_trace
from gta_bench.metrics.similarity import SimilarityFunction
from gta_bench.metrics.strict import end_to_end as strict_end_to_end
from gta_bench.metrics.strict import steps as strict_steps
from gta_bench.records.calls import CallRecord
from gta_bench.records.cost import recorded_cost, sum_costs
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
from gta_bench.records.steps import CallStep, ReplyStep, Trace
from gta_bench.records.units import AtomicUnit, StopKind, Usage, WorkflowUnit


def disturbance(unit: AtomicUnit) -> Disturbance:
    """Counted from the unit's call records; the trace says which of them are equal calls."""
    calls = unit.calls
    return Disturbance(
        replayed=sum(call.taped == "replayed" for call in calls),
        missing=sum(call.taped == "missing" for call in calls),
        corrupted=sum(call.control == "corrupted" for call in calls),
        faults=sum(call.control == "fault" for call in calls),
        recovered=_recovered(calls, _executed(unit.trace or ())),
        distracted=sum(call.tool not in unit.task.offered for call in calls),
    )


def _executed(trace: Trace) -> list[CallStep]:
    """The calls that reached a tool source: a reply follows them, if only an empty one."""
    return [
        step
        for step, after in pairwise(trace)
        if isinstance(step, CallStep) and isinstance(after, ReplyStep)
    ]


def _recovered(calls: tuple[CallRecord, ...], steps: list[CallStep]) -> int:
    """Faults after which an equal call came through."""
    pairs = list(zip(calls, steps, strict=False))
    return sum(
        any(
            later.status == "done" and (again.name, again.arguments) == (step.name, step.arguments)
            for later, again in pairs[index + 1 :]
        )
        for index, (call, step) in enumerate(pairs)
        if call.control == "fault"
    )


# Raised whenever a change moves scores; written into every score file.
SCORING_VERSION = 3
NOT_RUN = "not run yet"


def score_run(
    units: Sequence[AtomicUnit],
    mode: Mode,
    *,
    similarity: SimilarityFunction,
    similarity_name: str,
    comparable: bool,
    not_run: Sequence[tuple[str, int]] = (),
) -> RunScores:
    """Score every unit that has a trace or lacks one by its own fault.

    Units that failed through no fault of the system, or were not run yet, are unscored.
    """
    scored = [score_unit(unit, mode, similarity=similarity) for unit in units if not unit.failure]
    counts = {(unit.task, unit.epoch): unit.strict for unit in scored}
    return RunScores(
        scoring_version=SCORING_VERSION,
        mode=mode,
        similarity=similarity_name,
        comparable=comparable,
        n=len(scored),
        n_units=len(units) + len(not_run),
        strict=pool_strict(mode, (unit.strict for unit in scored)),
        compat=pool_compat(mode, (unit.compat for unit in scored if unit.compat is not None)),
        usage=total_usage([unit.usage for unit in units]),
        attempts=count_attempts(units),
        retried=sum((unit.attempts or 1) > 1 for unit in units),
        models=tuple(sorted({name for unit in units for name in unit.models})),
        tools=tool_uses([call for unit in units for call in unit.calls]),
        not_on_tape=tuple(
            f"task {unit.task.id}: {call.message}"
            for unit in units
            for call in unit.calls
            if call.taped == "missing"
        ),
        stops=count_stops(units),
        units=tuple(scored),
        unscored=(
            *(
                UnscoredUnit(task=unit.task.id, epoch=unit.epoch, cause=unit.failure)
                for unit in units
                if unit.failure
            ),
            *(UnscoredUnit(task=task, epoch=epoch, cause=NOT_RUN) for task, epoch in not_run),
        ),
        failures=tuple(
            failure
            for unit in units
            for failure in unit_failures(
                unit, mode, counts.get((unit.task.id, unit.epoch)), similarity=similarity
            )
        ),
    )


def score_unit(unit: AtomicUnit, mode: Mode, *, similarity: SimilarityFunction) -> UnitScore:
    """What one unit counts under both scorings."""
    return UnitScore(
        task=unit.task.id,
        epoch=unit.epoch,
        strict=_count_strict(unit, mode, similarity=similarity),
        compat=_count_compat(unit, mode, similarity=similarity),
        disturbance=disturbance(unit),
    )


def pool_strict(
    mode: Mode, counts: Iterable[StrictStepCounts | StrictEndToEndCounts]
) -> StrictStepScores | StrictEndToEndScores:
    """The percentages of all units together, strict."""
    kept = list(counts)
    if mode == "step":
        return strict_steps.pool(one for one in kept if isinstance(one, StrictStepCounts))
    return strict_end_to_end.pool(one for one in kept if isinstance(one, StrictEndToEndCounts))


def pool_compat(
    mode: Mode, counts: Iterable[StepCounts | EndToEndCounts]
) -> StepScores | EndToEndScores:
    """The percentages of all units together, as upstream computes them."""
    kept = list(counts)
    if mode == "step":
        return compat_steps.pool(one for one in kept if isinstance(one, StepCounts))
    return compat_end_to_end.pool(one for one in kept if isinstance(one, EndToEndCounts))


def tool_uses(calls: Sequence[CallRecord]) -> tuple[ToolUse, ...]:
    """The most called tool first."""
    counts = Counter(call.tool for call in calls)
    uses = []
    for tool, _ in counts.most_common():
        own = [call for call in calls if call.tool == tool]
        states = Counter(call.status for call in own)
        uses.append(
            ToolUse(
                tool=tool,
                done=states["done"],
                error=states["error"],
                unavailable=states["unavailable"],
                seconds=total(call.seconds for call in own),
                backends=tuple(sorted({call.backend for call in own if call.backend})),
            )
        )
    return tuple(uses)


def count_stops(units: Sequence[AtomicUnit | WorkflowUnit]) -> dict[StopKind, int]:
    """How often replies of the model ended in each way that is not the ordinary one."""
    return sum_stops(Counter(unit.stops) for unit in units)


def count_attempts(units: Sequence[AtomicUnit | WorkflowUnit]) -> int | None:
    """The attempts of all units; None where those of one were not recorded."""
    found = [unit.attempts for unit in units if unit.attempts is not None]
    return sum(found) if found and len(found) == len(units) else None


def total_usage(used: Sequence[Usage]) -> Usage:
    """The sum; the cost is unknown as soon as that of one unit is."""
    return Usage(
        model_calls=sum(usage.model_calls for usage in used),
        input_tokens=sum(usage.input_tokens for usage in used),
        output_tokens=sum(usage.output_tokens for usage in used),
        retries=sum(usage.retries for usage in used),
        seconds=total(usage.seconds for usage in used),
        cost_usd=sum_costs(map(recorded_cost, used)).total,
    )


def _count_strict(
    unit: AtomicUnit, mode: Mode, *, similarity: SimilarityFunction
) -> StrictStepCounts | StrictEndToEndCounts:
    if mode == "step":
        return strict_steps.count_task(unit.task, unit.trace, similarity=similarity)
    return strict_end_to_end.count_task(unit.task, unit.trace, similarity=similarity)


def _count_compat(
    unit: AtomicUnit, mode: Mode, *, similarity: SimilarityFunction
) -> StepCounts | EndToEndCounts | None:
    """Upstream pairs predictions with references by position, so a missing one is not seen."""
    if unit.trace is None:
        return None
    trace = unit.trace if unit.upstream is None else unit.upstream.trace
    if mode == "step":
        gold = reference_steps(unit.task) if unit.upstream is None else unit.upstream.gold
        return compat_steps.count_task(trace, gold, unit.task.answer, similarity=similarity)
    gold = reference_trace(unit.task) if unit.upstream is None else unit.upstream.gold
    return compat_end_to_end.count_task(trace, gold, unit.task.answer, similarity=similarity)

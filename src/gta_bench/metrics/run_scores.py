"""Scores of an Atomic run with both scorings; unscored units are listed, never counted as 0."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from gta_bench.metrics.compat import end_to_end as compat_end_to_end
from gta_bench.metrics.compat import steps as compat_steps
from gta_bench.metrics.counts import total
from gta_bench.metrics.failures import unit_failures
from gta_bench.metrics.reference import reference_steps, reference_trace
from gta_bench.metrics.similarity import SimilarityFunction
from gta_bench.metrics.strict import end_to_end as strict_end_to_end
from gta_bench.metrics.strict import steps as strict_steps
from gta_bench.records.calls import CallRecord
from gta_bench.records.cost import read_cost, sum_costs
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
from gta_bench.records.steps import CallStep, ReplyStep
from gta_bench.records.units import AtomicUnit, Usage, WorkflowUnit

# Increase it with every change of scores; it is written to every score file.
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
    """Score every unit that has a trace or lacks one by the system's own fault.

    Units that failed for other reasons, or were not run yet, are unscored.
    """
    scored = [score_unit(unit, mode, similarity=similarity) for unit in units if not unit.failure]
    counts = {(unit.task, unit.epoch): unit.strict for unit in scored}
    return RunScores(
        **compute_shared_fields(units, not_run),
        mode=mode,
        similarity=similarity_name,
        comparable=comparable,
        n=len(scored),
        strict=pool_strict(mode, (unit.strict for unit in scored)),
        compat=pool_compat(mode, (unit.compat for unit in scored if unit.compat is not None)),
        not_on_tape=tuple(
            f"task {unit.task.id}: {call.message}"
            for unit in units
            for call in unit.calls
            if call.taped == "missing"
        ),
        units=tuple(scored),
        failures=tuple(
            failure
            for unit in units
            for failure in unit_failures(
                unit, mode, counts.get((unit.task.id, unit.epoch)), similarity=similarity
            )
        ),
    )


def compute_shared_fields(
    units: Sequence[AtomicUnit | WorkflowUnit], not_run: Sequence[tuple[str, int]]
) -> dict[str, Any]:
    """Return the fields that the scores of Atomic and Workflow runs have in common."""
    attempts = [unit.attempts for unit in units if unit.attempts is not None]
    failed = [(unit.task.id, unit.epoch, unit.failure) for unit in units if unit.failure]
    return {
        "scoring_version": SCORING_VERSION,
        "n_units": len(units) + len(not_run),
        "usage": total_usage([unit.usage for unit in units]),
        # The sum is unknown if the attempts of one unit were not recorded.
        "attempts": sum(attempts) if attempts and len(attempts) == len(units) else None,
        "retried": sum((unit.attempts or 1) > 1 for unit in units),
        "models": tuple(sorted({name for unit in units for name in unit.models})),
        "tools": count_tool_uses([call for unit in units for call in unit.calls]),
        "stops": sum_stops(Counter(unit.stops) for unit in units),
        "unscored": tuple(
            UnscoredUnit(task=task, epoch=epoch, cause=cause)
            for task, epoch, cause in (*failed, *((*key, NOT_RUN) for key in not_run))
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
        distracted=sum(call.tool not in unit.task.offered for call in unit.calls),
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


def count_tool_uses(calls: Sequence[CallRecord]) -> tuple[ToolUse, ...]:
    """Count the calls of each tool, most frequent first."""
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


def total_usage(used: Sequence[Usage]) -> Usage:
    """Return the sum; the cost is unknown if that of one unit is."""
    return Usage(
        model_calls=sum(usage.model_calls for usage in used),
        input_tokens=sum(usage.input_tokens for usage in used),
        output_tokens=sum(usage.output_tokens for usage in used),
        retries=sum(usage.retries for usage in used),
        seconds=total(usage.seconds for usage in used),
        cost_usd=sum_costs(map(read_cost, used)).total,
    )


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

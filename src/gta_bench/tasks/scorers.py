"""The scorers of GTA-Atomic: both scorings, counted per task and pooled over all."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from gta_bench.metrics.run_scores import SCORING_VERSION, pool_compat, pool_strict, score_unit
from gta_bench.records.run import Mode, Unit
from gta_bench.records.scores import StrictEndToEndCounts, StrictStepCounts, UnitScore
from gta_bench.runs.samples import (
    CALLS,
    STEPS,
    read_calls,
    read_steps,
    read_task,
    read_upstream,
)
from gta_bench.similarity.catalog import load_similarity
from gta_bench.similarity.model import Similarity
from gta_bench.tasks.show import explanation, trace_text

UNIT = "unit"
STEP_COLUMNS = ("inst_acc", "tool_acc", "arg_acc", "summ_acc")
END_COLUMNS = ("ans_acc", "ans_acc_i", "p_f1", "o_f1", "l_f1", "c_f1")


@metric
def pooled_steps() -> Metric:
    """Percentages over all steps of all tasks, strict and compat."""

    def pool(scores: list[SampleScore]) -> Value:
        return _pooled("step", STEP_COLUMNS, ("arg_typed",), scores)

    return pool


@metric
def pooled_answers() -> Metric:
    """Percentages over all tasks, strict and compat."""

    def pool(scores: list[SampleScore]) -> Value:
        return _pooled("end-to-end", END_COLUMNS, (), scores)

    return pool


@scorer(metrics=[pooled_steps()])
def atomic_steps(similarity: str) -> Scorer:
    """Compare every predicted turn with the reference; the value is the share of right steps."""

    async def score(state: TaskState, target: Target) -> Score:
        unit, loaded = _unit(state), _similarity(similarity)
        counts = score_unit(unit, "step", similarity=loaded.measure)
        assert isinstance(counts.strict, StrictStepCounts)
        return Score(
            value=round(counts.strict.inst_hits / counts.strict.inst_total, 4),
            explanation=explanation(unit.task, unit.trace, counts.strict.answer_sum),
            metadata=_metadata(counts, loaded),
        )

    return score


@scorer(metrics=[pooled_answers()])
def atomic_answers(similarity: str) -> Scorer:
    """Compare the answer, or the calls that make an image, with the reference."""

    async def score(state: TaskState, target: Target) -> Score:
        unit, loaded = _unit(state), _similarity(similarity)
        counts = score_unit(unit, "end-to-end", similarity=loaded.measure)
        assert isinstance(counts.strict, StrictEndToEndCounts)
        return Score(
            value=round(counts.strict.answer_sum + counts.strict.image_sum, 4),
            explanation=trace_text(unit.task, unit.trace),
            metadata=_metadata(counts, loaded),
        )

    return score


def _unit(state: TaskState) -> Unit:
    return Unit(
        task=read_task(state.metadata),
        trace=read_steps(state.store.get(STEPS)),
        upstream=read_upstream(state.metadata),
        calls=read_calls(state.store.get(CALLS)),
    )


def _pooled(
    mode: Mode, columns: Sequence[str], strict_only: Sequence[str], scores: list[SampleScore]
) -> Value:
    units = [UnitScore.model_validate((one.score.metadata or {})[UNIT]) for one in scores]
    sound = pool_strict(mode, (unit.strict for unit in units))
    upstream = pool_compat(mode, (unit.compat for unit in units if unit.compat is not None))
    return {
        **{f"strict_{name}": _number(getattr(sound, name)) for name in (*columns, *strict_only)},
        **{f"compat_{name}": _number(getattr(upstream, name)) for name in columns},
    }


def _metadata(counts: UnitScore, similarity: Similarity) -> dict[str, Any]:
    return {
        UNIT: counts.model_dump(mode="json"),
        "similarity": similarity.name,
        "scoring_version": SCORING_VERSION,
    }


def _number(value: float | None) -> float:
    """Inspect's metrics are numbers; what cannot be measured is not a number."""
    return float("nan") if value is None else value


@cache
def _similarity(name: str) -> Similarity:
    return load_similarity(name)

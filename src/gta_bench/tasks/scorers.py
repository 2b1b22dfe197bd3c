"""The scorers of GTA-Atomic: both scorings, counted per task and pooled over all."""

from collections.abc import Mapping
from typing import Any

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from gta_bench.metrics.run_scores import SCORING_VERSION, pool_compat, pool_strict, score_unit
from gta_bench.metrics.table import (
    ANS_ACC_I,
    END_TO_END,
    INST_ACC,
    STEP,
    STRICT_END_TO_END,
    STRICT_STEP,
)
from gta_bench.metrics.table import Metric as TableMetric
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import Mode
from gta_bench.records.scores import StrictEndToEndCounts, StrictStepCounts, UnitScore
from gta_bench.records.units import AtomicUnit
from gta_bench.runs.samples import read_task, read_unit_data, read_upstream
from gta_bench.similarity.catalog import Similarity, load_similarity
from gta_bench.tasks.show import explanation, trace_text

UNIT = "unit"


@metric
def pooled_steps() -> Metric:
    """Percentages over all steps of all tasks, strict and compat."""

    def pool(scores: list[SampleScore]) -> Value:
        return _pooled("step", STRICT_STEP, STEP, scores)

    return pool


@metric
def pooled_answers() -> Metric:
    """Percentages over all tasks, strict and compat."""

    def pool(scores: list[SampleScore]) -> Value:
        return _pooled("end-to-end", STRICT_END_TO_END, END_TO_END, scores)

    return pool


@scorer(metrics=[pooled_steps()])
def atomic_steps(similarity: str) -> Scorer:
    """Compare every predicted turn with the reference; the value is the share of right steps."""

    async def score(state: TaskState, target: Target) -> Score:
        unit, loaded = _unit(state), load_similarity(similarity)
        counts = score_unit(unit, "step", similarity=loaded.measure)
        assert isinstance(counts.strict, StrictStepCounts)
        hits, turns = INST_ACC.part(counts.strict)
        return Score(
            value=round(hits / turns, 4),
            explanation=explanation(unit.task, unit.trace, counts.strict.answer_sum),
            metadata=_metadata(counts, loaded),
        )

    return score


@scorer(metrics=[pooled_answers()])
def atomic_answers(similarity: str) -> Scorer:
    """Compare the answer, or the calls that make an image, with the reference."""

    async def score(state: TaskState, target: Target) -> Score:
        unit, loaded = _unit(state), load_similarity(similarity)
        counts = score_unit(unit, "end-to-end", similarity=loaded.measure)
        assert isinstance(counts.strict, StrictEndToEndCounts)
        return Score(
            value=round(ANS_ACC_I.numerator(counts.strict), 4),
            explanation=trace_text(unit.task, unit.trace),
            metadata=_metadata(counts, loaded),
        )

    return score


def _unit(state: TaskState) -> AtomicUnit:
    data = read_unit_data(state.store.items())
    return AtomicUnit(
        task=read_task(state.metadata, AtomicTask),
        trace=data.steps,
        upstream=read_upstream(state.metadata),
        calls=data.calls,
    )


def _pooled(
    mode: Mode,
    strict: Mapping[str, TableMetric[Any]],
    compat: Mapping[str, TableMetric[Any]],
    scores: list[SampleScore],
) -> Value:
    """The shares of both scorings; counts of calls and errors stand in the report."""
    units = [UnitScore.model_validate((one.score.metadata or {})[UNIT]) for one in scores]
    sound = pool_strict(mode, (unit.strict for unit in units))
    upstream = pool_compat(mode, (unit.compat for unit in units if unit.compat is not None))
    return {
        **{f"strict_{name}": _number(getattr(sound, name)) for name in _shares(strict)},
        **{f"compat_{name}": _number(getattr(upstream, name)) for name in _shares(compat)},
    }


def _shares(metrics: Mapping[str, TableMetric[Any]]) -> list[str]:
    return [name for name, row in metrics.items() if row.scale == "percent"]


def _metadata(counts: UnitScore, similarity: Similarity) -> dict[str, Any]:
    return {
        UNIT: counts.model_dump(mode="json"),
        "similarity": similarity.name,
        "scoring_version": SCORING_VERSION,
    }


def _number(value: float | None) -> float:
    """Inspect's metrics are numbers; what cannot be measured is not a number."""
    return float("nan") if value is None else value

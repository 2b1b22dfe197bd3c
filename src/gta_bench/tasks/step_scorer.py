"""The scorer of step mode: both scorings, counted per task and pooled over all."""

from functools import cache
from typing import Any

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from gta_bench.metrics.compat import steps as compat
from gta_bench.metrics.run_scores import SCORING_VERSION, score_unit
from gta_bench.metrics.strict import steps as strict
from gta_bench.records.run import Unit
from gta_bench.records.scores import StepCounts, StrictStepCounts
from gta_bench.runs.samples import STEPS, read_steps, read_task, read_upstream
from gta_bench.similarity.catalog import load_similarity
from gta_bench.similarity.model import Similarity
from gta_bench.tasks.show import explanation

SHOWN = ("inst_acc", "tool_acc", "arg_acc", "summ_acc")


@metric
def pooled_steps() -> Metric:
    """Percentages over all steps of all tasks, strict and compat."""

    def pool(scores: list[SampleScore]) -> Value:
        counts = [score.score.metadata or {} for score in scores]
        sound = strict.pool(StrictStepCounts.model_validate(one["strict"]) for one in counts)
        upstream = compat.pool(StepCounts.model_validate(one["compat"]) for one in counts)
        return {
            **{f"strict_{name}": _number(getattr(sound, name)) for name in (*SHOWN, "arg_typed")},
            **{f"compat_{name}": _number(getattr(upstream, name)) for name in SHOWN},
        }

    return pool


@scorer(metrics=[pooled_steps()])
def atomic_steps(similarity: str) -> Scorer:
    """Compare every predicted turn with the reference; the value is the share of right steps."""

    async def score(state: TaskState, target: Target) -> Score:
        task, steps = read_task(state.metadata), read_steps(state.store.get(STEPS))
        unit = Unit(task=task, trace=steps, upstream=read_upstream(state.metadata))
        loaded = _similarity(similarity)
        counts = score_unit(unit, "step", similarity=loaded.measure)
        assert isinstance(counts.strict, StrictStepCounts)
        return Score(
            value=counts.strict.inst_hits / counts.strict.inst_total,
            explanation=explanation(task, steps),
            metadata=_metadata(counts.model_dump(mode="json"), loaded),
        )

    return score


def _metadata(counts: dict[str, Any], similarity: Similarity) -> dict[str, Any]:
    return {
        "strict": counts["strict"],
        "compat": counts["compat"],
        "similarity": similarity.name,
        "scoring_version": SCORING_VERSION,
    }


def _number(value: float | None) -> float:
    """Inspect's metrics are numbers; what cannot be measured is not a number."""
    return float("nan") if value is None else value


@cache
def _similarity(name: str) -> Similarity:
    return load_similarity(name)

"""End-to-end scores of GTA-Atomic as upstream computes them."""

import json
from collections.abc import Iterable, Sequence

from gta_bench.metrics.categories import CATEGORIES, IMAGE_TOOLS, TOOL_CATEGORY
from gta_bench.metrics.compat.view import StepView, is_scored, score_content, view_step
from gta_bench.metrics.counts import CountSum, sum_counts
from gta_bench.metrics.similarity import SimilarityFunction
from gta_bench.metrics.table import END_TO_END, compat_values
from gta_bench.records.atomic import Answer
from gta_bench.records.scores import Category, CategoryCounts, EndToEndCounts, EndToEndScores
from gta_bench.records.steps import Trace


def count_task(
    prediction: Trace, gold: Trace, answer: Answer | None, *, similarity: SimilarityFunction
) -> EndToEndCounts:
    """Count one task as upstream does."""
    calls, gold_calls = _calls(prediction), _calls(gold)
    scored = is_scored(answer)
    return EndToEndCounts(
        answer_total=int(scored),
        answer_sum=_answer_score(prediction, answer, similarity=similarity) if scored else 0.0,
        image_sum=0.0 if scored else _image_score(calls, gold_calls, similarity=similarity),
        answer_i_total=1,
        categories={category: _count(category, calls, gold_calls) for category in CATEGORIES},
        tool_call=len(calls),
        tool_call_error=sum(call.failed for call in calls),
    )


def pool(counts: Iterable[EndToEndCounts]) -> EndToEndScores:
    """Return upstream's percentages: AnsAcc is 0 without answers, all are None without tasks."""
    return pool_sum(sum_counts(EndToEndCounts, counts))


def pool_sum(tasks: CountSum[EndToEndCounts]) -> EndToEndScores:
    """Return the same from the added counts of all tasks."""
    pooled = compat_values(END_TO_END, tasks.total())
    if not tasks.units:
        pooled |= {name: None for name, one in END_TO_END.items() if one.scale != "count"}
    return EndToEndScores.model_validate({**pooled, "n": tasks.units, "n_tasks": tasks.units})


def _calls(trace: Trace) -> list[StepView]:
    return [step for step in map(view_step, trace) if step.type == "tool"]


def _answer_score(
    prediction: Trace, answer: Answer | None, *, similarity: SimilarityFunction
) -> float:
    last = view_step(prediction[-1]) if prediction else None
    if last is None or last.type != "answer" or not last.content:
        return 0.0
    return score_content(last.content, answer, similarity=similarity)


def _image_score(
    calls: Sequence[StepView], gold_calls: Sequence[StepView], *, similarity: SimilarityFunction
) -> float:
    """Multiply the similarities of the reference's image calls to the last call of each tool."""
    made = {call.name: call.arguments for call in calls if not call.failed}
    score = 1.0
    for gold in gold_calls:
        if gold.name in IMAGE_TOOLS:
            if gold.name not in made:
                return 0.0
            score *= similarity(json.dumps(gold.arguments), json.dumps(made[gold.name]))
    return score


def _count(
    category: Category, calls: Sequence[StepView], gold_calls: Sequence[StepView]
) -> CategoryCounts:
    called = {call.name for call in calls}
    gold = [call.name for call in gold_calls if TOOL_CATEGORY.get(call.name) == category]
    return CategoryCounts(
        gold=len(gold),
        predicted=sum(TOOL_CATEGORY.get(call.name) == category for call in calls),
        # Kept for parity: one call is a hit for each repetition in the reference.
        hits=sum(name in called for name in gold),
    )
